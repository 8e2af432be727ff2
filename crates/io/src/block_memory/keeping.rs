//! How long the many blocks that a long value left keep their memory: as long as the next one may need them.
//!
//! ```text
//!   kept   ▁▁▇▇▇▂▂▇▇▃▃▇▇│▇▇▇▇▇▇▇▇│▆▅▄▃▂▁      a window is over: as many as nobody needed all through it are idle,
//!            a window     a window  idle go    and go a slice at a time
//! ```
//!
//! A fault for each page is a tenth of what a core does beside values of 512 MiB, and where the host of a virtual machine takes what
//! it is told to be free, a core that needs a page again stands still for 10 to 100 ms (`docs/internals/memory.md`).

use super::BLOCK_BYTES;

/// So long a block may be kept for nothing, at least: a value of 512 MiB takes four seconds where the disk takes 130 MB a second.
const WINDOW_US: u64 = 10_000_000;
/// The most memory that is kept, and the part of the machine's.
const BYTES_MAX: usize = 1 << 30;
const MACHINE_SHARE: usize = 16;
/// Idle blocks go so many at a time, so often: 128 MiB a second.
pub(super) const SLICE_BLOCKS: usize = 4;
pub(super) const SLICE_EVERY_US: u64 = 2_000;

/// See the module.
pub(super) struct Keeping {
    is_on: bool,
    room_blocks: usize,
    window_end_us: u64,
    /// So many are to go.
    idle: usize,
}

impl Keeping {
    pub const fn off() -> Keeping {
        Keeping { is_on: false, room_blocks: 0, window_end_us: 0, idle: 0 }
    }

    pub fn note_machine(&mut self, memory_bytes: usize) {
        self.room_blocks = (memory_bytes / MACHINE_SHARE).min(BYTES_MAX) / BLOCK_BYTES;
    }

    /// From now on; of those there are, all are to go if it is off.
    pub fn set(&mut self, is_on: bool, kept: usize) {
        self.is_on = is_on;
        if !is_on {
            self.idle = kept;
        }
    }

    pub const fn blocks_max(&self) -> usize {
        if self.is_on { self.room_blocks } else { 0 }
    }

    pub const fn is_window_over(&self, now_us: u64) -> bool {
        now_us >= self.window_end_us
    }

    /// `unneeded` of them nobody needed in the window that is over.
    pub fn begin_window(&mut self, now_us: u64, unneeded: usize) {
        self.window_end_us = now_us + WINDOW_US;
        self.idle = self.idle.max(unneeded);
    }

    /// How many of `kept` are to go: what was needed again is not idle any more.
    pub fn idle_of(&mut self, kept: usize) -> usize {
        self.idle = self.idle.min(kept);
        self.idle
    }

    pub const fn note_gone(&mut self, blocks: usize) {
        self.idle -= blocks;
    }

    pub const fn has_idle(&self) -> bool {
        self.idle > 0
    }
}
