//! Gathering: callers who were answered together ask again together.
//!
//! ```text
//!  one read answers many ─► they wake one after the other ─► the first one that asks: yields, or looks again later
//!                                                            the others ask meanwhile ─► one write for all
//! ```
//!
//! If the first one sent at once, its request would travel alone and those of all others would wait for that round trip. A lonely
//! caller is never held up: of those who were answered together it is the last that asks.

/// A task that gathers may never be polled again: after so long somebody else sends, microseconds.
const GATHER_US_MAX: u64 = 1_000;

/// Who gathers, and for whom.
#[derive(Debug, Default)]
pub(super) struct Gathering {
    /// Callers who were answered since the last batch left, and did not ask again.
    expected: usize,
    /// What is due is held until then, unless whoever gathers comes before; 0: nobody gathers.
    until_us: u64,
    /// A thread gathers, which is sure to come.
    is_sure: bool,
}

impl Gathering {
    /// Somebody was answered.
    #[inline]
    pub fn answered(&mut self) {
        self.expected += 1;
    }

    /// Somebody asked: the last one that was waited for ends it.
    #[inline]
    pub fn asked(&mut self) {
        self.expected = self.expected.saturating_sub(1);
        if self.expected == 0 {
            self.end();
        }
    }

    /// Whether who asked now is to gather for those who are still expected: a thread yields, a task looks again; then it
    /// [ends](Gathering::end) it and sends.
    #[inline]
    pub fn begin(&mut self, now_us: u64, is_thread: bool) -> bool {
        let is_begun = self.expected > 0 && !self.holds(now_us);
        if is_begun {
            (self.until_us, self.is_sure) = (now_us + GATHER_US_MAX, is_thread);
        }
        is_begun
    }

    /// Whether what is due waits for others.
    #[inline]
    pub fn holds(&self, now_us: u64) -> bool {
        now_us < self.until_us
    }

    /// When somebody else has to look; `None` if whoever gathers is sure to.
    pub fn look_us(&self) -> Option<u64> {
        Some(self.until_us).filter(|_| !self.is_sure)
    }

    /// Callers were answered, and may begin to gather.
    pub fn expected_until_us(&self, now_us: u64) -> Option<u64> {
        (self.expected > 1).then_some(now_us + GATHER_US_MAX)
    }

    /// Nobody is waited for.
    #[inline]
    pub fn end(&mut self) {
        *self = Gathering::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(answered: usize) -> Gathering {
        let mut gathering = Gathering::default();
        (0..answered).for_each(|_| gathering.answered());
        gathering
    }

    #[test]
    fn a_lonely_caller_never_gathers() {
        for answered in [0, 1] {
            let mut gathering = after(answered);
            gathering.asked();
            assert!(!gathering.begin(5, true), "{answered}");
            assert!(!gathering.holds(5));
        }
    }

    #[test]
    fn the_first_of_many_gathers_until_the_last_one_asked() {
        let mut gathering = after(3);
        gathering.asked();
        assert!(gathering.begin(5, true));
        gathering.asked();
        assert!(!gathering.begin(6, true), "one is enough");
        assert!(gathering.holds(6));
        assert_eq!(gathering.look_us(), None, "a thread comes back");
        gathering.asked();
        assert!(!gathering.holds(6));
    }

    #[test]
    fn what_a_task_gathers_for_is_sent_by_somebody_else_in_the_end() {
        let mut gathering = after(2);
        gathering.asked();
        assert!(gathering.begin(5, false));
        assert_eq!(gathering.look_us(), Some(5 + GATHER_US_MAX));
        assert!(gathering.holds(4 + GATHER_US_MAX) && !gathering.holds(5 + GATHER_US_MAX));
    }
}
