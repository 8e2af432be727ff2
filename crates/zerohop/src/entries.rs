//! Walks over the keys, and what a partition held at one moment.

use std::collections::VecDeque;
use std::ops::Range;

use base::{SLOT_COUNT, Version};
use storage::{ColdValue, ScanCursor, Value as Stored};

use crate::checks::DATABASE;
use crate::{Error, Partition, Store, Value};

/// Keys looked at while the lock is held once.
const STEP_KEYS: usize = 256;

/// A key and its value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its name.
    pub key: Vec<u8>,
    /// What it held when it was looked at.
    pub value: Value,
}

/// A walk over keys, 256 of which are looked at while others wait; made by [`Store::iter_partition`] and
/// [`Store::iter_prefix`].
///
/// Each entry is as it was when the walk came to it. A key that is there from the walk's beginning to its end is shown exactly
/// once; one that comes or goes meanwhile is shown once or not at all. The order is that of partitions, and within one that of a
/// hash that is another one after every opening. Lists are left out.
pub struct Entries {
    store: Store,
    range: Option<Range<ScanCursor>>,
    prefix: Vec<u8>,
    found: VecDeque<Entry>,
}

impl Iterator for Entries {
    type Item = Result<Entry, Error>;

    fn next(&mut self) -> Option<Result<Entry, Error>> {
        while self.found.is_empty()
            && let Some(range) = self.range.take()
        {
            if let Err(error) = self.step(range) {
                return Some(Err(error));
            }
        }
        self.found.pop_front().map(Ok)
    }
}

impl Entries {
    fn step(&mut self, range: Range<ScanCursor>) -> Result<(), Error> {
        let mut guard = self.store.shared().lock();
        let engine = &mut *guard;
        engine.check_open()?;
        let now_ms = engine.read_ms();
        let mut cold = Vec::new();
        let next = engine.data.walk(range.clone(), STEP_KEYS, (DATABASE, now_ms), |record| match record.value {
            _ if !record.key.starts_with(&self.prefix) => {}
            Stored::String { text, .. } => {
                let value = Value::new(text, record.version, record.expire_at_ms);
                self.found.push_back(Entry { key: record.key.to_vec(), value });
            }
            Stored::Cold => cold.push(record.key.to_vec()),
            Stored::List(_) => {}
        });
        self.range = next.map(|next| next..range.end);
        // What was seen has to survive.
        match engine.data.has_uncommitted() && !self.found.is_empty() {
            true => self.store.shared().promise(guard)?,
            false => drop(guard),
        }
        // One after the other, so that no more of them are in memory than the walk's own.
        for key in cold {
            if let Some(value) = self.store.get(&key)? {
                self.found.push_back(Entry { key, value });
            }
        }
        Ok(())
    }
}

/// What a partition held at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    version: Version,
    entries: Vec<Entry>,
}

impl Snapshot {
    /// The partition's last write by then: every write up to it is in the snapshot, and none after it.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Keys and values, in no particular order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// As [`Snapshot::entries`], to keep.
    pub fn into_entries(self) -> Vec<Entry> {
        self.entries
    }
}

impl Store {
    /// Walks over the keys of one partition.
    ///
    /// ```
    /// # fn main() -> Result<(), zerohop::Error> {
    /// # let store = zerohop::Store::in_memory()?;
    /// use zerohop::Partition;
    /// store.put(b"{user:7}:name", b"Ada")?;
    /// store.put(b"{user:7}:mail", b"ada@example.org")?;
    /// assert_eq!(store.iter_partition(Partition::of(b"{user:7}")).count(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn iter_partition(&self, partition: Partition) -> Entries {
        self.entries(storage::Store::slot_range(partition.0), b"")
    }

    /// Walks over the keys that begin with `prefix`; all keys, if it is empty. The index is one of hashes: this looks at every
    /// key of the store, however few begin so.
    ///
    /// ```
    /// # fn main() -> Result<(), zerohop::Error> {
    /// # let store = zerohop::Store::in_memory()?;
    /// store.put(b"user:7", b"Ada")?;
    /// store.put(b"group:1", b"admins")?;
    /// for entry in store.iter_prefix(b"user:") {
    ///     assert_eq!(entry?.value, b"Ada");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn iter_prefix(&self, prefix: &[u8]) -> Entries {
        self.entries(ScanCursor(0)..ScanCursor(u64::from(SLOT_COUNT) << 24), prefix)
    }

    fn entries(&self, range: Range<ScanCursor>, prefix: &[u8]) -> Entries {
        Entries { store: self.clone(), range: Some(range), prefix: prefix.to_vec(), found: VecDeque::new() }
    }

    /// All keys of one partition as they are together at one moment, copied while others wait: a few tens of nanoseconds for
    /// each key. Values above 64 KiB are shared, not copied. What relates keys to each other belongs in one partition, by a hash
    /// tag; there is no moment that several partitions have in common. Under a memory limit all values of the partition are in memory
    /// for that moment, whatever the limit.
    ///
    /// ```
    /// # fn main() -> Result<(), zerohop::Error> {
    /// # let store = zerohop::Store::in_memory()?;
    /// use zerohop::Partition;
    /// store.put(b"{a}1", b"x")?;
    /// let snapshot = store.snapshot(Partition::of(b"{a}"))?;
    /// store.delete(b"{a}1")?;
    /// assert_eq!(snapshot.entries().len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Closed`]; in durability `Commit`, [`Error::LogFailed`] if it would show what may not survive.
    pub fn snapshot(&self, partition: Partition) -> Result<Snapshot, Error> {
        let mut kept = Vec::new();
        let taken = self.take_snapshot(partition, &mut kept);
        self.shared().release(&kept);
        taken
    }

    fn take_snapshot(&self, partition: Partition, kept: &mut Vec<ColdValue>) -> Result<Snapshot, Error> {
        let mut guard = self.shared().lock_whole(partition, kept)?;
        let engine = &mut *guard;
        let now_ms = engine.read_ms();
        let mut entries = Vec::new();
        let range = storage::Store::slot_range(partition.0);
        let rest = engine.data.walk(range, usize::MAX, (DATABASE, now_ms), |record| {
            if let Stored::String { text, .. } = record.value {
                let value = Value::new(text, record.version, record.expire_at_ms);
                entries.push(Entry { key: record.key.to_vec(), value });
            }
        });
        debug_assert!(rest.is_none(), "a walk without a bound comes to its end");
        let group = engine.data.group(partition.0.group()).expect("every group is at home");
        let version = group.last_version(partition.0);
        if engine.data.has_uncommitted() {
            self.shared().promise(guard)?;
        }
        Ok(Snapshot { version, entries })
    }
}
