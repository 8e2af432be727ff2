//! Changes between their execution and the moment their promise holds; units over groups of several cores.
//!
//! Slots whose replies wait for different copies are committed apart ([`base::promise`]), so each lane has a queue of its own.

use std::collections::VecDeque;

use base::{CoreId, Lanes, LogOrdinal, Scope, Slot, Version};

use super::{LentPart, Store};
use crate::group::SlotGroup;
use crate::log::LogBuffer;

/// A change that is not committed.
#[derive(Clone, Copy, Debug)]
struct Uncommitted {
    /// Log group it is part of.
    ordinal: LogOrdinal,
    slot: Slot,
    version: Version,
}

/// What changed and is not committed yet.
#[derive(Default)]
pub(super) struct Ledger {
    /// The log group that changes of this tick belong to, when promises take longer than the tick.
    ordinal: Option<LogOrdinal>,
    lanes: Lanes,
    /// By lane, each in the order of log groups.
    queues: Vec<VecDeque<Uncommitted>>,
    /// Partitions with changes that are not committed.
    partitions: usize,
    /// Committed while their group was lent; noted in it when it comes home.
    away: Vec<Uncommitted>,
    saw: bool,
    /// Slots of what was read and is not committed, and of what was changed, since [`Store::changes_from_here`].
    scope: Option<Scope>,
}

impl Ledger {
    /// A change of an own group.
    #[inline]
    pub(super) fn note(&mut self, group: &mut SlotGroup, slot: Slot, version: Version) {
        let Some(ordinal) = self.ordinal else { return };
        self.partitions += usize::from(group.mark_uncommitted(slot, version));
        self.scope = Some(Scope::with(self.scope, slot));
        self.push(Uncommitted { ordinal, slot, version });
    }

    fn push(&mut self, change: Uncommitted) {
        let lane = self.lanes.of(change.slot);
        if lane >= self.queues.len() {
            self.queues.resize_with(lane + 1, VecDeque::new);
        }
        self.queues[lane].push_back(change);
    }

    /// Whether changes are not committed at once.
    pub(super) fn tracks(&self) -> bool {
        self.ordinal.is_some()
    }

    /// Whether anybody has to ask whether what he sees is committed.
    #[inline]
    pub(super) fn has_any(&self) -> bool {
        self.partitions > 0
    }

    /// Somebody saw what is not committed.
    pub(super) fn note_seen(&mut self, slot: Slot) {
        self.saw = true;
        self.scope = Some(Scope::with(self.scope, slot));
    }

    fn set_lanes(&mut self, lanes: Lanes) {
        self.lanes = lanes;
        let mut changes: Vec<Uncommitted> = self.queues.drain(..).flatten().collect();
        changes.sort_by_key(|change| change.ordinal);
        changes.into_iter().for_each(|change| self.push(change));
    }
}

impl Store {
    /// What was done to lent groups since the last call, by owner.
    pub fn take_lent(&mut self) -> Vec<(CoreId, LentPart)> {
        self.lent_bytes = 0;
        std::mem::take(&mut self.lent)
    }

    /// From now on the own records of a unit over several cores are kept apart; returns those of the tick so far, to be
    /// given back to [`Store::end_unit`]. `None` in durability `memory`.
    pub fn begin_unit(&mut self) -> Option<LogBuffer> {
        self.log.as_mut().map(std::mem::take)
    }

    /// The unit's own records; the tick's are in place again.
    pub fn end_unit(&mut self, tick: Option<LogBuffer>) -> Option<LogBuffer> {
        std::mem::replace(&mut self.log, tick)
    }

    /// A lender takes note of what a unit did to its groups, which are here again.
    pub fn adopt(&mut self, touched: &[(Slot, u64, Version)], cleared: bool) {
        if cleared {
            self.note_cleared();
        }
        for &(slot, hash, version) in touched {
            let group = self.groups[usize::from(slot.group().number())].as_deref_mut();
            self.ledger.note(group.expect("what was lent is here again"), slot, version);
            if self.tracks_touched {
                self.touched.push((slot, hash));
            }
        }
    }

    /// Whether any change here is not committed yet.
    pub fn has_uncommitted(&self) -> bool {
        self.ledger.has_any()
    }

    /// Note the keys that change from now on, or stop noting them.
    pub fn track_touched(&mut self, on: bool) {
        self.tracks_touched = on;
        self.touched.clear();
    }

    /// Move the slots and hashes of the keys changed since the last call into `out`; true when all keys may have.
    pub fn take_touched(&mut self, out: &mut Vec<(Slot, u64)>) -> bool {
        out.append(&mut self.touched);
        std::mem::take(&mut self.touched_all)
    }

    /// From now on every change belongs to log group `ordinal` and is uncommitted until [`Store::commit`] reaches it;
    /// `None`: changes are committed at once.
    pub fn track_uncommitted(&mut self, ordinal: Option<LogOrdinal>) {
        self.ledger.ordinal = ordinal;
    }

    /// Which slots are committed together from now on.
    pub fn set_lanes(&mut self, lanes: Lanes) {
        self.ledger.set_lanes(lanes);
    }

    /// The promise holds for all log groups up to `upto(lane)`.
    pub fn commit(&mut self, upto: impl Fn(usize) -> LogOrdinal) {
        for lane in 0..self.ledger.queues.len() {
            let upto = upto(lane);
            while let Some(change) = self.ledger.queues[lane].pop_front_if(|first| first.ordinal <= upto) {
                self.commit_change(change);
            }
        }
    }

    fn commit_change(&mut self, change: Uncommitted) {
        match self.groups[change.slot.group().number() as usize].as_deref_mut() {
            Some(group) => {
                let clean = group.commit(change.slot, change.version);
                self.ledger.partitions -= usize::from(clean);
            }
            None => self.ledger.away.push(change),
        }
    }

    /// A group is here again: what was committed meanwhile is noted in it.
    pub(super) fn commit_at_home(&mut self, group: base::SlotGroupId) {
        if self.ledger.away.is_empty() {
            return;
        }
        let is_home = |change: &mut Uncommitted| change.slot.group() == group;
        let home: Vec<Uncommitted> = self.ledger.away.extract_if(.., is_home).collect();
        home.into_iter().for_each(|change| self.commit_change(change));
    }

    /// Whether a read since the last call saw a value (or an absence) that is not committed.
    pub fn take_saw_uncommitted(&mut self) -> bool {
        std::mem::take(&mut self.ledger.saw)
    }

    /// As [`Store::changes`]; from here on [`Store::uncommitted_scope`] is noted.
    #[inline]
    pub fn changes_from_here(&mut self) -> u64 {
        self.ledger.scope = None;
        self.changes
    }

    /// Slots of what was read and is not committed, and of what was changed, if changes are tracked.
    pub fn uncommitted_scope(&self) -> Option<Scope> {
        self.ledger.scope
    }
}
