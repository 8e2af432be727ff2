//! Virtual time: what is going to happen, in order of time and, at the same microsecond, of planning.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A queue of things to come; popping one moves the clock to it.
pub struct Agenda<T> {
    now_us: u64,
    planned: u64,
    heap: BinaryHeap<Entry<T>>,
}

struct Entry<T> {
    at_us: u64,
    order: u64,
    item: T,
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        // Reversed: the standard heap gives the largest first.
        (other.at_us, other.order).cmp(&(self.at_us, self.order))
    }
}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Entry<T> {}

impl<T> Default for Agenda<T> {
    fn default() -> Self {
        Agenda { now_us: 0, planned: 0, heap: BinaryHeap::new() }
    }
}

impl<T> Agenda<T> {
    /// Microseconds since the world began.
    pub fn now_us(&self) -> u64 {
        self.now_us
    }

    /// Plan `item` for `delay_us` from now.
    pub fn after(&mut self, delay_us: u64, item: T) {
        self.at(self.now_us + delay_us, item);
    }

    /// Plan `item` for a moment; one that has passed means now.
    pub fn at(&mut self, at_us: u64, item: T) {
        self.planned += 1;
        self.heap.push(Entry { at_us: at_us.max(self.now_us), order: self.planned, item });
    }

    /// The next thing; the clock moves to it.
    pub fn pop(&mut self) -> Option<T> {
        let entry = self.heap.pop()?;
        self.now_us = self.now_us.max(entry.at_us);
        Some(entry.item)
    }

    /// When the next thing happens.
    pub fn next_us(&self) -> Option<u64> {
        self.heap.peek().map(|entry| entry.at_us)
    }

    /// Moves the clock to a moment before which nothing is planned, because something happened elsewhere.
    pub fn advance(&mut self, now_us: u64) {
        self.now_us = self.now_us.max(now_us);
    }
}

#[cfg(test)]
mod tests {
    use super::Agenda;

    #[test]
    fn order_is_time_then_planning() {
        let mut agenda = Agenda::default();
        agenda.after(5, 'c');
        agenda.after(1, 'a');
        agenda.after(1, 'b');
        assert_eq!([agenda.pop(), agenda.pop(), agenda.pop()], [Some('a'), Some('b'), Some('c')]);
        assert_eq!(agenda.now_us(), 5);
        agenda.at(2, 'd');
        assert_eq!(agenda.pop(), Some('d'));
        assert_eq!(agenda.now_us(), 5, "the clock never goes back");
        agenda.after(10, 'e');
        agenda.advance(12);
        assert_eq!((agenda.next_us(), agenda.now_us()), (Some(15), 12));
    }
}
