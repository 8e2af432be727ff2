//! Changes between their execution and the moment their promise holds; units over groups of several cores.

use base::{CoreId, LogOrdinal, Slot, Version};

use super::{LentPart, Store, Uncommitted};
use crate::log::LogBuffer;

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
            if let Some(ordinal) = self.tracks_uncommitted {
                let group = self.group_of_mut(slot);
                let newly = usize::from(group.mark_uncommitted(slot, version));
                self.uncommitted_partitions += newly;
                self.uncommitted.push_back(Uncommitted { ordinal, slot, version });
            }
            if self.tracks_touched {
                self.touched.push((slot, hash));
            }
        }
    }

    /// Whether any change here is not committed yet.
    pub fn has_uncommitted(&self) -> bool {
        self.uncommitted_partitions > 0
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
        self.tracks_uncommitted = ordinal;
    }

    /// The promise holds for all log groups up to `ordinal`.
    pub fn commit(&mut self, ordinal: LogOrdinal) {
        while let Some(first) = self.uncommitted.front().copied().filter(|first| first.ordinal <= ordinal) {
            self.uncommitted.pop_front();
            self.commit_change(first);
        }
    }

    pub(super) fn commit_change(&mut self, change: Uncommitted) {
        match self.groups[change.slot.group().number() as usize].as_deref_mut() {
            Some(group) => {
                let clean = group.commit(change.slot, change.version);
                self.uncommitted_partitions -= usize::from(clean);
            }
            None => self.committed_away.push(change),
        }
    }

    /// Whether a read since the last call saw a value (or an absence) that is not committed.
    pub fn take_saw_uncommitted(&mut self) -> bool {
        std::mem::take(&mut self.saw_uncommitted)
    }
}
