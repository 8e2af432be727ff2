//! Ways to migrate: who serves a key meanwhile. Keys go in their order, and the *cursor* is how far that has come.

use serde::{Deserialize, Serialize};

/// See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Nothing moves.
    #[default]
    Still,
    /// The source serves all keys of a piece until that is copied, and what was changed meanwhile as well. As one piece this is
    /// source-based migration, and Valkey's atomic one; as many it is a cursor.
    Pieces,
    /// The destination serves at once, and asks the source for what it lacks and somebody waits for (Rocksteady).
    AtOnce,
    /// Writes go to the destination; reads of what has not gone go to both (Fulva).
    Writes,
    /// Each batch is at neither end while it goes: both wait (`MIGRATE` of Redis).
    Stopped,
}

/// Where a client asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Who had all of it.
    Source,
    /// Who is to have it.
    Destination,
    /// What the destination says counts, if it has the key.
    Both,
}

/// What an end does about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
    /// It serves.
    Serve,
    /// The other one does.
    Correct,
    /// It serves once it has the pair, and lets it come.
    Fetch,
}

impl Way {
    const ALL: [Way; 5] = [Way::Still, Way::Pieces, Way::AtOnce, Way::Writes, Way::Stopped];

    /// As a byte of a head.
    pub fn byte(self) -> u8 {
        self as u8
    }

    /// Of that byte.
    pub fn of(byte: u8) -> Option<Way> {
        Way::ALL.get(usize::from(byte)).copied()
    }

    /// Where a client that knows this cursor asks.
    pub fn place(self, is_write: bool, is_below: bool) -> Place {
        match self {
            Way::Still => Place::Source,
            Way::AtOnce => Place::Destination,
            Way::Writes if !is_write && !is_below => Place::Both,
            Way::Writes => Place::Destination,
            Way::Pieces | Way::Stopped if is_below => Place::Destination,
            Way::Pieces | Way::Stopped => Place::Source,
        }
    }

    /// What the source does about a request of a client that believes in `asked`.
    pub fn of_source(self, asked: Way, is_write: bool, is_below: bool) -> Duty {
        match self {
            Way::Still => Duty::Serve,
            Way::AtOnce => Duty::Correct,
            // Who does not know that others write elsewhere would take what is here for the newest.
            Way::Writes if is_write || asked != Way::Writes => Duty::Correct,
            Way::Writes => Duty::Serve,
            Way::Pieces | Way::Stopped if is_below => Duty::Correct,
            Way::Pieces | Way::Stopped => Duty::Serve,
        }
    }

    /// What the destination does; `has` is whether it has the pair.
    pub fn of_destination(self, is_write: bool, is_below: bool, has: bool) -> Duty {
        match self {
            Way::Still => Duty::Correct,
            Way::AtOnce if !is_write && !has => Duty::Fetch,
            Way::AtOnce | Way::Writes => Duty::Serve,
            // A copy that is here already is not the newest.
            Way::Pieces | Way::Stopped if is_below => Duty::Serve,
            Way::Pieces | Way::Stopped => Duty::Correct,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_asked_serves_and_no_key_is_written_at_both_ends() {
        for way in Way::ALL {
            assert_eq!(Way::of(way.byte()), Some(way));
            for (is_write, is_below, has) in (0..8).map(|bits| (bits & 1 > 0, bits & 2 > 0, bits & 4 > 0)) {
                let at_source = way.of_source(way, is_write, is_below);
                let at_destination = way.of_destination(is_write, is_below, has);
                let serves = (at_source == Duty::Serve, at_destination != Duty::Correct);
                match way.place(is_write, is_below) {
                    Place::Source => assert!(serves.0, "{way:?}"),
                    Place::Destination => assert!(serves.1, "{way:?}"),
                    Place::Both => assert!(serves == (true, true) && !is_write, "{way:?}"),
                }
                assert!(!is_write || serves.0 != serves.1, "{way:?} writes at one end");
                let stale = way.of_source(Way::Still, is_write, is_below);
                assert!(way != Way::Writes || stale == Duty::Correct, "who knows nothing reads nothing old");
            }
        }
        assert_eq!(Way::of(5), None);
    }
}
