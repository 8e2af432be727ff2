//! A slot on its way to a follower: its keys as they are, a slice at a time, and long values in blocks.
//!
//! ```text
//!   cursor ─► bucket with a long value      [block][block]…            nothing is in front of the cursor yet: what is written to the key
//!                                                                      meanwhile does not go, and what differs then comes again
//!             all of it is in blocks        [Put key = stage][others]  the cursor goes on
//! ```

use base::{Database, Slot, Text};
use types::{Change, Kind};

use super::{Known, ScanCursor, Store};
use crate::group::{Record, SlotGroup, Value};
use crate::key::Key;
use crate::lazy_free::Garbage;
use crate::log::LogBuffer;
use crate::long_value::LongValue;

/// A longer list goes in blocks, as it stands in memory.
const LIST_BYTES: usize = 64 << 10;
/// How often a value that is written to is looked at again, before the rest of it goes at once.
const ROUNDS_MAX: u8 = 4;

/// See the module.
pub struct SlotCopy {
    slot: Slot,
    cursor: ScanCursor,
    known: Known,
    /// Long values of the bucket at the cursor of which blocks went.
    long: Vec<LongCopy>,
    /// How often one of them was begun anew.
    begun_anew: u8,
    /// Keys that went.
    keys: u64,
    /// What it refers to no more.
    spent: Vec<Garbage>,
}

/// What copies referred to, and perhaps nobody else does any more.
pub struct Spent(Vec<Garbage>);

struct LongCopy {
    stage: u64,
    value: LongValue,
    rounds: u8,
}

impl SlotCopy {
    /// From its beginning on, but for keys that the follower has.
    pub fn new(slot: Slot, known: Known) -> SlotCopy {
        SlotCopy {
            slot,
            cursor: Store::slot_range(slot).start,
            known,
            long: Vec::new(),
            begun_anew: 0,
            keys: 0,
            spent: Vec::new(),
        }
    }

    /// Which slot.
    pub fn slot(&self) -> Slot {
        self.slot
    }

    /// Keys in front of this went.
    pub fn cursor(&self) -> ScanCursor {
        self.cursor
    }

    /// What the follower has already.
    pub fn known(&self) -> &Known {
        &self.known
    }

    /// Appends that nobody needs the blocks that went of values that did not.
    pub fn append_given_up(&mut self, out: &mut LogBuffer) {
        for copy in self.long.drain(..) {
            out.append_unneeded(self.slot, copy.stage);
            self.spent.push(copy.value.into_garbage());
        }
    }

    /// How many keys went since the last call.
    pub fn take_keys(&mut self) -> u64 {
        std::mem::take(&mut self.keys)
    }

    /// What it refers to no more, if anything.
    pub fn take_spent(&mut self) -> Option<Spent> {
        (!self.spent.is_empty()).then(|| Spent(std::mem::take(&mut self.spent)))
    }

    /// Appends blocks of the long values at the cursor: the next one, or, of one that is written to all the time, all that differ. False:
    /// none lacks any.
    fn append_blocks(&mut self, group: &SlotGroup, stages: &mut u64, out: &mut LogBuffer) -> bool {
        loop {
            if let Some(copy) = self.long.iter_mut().find(|copy| !copy.value.is_written()) {
                copy.value.append_block(copy.stage, usize::MAX, out);
                if copy.rounds <= ROUNDS_MAX {
                    return true;
                }
                continue;
            }
            let Some((number, newer)) = self.lacking(group) else { return false };
            let Some(number) = number else {
                *stages += 1;
                self.long.push(LongCopy { stage: *stages, value: newer, rounds: 0 });
                continue;
            };
            let mut copy = self.long.swap_remove(number);
            match copy.value.renew(newer) {
                Some(older) => {
                    self.spent.push(older);
                    copy.rounds = copy.rounds.saturating_add(1);
                    self.long.push(copy);
                }
                None => {
                    self.begun_anew = self.begun_anew.saturating_add(1);
                    out.append_unneeded(self.slot, copy.stage);
                    self.spent.push(copy.value.into_garbage());
                }
            }
        }
    }

    /// A long value in the bucket at the cursor that is not in blocks as it is now; which of those that were begun it is.
    fn lacking(&self, group: &SlotGroup) -> Option<(Option<usize>, LongValue)> {
        let mut lacking = None;
        self.visit(group, |record, database| {
            let begun = self.long.iter().position(|copy| copy.value.is_of(record.key, database));
            let is_there = begun.is_some_and(|number| self.long[number].value.is_of_version(record.version));
            let may_begin = begun.is_some() || self.begun_anew <= ROUNDS_MAX;
            if lacking.is_none() && !is_there && may_begin {
                let value = LongValue::of(record, (database, self.slot), LIST_BYTES);
                lacking = value.map(|value| (begun, value));
            }
        });
        lacking
    }

    /// Appends the keys of the bucket at the cursor, which goes on.
    fn append_bucket(&mut self, group: &SlotGroup, out: &mut LogBuffer) {
        let (mut long, mut spent) = (std::mem::take(&mut self.long), std::mem::take(&mut self.spent));
        let mut keys = 0;
        let next = self.visit(group, |record, database| {
            keys += 1;
            let has_blocks =
                |copy: &LongCopy| copy.value.is_of(record.key, database) && copy.value.is_of_version(record.version);
            match long.iter().position(has_blocks) {
                Some(number) => {
                    let LongCopy { stage, value, .. } = long.swap_remove(number);
                    value.append_put(stage, true, out);
                    spent.push(value.into_garbage());
                }
                None => append_copy(&Key { bytes: record.key, database, slot: self.slot, hash: 0 }, record, out),
            }
        });
        (self.long, self.spent, self.cursor, self.begun_anew) = (long, spent, next, 0);
        self.keys += keys;
        self.append_given_up(out);
    }

    /// Visits the keys of the slot in the bucket at the cursor that the follower lacks; where the next one is.
    fn visit(&self, group: &SlotGroup, mut visit: impl FnMut(Record<'_>, Database)) -> ScanCursor {
        let (group_start, end) = (u64::from(self.slot.group().number()) << 32, Store::slot_range(self.slot).end.0);
        let next = group.index.walk(self.cursor.0 as u32, |position, location| {
            if !(self.cursor.0..end).contains(&(group_start + u64::from(position))) {
                return;
            }
            let (record, database) = (group.record_at(location), group.database_at(location));
            if !Store::is_marked(&self.known.names, self.known.seed, record.key, database) {
                visit(record, database);
            }
        });
        ScanCursor(next.map_or(end, |position| group_start + u64::from(position)))
    }
}

impl Store {
    /// Appends what comes next of a slot, until there are `bytes`; whether that was its end. Long values go in blocks under names that
    /// `stages` counts, or in one piece without.
    pub fn copy_slice(
        &self,
        copy: &mut SlotCopy,
        bytes: usize,
        mut stages: Option<&mut u64>,
        out: &mut LogBuffer,
    ) -> bool {
        let Some(group) = self.group(copy.slot.group()) else { return true };
        let end = Store::slot_range(copy.slot).end;
        while copy.cursor.0 < end.0 {
            if out.record_bytes() >= bytes {
                return false;
            }
            let has_blocks = stages.as_deref_mut().is_some_and(|stages| copy.append_blocks(group, stages, out));
            if !has_blocks {
                copy.append_bucket(group, out);
            }
        }
        true
    }

    /// Gives it back.
    pub fn let_go_of_copied(&mut self, spent: Spent) {
        self.give_up(spent.0.into_iter());
    }
}

/// Appends a key as it is, in one piece.
pub(super) fn append_copy(key: &Key<'_>, record: Record<'_>, out: &mut LogBuffer) {
    let (expiry, mut encoding) = (record.expiry(), Vec::new());
    let change = match record.value {
        Value::String { text: Text::Short(value), .. } => Change::Put { kind: Kind::String, value, expiry },
        Value::String { text: Text::Long(blocks), .. } => Change::PutBlocks { blocks, staged: None, expiry },
        Value::List(list) => {
            list.encode(&mut encoding);
            Change::Put { kind: Kind::List, value: &encoding, expiry }
        }
        Value::Cold => unreachable!("a node of a cluster keeps its values in memory"),
    };
    out.append_copied(key, record.version, &change);
}
