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
//! Where the machine takes no more requests, writes that wait for the disk, what comes until it has said so is kept in memory: of 50
//! connections with 64 values of 40 KB under way each that was 39 MB. And what comes of a value of 512 MiB is what everybody else
//! waits for. So buffers that come full are fewer still behind a tick in which a connection was told to be silent, and
//! where others are beside who brings long values.

use base::limits::{BULK_RECEIVE_BUFFERS, RECEIVE_BUFFERS, RECEIVE_BYTES};

/// Buffers at first, and at least: one turn of a busy core with small requests. Of those that come full there are no more: what the
/// kernel may have received before the core runs again.
const BUFFERS_MIN: usize = 64;
/// For how many ticks with receives long values come in small parts.
const NARROW_TICKS: u8 = 64;

/// Why long values are to come in small parts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Narrow {
    /// A connection was told to be silent: the machine takes no more, and keeps what comes until it has said so.
    Unserved,
    /// Others are beside who brings long values, and wait for what a tick does with them.
    Shared,
}

impl Narrow {
    fn buffers(self) -> usize {
        match self {
            Narrow::Unserved => 16,
            Narrow::Shared => 2,
        }
    }
}

const _: () = assert!(BUFFERS_MIN <= RECEIVE_BUFFERS && BUFFERS_MIN <= BULK_RECEIVE_BUFFERS);

/// Which buffers these are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub first: u16,
    pub count: usize,
}

/// See the module.
pub(super) struct Rotation {
    bounds: Bounds,
    /// So many are the kernel's, or filled by it and not handled.
    wanted: usize,
    /// As many would be filled with as much as may be, by what the last ones had.
    fitting: usize,
    /// In this tick there were too few.
    were_few: bool,
    /// Buffers that may come full, for so many ticks more.
    narrow_buffers: usize,
    narrow_ticks: u8,
    /// Those from here on never were in the ring, and have no memory yet.
    known: usize,
    /// Handled in this tick, and the bytes in them.
    used: Vec<u16>,
    used_bytes: usize,
    waiting: Vec<u16>,
}

impl Rotation {
    pub fn new(bounds: Bounds) -> Rotation {
        let room = || Vec::with_capacity(bounds.count);
        Rotation {
            bounds,
            wanted: BUFFERS_MIN,
            fitting: bounds.count,
            were_few: false,
            narrow_buffers: BUFFERS_MIN,
            narrow_ticks: 0,
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

    /// Few for long values from the next [`Rotation::give`] on.
    pub fn shrink(&mut self, why: Narrow) {
        let least = if self.narrow_ticks > 0 { self.narrow_buffers } else { BUFFERS_MIN };
        (self.narrow_buffers, self.narrow_ticks) = (why.buffers().min(least), NARROW_TICKS);
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
            let buffers = if self.narrow_ticks > 0 { self.narrow_buffers } else { BUFFERS_MIN };
            self.fitting = (buffers * RECEIVE_BYTES / bytes_each).clamp(buffers, self.bounds.count);
            self.narrow_ticks = self.narrow_ticks.saturating_sub(1);
            self.used_bytes = 0;
        }
        let wanted = if std::mem::take(&mut self.were_few) { self.wanted * 2 } else { self.wanted };
        self.wanted = wanted.min(self.fitting);
        let inside = self.known - self.used.len() - self.waiting.len();
        let count = self.wanted.saturating_sub(inside);
        self.used.append(&mut self.waiting);
        while self.used.len() < count {
            self.used.push(self.bounds.first + self.known as u16);
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

    const COMMON: Bounds = Bounds { first: 0, count: RECEIVE_BUFFERS };

    /// The kernel: takes buffers in turn.
    struct Kernel {
        rotation: Rotation,
        ring: VecDeque<u16>,
        filled: VecDeque<u16>,
    }

    impl Kernel {
        fn new() -> Kernel {
            let mut rotation = Rotation::new(COMMON);
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
            assert!(filled <= BUFFERS_MIN && kernel.filled.len() <= BUFFERS_MIN, "{filled}");
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
        kernel.rotation.shrink(Narrow::Unserved);
        kernel.tick(RECEIVE_BUFFERS, RECEIVE_BYTES, RECEIVE_BUFFERS);
        for _ in 1..NARROW_TICKS {
            assert_eq!(kernel.tick(RECEIVE_BUFFERS, RECEIVE_BYTES, RECEIVE_BUFFERS), Narrow::Unserved.buffers());
        }
        let filled: Vec<usize> = (0..6).map(|_| kernel.tick(RECEIVE_BUFFERS, RECEIVE_BYTES, RECEIVE_BUFFERS)).collect();
        assert_eq!(filled, [16, 32, 64, 64, 64, 64]);
        kernel.rotation.shrink(Narrow::Unserved);
        let filled: Vec<usize> = (0..4).map(|_| kernel.tick(RECEIVE_BUFFERS, 100, RECEIVE_BUFFERS)).collect();
        assert_eq!(filled, [64, 128, 256, 256]);
    }

    #[test]
    fn where_others_are_beside_who_brings_long_values_these_get_least() {
        let mut kernel = Kernel::new();
        kernel.rotation.shrink(Narrow::Unserved);
        kernel.rotation.shrink(Narrow::Shared);
        kernel.tick(RECEIVE_BUFFERS, RECEIVE_BYTES, RECEIVE_BUFFERS);
        for _ in 0..200 {
            kernel.rotation.shrink(Narrow::Shared);
            let filled = kernel.tick(RECEIVE_BUFFERS, RECEIVE_BYTES, RECEIVE_BUFFERS);
            assert_eq!(filled, Narrow::Shared.buffers());
        }
    }
}
