//! Long values, and long ends of values, on their way into the store: the log gets a slice at a time, and the change at the end
//! names them.
//!
//! ```text
//!   put(key, 100 MiB)   slice · slice · …  · slice      change: memory shares the blocks
//!   others                    ·       ·  ·              ·   have their turn in between, and see the old value
//! ```
//!
//! Until the change has come, no checkpoint may take the log groups with the slices for done.

use std::collections::BTreeMap;
use std::time::Duration;

use base::{BLOCK_BYTES, Blocks, LogOrdinal, Version};
use types::{Change, Expiry};

use crate::checks::{check_value, key_of, read};
use crate::engine::Engine;
use crate::options::Durability;
use crate::store::{Shared, apply_change, expiry};
use crate::{Error, Store};

/// Bytes of a long value that go to the log while the lock is held, and the longest value that is logged in one piece.
pub(crate) const SLICE_BYTES: usize = 256 << 10;
/// Bytes of log that are not synced, above which a long value waits for a sync in durability `commit`.
const UNSYNCED_BYTES_MAX: u64 = 4 << 20;

/// Values of which the log has a part, and no change yet.
#[derive(Default)]
pub(crate) struct Uploads {
    /// Stage to the log group of its first block.
    first: BTreeMap<u64, LogOrdinal>,
    stages: u64,
}

impl Uploads {
    /// The log group up to which a checkpoint that begins now has everything.
    pub fn begin_of_runs(&self, sealed: LogOrdinal) -> LogOrdinal {
        self.first.values().fold(sealed, |begin, first| begin.min(LogOrdinal(first.0 - 1)))
    }

    /// None of them will be completed.
    pub fn clear(&mut self) {
        self.first.clear();
    }

    fn open(&mut self, first: LogOrdinal) -> u64 {
        self.stages += 1;
        self.first.insert(self.stages, first);
        self.stages
    }
}

impl Shared {
    pub(crate) fn put_long(&self, key: &[u8], value: &[u8], time_to_live: Option<Duration>) -> Result<Version, Error> {
        let blocks = Blocks::of(value);
        let mut stage = None;
        let logged = self.log_slices(key, value, &mut stage);
        let result = logged.and_then(|()| self.name_slices(key, (&blocks, stage), time_to_live));
        if result.is_err() {
            self.lock().close_upload(stage);
        }
        result
    }

    /// The change at the end, of which the log has the bytes already.
    fn name_slices(
        &self,
        key: &[u8],
        (blocks, staged): (&Blocks, Option<u64>),
        time_to_live: Option<Duration>,
    ) -> Result<Version, Error> {
        let (mut guard, now) = self.lock_to_write(blocks.len())?;
        let engine = &mut *guard;
        let key = key_of(&engine.data, key);
        let change = Change::PutBlocks { blocks, staged, expiry: expiry(time_to_live, now) };
        let result = apply_change(&mut engine.data, &key, &change);
        engine.end_change(now);
        engine.close_upload(staged);
        self.promise(guard)?;
        result
    }

    fn log_slices(&self, key: &[u8], value: &[u8], stage: &mut Option<u64>) -> Result<(), Error> {
        let slot = placement::slot_of(key);
        for (number, slice) in value.chunks(SLICE_BYTES).enumerate() {
            let (mut guard, now) = self.lock_to_log_slice()?;
            let engine = &mut *guard;
            let Engine { journal: Some(journal), data, uploads, .. } = engine else { return Ok(()) };
            let stage = match *stage {
                Some(stage) => stage,
                None => {
                    // What is not sealed yet, a run that begins now may have to have.
                    journal.seal(data, uploads, now);
                    *stage.insert(uploads.open(journal.log.next_ordinal()))
                }
            };
            for (block_number, block) in slice.chunks(BLOCK_BYTES).enumerate() {
                let offset = (number * SLICE_BYTES + block_number * BLOCK_BYTES) as u64;
                if let Some(buffer) = data.log_mut() {
                    buffer.append_block(slot, (stage, offset), block);
                }
            }
            journal.seal(data, uploads, now);
            if journal.durability == Durability::Commit && journal.log.unsynced_bytes() > UNSYNCED_BYTES_MAX {
                self.promise(guard)?;
            } else if guard.takes_keeper_from_sleep() {
                self.keeper_bell.ring();
            }
        }
        Ok(())
    }
}

impl Store {
    /// Appends what is longer than a slice; the new length.
    pub(crate) fn append_long(&self, key: &[u8], bytes: &[u8]) -> Result<u64, Error> {
        let shared = self.shared();
        let mut stage = None;
        let result = shared.log_slices(key, bytes, &mut stage).and_then(|()| {
            // As the value is now: if it has another length when they get there, they are copied.
            let skip = shared.string_len(key) % BLOCK_BYTES;
            let mut blocks = Blocks::of(&vec![0; skip]);
            blocks.append(bytes, 0);
            self.name_end(key, (&blocks, skip, stage))
        });
        shared.lock().close_upload(stage);
        result
    }

    fn name_end(&self, key: &[u8], (blocks, skip, staged): (&Blocks, usize, Option<u64>)) -> Result<u64, Error> {
        let bytes = blocks.len() - skip;
        self.change_value(key, key.len() + bytes, |engine, now| {
            let key = key_of(&engine.data, key);
            let present_len = read(&mut engine.data, &key, now.unix_ms)?.map(|present| present.text.len() as u64);
            let offset = present_len.unwrap_or(0);
            let len = offset + bytes as u64;
            check_value(key.bytes, len)?;
            if present_len.is_none() {
                apply_change(&mut engine.data, &key, &Change::put_string(&[], Expiry::Clear))?;
            }
            apply_change(&mut engine.data, &key, &Change::OverwriteBlocks { offset, blocks, skip, staged })?;
            Ok(len)
        })
    }
}

impl Shared {
    fn string_len(&self, key: &[u8]) -> usize {
        let mut engine = self.lock();
        let now = engine.now();
        engine.data.string_len(&key_of(&engine.data, key), now.unix_ms)
    }
}

impl Engine {
    fn close_upload(&mut self, stage: Option<u64>) {
        if let Some(stage) = stage {
            self.uploads.first.remove(&stage);
        }
    }
}

#[cfg(test)]
mod tests;
