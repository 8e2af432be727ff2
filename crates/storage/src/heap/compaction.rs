//! Emptying the pages that hold few records, so that memory of one size serves another.
//!
//! ```text
//!  a class    [■■■■■■□■] [■□□□■□□□] [■■■□■■■■] [□□■□□□□□]       the emptiest pages whose records fit into the others'
//!                         condemned              condemned       free slots take no record any more
//!  a walk over the index moves what it finds in them            empty: given back
//! ```

use super::{CLASS_SINGLE, Heap, Location, NONE, class_bytes};

/// A class of which less than a sixteenth is free is left alone: moving nearly full pages costs more than it gives.
const FREE_SHARE_MIN: usize = 16;
/// Pages of a class that one walk looks at: the list is as long as the heap is large.
const PAGES_MAX: usize = 4096;

/// What a walk is to empty.
#[derive(Debug, Default)]
pub(crate) struct Condemned {
    pages: Vec<u32>,
}

impl Condemned {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }
}

impl Heap {
    /// Chooses the pages that a walk is to empty.
    pub(crate) fn condemn(&mut self) -> Condemned {
        let mut condemned = Condemned::default();
        for class_index in 0..self.classes.len() {
            let class = self.classes[class_index];
            let free_bytes = class.free_slots as usize * class_bytes(class_index);
            if free_bytes > 0 && free_bytes * FREE_SHARE_MIN >= class.reserved_bytes {
                self.condemn_of_class(class_index, &mut condemned);
            }
        }
        condemned
    }

    fn condemn_of_class(&mut self, class_index: usize, condemned: &mut Condemned) {
        let slot_bytes = class_bytes(class_index);
        let mut pages: Vec<(usize, u32)> = Vec::new();
        let mut number = self.classes[class_index].first;
        while number != NONE && pages.len() < PAGES_MAX {
            let page = &self.of_pages[number as usize];
            let slots = self.pages[number as usize].len() / slot_bytes;
            // Parts of 1024 that are in use: pages differ in size.
            pages.push((usize::from(page.live) * 1024 / slots, number));
            number = page.next;
        }
        pages.sort_unstable();
        let mut free_elsewhere = self.classes[class_index].free_slots as usize;
        let mut to_move = 0;
        for (_, number) in pages {
            let live = usize::from(self.of_pages[number as usize].live);
            let free = self.pages[number as usize].len() / slot_bytes - live;
            if to_move + live > free_elsewhere - free {
                return;
            }
            (to_move, free_elsewhere) = (to_move + live, free_elsewhere - free);
            self.unlink(number);
            self.classes[class_index].free_slots -= free as u32;
            if live == 0 {
                self.give_back(number as usize);
            } else {
                self.of_pages[number as usize].condemned = true;
                let young = &mut self.classes[class_index].young;
                *young = if *young == number { NONE } else { *young };
                condemned.pages.push(number);
            }
        }
    }

    /// Whether the record there has to move.
    #[inline]
    pub(crate) fn is_condemned(&self, location: Location) -> bool {
        self.of_pages[location.page()].condemned
    }

    /// Moves a record out of a condemned page; where to, unless there is no free slot for it any more.
    pub(crate) fn rescue(&mut self, from: Location) -> Option<Location> {
        let class = self.of_pages[from.page()].class;
        debug_assert!(class != CLASS_SINGLE, "a page of one record is never condemned");
        if self.classes[usize::from(class)].free_slots == 0 {
            return None;
        }
        let slot_bytes = self.slot_bytes(from);
        let to = self.allocate(slot_bytes).ok()?;
        let (source, target) = (from.offset(), to.offset());
        let mut page = std::mem::take(&mut self.pages[to.page()]);
        page[target..target + slot_bytes].copy_from_slice(&self.pages[from.page()][source..source + slot_bytes]);
        self.pages[to.page()] = page;
        self.free(from);
        Some(to)
    }

    /// The walk is over: a page that still has records, because its class grew meanwhile, is an ordinary one again.
    pub(crate) fn pardon(&mut self, condemned: Condemned) {
        for number in condemned.pages {
            let page = &mut self.of_pages[number as usize];
            // Given back, and perhaps in use again.
            if !page.condemned || self.pages[number as usize].is_empty() {
                continue;
            }
            page.condemned = false;
            let (class, live) = (usize::from(page.class), usize::from(page.live));
            let free = self.pages[number as usize].len() / class_bytes(class) - live;
            if free > 0 {
                self.classes[class].free_slots += free as u32;
                self.link(number);
            }
        }
    }
}
