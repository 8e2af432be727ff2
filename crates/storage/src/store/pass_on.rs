//! What a follower gets: records of a log group as they are where it has the slot, and keys as they are now where it has not.
//!
//! ```text
//!  group   [append k1] [set k2] [pop k3] …          slot of k1: whole ─► the record
//!                                                   slot of k2: not   ─► Put k2 = what it is now, or Remove
//! ```
//!
//! A copy says everything about its key, so that it means something to a follower that lacks the rest of the slot. It is newer
//! than the records behind it in the group, so those of its slot go as copies, too.
//!
//! The blocks of a long value go as they are, under the names that they have in this log, wherever the slot goes or is being filled; so the
//! change that names them is a record as others are. If it is not passed on, the follower is told that nobody needs the blocks.
//!
//! ```text
//!  a slot that is being filled      sent ────────────► cursor      not sent yet
//!                                   records                        nothing: the fill will bring it
//! ```

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
    /// Those of keys that the follower has, as they are: keys in front of the cursor, and known ones. Of others only that they are
    /// gone: they may have been copied.
    Part(ScanCursor, &'k Known),
    /// As they are.
    Records,
    /// As copies of the keys that they change.
    Copies,
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
            let pass = match pass(slot) {
                Pass::Part(cursor, known) => self.pass_of_part(&key(), (cursor, known)),
                pass => pass,
            };
            let stage = record.is_staged.then(|| stage_of(record.body));
            let has_blocks = stage.is_none_or(|stage| passed.has(stage));
            let is_record = pass == Pass::Records && !is_copied && !record.has_pieces && has_blocks;
            if let Some(stage) = stage.filter(|stage| passed.forget(*stage) && !is_record) {
                out.append_unneeded(slot, stage);
            }
            match pass {
                Pass::No => {}
                _ if is_record => out.append_record(raw),
                _ => {
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
    fn pass_of_part(&self, key: &Key<'_>, (cursor, known): (ScanCursor, &Known)) -> Pass<'static> {
        let group = self.group(key.group()).expect("a group whose log this is");
        let place = (u64::from(key.group().number()) << 32) | u64::from(key.position());
        let is_there = place < cursor.0 || Store::is_marked(&known.names, known.seed, key.bytes, key.database);
        match is_there {
            true => Pass::Records,
            false if group.find(key).is_none() => Pass::Copies,
            false => Pass::No,
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
