//! What the first of a chain did, done again by who follows: in memory and in the own log.
//!
//! ```text
//!  records of another node's log ─► decoded as a replay does ─► memory
//!                                                           └─► own log, as they are
//! ```

use base::{Database, LogOrdinal, Slot, Version};

use super::Store;
use super::stages::{Arriving, is_unneeded, stage_of};
use crate::key::Key;
use crate::log::format::{GROUP_HEADER_BYTES, GroupHeader, tag};
use crate::log::record::{RawRecord, RecordForm, Records};
use crate::log::replay::{AHEAD_COUNT, DecodedChange, STAGE_HEAD_BYTES, StagedValue, Step, each_record};

impl Store {
    /// Performs `count` records and logs them, of which `next` is the group under way. Long values whose changes are to come are `arriving`.
    ///
    /// # Errors
    /// What is wrong with a record. Those before it are performed and logged, it and those behind it are not: this store and the
    /// one that it follows are no copies of each other.
    pub fn follow(
        &mut self,
        records: &[u8],
        count: u32,
        (arriving, next): (&mut Arriving, LogOrdinal),
    ) -> Result<(), String> {
        let header = GroupHeader {
            record_bytes: u32::try_from(records.len()).map_err(|_| "a frame's records are too long".to_owned())?,
            records: count,
            ordinal: LogOrdinal(0),
            durable: LogOrdinal(0),
            identity: 0,
            unix_ms: 0,
            form: RecordForm::Short,
        };
        let mut logged = 0;
        let mut take = |step: Step<'_>| {
            let (record, body) = match step {
                Step::Ahead(records) => {
                    self.ask_for_keys_of(records);
                    return Ok(());
                }
                Step::Record(record, body) => (record, body),
            };
            let slot = Slot::new(record.slot).ok_or("a record's slot does not exist")?;
            let end = record.at - GROUP_HEADER_BYTES + record.bytes;
            match record.tag {
                tag::BLOCK => {
                    logged = end;
                    return self.take_block(record, slot, (arriving, next));
                }
                tag::FORGET => {
                    logged = end;
                    self.forget_slot(slot);
                    return Ok(());
                }
                _ => self.follow_change((record, body), slot, arriving)?,
            }
            self.changes += 1;
            if record.is_staged {
                logged = end;
                return self.log_staged(&records[record.at - GROUP_HEADER_BYTES..end], stage_of(body), arriving);
            }
            if let Some(log) = &mut self.log {
                // What is in front of a record since the one before are its pieces.
                let count =
                    if record.has_pieces { Records::new(&records[logged..end], RecordForm::Short).count() } else { 1 };
                log.append_raw(&records[logged..end], count as u32);
            }
            logged = end;
            Ok(())
        };
        each_record(("link", 0), (&header, records), &mut take).map(|_| ()).map_err(|damage| damage.reason)
    }

    /// Without it each change waits for its bucket, and then for its record: what is waited for goes on at the same time only if it is
    /// asked for in one go, because a processor does not look as far ahead as a change is long.
    fn ask_for_keys_of(&self, records: Records<'_>) {
        let key_of = |record: RawRecord<'_>| {
            let hash = Key::new(record.key, Database(record.database), Slot::new(record.slot)?, self.seed).hash;
            Some(Key { bytes: &[], database: Database(record.database), slot: Slot::new(record.slot)?, hash })
        };
        let none = Key { bytes: &[], database: Database(0), slot: Slot::wrapping(0), hash: 0 };
        let (mut keys, mut count) = ([none; AHEAD_COUNT], 0);
        let whole = records.take(AHEAD_COUNT).filter_map(|(_, record)| record.ok());
        for key in whole.filter_map(key_of) {
            self.prefetch_bucket(&key);
            self.prefetch_counters(&key);
            keys[count] = key;
            count += 1;
        }
        keys[..count].iter().for_each(|key| self.prefetch_record(key));
    }

    /// The same record, with the name that its blocks have here.
    fn log_staged(&mut self, record: &[u8], stage: u64, arriving: &mut Arriving) -> Result<(), String> {
        let number = arriving.take_number(stage).ok_or("a change of a long value of which nothing came")?;
        let Some(log) = &mut self.log else { return Ok(()) };
        let mut record = record.to_vec();
        let at = record.len() - STAGE_HEAD_BYTES;
        record[at..at + 8].copy_from_slice(&number.to_le_bytes());
        log.append_raw(&record, 1);
        Ok(())
    }

    fn follow_change(
        &mut self,
        (record, body): (&RawRecord<'_>, &[u8]),
        slot: Slot,
        arriving: &mut Arriving,
    ) -> Result<(), String> {
        if record.tag >= tag::PIECE || record.is_staged && record.has_pieces {
            return Err(format!("a record that no link carries (tag {})", record.tag));
        }
        let (mut elements, mut value) = (Vec::new(), StagedValue::default());
        let change = DecodedChange::of(record, body, &mut elements, (arriving.stages(), &mut value))?;
        let key = Key::new(record.key, change.database, slot, self.seed);
        self.follow_one(&key, (&change.change, record.version), record.is_copied)
    }

    /// All keys of a slot go: another node will say what it holds.
    pub fn forget_slot(&mut self, slot: Slot) {
        self.replay_forget(slot);
        self.changes += 1;
        if let Some(log) = &mut self.log {
            log.append_forget(slot);
        }
    }

    /// About `keys_max` keys of a slot that nobody asks this store for leave memory, unlogged, from a place of its walk on: how many
    /// went, and where the walk goes on. Until [`Store::forget_slot`] a recovery brings all of them back.
    pub fn drop_keys(&mut self, slot: Slot, from: Option<u32>, keys_max: usize) -> (usize, Option<u32>) {
        self.with_group_counted(slot, |group| group.drop_keys(slot, from, keys_max)).unwrap_or((0, None))
    }

    /// Everything of a slot was copied; its sequence goes on where the other node's is.
    pub fn end_copy(&mut self, slot: Slot, last: Version, removed: Version) {
        if let Some(group) = self.groups[slot.group().number() as usize].as_deref_mut() {
            group.set_sequence(slot, (last, removed));
        }
    }

    /// Of which slots another node says what expires: bit i of word w is slot 64 w + i.
    pub fn set_followed(&mut self, word: impl Fn(usize) -> u64) {
        self.groups.iter_mut().flatten().for_each(|group| group.set_followed(&word));
        self.eviction.look_anew();
    }

    /// A slot's last version, and that of its last removal.
    pub fn sequence(&self, slot: Slot) -> (Version, Version) {
        let group = self.group(slot.group());
        group.map_or_else(Default::default, |group| (group.last_version(slot), group.removed_version(slot)))
    }

    /// This store is the first of the slot's chain now: no version that the one before may have given is given again. The next
    /// write leaves versions out, and not the promotion itself: nobody hears of that, so who is first afterwards would go on
    /// below versions that others believe to be given.
    pub fn promote(&mut self, slot: Slot) {
        if let Some(group) = self.groups[slot.group().number() as usize].as_deref_mut() {
            group.skip_versions(slot);
        }
    }
}

/// Those records of a frame that are of such slots, each with its pieces: how many, and their bytes.
pub fn records_of_slots(records: &[u8], holds: &dyn Fn(Slot) -> bool) -> (u32, Vec<u8>) {
    let (mut kept, mut count, mut start, mut pieces) = (Vec::new(), 0, 0, 0);
    for (at, record) in Records::new(records, RecordForm::Short).filter_map(|(at, record)| Some((at, record.ok()?))) {
        pieces += 1;
        if record.tag == tag::PIECE {
            continue;
        }
        let end = at - GROUP_HEADER_BYTES + record.bytes;
        if is_of(&record, holds) {
            kept.extend_from_slice(&records[start..end]);
            count += pieces;
        }
        (start, pieces) = (end, 0);
    }
    (count, kept)
}

/// That nobody needs the blocks of a stage is of use wherever they are.
fn is_of(record: &RawRecord<'_>, holds: &dyn Fn(Slot) -> bool) -> bool {
    is_unneeded(record) || Slot::new(record.slot).is_some_and(holds)
}

/// Whether all records of a frame are of such slots. What is no record at all is found when it is performed.
pub fn are_of_slots(records: &[u8], holds: &dyn Fn(Slot) -> bool) -> bool {
    let mut all = Records::new(records, RecordForm::Short)
        .filter_map(|(_, record)| record.ok())
        .filter(|record| record.tag != tag::PIECE);
    all.all(|record| is_of(&record, holds))
}
