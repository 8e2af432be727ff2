//! Where records live in memory: pages of equal-sized slots, addressed by 32 bits.
//!
//! ```text
//!  Location (u32) = page (19 bits) · offset in units of 8 bytes (13 bits)
//!
//!  pages ─► [ slot | slot | slot | … ]     one size class per page, up to 64 KiB
//!           [ one record                ]  a record above CLASS_BYTES_MAX has a page of its own
//! ```
//!
//! A class grows by an eighth, so that 64 groups with a few records of many sizes stay small: a slot that is free in one of
//! them serves no other. Free slots form a list of their page through their own first bytes; pages with room form a list of
//! their class. A page without a record is given back ([`compaction`] makes more of them), unless it is the last room of a
//! large class.
//!
//! ```text
//!   a class   [ 4 KiB ][ 4 KiB ][ 1.5 KiB ─►        the young page is moved to a larger place, a location stays what it is
//! ```
//!
//! Until an eighth of it has as much, a class has pages of one size and a young one. With small pages that stayed small memory climbed for as
//! long as each key was overwritten twenty times: the class had no use for them any more, and no larger page fits where they were
//! (`docs/internals/memory.md`).

mod compaction;

use crate::lazy_free::LAZY_FREE_BYTES_MIN;
pub(crate) use compaction::Condemned;

/// Units of 8 bytes from which a [`Location`] counts.
const UNIT: usize = 8;
const OFFSET_BITS: u32 = 13;
const PAGE_BYTES_MAX: usize = UNIT << OFFSET_BITS;
const PAGE_COUNT_MAX: usize = 1 << (32 - OFFSET_BITS);
const PAGE_BYTES_MIN: usize = 512;
const SYSTEM_PAGE_BYTES: usize = 4 << 10;
/// A class's next page, or that by which its young page grows, is this part of what it has.
const GROWTH_SHARE: usize = 8;
/// Largest slot whose pages grow: of larger ones a class has few, in pages of their own, that go with them.
const YOUNG_SLOT_BYTES_MAX: usize = SYSTEM_PAGE_BYTES / 8;
/// Slots up to this size come in steps of 8 bytes; above it, each class is an eighth larger than the last.
const FINE_BYTES_MAX: usize = 1024;
const FINE_CLASSES: usize = FINE_BYTES_MAX / UNIT;
/// Largest slot that shares a page.
const CLASS_BYTES_MAX: usize = 16 << 10;
/// Marks a page that holds one record of its own size.
const CLASS_SINGLE: u8 = u8::MAX;
/// Cache lines asked for ahead: header, key and a value of about 130 bytes, wherever in its first line the record begins. With one
/// less, half of such records stored their end into a line that was not there, and what came behind waited for it: 16 requests ahead
/// cost 7 to 9 % more (`zerohop bench -P 16 --key-bytes 15 --value-bytes 132`). A number for each class of slots was no better, with values of 8 bytes neither.
const RECORD_LINES: usize = 4;
const NONE: u32 = u32::MAX;
/// No free slot; no offset is that large.
const NO_SLOT: u16 = u16::MAX;

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

/// What is known of a page besides its bytes; of one that was given back, nothing.
#[derive(Clone, Copy)]
struct Page {
    class: u8,
    /// Being emptied: takes no record and is in no list.
    condemned: bool,
    /// Offset of the first free slot in units, or [`NO_SLOT`].
    free: u16,
    /// Offset of the first slot that was never used, in units.
    fresh: u16,
    /// Records.
    live: u16,
    /// Neighbours in the list of pages with room, or [`NONE`].
    previous: u32,
    next: u32,
}

#[derive(Clone, Copy)]
struct Class {
    /// First page with room, or [`NONE`].
    first: u32,
    /// Free slots of the pages with room.
    free_slots: u32,
    /// The page that grows, or [`NONE`].
    young: u32,
    reserved_bytes: usize,
}

/// Pages of slots; see the module's picture.
#[derive(Default)]
pub struct Heap {
    pages: Vec<Box<[u8]>>,
    /// Parallel to `pages`.
    of_pages: Vec<Page>,
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
        self.of_pages.resize(PAGE_COUNT_MAX, Page::of(CLASS_SINGLE));
    }

    /// A slot of at least `bytes`; its content is arbitrary.
    pub fn allocate(&mut self, bytes: usize) -> Result<Location, HeapFull> {
        if bytes > CLASS_BYTES_MAX {
            let page = self.add_page(CLASS_SINGLE)?;
            self.resize_page(page, bytes.next_multiple_of(UNIT));
            self.used_bytes += self.pages[page].len();
            return Ok(Location::new(page, 0));
        }
        let class_index = class_of(bytes);
        if self.classes.len() <= class_index {
            let empty = Class { first: NONE, free_slots: 0, young: NONE, reserved_bytes: 0 };
            self.classes.resize(class_index + 1, empty);
        }
        let slot_bytes = class_bytes(class_index);
        if self.classes[class_index].first == NONE {
            self.extend_class(class_index, slot_bytes)?;
        }
        let number = self.classes[class_index].first;
        let (page, bytes) = (&mut self.of_pages[number as usize], &self.pages[number as usize]);
        let offset = usize::from(if page.free == NO_SLOT { page.fresh } else { page.free }) * UNIT;
        if page.free == NO_SLOT {
            page.fresh += (slot_bytes / UNIT) as u16;
        } else {
            page.free = u16::from_le_bytes([bytes[offset], bytes[offset + 1]]);
        }
        page.live += 1;
        self.classes[class_index].free_slots -= 1;
        if page.free == NO_SLOT && usize::from(page.fresh) * UNIT == bytes.len() {
            self.unlink(number);
        }
        self.used_bytes += slot_bytes;
        Ok(Location::new(number as usize, offset))
    }

    /// Give a slot back.
    pub fn free(&mut self, location: Location) {
        let number = location.page();
        let page = self.of_pages[number];
        let slot_bytes = self.slot_bytes(location);
        self.used_bytes -= slot_bytes;
        if page.class == CLASS_SINGLE {
            let freed = self.take_page(number);
            if freed.len() >= LAZY_FREE_BYTES_MIN {
                self.released.push(freed);
            }
            return;
        }
        self.bytes_mut(location)[..2].copy_from_slice(&page.free.to_le_bytes());
        let was_full = page.free == NO_SLOT && usize::from(page.fresh) * UNIT == self.pages[number].len();
        let live = page.live - 1;
        self.of_pages[number] = Page { free: (location.offset() / UNIT) as u16, live, ..page };
        if page.condemned {
            if live == 0 {
                self.give_back(number);
            }
            return;
        }
        let class = &mut self.classes[usize::from(page.class)];
        class.free_slots += 1;
        let (page_bytes, slots) = (self.pages[number].len(), (self.pages[number].len() / slot_bytes) as u32);
        let is_spare = class.free_slots == slots && page_bytes * GROWTH_SHARE <= class.reserved_bytes;
        if was_full {
            self.link(number as u32);
        }
        if live == 0 && !is_spare {
            self.unlink(number as u32);
            self.classes[usize::from(page.class)].free_slots -= slots;
            self.give_back(number);
        }
    }

    /// Puts a page in front of its class's pages with room.
    fn link(&mut self, number: u32) {
        let class = &mut self.classes[usize::from(self.of_pages[number as usize].class)];
        let next = std::mem::replace(&mut class.first, number);
        let page = &mut self.of_pages[number as usize];
        (page.previous, page.next) = (NONE, next);
        if next != NONE {
            self.of_pages[next as usize].previous = number;
        }
    }

    fn unlink(&mut self, number: u32) {
        let Page { class, previous, next, .. } = self.of_pages[number as usize];
        match previous {
            NONE => self.classes[usize::from(class)].first = next,
            _ => self.of_pages[previous as usize].next = next,
        }
        if next != NONE {
            self.of_pages[next as usize].previous = previous;
        }
    }

    /// Of a page in no list and without a record.
    fn give_back(&mut self, number: usize) {
        let class = &mut self.classes[usize::from(self.of_pages[number].class)];
        class.reserved_bytes -= self.pages[number].len();
        if class.young == number as u32 {
            class.young = NONE;
        }
        drop(self.take_page(number));
    }

    fn take_page(&mut self, number: usize) -> Box<[u8]> {
        let page = std::mem::take(&mut self.pages[number]);
        self.reserved_bytes -= page.len();
        self.pages_free.push(number as u32);
        page
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
        // Pages that were given back one by one are still counted in `pages`.
        self.reserved_bytes > 0
    }

    /// How many bytes the slot at `location` has.
    pub fn slot_bytes(&self, location: Location) -> usize {
        match self.of_pages[location.page()].class {
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

    /// More room: the class's young page grows where it lies, or there is a new one.
    fn extend_class(&mut self, class_index: usize, slot_bytes: usize) -> Result<(), HeapFull> {
        let Class { reserved_bytes, young, .. } = self.classes[class_index];
        let wanted = (reserved_bytes / GROWTH_SHARE).max(PAGE_BYTES_MIN).max(slot_bytes).min(PAGE_BYTES_MAX);
        let grown = grown_bytes(slot_bytes);
        let number = if young == NONE { self.add_page(class_index as u8)? } else { young as usize };
        let before = self.pages[number].len();
        let room = match before + wanted < grown {
            true => before + wanted,
            false => (wanted - wanted % SYSTEM_PAGE_BYTES).max(grown).max(slot_bytes),
        };
        let bytes = room / slot_bytes * slot_bytes;
        self.resize_page(number, bytes);
        let class = &mut self.classes[class_index];
        class.young = if bytes + slot_bytes <= grown { number as u32 } else { NONE };
        class.reserved_bytes += bytes - before;
        class.free_slots += ((bytes - before) / slot_bytes) as u32;
        self.link(number as u32);
        Ok(())
    }

    fn resize_page(&mut self, number: usize, bytes: usize) {
        let mut page = std::mem::take(&mut self.pages[number]).into_vec();
        self.reserved_bytes += bytes - page.len();
        page.reserve_exact(bytes - page.len());
        page.resize(bytes, 0);
        self.pages[number] = page.into_boxed_slice();
    }

    /// The number of a page without bytes.
    fn add_page(&mut self, class: u8) -> Result<usize, HeapFull> {
        let number = match self.pages_free.pop() {
            Some(number) => number as usize,
            None if self.pages.len() == PAGE_COUNT_MAX => return Err(HeapFull),
            None => {
                self.pages.push(Box::default());
                self.of_pages.push(Page::of(class));
                self.pages.len() - 1
            }
        };
        self.of_pages[number] = Page::of(class);
        Ok(number)
    }
}

impl Page {
    /// A page of that class without a record.
    fn of(class: u8) -> Page {
        Page { class, condemned: false, free: NO_SLOT, fresh: 0, live: 0, previous: NONE, next: NONE }
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

/// Up to where a page of such slots grows; 0: it does not.
const fn grown_bytes(slot_bytes: usize) -> usize {
    if slot_bytes <= YOUNG_SLOT_BYTES_MAX { SYSTEM_PAGE_BYTES } else { 0 }
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
mod tests;
