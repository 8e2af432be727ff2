//! How another thread wakes a core that may be asleep in the kernel, without a system call when it is not.
//!
//! ```text
//!             rings: swap(Rung)                        before sleeping: compare_exchange(Awake → Asleep)
//!   Awake ───────────────────────► Rung ◄─── swap(Rung) = Asleep: write the eventfd ───┐
//!     ▲                             │ swap(Awake), then look at the queues             │
//!     └─────────────────────────────┴──────────────────────────────────────────── Asleep
//! ```
//!
//! Every change is a read-modify-write of one variable, so all threads agree on their order. A ringer first puts its
//! message where the core will look, then swaps. If its swap comes before the core's compare_exchange, that fails and
//! the core looks again instead of sleeping; if it comes after, the ringer sees Asleep and writes. A message is
//! therefore never slept over, and the eventfd is written at most once per sleep.
//!
//! The eventfd is watched edge-triggered and never read: each write is an edge, and 2^64 of them do not happen.

use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

const AWAKE: u8 = 0;
const RUNG: u8 = 1;
const ASLEEP: u8 = 2;

/// See the module. On its own cache line: other cores write it.
#[repr(align(128))]
pub(crate) struct Doorbell {
    state: AtomicU8,
    shutdown: AtomicBool,
    eventfd: OwnedFd,
}

impl Doorbell {
    pub fn new() -> io::Result<Doorbell> {
        let eventfd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Doorbell { state: AtomicU8::new(AWAKE), shutdown: AtomicBool::new(false), eventfd })
    }

    /// What the core watches while asleep.
    pub fn eventfd(&self) -> BorrowedFd<'_> {
        self.eventfd.as_fd()
    }

    /// Tell the core that something was put where it looks.
    pub fn ring(&self) {
        if self.state.swap(RUNG, Ordering::AcqRel) == ASLEEP {
            let one = 1u64.to_ne_bytes();
            rustix::io::write(&self.eventfd, &one).expect("an eventfd takes 2^64 - 2 writes of one");
        }
    }

    /// The core: whether it may block now. On `false` somebody rang since [`Doorbell::awake`]; look again.
    pub fn try_sleep(&self) -> bool {
        self.state.compare_exchange(AWAKE, ASLEEP, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// The core: awake, and about to look at the queues. Whether somebody rang.
    pub fn awake(&self) -> bool {
        // A plain load first: while the core is busy and nobody rings, the line stays shared and no locked write is paid.
        self.state.load(Ordering::Relaxed) != AWAKE && self.state.swap(AWAKE, Ordering::AcqRel) == RUNG
    }

    /// Ask the core to finish.
    pub fn request_shutdown(&self) {
        self.shutdown.store(true, Ordering::Release);
        self.ring();
    }

    /// The core: whether to finish was asked since the last call.
    pub fn take_shutdown(&self) -> bool {
        self.shutdown.load(Ordering::Relaxed) && self.shutdown.swap(false, Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn written(doorbell: &Doorbell) -> u64 {
        let mut count = [0u8; 8];
        match rustix::io::read(doorbell.eventfd(), &mut count) {
            Ok(_) => u64::from_ne_bytes(count),
            Err(rustix::io::Errno::AGAIN) => 0,
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn ringing_an_awake_core_costs_no_write_and_forbids_sleep() {
        let doorbell = Doorbell::new().unwrap();
        doorbell.ring();
        doorbell.ring();
        assert_eq!(written(&doorbell), 0);
        assert!(!doorbell.try_sleep(), "a core that was rung must look again");
        assert!(doorbell.awake());
        assert!(doorbell.try_sleep());
    }

    #[test]
    fn ringing_a_sleeping_core_writes_once() {
        let doorbell = Doorbell::new().unwrap();
        assert!(doorbell.try_sleep());
        doorbell.ring();
        doorbell.ring();
        assert_eq!(written(&doorbell), 1);
        assert!(doorbell.awake());
        assert!(!doorbell.awake());
    }

    #[test]
    fn a_sleep_that_nobody_ended_is_no_ring() {
        let doorbell = Doorbell::new().unwrap();
        assert!(doorbell.try_sleep());
        assert!(!doorbell.awake());
        doorbell.request_shutdown();
        assert!(doorbell.take_shutdown());
        assert!(!doorbell.take_shutdown());
    }
}
