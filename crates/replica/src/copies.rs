//! How many followers have what: the count behind WAIT and WAITAOF.
//!
//! ```text
//!  slots that a client wrote, and the last log group with a change of it
//!     └─► of each slot: followers that hold it whole, and have all groups up to there ─► the least of these numbers
//! ```

use std::collections::VecDeque;

use base::{LogOrdinal, Slot};
use placement::SlotSet;

use crate::follow::SYNC_MARKS_MAX;
use crate::lead::Lead;
use crate::links::Links;

/// What a copy has to outlive in order to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// What its own node promises for an acknowledged write.
    Promised,
    /// A power cut.
    Synced,
}

/// What a follower has and would lose in a power cut.
#[derive(Default)]
pub(crate) struct Unsynced {
    /// Last frame and first log group of each stretch.
    marks: VecDeque<(u64, LogOrdinal)>,
    /// Slots that it holds, once the frame `slots_until` is synced.
    slots: SlotSet,
    slots_until: u64,
}

impl Unsynced {
    /// The follower has a log group.
    pub(crate) fn note(&mut self, sequence: u64, ordinal: LogOrdinal) {
        let is_full = self.marks.len() >= SYNC_MARKS_MAX;
        match self.marks.back_mut().filter(|_| is_full) {
            Some((last, _)) => *last = sequence,
            None => self.marks.push_back((sequence, ordinal)),
        }
    }

    /// It holds a slot.
    pub(crate) fn note_slot(&mut self, slot: Slot, sequence: u64) {
        self.slots.insert(slot);
        self.slots_until = self.slots_until.max(sequence);
    }

    /// It held these before the link had a frame of them.
    pub(crate) fn note_slots(&mut self, slots: &SlotSet, sequence: u64) {
        if !slots.is_empty() {
            self.slots = self.slots.union(slots);
            self.slots_until = self.slots_until.max(sequence);
        }
    }

    fn on_synced(&mut self, sequence: u64) {
        while self.marks.pop_front_if(|(last, _)| *last <= sequence).is_some() {}
        if sequence >= self.slots_until {
            self.slots = SlotSet::default();
        }
    }
}

impl Lead {
    /// What the follower has up to `sequence` outlives a power cut.
    pub fn on_synced(&mut self, sequence: u64) {
        self.on_persisted(sequence);
        self.unsynced.on_synced(sequence);
    }

    /// The slots of which the follower has everything up to log group `until`, at this depth.
    fn slots_with(&self, until: LogOrdinal, depth: Depth) -> SlotSet {
        let has_until = match depth {
            Depth::Promised => self.passed(),
            Depth::Synced => {
                let first = self.unsynced.marks.front().map(|(_, ordinal)| LogOrdinal(ordinal.0 - 1));
                first.map_or(self.passed(), |first| first.min(self.passed()))
            }
        };
        match depth {
            _ if has_until < until => SlotSet::default(),
            Depth::Promised => self.held().clone(),
            Depth::Synced => self.held().without(&self.unsynced.slots),
        }
    }
}

impl Links {
    /// How many followers have everything up to log group `until` of each of `slots`: the least over those that this instance
    /// serves. Of slots that it does not serve any more nothing is asked: who serves them answers for them. Without any, and
    /// without `slots`, it is the least over all that this instance serves.
    pub fn copies(&self, slots: Option<&SlotSet>, until: LogOrdinal, depth: Depth) -> usize {
        let served = &self.served;
        let asked = slots.map(|slots| slots.intersection(served)).filter(|asked| !asked.is_empty());
        let asked = asked.as_ref().unwrap_or(served);
        if asked.is_empty() {
            return 0;
        }
        // The slots that one follower has, those that two have, and so on.
        let mut levels: Vec<SlotSet> = Vec::new();
        for (lead, _) in &self.leads {
            let mut more = lead.slots_with(until, depth).intersection(asked);
            for level in &mut levels {
                let both = level.intersection(&more);
                *level = level.union(&more);
                more = both;
            }
            levels.push(more);
        }
        levels.iter().take_while(|level| asked.is_within(level)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_bounded_and_say_less_rather_than_more() {
        let mut unsynced = Unsynced::default();
        (1..=5000).for_each(|sequence| unsynced.note(sequence, LogOrdinal(sequence + 10)));
        assert_eq!(unsynced.marks.len(), SYNC_MARKS_MAX);
        unsynced.on_synced(1023);
        assert_eq!(unsynced.marks, [(5000, LogOrdinal(1034))]);
        unsynced.on_synced(4999);
        assert_eq!(unsynced.marks.len(), 1, "some of it is not synced");
        unsynced.on_synced(5000);
        assert!(unsynced.marks.is_empty());
    }
}
