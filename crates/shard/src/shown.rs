//! What a node of a cluster shows of its keyspace: the slots that it serves, not its copies of what others serve.

use base::limits::DATABASE_COUNT;
use base::{Database, SLOT_COUNT, SLOT_GROUP_COUNT, Slot};
use storage::{ScanCursor, Store};
use types::Change;

use crate::shard::Shard;

/// Draws of a random key before the first one that is shown is taken.
const DRAWS_MAX: usize = 64;

impl Shard {
    /// Whether a key is shown here.
    pub(crate) fn shows(&self, name: &[u8]) -> bool {
        self.membership.as_deref().is_none_or(|membership| membership.links.serves(placement::slot_of(name)))
    }

    fn shows_slot(&self, slot: Slot) -> bool {
        self.membership.as_deref().is_none_or(|membership| membership.links.serves(slot))
    }

    fn slots_with_keys(&self) -> impl Iterator<Item = Slot> {
        (0..SLOT_COUNT).map(Slot::wrapping).filter(|slot| keys_in(&self.store, *slot) > 0)
    }

    /// Keys of a database.
    pub(crate) fn shown_count(&mut self, database: Database) -> u64 {
        let counts = |number| self.store.count(Database(number)).keys;
        let all: u64 = (0..DATABASE_COUNT).map(counts).sum();
        if self.membership.is_none() {
            return counts(database.0);
        }
        if all == counts(database.0) {
            let shown = self.slots_with_keys().filter(|slot| self.shows_slot(*slot));
            return shown.map(|slot| u64::from(keys_in(&self.store, slot))).sum();
        }
        let shown = self.slots_with_keys().filter(|slot| self.shows_slot(*slot));
        shown.map(|slot| self.store.keys_in_slot(slot, database, usize::MAX).len() as u64).sum()
    }

    /// Some key of a database.
    pub(crate) fn shown_random_key(&mut self, database: Database) -> Option<Vec<u8>> {
        for _ in 0..DRAWS_MAX {
            let random = self.rng.next_u64();
            let name = self.store.random_key(database, self.now.unix_ms, random)?;
            if self.shows(&name) {
                return Some(name);
            }
        }
        let mut cursor = Some(ScanCursor(0));
        while let Some(from) = cursor {
            let mut found = None;
            cursor = self.store.scan(from, (16, SLOT_GROUP_COUNT), database, self.now.unix_ms, |record| {
                if found.is_none() && self.shows(record.key) {
                    found = Some(record.key.to_vec());
                }
            });
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// All keys go, of one database or of all. Who holds copies of what others serve removes its own keys one by one.
    pub(crate) fn clear_shown(&mut self, database: Option<Database>) {
        let holds_copies = self.slots_with_keys().any(|slot| !self.shows_slot(slot));
        if !holds_copies {
            return self.store.clear(database);
        }
        let slots: Vec<Slot> = self.slots_with_keys().filter(|slot| self.shows_slot(*slot)).collect();
        let databases = (0..DATABASE_COUNT).map(Database).filter(|one| database.is_none_or(|wanted| wanted == *one));
        for (slot, database) in databases.flat_map(|database| slots.iter().map(move |slot| (*slot, database))) {
            for name in self.store.keys_in_slot(slot, database, usize::MAX) {
                let key = self.store.key(&name, database, slot);
                // A removal always fits.
                let _removed = self.store.apply(&key, &Change::Remove);
            }
        }
    }
}

fn keys_in(store: &Store, slot: Slot) -> u32 {
    store.group(slot.group()).map_or(0, |group| group.keys_in_slot(slot))
}
