//! Virtual time: what is to come, by its moment; among things of one moment chance decides, and that is the seed's.

use std::collections::BTreeMap;

/// A queue of things to come; taking one moves the clock to it.
pub struct Agenda<T> {
    now_us: u64,
    planned: u64,
    items: BTreeMap<(u64, u64, u64), T>,
}

impl<T> Default for Agenda<T> {
    fn default() -> Self {
        Agenda { now_us: 0, planned: 0, items: BTreeMap::new() }
    }
}

impl<T> Agenda<T> {
    /// Microseconds since the world began.
    pub fn now_us(&self) -> u64 {
        self.now_us
    }

    /// Plan `item` for `delay_us` from now; `lot` decides among those of one moment.
    pub fn after(&mut self, delay_us: u64, lot: u64, item: T) {
        self.planned += 1;
        self.items.insert((self.now_us + delay_us, lot, self.planned), item);
    }

    /// The next thing; the clock moves to it.
    pub fn pop(&mut self) -> Option<T> {
        let ((at_us, _, _), item) = self.items.pop_first()?;
        self.now_us = at_us;
        Some(item)
    }
}
