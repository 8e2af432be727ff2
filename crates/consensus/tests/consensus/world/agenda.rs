//! Virtual time: what is to come, by its moment; among things of one moment chance decides, and that is the seed's.

use std::collections::BTreeMap;

/// A queue of things to come; taking one moves the clock to it.
pub struct Agenda<T> {
    now_ns: u64,
    planned: u64,
    items: BTreeMap<(u64, u64, u64), T>,
}

impl<T> Default for Agenda<T> {
    fn default() -> Self {
        Agenda { now_ns: 0, planned: 0, items: BTreeMap::new() }
    }
}

impl<T> Agenda<T> {
    /// Nanoseconds since the world began.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Plan `item` for `delay_ns` from now.
    pub fn after(&mut self, delay_ns: u64, lot: u64, item: T) {
        self.at(self.now_ns + delay_ns, lot, item);
    }

    /// Plan `item` for a moment; one that has passed means now. `lot` decides among those of one moment.
    pub fn at(&mut self, at_ns: u64, lot: u64, item: T) {
        self.planned += 1;
        self.items.insert((at_ns.max(self.now_ns), lot, self.planned), item);
    }

    /// The next thing; the clock moves to it.
    pub fn pop(&mut self) -> Option<T> {
        let ((at_ns, _, _), item) = self.items.pop_first()?;
        self.now_ns = at_ns;
        Some(item)
    }
}
