//! What was wrong with what came from another node, how often, and when somebody is told.

/// Between two times that somebody is told, microseconds.
const SAID_US: u64 = 60_000_000;

/// Why a connection between nodes was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distrust {
    /// What came is no handshake.
    Stranger,
    /// It is of another cluster.
    OtherCluster,
    /// It is meant for somebody else, or comes from here.
    OtherEnd,
    /// It has not this cluster's token.
    NoProof,
    /// It proved nothing in time, or there were too many of its kind.
    Late,
    /// A frame is not the next one of who has proved itself.
    Frame,
}

impl std::fmt::Display for Distrust {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Distrust::Stranger => "it does not speak as a node does",
            Distrust::OtherCluster => "it is of another cluster",
            Distrust::OtherEnd => "it meant another node, or another start of this one",
            Distrust::NoProof => "it has not this cluster's token",
            Distrust::Late => "it proved nothing in time",
            Distrust::Frame => "a frame was forged, replayed or damaged",
        })
    }
}

/// How often, and when that was said last.
#[derive(Debug, Default)]
pub struct Distrusted {
    count: u64,
    /// What is to be said, and not before this time, microseconds.
    text: Option<String>,
    quiet_until_us: u64,
}

impl Distrusted {
    /// Once more, with who is at `address`.
    pub fn note(&mut self, address: &str, why: Distrust) {
        self.count += 1;
        self.text = Some(format!("a connection with {address} between nodes was ended: {why}"));
    }

    /// How often so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// What is to be said now, if anything: at most once a minute.
    pub fn poll(&mut self, now_us: u64) -> Option<String> {
        if self.text.is_none() || now_us < self.quiet_until_us {
            return None;
        }
        self.quiet_until_us = now_us + SAID_US;
        self.text.take().map(|text| format!("{text} ({} since the start)", self.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_at_once_and_then_once_a_minute() {
        let mut distrusted = Distrusted::default();
        assert_eq!(distrusted.poll(5), None);
        distrusted.note("10.0.0.1:5", Distrust::NoProof);
        let said = distrusted.poll(5).expect("the first one");
        assert!(said.contains("10.0.0.1:5") && said.contains("token") && said.contains("(1 since"), "{said}");
        (0..99).for_each(|_| distrusted.note("10.0.0.2:6", Distrust::Frame));
        assert_eq!(distrusted.poll(5 + SAID_US - 1), None);
        let said = distrusted.poll(5 + SAID_US).expect("a minute later");
        assert!(said.contains("10.0.0.2:6") && said.contains("(100 since"), "{said}");
        assert_eq!((distrusted.poll(u64::MAX), distrusted.count()), (None, 100));
    }
}
