//! A stretch of outgoing bytes with the marks behind which a promise has to hold first.

use base::{Horizon, Promise};
use std::collections::VecDeque;

/// Bytes from `from` on leave only once `until` holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hold {
    from: usize,
    until: Promise,
}

/// Bytes in order; `holds` ascend by place, and none is implied by one before it.
#[derive(Debug, Default)]
pub(crate) struct Stretch {
    pub(crate) bytes: Vec<u8>,
    holds: VecDeque<Hold>,
}

impl Stretch {
    /// Bytes that nothing holds back.
    pub(crate) fn free(bytes: Vec<u8>) -> Stretch {
        Stretch { bytes, holds: VecDeque::new() }
    }

    /// Holds back everything from `from` on. A hold that another one implies is dropped.
    pub(crate) fn hold(&mut self, from: usize, until: Promise) {
        let at = self.holds.partition_point(|hold| hold.from < from);
        if at > 0 && self.holds[at - 1].until.implies(&until) {
            return;
        }
        if self.holds.get(at).is_some_and(|hold| hold.from == from && hold.until.implies(&until)) {
            return;
        }
        while self.holds.get(at).is_some_and(|hold| until.implies(&hold.until)) {
            self.holds.remove(at);
        }
        self.holds.insert(at, Hold { from, until });
    }

    /// Forgets the first holds, as long as `horizon` fulfils them.
    pub(crate) fn release(&mut self, horizon: &Horizon) {
        while self.holds.front().is_some_and(|hold| horizon.keeps(hold.until)) {
            self.holds.pop_front();
        }
    }

    /// Bytes that nothing holds back.
    pub(crate) fn free_len(&self) -> usize {
        self.holds.front().map_or(self.bytes.len(), |hold| hold.from)
    }

    /// Whether anything is held back.
    pub(crate) fn is_held(&self) -> bool {
        !self.holds.is_empty()
    }

    /// Whether anything waits for what is beyond `horizon`.
    pub(crate) fn is_held_beyond(&self, horizon: &Horizon) -> bool {
        self.holds.iter().any(|hold| !horizon.keeps(hold.until))
    }

    /// Takes the free bytes out and leaves the rest in `spare`, which must be empty.
    pub(crate) fn take_free(&mut self, mut spare: Vec<u8>) -> Vec<u8> {
        let free = self.free_len();
        spare.extend_from_slice(&self.bytes[free..]);
        self.bytes.truncate(free);
        for hold in &mut self.holds {
            hold.from -= free;
        }
        std::mem::replace(&mut self.bytes, spare)
    }

    /// Appends `other` with its holds.
    pub(crate) fn append(&mut self, other: Stretch) {
        let base = self.bytes.len();
        if base == 0 && self.bytes.capacity() < other.bytes.len() {
            self.bytes = other.bytes;
        } else {
            self.bytes.extend_from_slice(&other.bytes);
        }
        for hold in other.holds {
            self.hold(base + hold.from, hold.until);
        }
    }
}
