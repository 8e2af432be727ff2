//! An allocator of a process whose blocks of about 64 KiB, of long values and of records, lie apart from everything else.
//!
//! ```text
//!   reserved   [ taken | cold | taken | warm | taken ┊ never used ······ ]   blocks of BLOCK_BYTES, each on pages of its own
//!                         │              └ free, with its pages: at most WARM_MAX, used first
//!                         └ free, its pages with the operating system
//! ```
//!
//! The C library's regions of 64 MiB go back to the operating system only when nothing lies in them or behind them, and then all
//! of them in one call: `DEL` of a value of 512 MiB made a tick of 20 ms, and of 4 to 6 ms when the pages of its blocks went before,
//! because each block shares its first page and its last with its neighbours (`cargo x bench gaps`). Here a block goes by itself.
//!
//! Room is reserved at the first block, as address space only. Where that is refused, or used up, blocks come from the C library.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};

/// Bytes of a block: what a block of a long value has, and the largest page of a heap of records.
const BLOCK_BYTES: usize = base::BLOCK_BYTES;
/// Shorter ones are the C library's; these take as many pages as a whole one.
const BYTES_MIN: usize = BLOCK_BYTES - (4 << 10) + 1;
/// Free blocks that keep their pages, because new ones are dear: 8 MiB.
const WARM_MAX: usize = 128;
/// Address space that is reserved for each byte of the machine's memory.
const RESERVED_SHARE: u64 = 2;

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

struct Slab {
    is_reserved: bool,
    /// Blocks there is room for, and those that were ever used: the first ones.
    blocks: usize,
    used: usize,
    /// A bit for each block, set while it is cold; the reserved room begins with it.
    cold_words: *mut u64,
    cold: usize,
    /// No word before has a bit that is set.
    first_cold_word: usize,
    warm: [u32; WARM_MAX],
    warm_count: usize,
}

// SAFETY: what the pointer refers to is reached with the lock held only.
unsafe impl Send for Slab {}

impl BlockMemory {
    /// The only one of a process. Nothing is reserved before it is needed.
    #[must_use]
    pub const fn of_process() -> BlockMemory {
        BlockMemory(&OF_PROCESS)
    }

    fn is_block(layout: &Layout) -> bool {
        (BYTES_MIN..=BLOCK_BYTES).contains(&layout.size()) && layout.align() <= 4096
    }
}

/// Gives the pages of the process's free blocks back that still have them.
pub(crate) fn release() {
    OF_PROCESS.release();
}

impl Room {
    const fn new() -> Room {
        let slab = Slab {
            is_reserved: false,
            blocks: 0,
            used: 0,
            cold_words: ptr::null_mut(),
            cold: 0,
            first_cold_word: 0,
            warm: [0; WARM_MAX],
            warm_count: 0,
        };
        Room { begin: AtomicUsize::new(usize::MAX), end: AtomicUsize::new(0), slab: Mutex::new(slab) }
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

    fn take(&self) -> Option<*mut u8> {
        let mut slab = self.lock();
        if !slab.is_reserved {
            let blocks = slab.reserve();
            self.end.store(blocks.end, Ordering::Release);
            self.begin.store(blocks.start, Ordering::Release);
        }
        let block = slab.take_warm().or_else(|| slab.take_cold()).or_else(|| slab.take_new())?;
        drop(slab);
        Some(ptr::with_exposed_provenance_mut(self.begin.load(Ordering::Acquire) + block * BLOCK_BYTES))
    }

    fn put(&self, address: usize) {
        let block = (address - self.begin.load(Ordering::Acquire)) / BLOCK_BYTES;
        if !self.lock().put_warm(block) {
            self.make_cold(block);
        }
    }

    /// Its pages go while nobody can have it, and the lock is free.
    fn make_cold(&self, block: usize) {
        let address = self.begin.load(Ordering::Acquire) + block * BLOCK_BYTES;
        // SAFETY: whole pages of a private mapping that nobody uses: the block is free, and in no list.
        // What it still has of them if that fails, the next owner has.
        let _kept = unsafe { madvise(ptr::with_exposed_provenance_mut(address), BLOCK_BYTES, Advice::LinuxDontNeed) };
        self.lock().put_cold(block);
    }

    fn is_mine(&self, address: usize) -> bool {
        let begin = self.begin.load(Ordering::Acquire);
        begin <= address && address < self.end.load(Ordering::Acquire)
    }
}

impl Slab {
    /// Address space, and where its blocks are; none if there is none to be had.
    fn reserve(&mut self) -> Range<usize> {
        self.is_reserved = true;
        let machine = rustix::system::sysinfo();
        let memory_bytes = machine.totalram as u64 * u64::from(machine.mem_unit);
        let blocks = usize::try_from(memory_bytes * RESERVED_SHARE).unwrap_or(0) / BLOCK_BYTES;
        let table_bytes = blocks.div_ceil(64) * size_of::<u64>();
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::NORESERVE);
        // One more, so that blocks begin where a block would.
        let bytes = table_bytes + (blocks + 1) * BLOCK_BYTES;
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let Ok(start) = (unsafe { mmap_anonymous(ptr::null_mut(), bytes, protection, flags) }) else { return 0..0 };
        (self.cold_words, self.blocks) = (start.cast(), blocks);
        let begin = (start.expose_provenance() + table_bytes).next_multiple_of(BLOCK_BYTES);
        begin..begin + blocks * BLOCK_BYTES
    }

    fn take_warm(&mut self) -> Option<usize> {
        self.warm_count = self.warm_count.checked_sub(1)?;
        Some(self.warm[self.warm_count] as usize)
    }

    fn put_warm(&mut self, block: usize) -> bool {
        if self.warm_count == WARM_MAX {
            return false;
        }
        self.warm[self.warm_count] = block as u32;
        self.warm_count += 1;
        true
    }

    /// The first one, so that those in use stay together.
    fn take_cold(&mut self) -> Option<usize> {
        self.cold = self.cold.checked_sub(1)?;
        loop {
            let word = self.word(self.first_cold_word);
            if *word != 0 {
                let bit = word.trailing_zeros() as usize;
                *word &= *word - 1;
                return Some(self.first_cold_word * 64 + bit);
            }
            self.first_cold_word += 1;
        }
    }

    fn put_cold(&mut self, block: usize) {
        *self.word(block / 64) |= 1 << (block % 64);
        self.first_cold_word = self.first_cold_word.min(block / 64);
        self.cold += 1;
    }

    fn take_new(&mut self) -> Option<usize> {
        (self.used < self.blocks).then(|| {
            self.used += 1;
            self.used - 1
        })
    }

    fn word(&mut self, number: usize) -> &mut u64 {
        assert!(number < self.blocks.div_ceil(64), "a block that was never reserved");
        // SAFETY: the table has a word for every 64 blocks, zeros at first, and is reached through here only.
        unsafe { &mut *self.cold_words.add(number) }
    }
}

// SAFETY: what `take` returns are BLOCK_BYTES that nobody else has until `put`, on a page's begin; everything else is the
// system's allocator's, which gets back what it gave: an address says whose it is.
unsafe impl GlobalAlloc for BlockMemory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match BlockMemory::is_block(&layout).then(|| self.0.take()).flatten() {
            Some(block) => block,
            // SAFETY: the caller's promise is the same.
            None => unsafe { System.alloc(layout) },
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !BlockMemory::is_block(&layout) {
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
            true => self.0.put(memory.addr()),
            // SAFETY: it is not of the reserved room, so the system's allocator gave it.
            false => unsafe { System.dealloc(memory, layout) },
        }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller promises that `bytes` with this alignment is a layout.
        let new = unsafe { Layout::from_size_align_unchecked(bytes, layout.align()) };
        let (is_mine, becomes_mine) = (self.0.is_mine(memory.addr()), BlockMemory::is_block(&new));
        if is_mine && becomes_mine {
            return memory;
        }
        if !is_mine && !becomes_mine {
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
