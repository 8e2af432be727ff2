//! What a follower was filled with, and is to say again that it has.
//!
//! A table may have come in between that is not known here, by which the follower left a slot; then it may have swept it. So where
//! the chain is another one, and the table does not say that the follower is whole, nothing is held before the follower took a
//! frame by the new table: it refuses to, if it forgot (`crate::forgotten`).

use base::{LogOrdinal, Slot};
use placement::SlotSet;
use wire::frame::Frame;

use super::Lead;

impl Lead {
    /// Slots that the link keeps by a newer table, but whose chains changed since the one that is known, and are not whole.
    pub(super) fn claimed(&self, slots: &SlotSet, trusted: &SlotSet, epoch: impl Fn(Slot) -> u64) -> SlotSet {
        let kept = self.slots.intersection(slots).without(trusted);
        kept.iter().filter(|slot| epoch(*slot) > self.table).collect()
    }

    /// They are held once the follower's log has a frame by the table of now. Those that are still being filled are so in any
    /// case: the end of their fill is to come.
    pub(super) fn claim(&mut self, slots: &SlotSet) {
        // What was said of them was said of chains that are no more.
        self.told = self.told.without(slots);
        self.held = self.held.without(slots);
        let filled = self.whole.union(&self.ahead).intersection(slots);
        if filled.is_empty() {
            return;
        }
        self.backlog.iter_mut().for_each(|entry| entry.ends.retain(|slot| !filled.contains(*slot)));
        let table = self.table;
        self.push((None, LogOrdinal(0)), None, |sequence| Frame::Group { sequence, table, count: 0, records: &[] });
        let entry = self.backlog.back_mut().expect("it was just pushed");
        entry.ends = filled.iter().collect();
    }
}
