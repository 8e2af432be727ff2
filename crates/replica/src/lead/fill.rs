//! The slots of a link that the follower lacks: what it has of them already, and the rest, a slice at a time.

use base::limits::LINK_FILL_BYTES_MAX;
use base::{LogOrdinal, Slot};
use placement::SlotSet;
use storage::log::LogBuffer;
use storage::{Comparison, Known, Marks, Pass, SlotCopy, Store};
use wire::frame::{Frame, MarkBytes};

use super::Lead;
use crate::standing::Fills;

/// Bytes that one tick fills, and of a slot that go in one frame, about.
const FILL_SLICE_BYTES: usize = 16 << 10;
/// What a frame costs beside its records, as bytes of them: an empty slot is quickly filled, but takes one.
const FRAME_COST_BYTES: usize = 256;
/// A key that is compared costs either end about as much as one of so many bytes that is sent.
pub(crate) const COMPARED_KEY_BYTES: usize = 32;

/// A slot that is being filled.
pub(super) struct Filling {
    copy: SlotCopy,
    /// What the follower had of it goes with the first frame.
    is_anew: bool,
    is_begun: bool,
    /// The last log group of which something is in what was sent of it, or of what is known.
    pub(super) newest: LogOrdinal,
}

impl Filling {
    /// Which.
    pub(super) fn slot(&self) -> Slot {
        self.copy.slot()
    }

    /// How changes of the slot in log group `ordinal` are passed on.
    pub(super) fn pass(&self, ordinal: LogOrdinal) -> Pass<'_> {
        Pass::Part { cursor: self.copy.cursor(), known: self.copy.known(), perhaps: ordinal <= self.newest }
    }
}

impl Lead {
    /// Whether a slot waits to be filled, and there is room for it on the way.
    pub fn may_fill(&self) -> bool {
        self.backlog_bytes < LINK_FILL_BYTES_MAX
            && (self.filling.is_some() || self.compares.ready().is_some() || self.next_without_keys().is_some())
    }

    /// The next slot to be filled of which the follower has nothing: nobody needs to be asked. None as long as it has no room; what it
    /// has keys of goes on, because they may be too many.
    fn next_without_keys(&self) -> Option<Slot> {
        if self.is_full {
            return None;
        }
        let kept = self.kept.as_ref().filter(|_| self.lacks)?;
        self.slots.first_outside([&self.whole, &self.ahead, kept])
    }

    /// The follower has keys of these slots, and of no others.
    pub fn on_kept(&mut self, slots: SlotSet) {
        self.kept = Some(slots);
    }

    /// Slots that wait to be filled, and that the follower is to be asked about now.
    pub fn slots_to_compare(&mut self) -> Vec<Slot> {
        let Some(kept) = self.kept.as_ref().filter(|_| self.lacks) else { return Vec::new() };
        self.lacks = self.filling.is_some() || self.slots.first_outside([&self.whole, &self.ahead]).is_some();
        let mut wanted = self.slots.intersection(kept).without(&self.whole).without(&self.ahead);
        if let Some(filling) = &self.filling {
            wanted.remove(filling.slot());
        }
        self.compares.ask(&wanted)
    }

    /// A part of what the follower has of a slot; false: it was not asked.
    pub fn on_marks(&mut self, slot: Slot, (is_end, last): (bool, u64), marks: &[MarkBytes]) -> bool {
        self.compares.on_marks(slot, (is_end, last), marks)
    }

    /// Fills the next slots, about a slice of them: how many bytes; `newest` is the log group of the store's last change.
    pub fn fill(&mut self, (store, newest): (&Store, LogOrdinal), fills: &mut Fills) -> usize {
        let mut bytes = 0;
        while bytes < FILL_SLICE_BYTES && self.may_fill() {
            let filling = match self.filling.take() {
                Some(filling) => filling,
                None => self.begin_filling((store, newest), &mut bytes),
            };
            fills.kept_keys += if filling.is_begun { 0 } else { filling.copy.known().names.len() as u64 };
            let (keys, slice_bytes) = self.fill_on(filling, store, newest);
            fills.sent_keys += keys;
            bytes += slice_bytes + FRAME_COST_BYTES;
        }
        bytes
    }

    /// The next slot, now that what the follower has of it is known; what it cost to compare it is as good as `bytes`.
    fn begin_filling(&mut self, (store, newest): (&Store, LogOrdinal), bytes: &mut usize) -> Filling {
        let compared = self.compares.take();
        if let Some((slot, theirs)) = compared.as_ref().filter(|(_, theirs)| !theirs.keys.is_empty()) {
            *bytes += (theirs.keys.len() + store.slot_len(*slot) as usize) / 2 * COMPARED_KEY_BYTES;
        }
        let without_keys = || self.next_without_keys().map(|slot| (slot, Marks::NOTHING));
        let (slot, theirs) = compared.or_else(without_keys).expect("it may fill");
        let (seed, table, last) = (self.life, self.table, store.sequence(slot).0.0);
        let known = match store.compare(slot, seed, &theirs) {
            Comparison::Anew => None,
            Comparison::Match { known, gone } => {
                let gone: Vec<[u8; 8]> = gone.into_iter().map(u64::to_le_bytes).collect();
                self.push((None, newest), None, |sequence| Frame::Match { sequence, table, slot, last, gone: &gone });
                Some(known)
            }
        };
        let is_anew = known.is_none();
        let copy = SlotCopy::new(slot, Known { seed, names: known.unwrap_or_default() });
        Filling { copy, is_anew, is_begun: false, newest }
    }

    /// Sends the next slice of a slot; its keys and bytes.
    fn fill_on(&mut self, mut filling: Filling, store: &Store, newest: LogOrdinal) -> (u64, usize) {
        let (mut copies, slot, is_anew) = (LogBuffer::default(), filling.slot(), filling.is_anew && !filling.is_begun);
        let is_end = store.copy_slice(&mut filling.copy, FILL_SLICE_BYTES, Some(&mut self.stages), &mut copies);
        let ((last, removed), table) = (store.sequence(slot), self.table);
        let (count, records) = (copies.records(), copies.record_slice());
        let fill = |sequence| Frame::Fill {
            sequence,
            table,
            slot,
            is_end,
            is_anew,
            count,
            last: last.0,
            removed: removed.0,
            records,
        };
        self.push((None, newest), is_end.then_some(slot), fill);
        let keys = filling.copy.take_keys();
        self.spent.extend(filling.copy.take_spent());
        if is_end {
            match newest > self.considered {
                true => self.note_ahead(slot, newest),
                false => self.whole.insert(slot),
            }
        } else {
            self.filling = Some(Filling { is_begun: true, newest, ..filling });
        }
        (keys, copies.record_bytes())
    }

    /// Of long values in these slots the follower will not get the rest: it is told so.
    pub(super) fn give_up_long(&mut self, gives_up: impl Fn(Slot) -> bool) {
        let mut told = LogBuffer::default();
        for (stage, slot) in self.passed.keep(|slot| !gives_up(slot)) {
            told.append_unneeded(slot, stage);
        }
        if let Some(mut filling) = self.filling.take_if(|filling| gives_up(filling.slot())) {
            filling.copy.append_given_up(&mut told);
            self.spent.extend(filling.copy.take_spent());
        }
        if !told.is_empty() {
            let (count, records, table) = (told.records(), told.record_slice(), self.table);
            self.push((None, LogOrdinal(0)), None, |sequence| Frame::Group { sequence, table, count, records });
        }
    }
}
