//! Which of many places of equal size are free, and which of those keep their memory.
//!
//! ```text
//!   [ taken | cold | kept | warm | taken ┊ never used ······ ]
//!               │      │      └ free, with its memory: at most `warm_max`, the last one that came is used first
//!               │      └ the same for some time, many: used when none of those is left
//!               └ free, its memory with the operating system: the first of them is the next one
//! ```

use std::ops::Range;

use super::block_set::BlockSet;

/// The most that `warm_max` may be.
pub(super) const WARM_MAX: usize = 128;

/// See the module.
pub(super) struct Slots {
    /// Places there is room for, and those that were ever used: the first ones.
    count: usize,
    used: usize,
    cold: BlockSet,
    warm: [u32; WARM_MAX],
    warm_count: usize,
    warm_max: usize,
    /// As many of the warm ones nobody needed since they were looked at last.
    spare: usize,
    kept: BlockSet,
    /// The least there were of them since [`Slots::kept_idle`] was last asked.
    kept_least: usize,
}

impl Slots {
    /// Of no place.
    pub const fn of_none() -> Slots {
        let (cold, kept) = (BlockSet::of_none(), BlockSet::of_none());
        let warm = [0; WARM_MAX];
        Slots { count: 0, used: 0, cold, warm, warm_count: 0, warm_max: 0, spare: 0, kept, kept_least: 0 }
    }

    /// Bytes of the tables of so many places.
    pub const fn table_bytes(count: usize) -> usize {
        2 * BlockSet::table_bytes(count)
    }

    /// All free and never used.
    ///
    /// # Safety
    /// `table` has [`Slots::table_bytes`] zeros, aligned as `u64`, that stay and that nobody else reaches.
    pub unsafe fn start(&mut self, table: *mut u64, count: usize, warm_max: usize) {
        debug_assert!(warm_max <= WARM_MAX);
        (self.count, self.warm_max) = (count, warm_max);
        // SAFETY: the caller's promise is the same, for one and behind it the other.
        unsafe {
            self.cold = BlockSet::at(table, count);
            self.kept = BlockSet::at(table.byte_add(BlockSet::table_bytes(count)), count);
        }
    }

    /// A free place: one that has its memory, or the first that has not, so that those in use stay together.
    pub fn take(&mut self) -> Option<usize> {
        self.take_warm().or_else(|| self.take_kept()).or_else(|| self.take_cold()).or_else(|| self.take_new())
    }

    /// One that has its memory.
    pub fn take_warm(&mut self) -> Option<usize> {
        self.warm_count = self.warm_count.checked_sub(1)?;
        self.spare = self.spare.min(self.warm_count);
        Some(self.warm[self.warm_count] as usize)
    }

    /// One that nobody needed since this was last asked.
    pub fn take_spare(&mut self) -> Option<usize> {
        let place = if self.spare > 0 { self.take_warm() } else { None };
        self.spare = self.warm_count;
        place
    }

    /// One of the many.
    pub fn take_kept(&mut self) -> Option<usize> {
        Some(self.take_kept_run(1)?.start)
    }

    /// Some that lie side by side.
    pub fn take_kept_run(&mut self, count_max: usize) -> Option<Range<usize>> {
        let first = self.kept.first().filter(|_| count_max > 0)?;
        let end = (first..first + count_max).find(|place| !self.kept.contains(*place)).unwrap_or(first + count_max);
        (first..end).for_each(|place| self.kept.remove(place));
        self.kept_least = self.kept_least.min(self.kept.count());
        Some(first..end)
    }

    pub fn kept_count(&self) -> usize {
        self.kept.count()
    }

    /// So many of them nobody needed since this was last asked.
    pub fn kept_idle(&mut self) -> usize {
        std::mem::replace(&mut self.kept_least, self.kept.count())
    }

    /// Whether it keeps its memory, as up to `kept_max` do beside the few. If not, it is free once [`Slots::put_cold`] is told that
    /// its memory went.
    pub fn put_warm(&mut self, place: usize, kept_max: usize) -> bool {
        if self.warm_count < self.warm_max {
            self.warm[self.warm_count] = place as u32;
            self.warm_count += 1;
            return true;
        }
        let keeps = self.kept.count() < kept_max;
        if keeps {
            self.kept.insert(place);
        }
        keeps
    }

    pub fn put_cold(&mut self, place: usize) {
        self.cold.insert(place);
    }

    fn take_cold(&mut self) -> Option<usize> {
        self.cold.take_first()
    }

    fn take_new(&mut self) -> Option<usize> {
        (self.used < self.count).then(|| {
            self.used += 1;
            self.used - 1
        })
    }

    /// Those ever used, and those of them that are free with and without memory.
    #[cfg(test)]
    pub fn counts(&self) -> (usize, usize, usize) {
        (self.used, self.warm_count + self.kept.count(), self.cold.count())
    }
}
