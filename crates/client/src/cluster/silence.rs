//! How long a node has owed somebody a reply without a word.

use base::limits::NODE_SILENT_US_MAX;

/// Of one lane. A node that answers others meanwhile is not silent, however long it takes over one request.
///
/// ```text
///   nothing owed ── asked ──► owing since then ── a word, and more is owed ──► owing since the word
///        ▲                        │
///        └── nothing owed ────────┘
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Silence {
    since_us: Option<u64>,
}

impl Silence {
    /// Somebody asks it something.
    #[inline]
    pub fn asked(&mut self, now_us: u64) {
        self.since_us.get_or_insert(now_us);
    }

    /// It said something, or its connection began or ended; whether it owes a reply after that.
    #[inline]
    pub fn heard(&mut self, now_us: u64, owes: bool) {
        self.since_us = owes.then_some(now_us);
    }

    /// For how long it has said nothing, microseconds; 0 if it owes nothing.
    pub fn us(&self, now_us: u64) -> u64 {
        self.since_us.map_or(0, |since_us| now_us.saturating_sub(since_us))
    }

    /// Whether that is so long that it may stand still, or be gone.
    pub fn is_long(&self, now_us: u64) -> bool {
        self.us(now_us) >= NODE_SILENT_US_MAX
    }

    /// When it will be so long if nothing is heard, microseconds.
    pub fn due_us(&self) -> Option<u64> {
        self.since_us.map(|since_us| since_us + NODE_SILENT_US_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_silent_that_owes_something_and_says_nothing() {
        let mut silence = Silence::default();
        assert!(!silence.is_long(u64::MAX) && silence.due_us().is_none());
        silence.asked(10);
        silence.asked(NODE_SILENT_US_MAX);
        assert_eq!(silence.due_us(), Some(10 + NODE_SILENT_US_MAX), "the first one waits the longest");
        assert!(!silence.is_long(NODE_SILENT_US_MAX + 9) && silence.is_long(NODE_SILENT_US_MAX + 10));
        silence.heard(NODE_SILENT_US_MAX + 10, true);
        assert!(!silence.is_long(2 * NODE_SILENT_US_MAX) && silence.is_long(2 * NODE_SILENT_US_MAX + 10));
        silence.heard(2 * NODE_SILENT_US_MAX + 10, false);
        assert!(!silence.is_long(u64::MAX));
    }
}
