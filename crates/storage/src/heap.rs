//! Where records live in memory: pages of equal-sized slots, addressed by 32 bits.
//!
//! ```text
//!  Location (u32) = page (19 bits) · offset in units of 8 bytes (13 bits)
//!
//!  pages ─► [ slot | slot | slot | … ]     one size class per page, up to 64 KiB
//!           [ one record                ]  a record above CLASS_BYTES_MAX has a page of its own
//! ```
//!
//! A class's first page is small and each further one twice as large, so that 64 groups with a few records of many
//! sizes stay small. Free slots form a list through their own first bytes.

use crate::lazy_free::LAZY_FREE_BYTES_MIN;

/// Units of 8 bytes from which a [`Location`] counts.
const UNIT: usize = 8;
const OFFSET_BITS: u32 = 13;
const PAGE_BYTES_MAX: usize = UNIT << OFFSET_BITS;
const PAGE_COUNT_MAX: usize = 1 << (32 - OFFSET_BITS);
/// Slots up to this size come in steps of 8 bytes; above it, each class is an eighth larger than the last.
const FINE_BYTES_MAX: usize = 1024;
const FINE_CLASSES: usize = FINE_BYTES_MAX / UNIT;
/// Largest slot that shares a page.
const CLASS_BYTES_MAX: usize = 16 << 10;
/// Marks a page that holds one record of its own size.
const CLASS_SINGLE: u8 = u8::MAX;
/// Cache lines asked for ahead: header, key and a value of about a hundred bytes.
const RECORD_LINES: usize = 3;
const NONE: u32 = u32::MAX;

/// Address of a record within its group's heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location(pub(crate) u32);

impl Location {
    fn new(page: usize, offset: usize) -> Location {
        debug_assert!(page < PAGE_COUNT_MAX && offset < PAGE_BYTES_MAX && offset.is_multiple_of(UNIT));
        Location(((page as u32) << OFFSET_BITS) | (offset / UNIT) as u32)
    }

    #[inline]
    fn page(self) -> usize {
        (self.0 >> OFFSET_BITS) as usize
    }

    #[inline]
    fn offset(self) -> usize {
        (self.0 as usize & ((1 << OFFSET_BITS) - 1)) * UNIT
    }
}

/// The heap has no address left (32 GiB per slot group).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeapFull;

#[derive(Clone, Copy)]
struct Class {
    /// First free slot, or [`NONE`].
    free: u32,
    /// Next never used slot of the newest page.
    bump: u32,
    /// Slots left behind `bump`.
    bump_count: u32,
    /// Size of the next page to be made for this class.
    page_bytes_next: u32,
}

/// Pages of slots; see the module's picture.
#[derive(Default)]
pub struct Heap {
    pages: Vec<Box<[u8]>>,
    page_class: Vec<u8>,
    pages_free: Vec<u32>,
    classes: Vec<Class>,
    reserved_bytes: usize,
    used_bytes: usize,
    /// Pages of single records that were freed and are too large to be given back at once.
    released: Vec<Box<[u8]>>,
}

impl Heap {
    /// Bytes of all pages.
    pub fn reserved_bytes(&self) -> usize {
        self.reserved_bytes
    }

    /// Bytes of the slots in use.
    pub fn used_bytes(&self) -> usize {
        self.used_bytes
    }

    /// As if every page were taken.
    #[cfg(test)]
    pub(crate) fn fill(&mut self) {
        self.pages.resize_with(PAGE_COUNT_MAX, Box::default);
        self.page_class.resize(PAGE_COUNT_MAX, CLASS_SINGLE);
    }

    /// A slot of at least `bytes`; its content is arbitrary.
    pub fn allocate(&mut self, bytes: usize) -> Result<Location, HeapFull> {
        if bytes > CLASS_BYTES_MAX {
            let page = self.add_page(bytes.next_multiple_of(UNIT), CLASS_SINGLE)?;
            self.used_bytes += self.pages[page].len();
            return Ok(Location::new(page, 0));
        }
        let class_index = class_of(bytes);
        if self.classes.len() <= class_index {
            let empty = Class { free: NONE, bump: 0, bump_count: 0, page_bytes_next: 0 };
            self.classes.resize(class_index + 1, empty);
        }
        let slot_bytes = class_bytes(class_index);
        if self.classes[class_index].free != NONE {
            let location = Location(self.classes[class_index].free);
            let next = self.bytes(location)[..4].try_into().expect("a slot has at least one unit");
            self.classes[class_index].free = u32::from_le_bytes(next);
            self.used_bytes += slot_bytes;
            return Ok(location);
        }
        if self.classes[class_index].bump_count == 0 {
            self.extend_class(class_index, slot_bytes)?;
        }
        let class = &mut self.classes[class_index];
        let location = Location(class.bump);
        class.bump += (slot_bytes / UNIT) as u32;
        class.bump_count -= 1;
        self.used_bytes += slot_bytes;
        Ok(location)
    }

    /// Give a slot back.
    pub fn free(&mut self, location: Location) {
        let page = location.page();
        let class_index = self.page_class[page];
        self.used_bytes -= self.slot_bytes(location);
        if class_index == CLASS_SINGLE {
            let freed = std::mem::take(&mut self.pages[page]);
            self.reserved_bytes -= freed.len();
            if freed.len() >= LAZY_FREE_BYTES_MIN {
                self.released.push(freed);
            }
            self.pages_free.push(page as u32);
            return;
        }
        let next = self.classes[class_index as usize].free;
        self.bytes_mut(location)[..4].copy_from_slice(&next.to_le_bytes());
        self.classes[class_index as usize].free = location.0;
    }

    /// Whether large pages were freed.
    #[inline]
    pub(crate) fn has_released(&self) -> bool {
        !self.released.is_empty()
    }

    /// Large pages that were freed.
    pub(crate) fn take_released(&mut self) -> Vec<Box<[u8]>> {
        std::mem::take(&mut self.released)
    }

    /// Of a heap that nothing refers to: give back pages of `bytes` or a little more; whether any are left.
    pub(crate) fn release(&mut self, bytes: usize) -> bool {
        let aim = self.reserved_bytes.saturating_sub(bytes);
        while self.reserved_bytes > aim
            && let Some(page) = self.pages.pop()
        {
            self.reserved_bytes -= page.len();
        }
        !self.pages.is_empty()
    }

    /// How many bytes the slot at `location` has.
    pub fn slot_bytes(&self, location: Location) -> usize {
        match self.page_class[location.page()] {
            CLASS_SINGLE => self.pages[location.page()].len(),
            class_index => class_bytes(class_index as usize),
        }
    }

    /// From `location` to the end of its page.
    #[inline]
    pub fn bytes(&self, location: Location) -> &[u8] {
        &self.pages[location.page()][location.offset()..]
    }

    /// From `location` to the end of its page.
    #[inline]
    pub fn bytes_mut(&mut self, location: Location) -> &mut [u8] {
        &mut self.pages[location.page()][location.offset()..]
    }

    /// Ask for the record's first lines; `location` must be in use.
    #[inline]
    pub fn prefetch(&self, location: Location) {
        let start = self.bytes(location).as_ptr();
        for line in 0..RECORD_LINES {
            base::prefetch::prefetch(start.wrapping_add(line * 64));
        }
    }

    fn extend_class(&mut self, class_index: usize, slot_bytes: usize) -> Result<(), HeapFull> {
        let wanted = (self.classes[class_index].page_bytes_next as usize).max(slot_bytes * 4).max(512);
        let slot_count = wanted.min(PAGE_BYTES_MAX) / slot_bytes;
        let page = self.add_page(slot_count * slot_bytes, class_index as u8)?;
        let class = &mut self.classes[class_index];
        class.bump = Location::new(page, 0).0;
        class.bump_count = slot_count as u32;
        class.page_bytes_next = (wanted * 2).min(PAGE_BYTES_MAX) as u32;
        Ok(())
    }

    fn add_page(&mut self, bytes: usize, class_index: u8) -> Result<usize, HeapFull> {
        let page = vec![0u8; bytes].into_boxed_slice();
        self.reserved_bytes += bytes;
        if let Some(number) = self.pages_free.pop() {
            self.pages[number as usize] = page;
            self.page_class[number as usize] = class_index;
            return Ok(number as usize);
        }
        if self.pages.len() == PAGE_COUNT_MAX {
            self.reserved_bytes -= bytes;
            return Err(HeapFull);
        }
        self.pages.push(page);
        self.page_class.push(class_index);
        Ok(self.pages.len() - 1)
    }
}

/// The class whose slots are the smallest that hold `bytes`.
fn class_of(bytes: usize) -> usize {
    if bytes <= FINE_BYTES_MAX {
        return bytes.max(UNIT).div_ceil(UNIT) - 1;
    }
    let mut class_index = FINE_CLASSES;
    while class_bytes(class_index) < bytes {
        class_index += 1;
    }
    class_index
}

/// Slot size of a class: 8, 16, … 1024, then eighths.
#[inline]
fn class_bytes(class_index: usize) -> usize {
    if class_index < FINE_CLASSES {
        return (class_index + 1) * UNIT;
    }
    // Eight classes per doubling: 1024 x (1 + step/8) x 2^octave.
    let above = class_index - FINE_CLASSES + 1;
    let (octave, step) = (above / 8, above % 8);
    (FINE_BYTES_MAX + step * FINE_BYTES_MAX / 8) << octave
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_ascend_and_fit() {
        for bytes in 1..=CLASS_BYTES_MAX {
            let class_index = class_of(bytes);
            assert!(class_bytes(class_index) >= bytes);
            assert!(class_index == 0 || class_bytes(class_index - 1) < bytes, "{bytes}");
            assert!(class_bytes(class_index).is_multiple_of(UNIT));
        }
        assert!(class_of(CLASS_BYTES_MAX) < CLASS_SINGLE as usize);
    }

    #[test]
    fn slots_do_not_overlap_and_come_back() {
        let mut heap = Heap::default();
        let mut live = Vec::new();
        for round in 0..2000usize {
            let bytes = 1 + (round * 7919) % 20_000;
            let location = heap.allocate(bytes).expect("far below the limit");
            heap.bytes_mut(location)[..bytes].fill(round as u8);
            live.push((location, bytes, round as u8));
            if round % 3 == 0 {
                let (location, ..) = live.swap_remove(round % live.len());
                heap.free(location);
            }
        }
        for &(location, bytes, fill) in &live {
            assert!(heap.bytes(location)[..bytes].iter().all(|byte| *byte == fill));
        }
        for (location, ..) in live {
            heap.free(location);
        }
        assert_eq!(heap.used_bytes(), 0);
    }
}
