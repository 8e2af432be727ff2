//! What a counter may stand at: every acknowledged increment is in it, and every one whose fate nobody told may be.

use serde::Serialize;

/// The account of one counter, which has one writer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Ledger {
    /// Increments that were acknowledged.
    pub acknowledged: u64,
    /// Acknowledged increments that are not there any more. Each increment whose fate nobody told may hide one of them.
    pub lost: u64,
    /// Increments that are there and that nobody sent, or that were done twice.
    pub unasked: u64,
    /// Tries of which nobody told whether they were done.
    pub in_doubt: u64,
    /// The least that it may stand at.
    floor: u64,
    /// The most that it may stand at.
    ceiling: u64,
}

impl Ledger {
    /// A try is on its way: it may be done from now on. The value that it makes of the counter if everything before it was done,
    /// which is what a try that sets instead of increments has to say.
    pub fn sent(&mut self) -> u64 {
        self.ceiling += 1;
        self.ceiling
    }

    /// The value that the last try makes of the counter.
    pub fn asked(&self) -> u64 {
        self.ceiling
    }

    /// The last try was refused in words, or never left: it is not done.
    pub fn refused(&mut self) {
        self.ceiling -= 1;
    }

    /// The last try went unanswered.
    pub fn unanswered(&mut self) {
        self.in_doubt += 1;
    }

    /// The last try was acknowledged, and made it `value`.
    pub fn acknowledged(&mut self, value: u64) {
        self.acknowledged += 1;
        self.floor += 1;
        self.stands_at(value);
    }

    /// It was seen to be `value`; an absent one is 0.
    pub fn stands_at(&mut self, value: u64) {
        self.lost += self.floor.saturating_sub(value);
        self.unasked += value.saturating_sub(self.ceiling);
        (self.floor, self.ceiling) = (value, value);
    }
}

#[cfg(test)]
mod tests {
    use super::Ledger;

    fn acknowledged(count: u64) -> Ledger {
        let mut ledger = Ledger::default();
        for value in 1..=count {
            ledger.sent();
            ledger.acknowledged(value);
        }
        ledger
    }

    #[test]
    fn a_counter_that_has_everything_lost_nothing() {
        let mut ledger = acknowledged(5);
        ledger.stands_at(5);
        assert_eq!((ledger.acknowledged, ledger.lost, ledger.unasked), (5, 0, 0));
    }

    #[test]
    fn what_was_acknowledged_and_is_gone_is_counted_once() {
        let mut ledger = acknowledged(5);
        ledger.sent();
        ledger.acknowledged(3);
        assert_eq!((ledger.acknowledged, ledger.lost), (6, 3), "two of five were left, and one came");
        ledger.stands_at(3);
        assert_eq!(ledger.lost, 3);
        ledger.stands_at(0);
        assert_eq!(ledger.lost, 6, "an absent counter has lost all that it had");
    }

    #[test]
    fn an_unanswered_try_may_be_there_and_need_not() {
        for (value, unasked) in [(6, 0), (7, 0), (8, 1)] {
            let mut ledger = acknowledged(5);
            ledger.sent();
            ledger.unanswered();
            ledger.sent();
            ledger.acknowledged(value);
            assert_eq!((ledger.lost, ledger.unasked, ledger.in_doubt), (0, unasked, 1), "{value}");
        }
    }

    #[test]
    fn a_refused_try_must_not_be_there() {
        let mut ledger = acknowledged(5);
        ledger.sent();
        ledger.refused();
        ledger.stands_at(6);
        assert_eq!((ledger.lost, ledger.unasked), (0, 1));
    }
}
