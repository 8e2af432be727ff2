//! Requests for several nodes: what is sent to whom, and the one reply that is made of all their replies.
//!
//! ```text
//!  MGET a b c ─► split: slots of a, c │ of b ─► a part to each holder ─► replies ─► join ─► [a b c]
//! ```
//!
//! Parts are carried out when they arrive, not at one moment; DoubleFaceAD's fan-out, with a reply for each key.

mod join;
mod split;

pub use join::{Answered, each_item, items, join};
pub use split::{Part, Share, request_for, shares, split, split_as, with_slots};

/// What becomes of a command in a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// It goes to the holder of its first key; without keys to anybody.
    Key,
    /// From its first argument on there are keys, every so many arguments, each for itself.
    Apart {
        /// Arguments from one key to the next.
        step: usize,
        /// How the reply is made.
        gathering: Gathering,
    },
    /// All holders carry it out.
    All(Gathering),
    /// One holder after the other, behind a cursor.
    Walk,
}

/// How one reply is made of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gathering {
    /// Each part's elements go to the places of its keys.
    Elements,
    /// Numbers are added.
    Sum,
    /// All say the same.
    Agreed,
    /// Arrays behind one another.
    Joined,
    /// Any one that is not nil, if there is one.
    Any,
    /// Arrays of numbers of the same length: the least at each place.
    Least,
    /// One holder's `[cursor, keys]`; the cursor then says which holder's it is.
    Walk {
        /// Its place among them.
        place: u16,
        /// The place at which to go on behind its last key, unless it is the last one.
        next: Option<u16>,
    },
}

impl Spread {
    /// Of a command by its full name in lower case.
    pub fn of(name: &str) -> Spread {
        let apart = |step, gathering| Spread::Apart { step, gathering };
        match name {
            "mget" => apart(1, Gathering::Elements),
            "del" | "unlink" | "exists" | "touch" => apart(1, Gathering::Sum),
            "mset" => apart(2, Gathering::Agreed),
            "dbsize" => Spread::All(Gathering::Sum),
            "keys" => Spread::All(Gathering::Joined),
            "randomkey" => Spread::All(Gathering::Any),
            "script|exists" => Spread::All(Gathering::Least),
            "flushall" | "flushdb" | "script|load" | "script|flush" | "function|load" | "function|delete"
            | "function|flush" | "function|restore" => Spread::All(Gathering::Agreed),
            "scan" => Spread::Walk,
            _ => Spread::Key,
        }
    }
}

/// Bits of a walk's cursor that say which holder it is at.
const PLACE_BITS: u32 = 14;
const _: () = assert!(base::limits::ROUTED_NODES_MAX <= 1 << PLACE_BITS);

/// A cursor of a walk over all holders: at which one it is, and the cursor there.
pub fn read_cursor(cursor: u64) -> (u16, u64) {
    ((cursor & ((1 << PLACE_BITS) - 1)) as u16, cursor >> PLACE_BITS)
}

/// The cursor that says both; `None` if the holder's own is too large for it.
pub fn write_cursor(place: u16, inner: u64) -> Option<u64> {
    let whole = inner.checked_shl(PLACE_BITS).filter(|whole| whole >> PLACE_BITS == inner)?;
    Some(whole | u64::from(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_says_where_it_is_and_does_not_lose_bits() {
        for (place, inner) in [(0, 0), (0, 7), (16_383, 0), (3, (1 << 50) - 1)] {
            assert_eq!(write_cursor(place, inner).map(read_cursor), Some((place, inner)));
        }
        assert_eq!(write_cursor(0, 1 << 50), None);
    }
}
