//! How many keys there are, and how much memory they take.

use base::{BLOCK_BYTES, Database};

use super::Store;
use crate::group::{DatabaseCount, SlotGroup, Value};
use crate::key::Key;

impl Store {
    /// Keys and expiring keys of a database in the groups that are here.
    pub fn count(&self, database: Database) -> DatabaseCount {
        self.groups().map(|group| group.database(database)).fold(DatabaseCount::default(), |sum, count| DatabaseCount {
            keys: sum.keys + count.keys,
            expiring: sum.expiring + count.expiring,
        })
    }

    /// Whether any key here may have an expiry; cheap, and sure again after every [`Store::expire_step`].
    #[inline]
    pub fn may_expire(&self) -> bool {
        self.may_expire
    }

    /// Whether any key of this core has an expiry.
    pub fn has_expiring(&self) -> bool {
        self.groups().any(|group| group.owner == self.core && group.has_expiring())
    }

    /// Bytes of memory of the groups that are here, and of what they let go of and [`Store::lazy_free_step`] has not given
    /// back yet.
    pub fn heap_bytes(&self) -> usize {
        self.groups().map(SlotGroup::heap_bytes).sum::<usize>() + self.lazy_free.bytes()
    }

    /// Bytes of heap pages and lists, free slots included.
    pub fn record_bytes(&self) -> usize {
        self.groups().map(SlotGroup::record_bytes).sum()
    }

    /// Bytes of the indexes.
    pub fn index_bytes(&self) -> usize {
        self.groups().map(|group| group.index.heap_bytes()).sum()
    }

    /// Bytes that a key takes with its record, its list and its share of an index.
    pub fn key_bytes(&mut self, key: &Key<'_>, now_ms: u64) -> Option<usize> {
        self.read(key, now_ms)?;
        let group = self.group_of(key);
        group.find(key).map(|found| group.bytes_of(found))
    }

    /// Bytes that a copy of the key's value would log, about; 0 without one.
    pub fn value_bytes(&self, key: &Key<'_>) -> usize {
        self.value_of(key, |value| match value {
            Value::String { text, .. } => text.len(),
            Value::List(list) => list.heap_bytes(),
            Value::Cold => BLOCK_BYTES,
        })
    }

    /// Bytes of the longer one of the elements at a list's ends; 0 without one.
    pub fn end_bytes(&self, key: &Key<'_>) -> usize {
        let len = |element: Option<&[u8]>| element.map_or(0, <[u8]>::len);
        self.value_of(key, |value| match value {
            Value::List(list) => len(list.get(0)).max(len(list.get(list.len() - 1))),
            Value::String { .. } | Value::Cold => 0,
        })
    }

    fn value_of(&self, key: &Key<'_>, bytes: impl Fn(&Value<'_>) -> usize) -> usize {
        let Some(group) = self.groups[key.group().number() as usize].as_deref() else { return 0 };
        group.find(key).map_or(0, |found| bytes(&group.record(found).value))
    }
}
