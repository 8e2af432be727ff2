//! What relaxed requests are held to while others' deadlines are to be kept at the same destination: a destination that works on
//! one request after the other lets an urgent one wait for all that lies there, whichever connection brought it.

use super::batcher::Batcher;
use base::limits;

/// Requests without a deadline that are taken under any restraint, waiting or out: what is held back gets on.
const ITEMS_MIN: usize = 16;

/// See the module. The default holds nothing back.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Restraint {
    work_us: Option<u64>,
}

impl Restraint {
    /// Whether so many that wait are to go, though others are out: in halves, so that the destination works on one while the
    /// other is made.
    #[inline]
    pub(super) fn is_half(&self, count: usize, work_us: impl FnOnce() -> u64) -> bool {
        self.work_us.is_some_and(|most_us| 2 * count >= ITEMS_MIN && 2 * work_us() >= most_us)
    }
}

impl<T> Batcher<T> {
    /// While others' deadlines are to be kept at this destination: so much of its work may lie there, microseconds as estimated;
    /// requests without a deadline that come on top are refused. `None` is no restraint.
    pub fn restrain(&mut self, work_us: Option<u64>) {
        self.restraint = Restraint { work_us };
    }

    /// Whether it is restrained at all.
    #[inline]
    pub fn is_restrained(&self) -> bool {
        self.restraint.work_us.is_some()
    }

    /// Whether a request without a deadline would be refused for the restraint.
    #[inline]
    pub fn is_held_back(&self) -> bool {
        let Some(most_us) = self.restraint.work_us else { return false };
        self.items() >= ITEMS_MIN && self.work_us() >= most_us
    }

    /// What waits and what is out as work of the destination, microseconds as estimated.
    #[inline]
    pub fn work_us(&self) -> u64 {
        let (items, bytes) = self.load();
        self.model.work_us(items, bytes)
    }

    /// What waits and what is out: requests, and their bytes.
    #[inline]
    pub fn load(&self) -> (usize, usize) {
        (self.items(), self.waiting_bytes() + self.in_flight.bytes)
    }

    /// Whether the destination has more to work on than anybody should wait for.
    #[inline]
    pub(super) fn is_overloaded(&self) -> bool {
        self.items() > limits::BATCH_ITEMS_UNJUDGED && self.work_us() > self.bounds.work_us_max
    }

    #[inline]
    fn items(&self) -> usize {
        self.waiting_items() + self.in_flight.items
    }
}
