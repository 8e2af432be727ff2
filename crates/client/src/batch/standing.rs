//! How a batcher stands: what waits, and what is out.

use super::batcher::Batcher;

impl<T> Batcher<T> {
    /// Batches that are not answered.
    pub fn batches_in_flight(&self) -> usize {
        self.in_flight.batches
    }

    /// Bytes that wait.
    #[inline]
    pub fn waiting_bytes(&self) -> usize {
        self.relaxed.bytes.len() + self.urgent.bytes.len()
    }

    /// Requests that wait.
    pub fn waiting_items(&self) -> usize {
        self.relaxed.items.len() + self.urgent.items.len()
    }

    /// Those that wait.
    pub fn items_waiting(&self) -> impl Iterator<Item = &T> {
        self.relaxed.items.iter().chain(&self.urgent.items)
    }

    /// Whether answers come later than expected: deadlines are kept as well as possible, and no longer guaranteed.
    pub fn is_best_effort(&self) -> bool {
        self.tuner.is_best_effort()
    }
}
