//! What a follower gets: records of a log group as they are, where it has their keys.
//!
//! ```text
//!  group   [append k1] [set k2] [pop k3] …          slot of k1: whole                    ─► the record
//!                                                   slot of k2: copies went that are
//!                                                               newer than the group     ─► the record, which the copy may have: versions tell
//!                                                   slot of k3: nothing of it went       ─► nothing: the fill will bring it
//!
//!  a slot that is being filled      sent ────────────► cursor      not sent yet
//!                                   records                        nothing
//! ```
//!
//! As a run is repaired by the log that is newer than its begin: what a key's version has already is skipped. What a follower cannot be
//! told by a record goes as a copy of its key as it is now, which is newer than the records behind it in the group.
//!
//! The blocks of a long value go as they are, under the names that they have in this log, wherever the slot goes or is being filled; so the
//! change that names them is a record as others are. If it is not passed on, the follower is told that nobody needs the blocks.

use base::{Database, SLOT_COUNT, Slot};
use types::Change;

use super::slot_copy::{SlotCopy, append_copy};
use super::stages::{PassedStages, stage_of};
use super::{ScanCursor, Store};
use crate::key::Key;
use crate::log::LogBuffer;
use crate::log::format::{GROUP_HEADER_BYTES, tag};
use crate::log::record::{RecordForm, Records};

/// How a slot's records are passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass<'k> {
    /// Not at all.
    No,
    /// As they are.
    Records,
    /// As they are, but the follower may know what they say, from copies of the keys that are newer: versions tell.
    Perhaps,
    /// Those of keys that the follower has: keys in front of the cursor, and known ones. Of others only that they are gone: they may have
    /// been copied.
    Part {
        /// Where the fill is.
        cursor: ScanCursor,
        /// What the follower had before it.
        known: &'k Known,
        /// As in [`Pass::Perhaps`].
        perhaps: bool,
    },
}

/// How one record is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    No,
    Record { perhaps: bool },
    Copy,
}

/// Keys of a slot that need not be copied: somebody has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// What names are hashed with.
    pub seed: u64,
    /// Names as in [`Mark`](super::Mark), ascending.
    pub names: Vec<u64>,
}

impl Store {
    /// Passes the records of a sealed group on. A value in pieces always goes as a copy, and so does one whose blocks the follower has
    /// not `passed` to it from the first one on. The slots of which there are copies.
    ///
    /// # Panics
    /// When the group is not one of this store's log.
    pub fn pass_on<'k>(
        &self,
        group: &[u8],
        pass: &dyn Fn(Slot) -> Pass<'k>,
        passed: &mut PassedStages,
        out: &mut LogBuffer,
    ) -> Vec<Slot> {
        let bytes = u32::from_le_bytes(group[8..12].try_into().expect("four bytes")) as usize;
        let records = &group[GROUP_HEADER_BYTES..][..bytes];
        let (mut copied, mut slots, mut is_cleared) = ([0u64; SLOT_COUNT as usize / 64], Vec::new(), false);
        for (at, record) in Records::new(records, RecordForm::Short) {
            let record = record.expect("this store sealed it");
            if record.tag == tag::CLEAR {
                let database = (record.body != [u8::MAX]).then(|| Database(record.body[0]));
                slots.extend(self.pass_clear_on(database, pass, out));
                is_cleared = true;
                continue;
            }
            let slot = Slot::wrapping(record.slot);
            let raw = &records[at - GROUP_HEADER_BYTES..][..record.bytes];
            if record.tag == tag::BLOCK && passed.takes_block(&record, || pass(slot) != Pass::No) {
                out.append_record(raw);
            }
            if record.tag >= tag::PIECE {
                continue;
            }
            let (word, bit) = (usize::from(slot.number() / 64), 1 << (slot.number() % 64));
            let is_copied = is_cleared || copied[word] & bit != 0;
            let key = || Key::new(record.key, Database(record.database), slot, self.seed);
            let way = match pass(slot) {
                Pass::No => Way::No,
                Pass::Records => Way::Record { perhaps: is_copied },
                Pass::Perhaps => Way::Record { perhaps: true },
                Pass::Part { cursor, known, perhaps } => {
                    self.way_of_part(&key(), (cursor, known), perhaps || is_copied)
                }
            };
            let stage = record.is_staged.then(|| stage_of(record.body));
            let is_whole = !record.has_pieces && stage.is_none_or(|stage| passed.has(stage));
            let way = if way == Way::No || is_whole { way } else { Way::Copy };
            if let Some(stage) = stage
                && passed.forget(stage)
                && !matches!(way, Way::Record { .. })
            {
                out.append_unneeded(slot, stage);
            }
            match way {
                Way::No => {}
                Way::Record { perhaps: false } => out.append_record(raw),
                Way::Record { perhaps: true } => out.append_record_as_copy(raw),
                Way::Copy => {
                    if copied[word] & bit == 0 {
                        copied[word] |= bit;
                        slots.push(slot);
                    }
                    self.copy_key(&key(), out);
                }
            }
        }
        slots
    }

    /// How a record of a key is passed on whose slot is being filled.
    fn way_of_part(&self, key: &Key<'_>, (cursor, known): (ScanCursor, &Known), perhaps: bool) -> Way {
        let group = self.group(key.group()).expect("a group whose log this is");
        let place = (u64::from(key.group().number()) << 32) | u64::from(key.position());
        let is_there = place < cursor.0 || Store::is_marked(&known.names, known.seed, key.bytes, key.database);
        match is_there {
            true => Way::Record { perhaps },
            false if group.find(key).is_none() => Way::Copy,
            false => Way::No,
        }
    }

    /// All keys of the slots went, and what came in the same group behind that is copied. Which slots.
    fn pass_clear_on<'k>(
        &self,
        database: Option<Database>,
        pass: &dyn Fn(Slot) -> Pass<'k>,
        out: &mut LogBuffer,
    ) -> Vec<Slot> {
        let mut slots = Vec::new();
        for group in self.groups.iter().flatten().filter(|group| group.owner == self.core) {
            for slot in (0..=u8::MAX).map(|position| group.id().slot(position)).filter(|slot| pass(*slot) != Pass::No) {
                slots.push(slot);
                out.append_forget(slot);
                if database.is_some() || group.keys_in_slot(slot) > 0 {
                    let is_end = self.copy_slice(&mut SlotCopy::new(slot, Known::default()), usize::MAX, None, out);
                    debug_assert!(is_end, "nothing limits it");
                }
            }
        }
        slots
    }

    /// Copies a key as it is now.
    fn copy_key(&self, key: &Key<'_>, out: &mut LogBuffer) {
        let group = self.group(key.group()).expect("a group whose log this is");
        match group.find(key) {
            Some(found) => append_copy(key, group.record(found), out),
            None => out.append_copied(key, group.last_version(key.slot), &Change::Remove),
        }
    }
}
