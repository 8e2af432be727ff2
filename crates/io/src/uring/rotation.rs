//! Which provided buffers the kernel has, and which wait outside of its ring.
//!
//! ```text
//!   never used ── too few were there ──► in the ring ── filled ──► used ── end of the tick ──► in the ring
//!                                             ▲                     └── bytes enough without it ──► waiting
//!                                             └───────────────── requests are small again ─────────────┘
//! ```
//!
//! The kernel fills as many as it finds bytes for before the core runs again. Of small requests that is what one wants; of long values
//! 256 buffers are 4 MiB, and so a tick that begins a millisecond or more too late. So they are fewer where they come full.
//!
//! A multishot receive hands over all that its socket has while there are buffers. Where the machine takes no more requests, writes that
//! wait for the disk, that is 1 MiB of each connection before it is told to be silent, and the machine has to keep it: 50
//! connections with 64 values of 40 KB under way each had 39 MB there. So behind such a tick buffers are fewer still where they come full.

use base::limits::{RECEIVE_BUFFERS, RECEIVE_BYTES};

/// Buffers at first, and at least: one turn of a busy core with small requests.
const BUFFERS_MIN: usize = 64;
/// What the kernel may have received before the core runs again, bytes.
const RECEIVED_BYTES_MAX: usize = BUFFERS_MIN * RECEIVE_BYTES;
/// The same of both for so many ticks with receives behind one in which a connection was told to be silent: what another may bring
/// until it is told as well.
const UNSERVED_BUFFERS_MIN: usize = BUFFERS_MIN / 8;
const UNSERVED_BYTES_MAX: usize = UNSERVED_BUFFERS_MIN * RECEIVE_BYTES;
const UNSERVED_TICKS: u8 = 64;

const _: () = assert!(BUFFERS_MIN <= RECEIVE_BUFFERS && RECEIVE_BUFFERS <= 1 << 15);

/// See the module.
pub(super) struct Rotation {
    /// So many are the kernel's, or filled by it and not handled.
    wanted: usize,
    /// As many would be filled with as much as may be, by what the last ones had.
    fitting: usize,
    /// In this tick there were too few.
    were_few: bool,
    /// So many ticks more what is received may be more than is served.
    unserved_ticks: u8,
    /// Those from here on never were in the ring, and have no memory yet.
    known: usize,
    /// Handled in this tick, and the bytes in them.
    used: Vec<u16>,
    used_bytes: usize,
    waiting: Vec<u16>,
}

impl Rotation {
    pub fn new() -> Rotation {
        let room = || Vec::with_capacity(RECEIVE_BUFFERS);
        Rotation {
            wanted: BUFFERS_MIN,
            fitting: RECEIVE_BUFFERS,
            were_few: false,
            unserved_ticks: 0,
            known: 0,
            used: room(),
            used_bytes: 0,
            waiting: room(),
        }
    }

    /// There were too few: twice as many from the next [`Rotation::give`] on, unless they come full.
    pub fn grow(&mut self) {
        self.were_few = true;
    }

    /// More was received of a connection than the machine takes: few for long values from the next [`Rotation::give`] on.
    pub fn shrink(&mut self) {
        self.unserved_ticks = UNSERVED_TICKS;
    }

    /// The kernel filled this one.
    #[inline]
    pub fn take(&mut self, buffer: u16, bytes: usize) {
        self.used.push(buffer);
        self.used_bytes += bytes;
    }

    /// The end of a tick: what goes into the ring. Those that were used last come first: a cache has them.
    #[inline]
    pub fn give(&mut self) -> impl Iterator<Item = u16> {
        if !self.used.is_empty() {
            let bytes_each = (self.used_bytes / self.used.len()).max(1);
            let (bytes_max, buffers_min) = match self.unserved_ticks {
                0 => (RECEIVED_BYTES_MAX, BUFFERS_MIN),
                _ => (UNSERVED_BYTES_MAX, UNSERVED_BUFFERS_MIN),
            };
            self.fitting = (bytes_max / bytes_each).clamp(buffers_min, RECEIVE_BUFFERS);
            self.unserved_ticks = self.unserved_ticks.saturating_sub(1);
            self.used_bytes = 0;
        }
        let wanted = if std::mem::take(&mut self.were_few) { self.wanted * 2 } else { self.wanted };
        self.wanted = wanted.min(self.fitting);
        let inside = self.known - self.used.len() - self.waiting.len();
        let count = self.wanted.saturating_sub(inside);
        self.used.append(&mut self.waiting);
        while self.used.len() < count {
            self.used.push(self.known as u16);
            self.known += 1;
        }
        self.waiting.extend(self.used.drain(count..));
        self.used.drain(..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// The kernel: takes buffers in turn.
    struct Kernel {
        rotation: Rotation,
        ring: VecDeque<u16>,
        filled: VecDeque<u16>,
    }

    impl Kernel {
        fn new() -> Kernel {
            let mut rotation = Rotation::new();
            let ring = rotation.give().collect();
            Kernel { rotation, ring, filled: VecDeque::new() }
        }

        /// So many receives of so many bytes, of which a tick handles some; what was filled.
        fn tick(&mut self, receives: usize, bytes: usize, handled_max: usize) -> usize {
            let filled = receives.min(self.ring.len());
            self.filled.extend(self.ring.drain(..filled));
            for buffer in self.filled.drain(..handled_max.min(self.filled.len())) {
                self.rotation.take(buffer, bytes);
            }
            if filled < receives {
                self.rotation.grow();
            }
            self.ring.extend(self.rotation.give());
            let mut all: Vec<u16> =
                self.ring.iter().chain(&self.filled).chain(&self.rotation.waiting).copied().collect();
            all.sort_unstable();
            assert!(all.iter().copied().eq(0..all.len() as u16), "each buffer is at one place: {all:?}");
            filled
        }
    }

    #[test]
    fn small_requests_get_as_many_as_they_need() {
        let mut kernel = Kernel::new();
        assert_eq!(kernel.ring.len(), BUFFERS_MIN);
        let filled: Vec<usize> = (0..4).map(|_| kernel.tick(RECEIVE_BUFFERS, 100, RECEIVE_BUFFERS)).collect();
        assert_eq!(filled, [64, 128, 256, 256]);
        assert_eq!(Kernel::new().tick(50, 100, 50), 50);
    }

    #[test]
    fn long_values_never_fill_more_than_the_bound_however_few_a_tick_handles() {
        let mut kernel = Kernel::new();
        kernel.tick(1, RECEIVE_BYTES, 1);
        for tick in 0..1000 {
            let filled = kernel.tick(RECEIVE_BUFFERS, RECEIVE_BYTES, tick % 70);
            assert!(filled * RECEIVE_BYTES <= RECEIVED_BYTES_MAX && kernel.filled.len() <= BUFFERS_MIN, "{filled}");
        }
        assert_eq!(kernel.rotation.known, BUFFERS_MIN, "no more memory is touched than that");
    }

    #[test]
    fn what_small_requests_had_waits_beside_long_values_and_comes_back() {
        let mut kernel = Kernel::new();
        for _ in 0..10 {
            kernel.tick(RECEIVE_BUFFERS, 100, RECEIVE_BUFFERS);
        }
        assert_eq!(kernel.ring.len(), RECEIVE_BUFFERS);
        kernel.tick(RECEIVE_BUFFERS, RECEIVE_BYTES, RECEIVE_BUFFERS);
        assert_eq!((kernel.ring.len(), kernel.rotation.waiting.len()), (BUFFERS_MIN, RECEIVE_BUFFERS - BUFFERS_MIN));
        kernel.tick(0, 0, 0);
        assert_eq!(kernel.ring.len(), BUFFERS_MIN, "a tick without receives says nothing");
        for _ in 0..3 {
            kernel.tick(RECEIVE_BUFFERS, 100, RECEIVE_BUFFERS);
        }
        assert_eq!(kernel.ring.len(), RECEIVE_BUFFERS);
    }

    #[test]
    fn behind_a_tick_of_more_than_is_served_long_values_get_few_and_small_requests_all() {
        let mut kernel = Kernel::new();
        assert_eq!(kernel.tick(RECEIVE_BUFFERS, RECEIVE_BYTES, RECEIVE_BUFFERS), BUFFERS_MIN);
        kernel.rotation.shrink();
        kernel.tick(RECEIVE_BUFFERS, RECEIVE_BYTES, RECEIVE_BUFFERS);
        for _ in 1..UNSERVED_TICKS {
            assert_eq!(kernel.tick(RECEIVE_BUFFERS, RECEIVE_BYTES, RECEIVE_BUFFERS), UNSERVED_BUFFERS_MIN);
        }
        let filled: Vec<usize> = (0..6).map(|_| kernel.tick(RECEIVE_BUFFERS, RECEIVE_BYTES, RECEIVE_BUFFERS)).collect();
        assert_eq!(filled, [8, 16, 32, 64, 64, 64]);
        kernel.rotation.shrink();
        let filled: Vec<usize> = (0..4).map(|_| kernel.tick(RECEIVE_BUFFERS, 100, RECEIVE_BUFFERS)).collect();
        assert_eq!(filled, [64, 128, 256, 256]);
    }
}
