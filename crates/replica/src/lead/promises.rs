//! What the follower has, and what may be promised because it has it.

use base::LogOrdinal;
use base::planted::{Bug, is_planted};
use placement::SlotSet;

use super::Lead;

impl Lead {
    /// The follower's log has everything up to `sequence`.
    pub fn on_persisted(&mut self, sequence: u64) {
        while let Some(entry) = self.backlog.pop_front_if(|entry| entry.sequence <= sequence) {
            self.backlog_bytes -= entry.bytes.len();
            for slot in entry.ends.into_iter().filter(|slot| self.slots.contains(*slot)) {
                self.held.insert(slot);
                self.unsynced.note_slot(slot, entry.sequence);
            }
            if let Some(ordinal) = entry.ordinal {
                self.unsynced.note(entry.sequence, ordinal);
            }
        }
        self.find_lost();
    }

    /// What was lost is with the follower once it holds everything.
    pub(super) fn find_lost(&mut self) {
        if self.lost_from.is_some() && self.suspects.is_empty() && self.slots.is_within(&self.held) {
            self.lost_from = None;
        }
    }

    /// Whether the follower has, of these slots, everything up to log group `until`.
    pub fn has_all(&self, slots: &SlotSet, until: LogOrdinal) -> bool {
        let has = self.slots.union(&self.suspects).intersection(slots).is_within(&self.held);
        has && self.ahead.intersection(slots).is_empty() && self.passed() >= until
    }

    /// Whether replies wait for it anywhere.
    pub(super) fn counts(&self) -> bool {
        !self.awaited.is_empty()
    }

    /// A table came; `newest`: groups up to this one were passed on.
    pub fn count_from(&mut self, newest: LogOrdinal) {
        self.counts_from = newest;
    }

    /// What it holds and may take over: where replies wait for it, it also has what was acknowledged before they did.
    pub fn vouched(&self) -> SlotSet {
        match !self.counts() || self.passed() >= self.counts_from {
            true => self.held.clone(),
            false => self.held.intersection(&self.trusted),
        }
    }

    /// Of which slots it is said to be whole, and has everything that was acknowledged, or ever will be by this table.
    pub fn counted(&self) -> SlotSet {
        match self.counts() && self.passed() >= self.counts_from {
            true => self.trusted.intersection(&self.held),
            false => SlotSet::default(),
        }
    }

    /// The last log group of which the follower has all it is to have.
    pub fn horizon(&self) -> LogOrdinal {
        match !self.counts() || is_planted(Bug::M2AcknowledgedBeforeSecondary) {
            true => LogOrdinal(u64::MAX),
            false => self.passed(),
        }
    }

    pub(crate) fn passed(&self) -> LogOrdinal {
        let pending = self.backlog.iter().find_map(|entry| entry.ordinal);
        let first = [self.lost_from, pending].into_iter().flatten().min();
        first.map_or(self.considered, |first| LogOrdinal(first.0 - 1))
    }
}
