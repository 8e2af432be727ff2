//! Tasks that were answered together wake each other.
//!
//! ```text
//!  background thread: 64 answered ─► wakes the first ─► reads on
//!  the runtime:                        the first is polled, wakes 63 others where they run
//! ```
//!
//! A task that is woken by a foreign thread costs its runtime a queue that all threads share, and a call of the system where its thread
//! sleeps; on a busy processor each wake is a switch to that thread and back. Woken by one of their own they cost neither. Should the
//! first one not be polled for a while, as its runtime is busy or gone, the background thread wakes the others itself.

use super::link::{Link, Locked, State};
use super::seat::{Seat, TaskSeat};
use io::clock::monotonic_us;
use std::sync::Arc;

/// Tasks wait for so long to be woken by another one, microseconds.
const CHAIN_US_MAX: u64 = 1_000;

/// Who is to be woken by another task.
#[derive(Default)]
pub(super) struct Chain {
    seats: Vec<Arc<TaskSeat>>,
    /// When the background thread does it.
    until_us: u64,
}

impl Chain {
    /// When the background thread has to look.
    pub fn until_us(&self) -> Option<u64> {
        Some(self.until_us).filter(|_| !self.seats.is_empty())
    }

    /// All of them.
    pub fn take(&mut self) -> Vec<Arc<TaskSeat>> {
        std::mem::take(&mut self.seats)
    }
}

impl State {
    /// Those whom nobody woke in time are to be woken with all others.
    pub fn break_chain(&mut self, now_us: u64) {
        if self.chain.until_us().is_some_and(|until_us| until_us <= now_us) {
            self.told.extend(self.chain.take().into_iter().map(Seat::Task));
        }
    }

    /// Of several tasks that were told something only one is to be woken here; it does the rest.
    fn link_chain(&mut self) {
        if self.told.iter().filter(|seat| matches!(seat, Seat::Task(_))).count() < 2 {
            return;
        }
        if self.chain.seats.is_empty() {
            self.chain.until_us = monotonic_us() + CHAIN_US_MAX;
        }
        let mut has_leader = false;
        let chained = &mut self.chain.seats;
        self.told.retain(|seat| {
            let Seat::Task(task) = seat else { return true };
            if has_leader {
                chained.push(Arc::clone(task));
                return false;
            }
            has_leader = task.lead();
            true
        });
    }
}

impl Link {
    /// As [`release`](Link::release), of the background thread.
    pub(super) fn release_to_tasks(&self, mut state: Locked<'_>) {
        state.link_chain();
        self.release(state);
    }

    /// Wakes the others; whoever was to do so calls it, or whoever drops it.
    pub(super) fn wake_chain(&self) {
        let seats = self.lock().chain.take();
        seats.iter().for_each(|seat| seat.wake());
    }
}
