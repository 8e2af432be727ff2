//! `MOVED` and `ASK`: where else a request is to go (Redis Cluster specification).

use super::place::Place;
use base::Slot;

/// What such an error says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// This once, behind `ASKING`; the slot stays where it is for others.
    pub is_ask: bool,
    /// Which slot.
    pub slot: Slot,
    /// Where.
    pub place: Place,
}

impl Redirect {
    /// Of an error's text without its marker: `MOVED slot host:port`. An empty host is `host_unknown`, the one that says so. What
    /// names no slot or no place is an error like others.
    pub fn of(error: &[u8], host_unknown: &str) -> Option<Redirect> {
        let text = std::str::from_utf8(error).ok()?;
        let mut words = text.trim_end().split(' ');
        let is_ask = match words.next()? {
            "MOVED" => false,
            "ASK" => true,
            _ => return None,
        };
        let slot = Slot::new(words.next()?.parse().ok()?)?;
        Some(Redirect { is_ask, slot, place: Place::parse(words.next()?, host_unknown)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_names_a_slot_and_a_place_or_is_none() {
        let of = |text: &str| Redirect::of(text.as_bytes(), "own").map(|redirect| (redirect.is_ask, redirect.place));
        let place = |host: &str, port| Place { host: host.to_owned(), port };
        assert_eq!(of("MOVED 7 10.0.0.1:7001\r\n"), Some((false, place("10.0.0.1", 7001))));
        assert_eq!(of("ASK 16383 :7001"), Some((true, place("own", 7001))));
        assert_eq!(of("MOVED 7 [::1]:7001"), of("MOVED 7 ::1:7001"));
        for other in [
            "MOVED 16384 h:1",
            "MOVED x h:1",
            "MOVED 7 h",
            "MOVED 7",
            "MOVED",
            "ERR MOVED 7 h:1",
            "MOVEDX 7 h:1",
            "moved 7 h:1",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
