//! Gathering: callers who were answered together ask again together.
//!
//! ```text
//!  one read answers many ─► they wake one after the other ─► the first one that asks holds what is due
//!                                                            the others ask meanwhile ─► the last one sends for all
//! ```
//!
//! If the first one sent at once, its request would travel alone and those of all others would wait for that round trip. A lonely
//! caller is never held up: of those who were answered together it is the last that asks. Who does something else between two
//! requests holds the others up, for a moment: where that happens nobody gathers for a while, longer each time.

/// A thread that gathers sends after so long, microseconds: about a round trip of a network that is near, and for each of the others
/// what a processor takes to let it run.
const THREAD_US_MAX: u64 = 50;
const EACH_US_MAX: u64 = 5;
/// A task that gathers has its next turn when the others had theirs. Should it never be polled again, somebody else sends then,
/// microseconds.
const TASK_US_MAX: u64 = 1_000;
/// Times that nobody gathers after it was in vain once more.
const SKIPS_MAX: u32 = 256;

/// Who gathers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gatherer {
    /// A thread, which sends when the time is over.
    Thread,
    /// A task, which looks again.
    Task,
}

/// Which gathering: another one when this one ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Round(u64);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Gathering {
    is_used: bool,
    /// Callers who were answered since the last batch left, and did not ask again.
    expected: usize,
    /// Somebody gathers, and until when.
    held: Option<(Gatherer, u64)>,
    round: u64,
    /// So many times nobody gathers, and how many it will be the next time that it was in vain.
    skips: u32,
    skips_next: u32,
}

impl Gathering {
    /// One where callers gather, or never do.
    pub fn new(is_used: bool) -> Gathering {
        Gathering { is_used, ..Gathering::default() }
    }

    /// Somebody was answered.
    #[inline]
    pub fn answered(&mut self) {
        self.expected += 1;
    }

    /// Somebody asked: the last one that was waited for ends it.
    #[inline]
    pub fn asked(&mut self) {
        self.expected = self.expected.saturating_sub(1);
        if self.expected == 0 && self.held.is_some() {
            self.skips_next = 0;
            self.end();
        }
    }

    /// Whether who asked now, when something is due, is to gather those who are still expected.
    #[inline]
    pub fn begin(&mut self, now_us: u64, gatherer: Gatherer) -> Option<Round> {
        // A task has its turn sooner than a thread's time is over.
        let is_free = self.held.is_none_or(|(other, _)| (other, gatherer) == (Gatherer::Thread, Gatherer::Task));
        if self.expected == 0 || !is_free || !self.is_used {
            return None;
        }
        if gatherer == Gatherer::Thread && self.skips > 0 {
            self.skips -= 1;
            return None;
        }
        let us = match gatherer {
            Gatherer::Thread => (THREAD_US_MAX + EACH_US_MAX * self.expected as u64).min(TASK_US_MAX),
            Gatherer::Task => TASK_US_MAX,
        };
        self.held = Some((gatherer, now_us + us));
        Some(Round(self.round))
    }

    /// Whether what is due waits for others.
    #[inline]
    pub fn holds(&self, now_us: u64) -> bool {
        self.held.is_some_and(|(_, until_us)| now_us < until_us)
    }

    /// When whoever gathers, or else the background thread, is to look.
    pub fn until_us(&self) -> Option<u64> {
        self.held.map(|(_, until_us)| until_us)
    }

    /// Whether that one is not over.
    pub fn is_in(&self, round: Round) -> bool {
        self.round == round.0
    }

    /// Callers were answered, and may begin to gather.
    pub fn expected_until_us(&self, now_us: u64) -> Option<u64> {
        (self.expected > 1).then_some(now_us + TASK_US_MAX)
    }

    /// Nobody is waited for any more.
    #[inline]
    pub fn end(&mut self) {
        if self.expected > 0 && matches!(self.held, Some((Gatherer::Thread, _))) {
            self.skips_next = (2 * self.skips_next).clamp(1, SKIPS_MAX);
            self.skips = self.skips_next;
        }
        (self.expected, self.held) = (0, None);
        self.round += 1;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn after(answered: usize) -> Gathering {
        let mut gathering = Gathering::new(true);
        (0..answered).for_each(|_| gathering.answered());
        gathering
    }

    #[test]
    fn a_lonely_caller_never_gathers() {
        for answered in [0, 1] {
            let mut gathering = after(answered);
            gathering.asked();
            assert_eq!(gathering.begin(5, Gatherer::Thread), None, "{answered}");
            assert!(!gathering.holds(5));
        }
    }

    #[test]
    fn the_first_of_many_gathers_until_the_last_one_asked() {
        let mut gathering = after(3);
        gathering.asked();
        let round = gathering.begin(5, Gatherer::Thread).unwrap();
        gathering.asked();
        assert_eq!(gathering.begin(6, Gatherer::Thread), None, "one is enough");
        assert!(gathering.holds(6) && gathering.is_in(round));
        gathering.asked();
        assert!(!gathering.holds(6) && !gathering.is_in(round));
    }

    #[test]
    fn what_is_held_leaves_in_the_end() {
        for (gatherer, us) in [(Gatherer::Thread, THREAD_US_MAX + EACH_US_MAX), (Gatherer::Task, TASK_US_MAX)] {
            let mut gathering = after(2);
            gathering.asked();
            gathering.begin(5, gatherer).unwrap();
            assert_eq!(gathering.until_us(), Some(5 + us));
            assert!(gathering.holds(4 + us) && !gathering.holds(5 + us));
        }
    }

    #[test]
    fn threads_that_wait_in_vain_do_so_ever_less_often() {
        let mut gathering = Gathering::new(true);
        let mut times = 0;
        for _ in 0..10_000 {
            (0..2).for_each(|_| gathering.answered());
            gathering.asked();
            times += u32::from(gathering.begin(0, Gatherer::Thread).is_some());
            gathering.end();
        }
        assert!((30..60).contains(&times), "{times}");
        // It is worth it again.
        while gathering.begin(0, Gatherer::Thread).is_none() {
            gathering.answered();
        }
        (0..1000).for_each(|_| gathering.asked());
        for _ in 0..100 {
            (0..2).for_each(|_| gathering.answered());
            gathering.asked();
            assert!(gathering.begin(0, Gatherer::Thread).is_some());
            gathering.asked();
        }
    }
}
