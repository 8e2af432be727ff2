//! Changes that are made together: seen together, and after a crash all there or none.

use std::ops::Range;
use std::time::Duration;

use base::Now;
use types::Change;

use crate::checks::{check_key, check_value, key_of};
use crate::engine::Engine;
use crate::limits::BATCH_BYTES_MAX;
use crate::store::{apply_change, expiry};
use crate::{Error, Store};

/// What a change takes beside its key and value, bytes.
const CHANGE_BYTES: usize = 64;
/// Changes whose keys are looked up together, so that memory answers for all of them at once.
const WINDOW: usize = 32;

/// Changes to be made together, in the order in which they were added; made by [`Store::batch`].
///
/// The lock is held for all of them at once, about a microsecond for each short one: others wait for that long. They are one
/// group of the log, so after a crash all of them are there or none.
#[must_use = "a batch does nothing until it is committed"]
pub struct Batch<'a> {
    store: &'a Store,
    /// Keys and values, one behind the other.
    bytes: Vec<u8>,
    changes: Vec<Planned>,
}

struct Planned {
    key: Range<usize>,
    action: Action,
}

enum Action {
    Put { value: Range<usize>, time_to_live: Option<Duration> },
    Delete,
}

impl Store {
    /// A batch without changes.
    ///
    /// ```
    /// # fn main() -> Result<(), zerohop::Error> {
    /// # let store = zerohop::Store::in_memory()?;
    /// let mut batch = store.batch();
    /// batch.put(b"a", b"1")?;
    /// batch.put(b"b", b"2")?;
    /// batch.delete(b"c")?;
    /// batch.commit()?;
    /// assert_eq!(store.get(b"b")?.expect("it was put"), b"2");
    /// # Ok(())
    /// # }
    /// ```
    pub fn batch(&self) -> Batch<'_> {
        Batch { store: self, bytes: Vec::new(), changes: Vec::new() }
    }
}

impl Batch<'_> {
    /// Adds a [`Store::put`].
    ///
    /// # Errors
    /// [`Error::KeyTooLong`], [`Error::ValueTooLong`], and [`Error::BatchTooLong`] when all changes together are; the batch
    /// is then as it was.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.add_put(key, value, None)
    }

    /// Adds a [`Store::put_with_expiry`]; the time counts from the commit.
    ///
    /// # Errors
    /// Those of [`Batch::put`].
    pub fn put_with_expiry(&mut self, key: &[u8], value: &[u8], time_to_live: Duration) -> Result<(), Error> {
        self.add_put(key, value, Some(time_to_live))
    }

    fn add_put(&mut self, key: &[u8], value: &[u8], time_to_live: Option<Duration>) -> Result<(), Error> {
        check_value(key, value.len() as u64)?;
        self.check_room(key, value.len())?;
        let key = self.take(key);
        let value = self.take(value);
        self.changes.push(Planned { key, action: Action::Put { value, time_to_live } });
        Ok(())
    }

    /// Adds a [`Store::delete`].
    ///
    /// # Errors
    /// Those of [`Batch::put`].
    pub fn delete(&mut self, key: &[u8]) -> Result<(), Error> {
        self.check_room(key, 0)?;
        let key = self.take(key);
        self.changes.push(Planned { key, action: Action::Delete });
        Ok(())
    }

    fn check_room(&self, key: &[u8], value_bytes: usize) -> Result<(), Error> {
        check_key(key)?;
        let bytes = self.bytes.len() + key.len() + value_bytes + (self.changes.len() + 1) * CHANGE_BYTES;
        if bytes <= BATCH_BYTES_MAX { Ok(()) } else { Err(Error::BatchTooLong { bytes }) }
    }

    fn take(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }

    /// Changes so far.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Makes the changes, all or none.
    ///
    /// # Errors
    /// Those of every write ([`Store::put`]). [`Error::GroupFull`] in the middle of a batch ends the store's log, because what is
    /// in memory by then must not survive: it has to be opened again.
    pub fn commit(self) -> Result<(), Error> {
        self.store.change(self.room_bytes(), |engine, now| self.apply(engine, now))
    }

    /// What it takes at most: deletions take nothing.
    fn room_bytes(&self) -> usize {
        let puts = self.changes.iter().any(|planned| matches!(planned.action, Action::Put { .. }));
        if puts { self.bytes.len() } else { 0 }
    }

    fn apply(&self, engine: &mut Engine, now: Now) -> Result<(), Error> {
        let mut has_changed = false;
        for window in self.changes.chunks(WINDOW) {
            let keys = window.iter().map(|planned| key_of(&engine.data, &self.bytes[planned.key.clone()]));
            let keys: Vec<_> = keys.collect();
            for key in &keys {
                engine.data.prefetch_bucket(key);
                engine.data.prefetch_counters(key);
            }
            keys.iter().for_each(|key| engine.data.prefetch_record(key));
            for (key, planned) in keys.iter().zip(window) {
                let result = match &planned.action {
                    Action::Put { value, time_to_live } => {
                        let change = Change::put_string(&self.bytes[value.clone()], expiry(*time_to_live, now));
                        apply_change(&mut engine.data, key, &change).map(drop)
                    }
                    Action::Delete => match engine.data.read(key, now.unix_ms).is_some() {
                        true => apply_change(&mut engine.data, key, &Change::Remove).map(drop),
                        false => Ok(()),
                    },
                };
                if let (Err(error), true, Some(journal)) = (&result, has_changed, &mut engine.journal) {
                    // From here on nothing is sealed: the first half of it must not be in the log.
                    journal.log.on_log_failed(format!("a batch could not be completed: {error}"));
                }
                result?;
                has_changed = true;
            }
        }
        Ok(())
    }
}
