//! Memory that nothing refers to any more, given back a few megabytes at a time: giving back all of it at once takes the
//! operating system 45 ms for 3 million keys or for one value of 512 MiB, in which nobody is served.
//!
//! ```text
//!   DEL, SET, FLUSHALL ──► garbage [ page | heap | index | list | … ] ──► one step per tick
//! ```

use base::Blocks;
use types::List;

use crate::heap::Heap;
use crate::index::Index;

/// Less than this is given back at once, bytes.
pub(crate) const LAZY_FREE_BYTES_MIN: usize = 64 << 10;
/// A byte of an index counts as so many: its segments are small, and each costs the allocator about a microsecond.
const INDEX_WEIGHT: usize = 8;

/// One piece that nothing refers to.
pub(crate) enum Garbage {
    /// A heap's page that held one record.
    Page(Box<[u8]>),
    Heap(Heap),
    Index(Index),
    List(Box<List>),
    Blocks(Blocks),
}

impl Garbage {
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Garbage::Page(page) => page.len(),
            Garbage::Heap(heap) => heap.reserved_bytes(),
            Garbage::Index(index) => index.heap_bytes(),
            Garbage::List(list) => list.heap_bytes(),
            Garbage::Blocks(blocks) => blocks.len(),
        }
    }

    /// Gives back up to `budget` bytes, about, and takes them off it; what is left, if anything.
    fn release(self, budget: &mut usize) -> Option<Garbage> {
        let before = self.bytes();
        let weight = if matches!(self, Garbage::Index(_)) { INDEX_WEIGHT } else { 1 };
        let left = match self {
            Garbage::Page(page) => shortened(page, *budget).map(Garbage::Page),
            Garbage::Heap(mut heap) => heap.release(*budget).then_some(Garbage::Heap(heap)),
            Garbage::Index(mut index) => index.release(*budget / INDEX_WEIGHT).then_some(Garbage::Index(index)),
            Garbage::List(mut list) => list.release(*budget).then_some(Garbage::List(list)),
            Garbage::Blocks(mut blocks) => blocks.release(*budget).then_some(Garbage::Blocks(blocks)),
        };
        let freed = weight * (before - left.as_ref().map_or(0, Garbage::bytes));
        // Of at least one, so that empty pieces end.
        *budget = budget.saturating_sub(freed.max(1));
        left
    }
}

/// The page without its last `bytes`: a large one lies in memory of its own, whose end the allocator can give back alone.
fn shortened(page: Box<[u8]>, bytes: usize) -> Option<Box<[u8]>> {
    let mut page = page.into_vec();
    page.truncate(page.len().saturating_sub(bytes));
    page.shrink_to_fit();
    (!page.is_empty()).then(|| page.into_boxed_slice())
}

/// See the module.
#[derive(Default)]
pub(crate) struct LazyFree {
    garbage: Vec<Garbage>,
    bytes: usize,
}

impl LazyFree {
    /// Whether there is nothing to give back.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.garbage.is_empty()
    }

    /// What is still taken, bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// What a group let go of.
    pub fn add(&mut self, garbage: impl Iterator<Item = Garbage>) {
        for garbage in garbage.filter(|garbage| garbage.bytes() >= LAZY_FREE_BYTES_MIN) {
            self.bytes += garbage.bytes();
            self.garbage.push(garbage);
        }
    }

    /// Gives back about `bytes`, the newest first.
    pub fn step(&mut self, bytes: usize) {
        let mut budget = bytes;
        while budget > 0
            && let Some(garbage) = self.garbage.pop()
        {
            self.bytes -= garbage.bytes();
            let left = garbage.release(&mut budget);
            self.bytes += left.as_ref().map_or(0, Garbage::bytes);
            self.garbage.extend(left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::End;

    const STEP: usize = 1 << 20;

    fn steps_of(garbage: Garbage) -> usize {
        let mut lazy_free = LazyFree::default();
        lazy_free.add(std::iter::once(garbage));
        let mut steps = 0;
        while !lazy_free.is_empty() {
            let before = lazy_free.bytes();
            lazy_free.step(STEP);
            steps += 1;
            assert!(before - lazy_free.bytes() <= 2 * STEP, "{before} bytes, then {}", lazy_free.bytes());
        }
        steps
    }

    #[test]
    fn each_kind_goes_in_steps() {
        assert_eq!(steps_of(Garbage::Page(vec![1; 10 * STEP].into_boxed_slice())), 10);
        let mut heap = Heap::default();
        for _ in 0..10_000 {
            heap.allocate(1000).expect("there is room");
        }
        let steps = steps_of(Garbage::Heap(heap));
        assert!((9..=12).contains(&steps), "{steps} steps");
        let mut index = Index::default();
        for number in 0..500_000u32 {
            index.insert(number.wrapping_mul(0x9e37_79b9), crate::heap::Location(number), crate::recency::Worth(0));
        }
        assert!(steps_of(Garbage::Index(index)) >= 5);
        let mut list = List::new();
        for _ in 0..100_000 {
            list.push(End::Tail, &[7; 100]);
        }
        let steps = steps_of(Garbage::List(Box::new(list)));
        assert!((8..=16).contains(&steps), "{steps} steps");
        assert_eq!(steps_of(Garbage::Blocks(Blocks::of(&vec![1; 10 * STEP]))), 10);
    }

    #[test]
    fn a_heap_whose_first_pages_are_gone_already_comes_to_an_end() {
        let mut heap = Heap::default();
        let records: Vec<_> = (0..100).map(|_| heap.allocate(20 << 10).expect("there is room")).collect();
        records[..90].iter().for_each(|location| heap.free(*location));
        let mut left = Some(Garbage::Heap(heap));
        let mut steps = 0;
        while let Some(garbage) = left {
            left = garbage.release(&mut STEP.clone());
            steps += 1;
            assert!(steps < 10, "still {:?} bytes", left.as_ref().map(Garbage::bytes));
        }
    }

    #[test]
    fn small_pieces_go_at_once() {
        let mut lazy_free = LazyFree::default();
        lazy_free.add(std::iter::once(Garbage::Page(vec![1; LAZY_FREE_BYTES_MIN - 1].into_boxed_slice())));
        assert!(lazy_free.is_empty());
    }
}
