//! The reserved room: what is where in it, and what of it is free.
//!
//! ```text
//!   tables │ blocks of 64 KiB ·········· │ of 128 KiB ··· │ of 256 KiB ··· │ … │ of 8 MiB ··· │
//! ```

use std::ops::Range;
use std::ptr;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

use super::cut::CutBlocks;
use super::keeping::Keeping;
use super::slots::Slots;
use super::{BLOCK_BYTES, Class, ORDERS, PAGE_BYTES};

/// Free blocks keep so much memory, because new memory is dear.
const WARM_BYTES: usize = 8 << 20;
/// Of each larger size that much, and one at least of all but the largest.
const WARM_BYTES_LARGE: usize = 1 << 20;
/// Address space that is reserved for blocks for each byte of the machine's memory, and the part of that for each larger size: what
/// needs more has it of the C library.
const RESERVED_SHARE: usize = 2;
const LARGE_PART: usize = 16;

/// See the module.
pub(super) struct Slab {
    pub is_reserved: bool,
    /// By order: how many blocks one has, as a power of two.
    pub slots: [Slots; ORDERS],
    pub cut: CutBlocks,
    /// Of blocks, which is what long values have.
    pub keeping: Keeping,
    /// Where the places of each order begin, from where the room does.
    begins: [usize; ORDERS],
}

/// Places side by side whose memory is to go.
pub(super) struct Leaving {
    order: usize,
    places: Range<usize>,
    pub bytes: Range<usize>,
}

impl Slab {
    pub const fn new() -> Slab {
        let slots = [const { Slots::of_none() }; ORDERS];
        let (cut, keeping) = (CutBlocks::of_none(), Keeping::off());
        Slab { is_reserved: false, slots, cut, keeping, begins: [0; ORDERS] }
    }

    /// Address space, and where its blocks are; none if there is none to be had.
    pub fn reserve(&mut self) -> Range<usize> {
        self.is_reserved = true;
        let machine = rustix::system::sysinfo();
        let memory_bytes = usize::try_from(machine.totalram as u64 * u64::from(machine.mem_unit)).unwrap_or(0);
        self.keeping.note_machine(memory_bytes);
        let blocks = memory_bytes * RESERVED_SHARE / BLOCK_BYTES;
        let count_of = |order: usize| if order == 0 { blocks } else { (blocks / LARGE_PART) >> order };
        let tables_bytes = CutBlocks::table_bytes(blocks)
            + (0..ORDERS).map(|order| Slots::table_bytes(count_of(order))).sum::<usize>();
        let places_bytes = (0..ORDERS).map(|order| count_of(order) * bytes_of(order)).sum::<usize>();
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::NORESERVE);
        // One block more, so that blocks begin where a block would.
        let bytes = tables_bytes + BLOCK_BYTES + places_bytes;
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let Ok(start) = (unsafe { mmap_anonymous(ptr::null_mut(), bytes, protection, flags) }) else { return 0..0 };
        let mut table = start.cast::<u64>();
        let mut begin = 0;
        for order in 0..ORDERS {
            let (count, each_bytes) = (count_of(order), bytes_of(order));
            let warm_max = if order == 0 {
                WARM_BYTES / BLOCK_BYTES
            } else {
                (WARM_BYTES_LARGE / each_bytes).max(usize::from(order < ORDERS - 1))
            };
            // SAFETY: the tables lie at its begin, one behind another, and it is never unmapped.
            unsafe {
                self.slots[order].start(table, count, warm_max);
                table = table.byte_add(Slots::table_bytes(count));
            }
            self.begins[order] = begin;
            begin += count * each_bytes;
        }
        // SAFETY: behind those.
        unsafe { self.cut.start(table, blocks) };
        let begin = (start.expose_provenance() + tables_bytes).next_multiple_of(BLOCK_BYTES);
        begin..begin + places_bytes
    }

    /// A free place for that, from where the room begins.
    pub fn take(&mut self, class: Class) -> Option<usize> {
        match class {
            Class::Other => None,
            Class::Blocks { order } => Some(self.begins[order] + self.slots[order].take()? * bytes_of(order)),
            Class::Pages { count } => {
                let (block, page) = match self.cut.take(count) {
                    Some(pages) => pages,
                    None => {
                        let block = self.slots[0].take()?;
                        (block, self.cut.cut(block, count))
                    }
                };
                Some(block * BLOCK_BYTES + page * PAGE_BYTES)
            }
        }
    }

    /// It is free again; what is returned, once its memory has gone and [`Slab::put_cold`] is told.
    pub fn put(&mut self, class: Class, offset: usize) -> Option<Leaving> {
        let (order, place) = match class {
            Class::Other => return None,
            Class::Blocks { order } => (order, (offset - self.begins[order]) / bytes_of(order)),
            Class::Pages { count } => {
                let (block, page) = (offset / BLOCK_BYTES, offset % BLOCK_BYTES / PAGE_BYTES);
                if !self.cut.put(block, page, count) {
                    return None;
                }
                (0, block)
            }
        };
        let kept_max = if order == 0 { self.keeping.blocks_max() } else { 0 };
        (!self.slots[order].put_warm(place, kept_max)).then(|| self.leaving(order, place))
    }

    /// A free place that still has its memory.
    pub fn take_warm(&mut self) -> Option<Leaving> {
        let of_order = |slots: &mut Slots| slots.take_warm().or_else(|| slots.take_kept());
        let (order, place) = (0..ORDERS).find_map(|order| Some((order, of_order(&mut self.slots[order])?)))?;
        Some(self.leaving(order, place))
    }

    /// Whether many blocks keep their memory, from now on.
    pub fn keep(&mut self, is_on: bool) {
        self.keeping.set(is_on, self.slots[0].kept_count());
    }

    /// Those of the many that nobody needed are to go once a window is over.
    pub fn look_at_kept(&mut self, now_us: u64) {
        if self.keeping.is_window_over(now_us) {
            let unneeded = self.slots[0].kept_idle();
            self.keeping.begin_window(now_us, unneeded);
        }
    }

    /// Some of them: one call for many is less than one for each.
    pub fn take_idle(&mut self, count_max: usize) -> Option<Leaving> {
        let idle = self.keeping.idle_of(self.slots[0].kept_count());
        let places = self.slots[0].take_kept_run(idle.min(count_max))?;
        self.keeping.note_gone(places.len());
        Some(self.leaving_run(0, places))
    }

    /// One that nobody needed since this was last asked.
    pub fn take_spare(&mut self, order: usize) -> Option<Leaving> {
        let place = self.slots[order].take_spare()?;
        Some(self.leaving(order, place))
    }

    pub fn put_cold(&mut self, gone: &Leaving) {
        gone.places.clone().for_each(|place| self.slots[gone.order].put_cold(place));
    }

    fn leaving(&self, order: usize, place: usize) -> Leaving {
        self.leaving_run(order, place..place + 1)
    }

    fn leaving_run(&self, order: usize, places: Range<usize>) -> Leaving {
        let at = |place: usize| self.begins[order] + place * bytes_of(order);
        Leaving { order, bytes: at(places.start)..at(places.end), places }
    }
}

const fn bytes_of(order: usize) -> usize {
    BLOCK_BYTES << order
}
