//! What two stores have of a slot, compared in 24 bytes a key.
//!
//! ```text
//!  follower: marks of the slot ─► first: the same name, version and content?     yes   it stays, and is not sent
//!                                                                    ─► gone     no    the key is sent, or is gone
//! ```
//!
//! Names and contents are hashed with a seed that both know and nobody who chooses keys: equal marks are equal keys.
//!
//! What a node has when it comes back is mostly right. Not all of it: it may have been first, and have written what nobody else
//! has, even under versions that another first gave to something else. So contents are compared, and where it knows a version that
//! is not older than what is said here instead, the slot begins anew: versions only ever grow in a log that can be recovered.

use std::cmp::Ordering;

use base::limits::COMPARED_KEYS_MAX;
use base::{Database, SLOT_COUNT, Slot, Text, Version};
use types::Change;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::Store;
use crate::group::{Record, Value};
use crate::key::Key;

/// A key of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    /// Of its name and database.
    pub name: u64,
    /// Of its last change.
    pub version: Version,
    /// Of its version, expiry and value; `None`: the value is so long that nobody compares it.
    pub content: Option<u64>,
}

/// What a store has of a slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// The last version that it knows; [`Marks::NOTHING`] has one that nobody knows.
    pub last: Version,
    /// Its keys, by name.
    pub keys: Vec<Mark>,
}

impl Marks {
    /// Nothing, or too much to be compared.
    pub const NOTHING: Marks = Marks { last: Version(u64::MAX), keys: Vec::new() };
}

/// What becomes of what a follower has of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// It goes.
    Anew,
    /// It stays.
    Match {
        /// These names are right, and of no others the follower has what is here; ascending.
        known: Vec<u64>,
        /// Of these the follower has keys, and here there are none any more; ascending.
        gone: Vec<u64>,
    },
}

/// What there is here of a key that the follower has.
#[derive(Clone, Copy)]
enum Found {
    Nothing,
    Same,
    /// The follower's is older.
    Newer,
    /// The follower's is not older, and another one, or so long that nobody knows.
    Other,
}

impl Found {
    /// Contents are asked for only where versions agree: of a slot that was written to since, few are.
    fn of(theirs: &Mark, ours: &Record<'_>, content: impl FnOnce() -> Option<u64>) -> Found {
        match theirs.version.cmp(&ours.version) {
            Ordering::Less => Found::Newer,
            Ordering::Equal if theirs.content.is_some() && content() == theirs.content => Found::Same,
            Ordering::Equal | Ordering::Greater => Found::Other,
        }
    }
}

/// The name of a key as marks have it.
fn name_mark(key: &[u8], database: Database, seed: u64) -> u64 {
    xxh3_64_with_seed(key, seed ^ (u64::from(database.0) << 56))
}

/// With room for what is hashed, which all keys of a walk share.
fn content_mark(record: &Record<'_>, seed: u64, bytes: &mut Vec<u8>) -> Option<u64> {
    bytes.clear();
    bytes.extend_from_slice(&record.version.0.to_le_bytes());
    bytes.extend_from_slice(&record.expire_at_ms.map_or([0; 9], |at_ms| {
        let mut expiry = [1; 9];
        expiry[1..].copy_from_slice(&at_ms.to_le_bytes());
        expiry
    }));
    match record.value {
        Value::String { text: Text::Short(value), .. } => {
            bytes.push(0);
            bytes.extend_from_slice(value);
        }
        Value::List(list) => {
            bytes.push(1);
            list.encode(bytes);
        }
        Value::String { text: Text::Long(_), .. } | Value::Cold => return None,
    }
    // Odd, so that 0 is nobody's.
    Some(xxh3_64_with_seed(bytes, seed) | 1)
}

impl Store {
    /// How many keys a slot has.
    pub fn slot_len(&self, slot: Slot) -> u32 {
        self.group(slot.group()).map_or(0, |group| group.keys_in_slot(slot))
    }

    /// Slots that have keys.
    pub fn slots_with_keys(&self) -> impl Iterator<Item = Slot> {
        (0..SLOT_COUNT).map(Slot::wrapping).filter(|slot| self.slot_len(*slot) > 0)
    }

    /// What there is of a slot; [`Marks::NOTHING`] also where there are more than [`COMPARED_KEYS_MAX`] keys.
    pub fn marks(&self, slot: Slot, seed: u64) -> Marks {
        if !(1..=COMPARED_KEYS_MAX).contains(&self.slot_len(slot)) {
            return Marks::NOTHING;
        }
        let (mut keys, mut bytes) = (Vec::new(), Vec::new());
        self.each_in_slot(slot, |database, record| {
            let (name, content) = (name_mark(record.key, database, seed), content_mark(&record, seed, &mut bytes));
            keys.push(Mark { name, version: record.version, content });
        });
        keys.sort_unstable();
        // A walk may show an entry twice.
        keys.dedup();
        Marks { last: self.sequence(slot).0, keys }
    }

    /// What becomes of what a follower has of a slot, which is to have what is here.
    pub fn compare(&self, slot: Slot, seed: u64, theirs: &Marks) -> Comparison {
        let last = self.sequence(slot).0;
        if theirs.keys.is_empty() || theirs.last > last || self.slot_len(slot) > COMPARED_KEYS_MAX {
            return Comparison::Anew;
        }
        let mut found = vec![Found::Nothing; theirs.keys.len()];
        let mut bytes = Vec::new();
        self.each_in_slot(slot, |database, ours| {
            let name = name_mark(ours.key, database, seed);
            if let Ok(at) = theirs.keys.binary_search_by_key(&name, |mark| mark.name) {
                found[at] = Found::of(&theirs.keys[at], &ours, || content_mark(&ours, seed, &mut bytes));
            }
        });
        let (mut known, mut gone) = (Vec::new(), Vec::new());
        for (theirs, found) in theirs.keys.iter().zip(found) {
            match found {
                Found::Same => known.push(theirs.name),
                Found::Newer => {}
                Found::Nothing if theirs.version < last => gone.push(theirs.name),
                Found::Nothing | Found::Other => return Comparison::Anew,
            }
        }
        Comparison::Match { known, gone }
    }

    /// The keys of these names, ascending, are gone by the time of `last`, as another store says whose slot this is.
    pub fn remove_marked(&mut self, slot: Slot, seed: u64, names: &[u64], last: Version) -> Result<(), String> {
        let mut gone: Vec<(Database, Vec<u8>)> = Vec::new();
        self.each_in_slot(slot, |database, record| {
            if names.binary_search(&name_mark(record.key, database, seed)).is_ok() {
                gone.push((database, record.key.to_vec()));
            }
        });
        gone.sort_unstable();
        gone.dedup();
        for (database, name) in gone {
            let key = Key::new(&name, database, slot, self.seed);
            self.follow_one(&key, (&Change::Remove, last), true)?;
            self.changes += 1;
            if let Some(log) = &mut self.log {
                log.append_copied(&key, last, &Change::Remove);
            }
        }
        Ok(())
    }

    fn each_in_slot(&self, slot: Slot, mut visit: impl FnMut(Database, Record<'_>)) {
        let Some(group) = self.group(slot.group()) else { return };
        let wanted = u32::from(slot.in_group());
        let mut cursor = Some(wanted << 24);
        while let Some(from) = cursor.filter(|from| from >> 24 == wanted) {
            cursor = group.index.walk(from, |position, location| {
                if position >> 24 == wanted {
                    visit(group.database_at(location), group.record_at(location));
                }
            });
        }
    }

    /// Whether a key's name is among these, ascending.
    pub(crate) fn is_marked(names: &[u64], seed: u64, key: &[u8], database: Database) -> bool {
        !names.is_empty() && names.binary_search(&name_mark(key, database, seed)).is_ok()
    }
}
