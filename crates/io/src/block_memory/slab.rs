//! Which blocks are free, and which pages of those that were cut into pages.

use std::ops::Range;
use std::ptr;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

use super::block_set::BlockSet;
use super::{BLOCK_BYTES, PAGE_BYTES};

/// Free blocks that keep their memory, because new memory is dear: 8 MiB.
pub(super) const WARM_MAX: usize = 128;
/// Address space that is reserved for each byte of the machine's memory.
const RESERVED_SHARE: u64 = 2;
/// A bit for each page of a block.
type Pages = u16;
const _: () = assert!(BLOCK_BYTES / PAGE_BYTES == Pages::BITS as usize);

/// See the module.
pub(super) struct Slab {
    pub is_reserved: bool,
    /// Blocks there is room for, and those that were ever used: the first ones.
    pub blocks: usize,
    pub used: usize,
    /// Free, their memory with the operating system.
    pub cold: BlockSet,
    /// Cut, and with a free page.
    pub partial: BlockSet,
    /// The free pages of each block that is cut.
    free_pages: *mut Pages,
    warm: [u32; WARM_MAX],
    pub warm_count: usize,
}

// SAFETY: what the pointers refer to is reached with the lock held only.
unsafe impl Send for Slab {}

impl Slab {
    pub const fn new() -> Slab {
        Slab {
            is_reserved: false,
            blocks: 0,
            used: 0,
            cold: BlockSet::of_none(),
            partial: BlockSet::of_none(),
            free_pages: ptr::null_mut(),
            warm: [0; WARM_MAX],
            warm_count: 0,
        }
    }

    /// Address space, and where its blocks are; none if there is none to be had.
    pub fn reserve(&mut self) -> Range<usize> {
        self.is_reserved = true;
        let machine = rustix::system::sysinfo();
        let memory_bytes = machine.totalram as u64 * u64::from(machine.mem_unit);
        let blocks = usize::try_from(memory_bytes * RESERVED_SHARE).unwrap_or(0) / BLOCK_BYTES;
        let set_bytes = BlockSet::table_bytes(blocks);
        let tables_bytes = 2 * set_bytes + blocks * size_of::<Pages>();
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::NORESERVE);
        // One more, so that blocks begin where a block would.
        let bytes = tables_bytes + (blocks + 1) * BLOCK_BYTES;
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let Ok(start) = (unsafe { mmap_anonymous(ptr::null_mut(), bytes, protection, flags) }) else { return 0..0 };
        // SAFETY: the three tables lie at its begin, one behind another, and it is never unmapped.
        unsafe {
            self.cold = BlockSet::at(start.cast(), blocks);
            self.partial = BlockSet::at(start.byte_add(set_bytes).cast(), blocks);
            self.free_pages = start.byte_add(2 * set_bytes).cast();
        }
        self.blocks = blocks;
        let begin = (start.expose_provenance() + tables_bytes).next_multiple_of(BLOCK_BYTES);
        begin..begin + blocks * BLOCK_BYTES
    }

    /// A free block: one that has its memory, or the first that has not, so that those in use stay together.
    pub fn take(&mut self) -> Option<usize> {
        self.take_warm().or_else(|| self.take_cold()).or_else(|| self.take_new())
    }

    pub fn take_warm(&mut self) -> Option<usize> {
        self.warm_count = self.warm_count.checked_sub(1)?;
        Some(self.warm[self.warm_count] as usize)
    }

    pub fn put_warm(&mut self, block: usize) -> bool {
        if self.warm_count == WARM_MAX {
            return false;
        }
        self.warm[self.warm_count] = block as u32;
        self.warm_count += 1;
        true
    }

    fn take_cold(&mut self) -> Option<usize> {
        let block = self.cold.first()?;
        self.cold.remove(block);
        Some(block)
    }

    fn take_new(&mut self) -> Option<usize> {
        (self.used < self.blocks).then(|| {
            self.used += 1;
            self.used - 1
        })
    }

    /// A page of the first block that has one: the block, and which of its pages.
    pub fn take_page(&mut self) -> Option<(usize, usize)> {
        let block = match self.partial.first() {
            Some(block) => block,
            None => {
                let block = self.take()?;
                *self.free_pages(block) = Pages::MAX;
                self.partial.insert(block);
                block
            }
        };
        let free = self.free_pages(block);
        let page = free.trailing_zeros() as usize;
        *free &= *free - 1;
        if *free == 0 {
            self.partial.remove(block);
        }
        Some((block, page))
    }

    /// Whether the block is free by it: nobody has another page.
    pub fn put_page(&mut self, block: usize, page: usize) -> bool {
        let free = self.free_pages(block);
        let before = *free;
        *free |= 1 << page;
        let is_free = *free == Pages::MAX;
        debug_assert_eq!(before & (1 << page), 0, "a page that is free already");
        match before {
            0 => self.partial.insert(block),
            _ if is_free => self.partial.remove(block),
            _ => {}
        }
        is_free
    }

    fn free_pages(&mut self, block: usize) -> &mut Pages {
        assert!(block < self.blocks, "a block that was never reserved");
        // SAFETY: the table has one for each block, and is reached through here only.
        unsafe { &mut *self.free_pages.add(block) }
    }
}
