//! The model: what a store must hold, in the plainest way to say it.

use std::collections::{BTreeMap, BTreeSet};

use base::{Database, Slot, Version};
use storage::{ScanCursor, Store, Value};
use types::{Change, End, Expiry, Kind, List};

/// A value, in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelValue {
    String(Vec<u8>),
    List(Vec<Vec<u8>>),
}

/// A key's record, in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub version: u64,
    pub expire_at_ms: Option<u64>,
    pub value: ModelValue,
}

impl Entry {
    /// Whether it is a string in blocks.
    pub fn is_long(&self) -> bool {
        matches!(&self.value, ModelValue::String(bytes) if bytes.len() > base::BLOCK_BYTES)
    }
}

/// All keys of a store by database and name.
pub type Snapshot = BTreeMap<(u8, Vec<u8>), Entry>;

/// What a store must hold.
#[derive(Clone, Default)]
pub struct Model {
    pub keys: Snapshot,
}

/// A slot that depends on the name only; one name in three falls into the same slot, as hash tags make them.
pub fn slot_of(name: &[u8]) -> Slot {
    let hash = name.iter().fold(7u64, |hash, byte| base::rng::mix(hash ^ u64::from(*byte)));
    if hash.is_multiple_of(3) { Slot::wrapping(777) } else { Slot::wrapping((hash >> 8) as u16) }
}

impl Model {
    /// Perform a change as the vocabulary defines it.
    pub fn apply(&mut self, database: u8, name: &[u8], change: &Change<'_>, version: Version) {
        let place = (database, name.to_vec());
        let old_expiry = self.keys.get(&place).and_then(|entry| entry.expire_at_ms);
        match *change {
            Change::Put { kind, value, expiry } => {
                let value = match kind {
                    Kind::String => ModelValue::String(value.to_vec()),
                    Kind::List => ModelValue::List(elements_of(&List::decode(value).unwrap())),
                };
                let expire_at_ms = match expiry {
                    Expiry::Keep => old_expiry,
                    Expiry::Clear => None,
                    Expiry::At(at_ms) => Some(at_ms),
                };
                self.keys.insert(place, Entry { version: version.0, expire_at_ms, value });
            }
            Change::PutBlocks { blocks, expiry, .. } => {
                let whole = blocks.to_vec();
                self.apply(database, name, &Change::put_string(&whole, expiry), version);
            }
            Change::OverwriteBlocks { offset, blocks, skip, .. } => {
                let whole = blocks.to_vec();
                self.apply(database, name, &Change::Overwrite { offset, bytes: &whole[skip..] }, version);
            }
            Change::Remove => drop(self.keys.remove(&place)),
            _ => {
                let entry = self.keys.get_mut(&place).unwrap();
                entry.version = version.0;
                change_in_place(entry, change);
                if entry.value == ModelValue::List(Vec::new()) {
                    self.keys.remove(&place);
                }
            }
        }
    }

    /// Whether a command could have planned the change.
    pub fn fits(&self, database: u8, name: &[u8], change: &Change<'_>) -> bool {
        let present = self.keys.get(&(database, name.to_vec())).map(|entry| &entry.value);
        match (change, present) {
            (Change::Put { .. } | Change::PutBlocks { .. } | Change::Remove, _) => true,
            (Change::Expire { .. } | Change::Persist, present) => present.is_some(),
            (Change::Append { .. } | Change::Overwrite { .. } | Change::OverwriteBlocks { .. }, present) => {
                matches!(present, Some(ModelValue::String(_)))
            }
            (Change::ListPop { count, .. }, Some(ModelValue::List(list))) => *count <= list.len() as u64,
            (Change::ListSet { index, .. }, Some(ModelValue::List(list))) => *index < list.len() as u64,
            (Change::ListInsert { index, .. }, Some(ModelValue::List(list))) => *index <= list.len() as u64,
            (_, present) => matches!(present, Some(ModelValue::List(_))),
        }
    }

    /// Forget all keys of one database or of all.
    pub fn clear(&mut self, database: Option<Database>) {
        self.keys.retain(|(number, _), _| database.is_some_and(|database| database.0 != *number));
    }
}

fn change_in_place(entry: &mut Entry, change: &Change<'_>) {
    match (change, &mut entry.value) {
        (Change::Expire { at_ms }, _) => entry.expire_at_ms = Some(*at_ms),
        (Change::Persist, _) => entry.expire_at_ms = None,
        (Change::Append { bytes }, ModelValue::String(value)) => value.extend_from_slice(bytes),
        (Change::Overwrite { offset, bytes }, ModelValue::String(value)) => {
            let offset = *offset as usize;
            value.resize(value.len().max(offset + bytes.len()), 0);
            value[offset..offset + bytes.len()].copy_from_slice(bytes);
        }
        (change, ModelValue::List(list)) => change_list(list, change),
        (change, value) => panic!("{change:?} was planned against {value:?}"),
    }
}

fn change_list(list: &mut Vec<Vec<u8>>, change: &Change<'_>) {
    match *change {
        Change::ListPush { end: End::Head, elements } => {
            elements.iter().for_each(|element| list.insert(0, element.to_vec()));
        }
        Change::ListPush { end: End::Tail, elements } => list.extend(elements.iter().map(|element| element.to_vec())),
        Change::ListPop { end: End::Head, count } => drop(list.drain(..count as usize)),
        Change::ListPop { end: End::Tail, count } => list.truncate(list.len() - count as usize),
        Change::ListSet { index, element } => list[index as usize] = element.to_vec(),
        Change::ListInsert { index, element } => list.insert(index as usize, element.to_vec()),
        Change::ListTrim { start, length } => {
            *list = list.iter().skip(start as usize).take(length as usize).cloned().collect();
        }
        Change::ListRemove { count, element } => {
            let most = if count == 0 { usize::MAX } else { count.unsigned_abs() as usize };
            let mut places: Vec<usize> = (0..list.len()).filter(|place| list[*place] == element).collect();
            if count < 0 {
                places.reverse();
            }
            let doomed: BTreeSet<usize> = places.into_iter().take(most).collect();
            let mut place = 0;
            list.retain(|_| {
                place += 1;
                !doomed.contains(&(place - 1))
            });
        }
        _ => panic!("{change:?} is no change of a list"),
    }
}

fn elements_of(list: &List) -> Vec<Vec<u8>> {
    list.iter_from(0).map(<[u8]>::to_vec).collect()
}

/// Everything a store holds, found by SCAN. Panics when a key is shown with two values.
pub fn snapshot(store: &Store) -> Snapshot {
    let mut keys = Snapshot::new();
    for number in 0..base::limits::DATABASE_COUNT {
        let mut cursor = Some(ScanCursor(0));
        while let Some(from) = cursor {
            cursor = store.scan(from, (100, base::SLOT_GROUP_COUNT), Database(number), 0, |record| {
                let value = match record.value {
                    Value::Cold => unreachable!("nothing leaves memory here"),
                    Value::String { text, .. } => ModelValue::String(text.whole().into_owned()),
                    Value::List(list) => ModelValue::List(elements_of(list)),
                };
                let entry = Entry { version: record.version.0, expire_at_ms: record.expire_at_ms, value };
                let shown_before = keys.insert((number, record.key.to_vec()), entry.clone());
                assert!(shown_before.is_none_or(|before| before == entry));
            });
        }
    }
    keys
}
