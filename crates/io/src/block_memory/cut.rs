//! Blocks that are cut into pages, of which somebody has some that lie side by side.
//!
//! ```text
//!   a block   ■■■□□□□■■□□■■■■■     its longest free run has four pages: it is in `by_run[3]`
//!                                  three are taken out of that run only where no block has a run of just three
//! ```

use super::block_set::BlockSet;
use super::{BLOCK_BYTES, PAGE_BYTES};

/// A bit for each page of a block.
type Pages = u16;
const _: () = assert!(BLOCK_BYTES / PAGE_BYTES == Pages::BITS as usize);
/// As long as a run of pages of a block that is not whole can be.
const RUN_MAX: usize = Pages::BITS as usize - 1;

/// See the module.
pub(super) struct CutBlocks {
    blocks: usize,
    /// The free pages of each block that is cut.
    free_pages: *mut Pages,
    /// Blocks by their longest free run, less one.
    by_run: [BlockSet; RUN_MAX],
}

// SAFETY: what the pointer refers to is reached with these alone.
unsafe impl Send for CutBlocks {}

impl CutBlocks {
    /// Of no block.
    pub const fn of_none() -> CutBlocks {
        CutBlocks { blocks: 0, free_pages: std::ptr::null_mut(), by_run: [const { BlockSet::of_none() }; RUN_MAX] }
    }

    /// Bytes of the tables of so many blocks.
    pub const fn table_bytes(blocks: usize) -> usize {
        RUN_MAX * BlockSet::table_bytes(blocks) + blocks * size_of::<Pages>()
    }

    /// # Safety
    /// `table` has [`CutBlocks::table_bytes`] zeros, aligned as `u64`, that stay and that nobody else reaches.
    pub unsafe fn start(&mut self, table: *mut u64, blocks: usize) {
        let set_bytes = BlockSet::table_bytes(blocks);
        self.blocks = blocks;
        for (number, set) in self.by_run.iter_mut().enumerate() {
            // SAFETY: the sets lie at its begin, one behind another.
            *set = unsafe { BlockSet::at(table.byte_add(number * set_bytes), blocks) };
        }
        // SAFETY: behind them.
        self.free_pages = unsafe { table.byte_add(RUN_MAX * set_bytes).cast() };
    }

    /// The first of `pages` pages side by side, in the block where that leaves the longest runs elsewhere as they are; of a block
    /// that is cut already.
    pub fn take(&mut self, pages: usize) -> Option<(usize, usize)> {
        let block = self.by_run[pages - 1..].iter_mut().find_map(BlockSet::first)?;
        Some((block, self.take_of(block, pages)))
    }

    /// The same of a whole block, which is cut for it.
    pub fn cut(&mut self, block: usize, pages: usize) -> usize {
        *self.free_pages(block) = Pages::MAX;
        self.take_of(block, pages)
    }

    fn take_of(&mut self, block: usize, pages: usize) -> usize {
        let before = *self.free_pages(block);
        // Bit i: pages from i on are free, as many.
        let begins = (1..pages).fold(before, |begins, _| begins & (begins >> 1));
        let first = begins.trailing_zeros() as usize;
        let after = before & !mask(first, pages);
        *self.free_pages(block) = after;
        self.sort_in(block, before, after);
        first
    }

    /// Whether the block is whole by it: nobody has another page.
    pub fn put(&mut self, block: usize, first: usize, pages: usize) -> bool {
        let before = *self.free_pages(block);
        debug_assert_eq!(before & mask(first, pages), 0, "pages that are free already");
        let after = before | mask(first, pages);
        *self.free_pages(block) = after;
        self.sort_in(block, before, after);
        after == Pages::MAX
    }

    fn sort_in(&mut self, block: usize, before: Pages, after: Pages) {
        let (was, is) = (longest_run(before), longest_run(after));
        if was == is {
            return;
        }
        if (1..=RUN_MAX).contains(&was) {
            self.by_run[was - 1].remove(block);
        }
        if (1..=RUN_MAX).contains(&is) {
            self.by_run[is - 1].insert(block);
        }
    }

    fn free_pages(&mut self, block: usize) -> &mut Pages {
        assert!(block < self.blocks, "a block that was never reserved");
        // SAFETY: the table has one for each block, and is reached through here only.
        unsafe { &mut *self.free_pages.add(block) }
    }

    /// Blocks with a free page.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.by_run.iter().map(BlockSet::count).sum()
    }
}

fn mask(first: usize, pages: usize) -> Pages {
    ((1 << pages) - 1) << first
}

fn longest_run(free: Pages) -> usize {
    let (mut run, mut begins) = (0, free);
    while begins != 0 {
        begins &= begins >> 1;
        run += 1;
    }
    run
}
