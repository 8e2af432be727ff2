//! Many keys of a group go at once: a database, a slot, or everything.

use base::{Slot, Version};

use super::versions::REMOVALS_REMEMBERED;
use super::{Found, SlotGroup};
use crate::key::Key;
use crate::lazy_free::Garbage;
use crate::record::Header;

impl SlotGroup {
    /// How often it was cleared since the start.
    pub fn clears(&self) -> u64 {
        self.clears
    }

    /// Forget all keys, of one database or of all; every partition's sequence moves on by one, so that every watcher
    /// of a key that was there notices. `seed` is that of the keys' hashes.
    pub(crate) fn clear(&mut self, database: Option<base::Database>, seed: u64) {
        let clears = self.clears + 1;
        let removed = self.hashes_to_remember(database, seed);
        let others_empty =
            |only: base::Database| self.databases.iter().enumerate().all(|(d, n)| d == only.0 as usize || n.keys == 0);
        if database.is_none_or(others_empty) {
            let (sequences, removals) = (std::mem::take(&mut self.sequences), std::mem::take(&mut self.removals));
            let tier = self.tier.emptied();
            let (recency, followed, crowded) = (self.recency, self.followed, self.crowded);
            let fresh = SlotGroup { recency, followed, crowded, tier, ..SlotGroup::new(self.id, self.owner) };
            let untold_changes = self.untold_changes;
            let old = std::mem::replace(self, SlotGroup { sequences, removals, untold_changes, ..fresh });
            self.garbage = old.into_garbage();
            self.sequences.iter_mut().for_each(|sequences| sequences.keys = 0);
        } else if let Some(database) = database {
            self.remove_all_of(database);
        }
        match removed {
            Some(hashes) => hashes.into_iter().for_each(|hash| self.removals.note(hash)),
            None => self.removals.forget_all(),
        }
        for sequences in &mut self.sequences {
            sequences.last.0 += 1;
            sequences.removed = sequences.last;
        }
        self.clears = clears;
    }

    /// Forget all keys of one slot; a run under way is void, as after a clear. Versions begin anew: what comes has those of who
    /// serves it now, who may never have known how far they went here.
    pub(crate) fn forget_slot(&mut self, slot: Slot) {
        self.clears += 1;
        self.drop_keys(slot, None, usize::MAX);
        self.removals.forget_all();
        self.set_sequence(slot, (Version::ABSENT, Version::ABSENT));
    }

    /// About `keys_max` keys of a slot leave memory, from a place of its walk on; how many went, and where the walk goes on.
    pub(crate) fn drop_keys(&mut self, slot: Slot, from: Option<u32>, keys_max: usize) -> (usize, Option<u32>) {
        let wanted = u32::from(slot.in_group());
        let (mut cursor, mut gone, mut doomed) = (Some(from.unwrap_or(wanted << 24)), 0, Vec::new());
        while let Some(from) = cursor.filter(|from| from >> 24 == wanted && gone < keys_max) {
            cursor = self.index.walk(from, |position, location| {
                if position >> 24 == wanted {
                    doomed.push((position, location));
                }
            });
            // Bucket by bucket, because what was walked is in the processor's cache now.
            for (position, location) in doomed.drain(..) {
                // A walk may show an entry twice.
                if let Some((place, _)) = self.index.find(position, |at| at == location) {
                    let database = self.database_at(location);
                    self.remove_at(Found { place, location }, database, slot, Version::ABSENT);
                    gone += 1;
                }
            }
        }
        (gone, cursor.filter(|from| from >> 24 == wanted))
    }

    fn into_garbage(self) -> Vec<Garbage> {
        let mut garbage = self.garbage;
        garbage.extend([Garbage::Heap(self.heap), Garbage::Index(self.index)]);
        garbage.extend(self.lists.into_values().map(Garbage::List));
        garbage.extend(self.long.into_values().map(Garbage::Blocks));
        garbage
    }

    /// Whether [`SlotGroup::take_garbage`] would yield anything.
    #[inline]
    pub(crate) fn has_garbage(&self) -> bool {
        !self.garbage.is_empty() || self.heap.has_released()
    }

    /// What was let go of and is too large to be given back at once.
    pub(crate) fn take_garbage(&mut self) -> impl Iterator<Item = Garbage> {
        let pages = self.heap.take_released();
        std::mem::take(&mut self.garbage).into_iter().chain(pages.into_iter().map(Garbage::Page))
    }

    /// Hashes of all keys of one database or of all; `None` when they are more than are remembered anyway.
    fn hashes_to_remember(&self, database: Option<base::Database>, seed: u64) -> Option<Vec<u64>> {
        let is_meant = |found: base::Database| database.is_none_or(|only| only == found);
        let counts = self.databases.iter().enumerate().filter(|(number, _)| is_meant(base::Database(*number as u8)));
        if counts.map(|(_, count)| count.keys).sum::<u64>() > REMOVALS_REMEMBERED as u64 {
            return None;
        }
        let mut hashes = Vec::new();
        let mut cursor = Some(0);
        while let Some(from) = cursor {
            cursor = self.index.walk(from, |position, location| {
                let (name, database) = (self.record_at(location).key, self.database_at(location));
                if is_meant(database) {
                    hashes.push(Key::new(name, database, self.id.slot((position >> 24) as u8), seed).hash);
                }
            });
        }
        Some(hashes)
    }

    fn remove_all_of(&mut self, database: base::Database) {
        let mut doomed: Vec<(u32, Vec<u8>)> = Vec::new();
        let mut cursor = Some(0);
        while let Some(from) = cursor {
            cursor = self.index.walk(from, |position, location| {
                if self.database_at(location) == database {
                    doomed.push((position, self.record_at(location).key.to_vec()));
                }
            });
        }
        for (position, name) in doomed {
            let heap = &self.heap;
            let matches = |location| Header::matches(heap.bytes(location), database, &name);
            let Some((place, location)) = self.index.find(position, matches) else {
                continue; // A walk may show an entry twice.
            };
            let slot = self.id.slot((position >> 24) as u8);
            self.remove_at(Found { place, location }, database, slot, Version::ABSENT);
        }
    }
}
