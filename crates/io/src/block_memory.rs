//! An allocator of a process whose blocks of about 64 KiB, of long values and of records, lie apart from everything else, and those
//! of about 4 KiB, of lists, sixteen to such a block.
//!
//! ```text
//!   reserved   [ taken | cold | cut: ▪▪▫▪▫… | warm | taken ┊ never used ······ ]   blocks of BLOCK_BYTES, on pages of their own
//!                         │            │       └ free, with its memory: at most WARM_MAX, used first
//!                         │            └ of 16 pages some are free
//!                         └ free, its memory with the operating system
//! ```
//!
//! The C library's regions of 64 MiB go back to the operating system only when nothing lies in them or behind them, and then all
//! of them in one call: `DEL` of a value of 512 MiB made a tick of 20 ms, and of 4 to 6 ms when the pages of its blocks went before,
//! because each block shares its first page and its last with its neighbours; what a list of a million elements left went seconds
//! later in 2 to 3 ms, when somebody else freed what lay behind it (`cargo x bench gaps`). Here a block goes by itself.
//!
//! Room is reserved at the first block, as address space only. Where that is refused, or used up, blocks come from the C library.

mod block_set;
mod slab;

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::mm::{Advice, madvise};

use slab::Slab;

/// Bytes of a block: what a block of a long value has, and the largest page of a heap of records.
const BLOCK_BYTES: usize = base::BLOCK_BYTES;
/// Of a page: what a chunk of a list has.
const PAGE_BYTES: usize = 4 << 10;

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
}

/// What is asked for, by its size; it is freed with the same.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Page,
    Block,
    /// The C library's: smaller, longer, or between the two.
    Other,
}

impl Class {
    /// An eighth of a page may stay unused, a sixteenth of a block. Segments of an index, known by their alignment to a cache line, come and
    /// go at all sizes up to a page, and almost all of them at once: in pages they took 4 B more per key (`cargo x bench memory`).
    fn of(layout: &Layout) -> Class {
        const PAGE_BYTES_MIN: usize = PAGE_BYTES - PAGE_BYTES / 8 + 1;
        const BLOCK_BYTES_MIN: usize = BLOCK_BYTES - BLOCK_BYTES / 16 + 1;
        const PAGE_ALIGN_MAX: usize = 16;
        match layout.size() {
            _ if layout.align() > PAGE_BYTES => Class::Other,
            PAGE_BYTES_MIN..=PAGE_BYTES if layout.align() <= PAGE_ALIGN_MAX => Class::Page,
            BLOCK_BYTES_MIN..=BLOCK_BYTES => Class::Block,
            _ => Class::Other,
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

impl Room {
    const fn new() -> Room {
        Room { begin: AtomicUsize::new(usize::MAX), end: AtomicUsize::new(0), slab: Mutex::new(Slab::new()) }
    }

    fn release(&self) {
        loop {
            let mut slab = self.lock();
            let Some(block) = slab.take_warm() else { return };
            drop(slab);
            self.make_cold(block);
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
        let (block, page) = if class == Class::Page { slab.take_page() } else { slab.take().map(|block| (block, 0)) }?;
        drop(slab);
        let begin = self.begin.load(Ordering::Acquire);
        Some(ptr::with_exposed_provenance_mut(begin + block * BLOCK_BYTES + page * PAGE_BYTES))
    }

    fn put(&self, address: usize, class: Class) {
        let offset = address - self.begin.load(Ordering::Acquire);
        let (block, page) = (offset / BLOCK_BYTES, offset % BLOCK_BYTES / PAGE_BYTES);
        let mut slab = self.lock();
        let is_free = class != Class::Page || slab.put_page(block, page);
        if is_free && !slab.put_warm(block) {
            drop(slab);
            self.make_cold(block);
        }
    }

    /// Its memory goes while nobody can have it, and the lock is free.
    fn make_cold(&self, block: usize) {
        let address = self.begin.load(Ordering::Acquire) + block * BLOCK_BYTES;
        // SAFETY: whole pages of a private mapping that nobody uses: the block is free, and in no list.
        // What it still has of them if that fails, the next owner has.
        let _kept = unsafe { madvise(ptr::with_exposed_provenance_mut(address), BLOCK_BYTES, Advice::LinuxDontNeed) };
        self.lock().cold.insert(block);
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
