//! An allocator of a process whose memory of 4 KiB to 8 MiB lies apart from everything smaller: pages of records, long values, chunks of
//! lists, and the buffers of requests, replies and logs.
//!
//! ```text
//!   reserved   [ taken | cold | cut: ▪▪▫▪▫… | warm | taken ┊ never used ······ │ of 128 KiB … │ … │ of 8 MiB … ]
//!                         │            │       └ free, with its memory: a few, used first; for some seconds many
//!                         │            └ pages of 4 KiB, of which some in a row serve what has 4 to 60 KiB
//!                         └ free, its memory with the operating system
//! ```
//!
//! The C library's regions of 64 MiB go back to the operating system only when nothing lies in them or behind them, and then all
//! of them in one call: `DEL` of a value of 512 MiB made a tick of 20 ms, and of 4 to 6 ms when the pages of its blocks went before,
//! because each block shares its first page and its last with its neighbours; what a list of a million elements left went seconds
//! later in 2 to 3 ms, when somebody else freed what lay behind it (`cargo x bench gaps`). Here a block goes by itself.
//!
//! What comes and goes with requests, at all sizes, would find its place among small blocks taken when it comes again, and have
//! the C library's region grow, for good: a soak saw each growth come from a buffer of 30 to 300 KB.
//!
//! Room is reserved at the first block, as address space only. Where that is refused, or used up, memory comes from the C library.

mod block_set;
mod cut;
mod keeping;
mod slab;
mod slots;

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::mm::{Advice, madvise};

use keeping::{SLICE_BLOCKS, SLICE_EVERY_US};
use slab::{Leaving, Slab};

/// Bytes of a block: what a block of a long value has, and the largest page of a heap of records.
const BLOCK_BYTES: usize = base::BLOCK_BYTES;
/// Of a page: what a chunk of a list has.
const PAGE_BYTES: usize = 4 << 10;
/// Sizes of places from a block on, each twice the one before: up to 8 MiB, from which on the C library makes a mapping for each.
const ORDERS: usize = 8;
/// So long a free block keeps its memory for nothing, at least.
const SPARE_AFTER_US: u64 = 1_000_000;
const _: () = assert!(BLOCK_BYTES << (ORDERS - 1) == base::limits::LOG_GROUP_BYTES);

/// See the module. Made to be a program's `#[global_allocator]`; a library leaves its host's alone.
pub struct BlockMemory(&'static Room);

static OF_PROCESS: Room = Room::new();

/// The reserved room.
struct Room {
    /// Where the reserved blocks begin and end. Before there are any they begin behind every address: a thread that sees one of the two
    /// and not yet the other is to take nothing for a block. So the end is stored first, and loaded last.
    begin: AtomicUsize,
    end: AtomicUsize,
    slab: Mutex<Slab>,
    /// When something may have to go next, and when spare memory is looked for: each second.
    due_us: AtomicU64,
    look_due_us: AtomicU64,
}

/// What is asked for, by its size; it is freed with the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// So many pages side by side.
    Pages { count: usize },
    /// Two to the power of `order` blocks: of what is not touched there is no memory.
    Blocks { order: usize },
    /// The C library's: smaller, longer, or a bad fit.
    Other,
}

impl Class {
    /// An eighth of a page may stay unused, and a quarter of several.
    #[inline]
    fn of(layout: &Layout) -> Class {
        const BYTES_MIN: usize = PAGE_BYTES - PAGE_BYTES / 8 + 1;
        if layout.size() < BYTES_MIN { Class::Other } else { Class::of_large(layout) }
    }

    /// Segments of an index, known by their alignment to a cache line, come and go at all sizes up to a page, and almost all of them at
    /// once: in pages they took 4 B more per key (`cargo x bench memory`).
    fn of_large(layout: &Layout) -> Class {
        const PAGES_BYTES_MAX: usize = BLOCK_BYTES - PAGE_BYTES;
        const ALIGN_MAX: usize = 16;
        match layout.size() {
            bytes if bytes > PAGES_BYTES_MAX && bytes <= BLOCK_BYTES && layout.align() <= PAGE_BYTES => {
                Class::Blocks { order: 0 }
            }
            _ if layout.align() > ALIGN_MAX => Class::Other,
            bytes if bytes <= PAGES_BYTES_MAX => {
                let count = bytes.div_ceil(PAGE_BYTES);
                if bytes * 4 > count * PAGE_BYTES * 3 { Class::Pages { count } } else { Class::Other }
            }
            bytes => {
                let order = bytes.div_ceil(BLOCK_BYTES).next_power_of_two().ilog2() as usize;
                if order < ORDERS { Class::Blocks { order } } else { Class::Other }
            }
        }
    }
}

impl BlockMemory {
    /// The only one of a process. Nothing is reserved before it is needed.
    #[must_use]
    pub const fn of_process() -> BlockMemory {
        BlockMemory(&OF_PROCESS)
    }
}

/// Gives the pages of the process's free blocks back that still have them.
pub(crate) fn release() {
    OF_PROCESS.release();
}

/// Once a second, one free block of each size that nobody needed in that time: what a rare request of megabytes left would stay. Of
/// what long values left a slice, when it was not needed for some seconds.
#[inline]
pub(crate) fn release_spare(now_us: u64) {
    OF_PROCESS.release_spare(now_us);
}

/// Whether what long values leave keeps its memory for some seconds, from now on.
pub(crate) fn keep(is_on: bool) {
    OF_PROCESS.keep(is_on);
}

/// When [`release_spare`] has something to look for, if it has.
pub(crate) fn due_us() -> Option<u64> {
    OF_PROCESS.kept_due_us()
}

impl Room {
    const fn new() -> Room {
        let (begin, end) = (AtomicUsize::new(usize::MAX), AtomicUsize::new(0));
        let (due_us, look_due_us) = (AtomicU64::new(0), AtomicU64::new(0));
        Room { begin, end, slab: Mutex::new(Slab::new()), due_us, look_due_us }
    }

    fn release_spare(&self, now_us: u64) {
        let due_us = self.due_us.load(Ordering::Relaxed);
        let next_us = now_us + SLICE_EVERY_US;
        let is_mine = || self.due_us.compare_exchange(due_us, next_us, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if now_us < due_us || !is_mine() {
            return;
        }
        if now_us >= self.look_due_us.load(Ordering::Relaxed) {
            self.look_due_us.store(now_us + SPARE_AFTER_US, Ordering::Relaxed);
            self.lock().look_at_kept(now_us);
            (0..ORDERS).for_each(|order| self.give_back(|slab| slab.take_spare(order)));
        }
        self.give_back(|slab| slab.take_idle(SLICE_BLOCKS));
        if !self.lock().keeping.has_idle() {
            self.due_us.store(self.look_due_us.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    fn give_back(&self, take: impl FnOnce(&mut Slab) -> Option<Leaving>) {
        let leaving = take(&mut self.lock());
        if let Some(leaving) = leaving {
            self.make_cold(&leaving);
        }
    }

    fn keep(&self, is_on: bool) {
        self.lock().keep(is_on);
        self.due_us.store(0, Ordering::Relaxed);
    }

    fn kept_due_us(&self) -> Option<u64> {
        (self.lock().slots[0].kept_count() > 0).then(|| self.due_us.load(Ordering::Relaxed))
    }

    fn release(&self) {
        loop {
            let Some(leaving) = self.lock().take_warm() else { return };
            self.make_cold(&leaving);
        }
    }

    /// Nothing that may fail, or allocate, happens while it is held.
    fn lock(&self) -> MutexGuard<'_, Slab> {
        self.slab.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, class: Class) -> Option<*mut u8> {
        if class == Class::Other {
            return None;
        }
        let mut slab = self.lock();
        if !slab.is_reserved {
            let blocks = slab.reserve();
            self.end.store(blocks.end, Ordering::Release);
            self.begin.store(blocks.start, Ordering::Release);
        }
        let offset = slab.take(class)?;
        drop(slab);
        Some(ptr::with_exposed_provenance_mut(self.begin.load(Ordering::Acquire) + offset))
    }

    fn put(&self, address: usize, class: Class) {
        let leaving = self.lock().put(class, address - self.begin.load(Ordering::Acquire));
        if let Some(leaving) = leaving {
            self.make_cold(&leaving);
        }
    }

    /// Its memory goes while nobody can have it, and the lock is free.
    fn make_cold(&self, leaving: &Leaving) {
        let address = self.begin.load(Ordering::Acquire) + leaving.bytes.start;
        // SAFETY: whole pages of a private mapping that nobody uses: the place is free, and in no list.
        // What it still has of them if that fails, the next owner has.
        let _kept =
            unsafe { madvise(ptr::with_exposed_provenance_mut(address), leaving.bytes.len(), Advice::LinuxDontNeed) };
        self.lock().put_cold(leaving);
    }

    fn is_mine(&self, address: usize) -> bool {
        let begin = self.begin.load(Ordering::Acquire);
        begin <= address && address < self.end.load(Ordering::Acquire)
    }
}

// SAFETY: what `take` returns are as many bytes as its class has, which nobody else has until `put`, on a page's begin; everything else is
// the system's allocator's, which gets back what it gave: an address says whose it is.
unsafe impl GlobalAlloc for BlockMemory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match self.0.take(Class::of(&layout)) {
            Some(memory) => memory,
            // SAFETY: the caller's promise is the same.
            None => unsafe { System.alloc(layout) },
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if Class::of(&layout) == Class::Other {
            // SAFETY: the caller's promise is the same.
            return unsafe { System.alloc_zeroed(layout) };
        }
        // SAFETY: the caller's promise is the same, and the memory is new.
        unsafe {
            let memory = self.alloc(layout);
            if !memory.is_null() {
                memory.write_bytes(0, layout.size());
            }
            memory
        }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        match self.0.is_mine(memory.addr()) {
            true => self.0.put(memory.addr(), Class::of(&layout)),
            // SAFETY: it is not of the reserved room, so the system's allocator gave it.
            false => unsafe { System.dealloc(memory, layout) },
        }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller promises that `bytes` with this alignment is a layout.
        let new = unsafe { Layout::from_size_align_unchecked(bytes, layout.align()) };
        let (is_mine, class) = (self.0.is_mine(memory.addr()), Class::of(&new));
        if is_mine && class == Class::of(&layout) {
            return memory;
        }
        if !is_mine && class == Class::Other {
            // SAFETY: the caller's promise is the same, and it gave the memory.
            return unsafe { System.realloc(memory, layout, bytes) };
        }
        // SAFETY: both have at least as many bytes as are copied, and the old one is not used any more.
        unsafe {
            let place = self.alloc(new);
            if !place.is_null() {
                ptr::copy_nonoverlapping(memory, place, layout.size().min(bytes));
                self.dealloc(memory, layout);
            }
            place
        }
    }
}

#[cfg(test)]
mod tests;
