//! Long values in blocks, between stores: which of them went to a follower, and those that come in from a first.
//!
//! ```text
//!   first's log   [block 3: 0…][block 3: 64k…]…[Put k = stage 3]          passed: 3, until its change
//!   link           the same
//!   own log       [block 9: 0…][block 9: 64k…]…[Put k = stage 9]          arriving: 3 is 9 here, until its change
//! ```
//!
//! Either end forgets a stage whose blocks nobody needs, and tells the other one by a block that says so.

use std::collections::{BTreeMap, BTreeSet};

use base::{Blocks, LogOrdinal, Slot, SlotGroupId};
use types::Change;

use super::Store;
use crate::log::format::{BLOCK_UNNEEDED, tag, u64_at};
use crate::log::record::RawRecord;
use crate::log::replay::{STAGE_HEAD_BYTES, Stages};

/// The stages of which a follower has every block that the log has.
#[derive(Debug, Default)]
pub struct PassedStages(BTreeMap<u64, Slot>);

impl PassedStages {
    /// Whether a block is to be passed on; `is_wanted`: so is what comes of its slot now.
    pub(super) fn takes_block(&mut self, record: &RawRecord<'_>, is_wanted: impl FnOnce() -> bool) -> bool {
        let (stage, offset) = (u64_at(record.body, 0), u64_at(record.body, 8));
        match offset {
            BLOCK_UNNEEDED => self.forget(stage),
            0 if !self.has(stage) && is_wanted() => {
                self.0.insert(stage, Slot::wrapping(record.slot));
                true
            }
            _ => self.has(stage),
        }
    }

    pub(super) fn has(&self, stage: u64) -> bool {
        self.0.contains_key(&stage)
    }

    /// Whether it was there.
    pub(super) fn forget(&mut self, stage: u64) -> bool {
        self.0.remove(&stage).is_some()
    }

    /// Forgets those of slots that are not to be kept; which.
    pub fn keep(&mut self, keeps: impl Fn(Slot) -> bool) -> Vec<(u64, Slot)> {
        self.0.extract_if(.., |_, slot| !keeps(*slot)).collect()
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// Whether it says that nobody needs the blocks of a stage.
pub(super) fn is_unneeded(record: &RawRecord<'_>) -> bool {
    record.tag == tag::BLOCK && record.body.len() == STAGE_HEAD_BYTES && u64_at(record.body, 8) == BLOCK_UNNEEDED
}

/// The stage that a change names at the end of its body.
pub(super) fn stage_of(body: &[u8]) -> u64 {
    u64_at(&body[body.len() - STAGE_HEAD_BYTES..], 0)
}

/// Where the log has the beginning of a long value whose change is to come.
#[derive(Clone, Copy, Debug)]
pub struct StageBegin {
    /// The log group that has the first block, or one before it.
    pub first: LogOrdinal,
    /// The slot group of its key.
    pub group: SlotGroupId,
    /// [`crate::SlotGroup::clears`] of that when the first block came; `None` if it was not to be told, or keys may have gone in the same
    /// log group before.
    pub clears: Option<u64>,
}

impl StageBegin {
    /// The log group up to which a run that begins now has everything, if it is `begin` without this value. `None` while its blocks are
    /// older than a clear: a replay from there would bring keys back, because the run has what came after the clear already.
    pub fn begin_of_runs(&self, store: &Store, begin: LogOrdinal) -> Option<LogOrdinal> {
        let clears = store.group(self.group).map(crate::SlotGroup::clears);
        (clears.is_some() && clears == self.clears).then(|| begin.min(LogOrdinal(self.first.0 - 1)))
    }
}

/// Long values on their way here over one link.
#[derive(Default)]
pub struct Arriving {
    stages: Stages,
    own: BTreeMap<u64, Own>,
    /// What nobody needs any more.
    gone: Vec<Blocks>,
}

/// What a stage of the first's is here.
#[derive(Clone, Copy, Debug)]
struct Own {
    slot: Slot,
    number: u64,
    begin: StageBegin,
}

impl Arriving {
    /// Bytes of the values.
    pub fn bytes(&self) -> usize {
        self.stages.bytes()
    }

    /// Where their first blocks are in this store's log.
    pub fn begins(&self) -> impl Iterator<Item = &StageBegin> {
        self.own.values().map(|own| &own.begin)
    }

    /// Those of slots that are not to be kept will not be whole.
    pub fn keep(&mut self, keeps: impl Fn(Slot) -> bool) {
        for (stage, _) in self.own.extract_if(.., |_, own| !keeps(own.slot)) {
            self.gone.extend(self.stages.take_stage(stage));
        }
    }

    /// None of them will be.
    pub fn clear(&mut self) {
        self.keep(|_| false);
        self.stages.forget_aligned();
    }

    /// One that begins soon will be written into another value, so many bytes into a block of that: it comes to lie in blocks that can be
    /// taken as they are then, in place of being copied in the tick of its change.
    pub fn align(&mut self, stage: u64, skip: usize) {
        self.stages.align(stage, skip);
    }

    /// The stages that a replay would have open, for a change that names one.
    pub(super) fn stages(&mut self) -> &mut Stages {
        &mut self.stages
    }

    /// A change came that names a stage: what it is in the own log.
    pub(super) fn take_number(&mut self, stage: u64) -> Option<u64> {
        self.own.remove(&stage).map(|own| own.number)
    }
}

/// Names of long values in the own log.
#[derive(Debug, Default)]
pub(super) struct OwnStages {
    count: u64,
    /// Those of which the log has blocks, and no change.
    open: BTreeSet<u64>,
}

impl OwnStages {
    fn next(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    /// A change was performed.
    #[inline]
    pub(super) fn note(&mut self, change: &Change<'_>) {
        if !self.open.is_empty()
            && let Change::PutBlocks { staged: Some(stage), .. } | Change::OverwriteBlocks { staged: Some(stage), .. } =
                change
        {
            self.open.remove(stage);
        }
    }
}

impl Store {
    /// A name in this store's log for a long value whose blocks come before its change.
    pub fn begin_stage(&mut self) -> u64 {
        let number = self.stages.next();
        self.stages.open.insert(number);
        number
    }

    /// Whoever brought a long value has run: if no change names it, the log and all that follow it hear that nobody needs it.
    pub fn end_stage(&mut self, slot: Slot, number: u64) {
        if self.stages.open.remove(&number)
            && let Some(log) = &mut self.log
        {
            log.append_unneeded(slot, number);
            self.changes += 1;
        }
    }

    /// The next block of a long value comes over a link, and goes to the own log, of which `next` is the group under way.
    ///
    /// # Errors
    /// It is no block.
    pub(super) fn take_block(
        &mut self,
        record: &RawRecord<'_>,
        slot: Slot,
        (arriving, next): (&mut Arriving, LogOrdinal),
    ) -> Result<(), String> {
        let Some((head, bytes)) = record.body.split_at_checked(STAGE_HEAD_BYTES) else {
            return Err("a block of a long value is shorter than its head".into());
        };
        let (stage, offset) = (u64_at(head, 0), u64_at(head, 8));
        if offset == 0 && !arriving.own.contains_key(&stage) {
            let may_tell = self.log.as_ref().is_some_and(|log| !log.has_forget());
            let clears = self.group(slot.group()).filter(|_| may_tell).map(crate::SlotGroup::clears);
            let begin = StageBegin { first: next, group: slot.group(), clears };
            arriving.own.insert(stage, Own { slot, number: self.stages.next(), begin });
        }
        let Some(own) = arriving.own.get(&stage).copied() else {
            return if offset == BLOCK_UNNEEDED { Ok(()) } else { Err("a block follows none".into()) };
        };
        if offset == BLOCK_UNNEEDED {
            arriving.own.remove(&stage);
            arriving.gone.extend(arriving.stages.take_stage(stage));
        } else {
            arriving.stages.add(record)?;
        }
        if let Some(log) = &mut self.log {
            log.append_block(slot, (own.number, offset), bytes);
        }
        self.changes += 1;
        Ok(())
    }

    /// Gives back what nobody needs any more.
    pub fn let_go_of_arrived(&mut self, arriving: &mut Arriving) {
        if !arriving.gone.is_empty() {
            self.let_go(arriving.gone.drain(..));
        }
    }
}
