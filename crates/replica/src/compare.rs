//! Before a slot is filled: what does the follower have of it, and what of that is right?
//!
//! ```text
//!               ◄─ kept: slots that have keys                          of the others nobody asks
//!  compare slot 7 ─►              of a few slots ahead
//!               ◄─ marks of slot 7, the last version it knows
//!  Store::compare   nothing that it has could be newer than what is here ─► match: what stays, less what is gone · fill: the rest
//!                   otherwise, or too many keys                          ─► fill anew
//! ```

use std::collections::VecDeque;

use base::limits::{COMPARED_KEYS_MAX, COMPARED_SLOTS_MAX};
use base::{Slot, Version};
use placement::SlotSet;
use storage::{Mark, Marks};
use wire::frame::MarkBytes;

/// A mark as frames carry it.
pub(crate) fn encode(mark: &Mark) -> MarkBytes {
    let mut bytes = MarkBytes::default();
    for (at, word) in [mark.name, mark.version.0, mark.content.unwrap_or(0)].into_iter().enumerate() {
        bytes[at * 8..][..8].copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

fn decode(bytes: &MarkBytes) -> Mark {
    let (words, _) = bytes.as_chunks::<8>();
    let [name, version, content] = [0, 1, 2].map(|at| u64::from_le_bytes(words[at]));
    Mark { name, version: Version(version), content: (content != 0).then_some(content) }
}

/// A question, and what came of it.
struct Asked {
    slot: Slot,
    answer: Marks,
    /// All of the answer is here.
    is_whole: bool,
    /// The slot is filled over this link still. If it is again, that is another question: meanwhile it may have been filled by others.
    is_wanted: bool,
}

/// The questions of a link that leads, in the order in which its slots are filled, and in which they are answered.
#[derive(Default)]
pub(crate) struct Compares(VecDeque<Asked>);

impl Compares {
    /// The slots of `wanted` that are to be asked about now.
    pub(crate) fn ask(&mut self, wanted: &SlotSet) -> Vec<Slot> {
        let room = COMPARED_SLOTS_MAX.saturating_sub(self.0.len());
        let is_asked = |slot: &Slot| self.0.iter().any(|asked| asked.slot == *slot && asked.is_wanted);
        let slots: Vec<Slot> = wanted.iter().filter(|slot| !is_asked(slot)).take(room).collect();
        let asked = |slot: &Slot| Asked { slot: *slot, answer: Marks::default(), is_whole: false, is_wanted: true };
        self.0.extend(slots.iter().map(asked));
        slots
    }

    /// A part of an answer; false: it answers nothing.
    pub(crate) fn on_marks(&mut self, slot: Slot, (is_end, last): (bool, u64), marks: &[MarkBytes]) -> bool {
        let Some(asked) = self.0.iter_mut().find(|asked| !asked.is_whole) else { return false };
        let count = asked.answer.keys.len() + marks.len();
        if asked.slot != slot || count > COMPARED_KEYS_MAX as usize {
            return false;
        }
        asked.answer.last = Version(last);
        asked.answer.keys.extend(marks.iter().map(decode));
        asked.is_whole = is_end;
        self.drop_unwanted();
        true
    }

    /// The next slot whose answer is here.
    pub(crate) fn ready(&self) -> Option<Slot> {
        self.0.front().filter(|asked| asked.is_whole).map(|asked| asked.slot)
    }

    /// That slot, with its answer.
    pub(crate) fn take(&mut self) -> Option<(Slot, Marks)> {
        let asked = self.0.pop_front_if(|asked| asked.is_whole)?;
        self.drop_unwanted();
        Some((asked.slot, asked.answer))
    }

    /// Only these slots are filled any more.
    pub(crate) fn keep(&mut self, slots: &SlotSet) {
        self.0.iter_mut().for_each(|asked| asked.is_wanted &= slots.contains(asked.slot));
        self.drop_unwanted();
    }

    /// Answers that are under way will not arrive.
    pub(crate) fn forget(&mut self) {
        self.0.clear();
    }

    /// Answers that nobody wants any more are in nobody's way.
    fn drop_unwanted(&mut self) {
        while self.0.pop_front_if(|asked| asked.is_whole && !asked.is_wanted).is_some() {}
    }
}
