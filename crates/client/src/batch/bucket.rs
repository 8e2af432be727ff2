//! A bucket: requests that will go in one write, already as they will stand on the wire.

use super::callers::Callers;

/// A bucket without a deadline.
pub(super) const NEVER_US: u64 = u64::MAX;

/// The bytes and items of a bucket or of a batch.
pub(super) type Buffers<T> = (Vec<u8>, Vec<T>);

/// Requests that wait together. Its vectors are handed out with the batch and come back empty for reuse.
#[derive(Debug)]
pub(super) struct Bucket<T> {
    pub(super) bytes: Vec<u8>,
    pub(super) items: Vec<T>,
    pub(super) callers: Callers,
    /// When the first of them came, microseconds.
    pub(super) first_us: u64,
    /// The earliest time at which one of them is to be answered, microseconds; [`NEVER_US`] without any.
    pub(super) deadline_us: u64,
}

impl<T> Default for Bucket<T> {
    fn default() -> Bucket<T> {
        Bucket { bytes: Vec::new(), items: Vec::new(), callers: Callers::default(), first_us: 0, deadline_us: NEVER_US }
    }
}

impl<T> Bucket<T> {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// One request more; the caller is noted by the batcher, who knows whether anybody will ask.
    #[inline]
    pub(super) fn push(&mut self, now_us: u64, deadline_us: u64, item: T, encode: impl FnOnce(&mut Vec<u8>)) {
        if self.items.is_empty() {
            self.first_us = now_us;
        }
        self.deadline_us = self.deadline_us.min(deadline_us);
        self.items.push(item);
        encode(&mut self.bytes);
    }

    /// What waits, in the given empty vectors' place.
    pub(super) fn take(&mut self, spare: Buffers<T>) -> Buffers<T> {
        debug_assert!(spare.0.is_empty() && spare.1.is_empty(), "buffers come back empty");
        self.deadline_us = NEVER_US;
        self.callers.clear();
        (std::mem::replace(&mut self.bytes, spare.0), std::mem::replace(&mut self.items, spare.1))
    }

    /// Moves what waits behind what `target` has.
    pub(super) fn append_to(&mut self, target: &mut Buffers<T>) {
        self.deadline_us = NEVER_US;
        self.callers.clear();
        target.0.append(&mut self.bytes);
        target.1.append(&mut self.items);
    }
}
