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

use base::limits::{RECEIVE_BUFFERS, RECEIVE_BYTES};

/// Buffers at first, and at least: one turn of a busy core with small requests.
const BUFFERS_MIN: usize = 64;
/// What the kernel may have received before the core runs again, bytes.
const RECEIVED_BYTES_MAX: usize = BUFFERS_MIN * RECEIVE_BYTES;

const _: () = assert!(BUFFERS_MIN <= RECEIVE_BUFFERS && RECEIVE_BUFFERS <= 1 << 15);

/// See the module.
pub(super) struct Rotation {
    /// So many are the kernel's, or filled by it and not handled.
    wanted: usize,
    /// As many would be filled with as much as may be, by what the last ones had.
    fitting: usize,
    /// In this tick there were too few.
    were_few: bool,
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
            self.fitting = (RECEIVED_BYTES_MAX / bytes_each).clamp(BUFFERS_MIN, RECEIVE_BUFFERS);
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
}
