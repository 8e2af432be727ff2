//! Reads at a follower: which slots it may show, and as of when.
//!
//! ```text
//!  follower ── ask: its clock ──────────────────────────────► first, if it has its lease
//!           ◄─ confirm: that clock, shown, upto, slots ───── frames up to `shown` say nothing that is not committed,
//!                                                            frames up to `upto` everything that is
//!  once `upto` is taken: the slots are as fresh as the question; one that a frame behind `shown` touched waits for the next answer
//! ```
//!
//! The follower asks only while somebody reads. Why nothing that it shows is lost is in docs/internals/cluster.md.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};

use base::{LogOrdinal, Slot};
use placement::SlotSet;
use wire::frame::Frame;

use crate::follow::SYNC_MARKS_MAX;

/// Between two questions while a slot waits for an answer, microseconds, at most.
const ASK_US_MAX: u64 = 10_000;
/// Questions in the time for which an answer is good.
const ASKS_PER_BOUND: u64 = 4;

/// Of the first: the frames of a link, by the log group of the newest change that they say.
#[derive(Default)]
pub(crate) struct Unshown {
    /// First frame of a stretch, and the newest log group of which it says something.
    marks: VecDeque<(u64, LogOrdinal)>,
}

impl Unshown {
    pub(crate) fn note(&mut self, sequence: u64, covers: LogOrdinal) {
        let is_full = self.marks.len() >= SYNC_MARKS_MAX;
        match self.marks.back_mut().filter(|_| is_full) {
            Some((_, last)) => *last = covers.max(*last),
            None => self.marks.push_back((sequence, covers)),
        }
    }

    /// The last frame, of those up to `sequence`, before the first one that says what is not committed.
    pub(crate) fn shown(&mut self, horizon: LogOrdinal, sequence: u64) -> u64 {
        while self.marks.pop_front_if(|(_, covers)| *covers <= horizon).is_some() {}
        self.marks.front().map_or(sequence, |(first, _)| first - 1)
    }
}

/// An answer.
struct Confirmed {
    stamp: u64,
    shown: u64,
    upto: u64,
    slots: SlotSet,
}

/// Of the follower: what one link's first said of it.
#[derive(Default)]
pub(crate) struct Fresh {
    /// Asked, by the own clock, and not answered over this connection.
    asked_us: Option<u64>,
    ask_at_us: u64,
    /// An answer whose frames are not all here.
    pending: Option<Confirmed>,
    /// Everything that was acknowledged before that is here.
    as_of_us: Option<u64>,
    shown: u64,
    slots: SlotSet,
    /// Frames behind this one are noted in `touched`; `None`: nobody reads.
    noted_from: Option<u64>,
    /// Slots with frames behind `shown`: the last one of each.
    touched: BTreeMap<u16, u64>,
}

impl Fresh {
    /// Another connection: a question that is under way may never be answered.
    pub(crate) fn on_connection(&mut self) {
        (self.asked_us, self.pending) = (None, None);
    }

    /// The question that is due, while answers are to be good for `bound_us`; `taken`: the last frame so far.
    pub(crate) fn ask(&mut self, now_us: u64, bound_us: u64, taken: u64) -> Option<u64> {
        self.noted_from.get_or_insert(taken);
        if self.asked_us.is_some() || now_us < self.ask_at_us {
            return None;
        }
        let calm_us = (bound_us / ASKS_PER_BOUND).max(1);
        let pause_us = if self.touched.is_empty() { calm_us } else { calm_us.min(ASK_US_MAX) };
        (self.asked_us, self.ask_at_us) = (Some(now_us), now_us + pause_us);
        self.asked_us
    }

    /// When the next question is due, microseconds, if none is under way.
    pub(crate) fn ask_at_us(&self) -> Option<u64> {
        self.asked_us.is_none().then_some(self.ask_at_us)
    }

    /// Nobody reads any more.
    pub(crate) fn rest(&mut self) {
        if self.noted_from.is_some() {
            let asked_us = self.asked_us;
            *self = Fresh { asked_us, ..Fresh::default() };
        }
    }

    /// A frame was taken.
    pub(crate) fn on_taken(&mut self, sequence: u64, frame: &Frame<'_>) {
        if self.noted_from.is_none() {
            return;
        }
        match frame {
            Frame::Lacking { slots, .. } => self.slots = self.slots.without(&SlotSet::from_words(slots)),
            Frame::Group { records, .. } => {
                let touched = RefCell::new(&mut self.touched);
                storage::are_of_slots(records, &|slot| {
                    touched.borrow_mut().insert(slot.number(), sequence);
                    true
                });
            }
            Frame::Fill { slot, .. } | Frame::Match { slot, .. } => drop(self.touched.insert(slot.number(), sequence)),
            _ => {}
        }
        self.settle(sequence);
    }

    /// An answer came; `taken`: the last frame so far.
    pub(crate) fn on_confirm(&mut self, frame: &Frame<'_>, taken: u64) {
        let Frame::Confirm { stamp, shown, upto, slots } = *frame else { return };
        if self.asked_us != Some(stamp) {
            return;
        }
        if self.noted_from.is_none() {
            self.asked_us = None;
        } else {
            self.pending = Some(Confirmed { stamp, shown, upto, slots: SlotSet::from_words(slots) });
            self.settle(taken);
        }
    }

    /// The answer counts once all of its frames are here.
    fn settle(&mut self, taken: u64) {
        let Some(confirmed) = self.pending.take_if(|confirmed| confirmed.upto <= taken) else { return };
        (self.as_of_us, self.shown, self.slots) = (Some(confirmed.stamp), confirmed.shown, confirmed.slots);
        self.touched.retain(|_, sequence| *sequence > confirmed.shown);
        self.asked_us = None;
    }

    /// Whether `slot` may be read now, when what is shown may be as old as `bound_us`.
    pub(crate) fn may_show(&self, slot: Slot, now_us: u64, bound_us: u64) -> bool {
        let is_fresh = self.as_of_us.is_some_and(|as_of_us| now_us <= as_of_us.saturating_add(bound_us));
        let are_noted = self.noted_from.is_some_and(|noted_from| noted_from <= self.shown);
        is_fresh && are_noted && self.slots.contains(slot) && !self.touched.contains_key(&slot.number())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND_US: u64 = 1_000;

    fn slots(numbers: &[u16]) -> SlotSet {
        numbers.iter().copied().map(Slot::wrapping).collect()
    }

    fn fill(slot: u16, sequence: u64) -> Frame<'static> {
        let slot = Slot::wrapping(slot);
        Frame::Fill {
            sequence,
            table: 1,
            slot,
            is_end: true,
            is_anew: true,
            count: 0,
            last: 0,
            removed: 0,
            records: b"",
        }
    }

    fn confirm(fresh: &mut Fresh, (stamp, shown, upto): (u64, u64, u64), taken: u64) {
        let words = slots(&[5, 6]).words();
        fresh.on_confirm(&Frame::Confirm { stamp, shown, upto, slots: &words }, taken);
    }

    /// Whether slots 5, 6 and 7 may be shown.
    fn shows(fresh: &Fresh, now_us: u64) -> [bool; 3] {
        [5, 6, 7].map(|slot| fresh.may_show(Slot::wrapping(slot), now_us, BOUND_US))
    }

    /// Asked at 10 when three frames were taken.
    fn asked() -> Fresh {
        let mut fresh = Fresh::default();
        assert_eq!(fresh.ask(10, BOUND_US, 3), Some(10));
        assert_eq!(fresh.ask(900, BOUND_US, 3), None, "one question at a time");
        fresh
    }

    #[test]
    fn an_answer_counts_once_its_frames_are_here_and_for_the_bound() {
        let mut fresh = asked();
        confirm(&mut fresh, (10, 4, 4), 3);
        assert_eq!(shows(&fresh, 20), [false; 3], "frame 4 is on its way");
        fresh.on_taken(4, &fill(5, 4));
        assert_eq!(shows(&fresh, 1010), [true, true, false]);
        assert_eq!(shows(&fresh, 1011), [false; 3], "too old, by the clock from before the question");
        assert_eq!(fresh.ask(1011, BOUND_US, 4), Some(1011));
        confirm(&mut fresh, (1005, 4, 4), 4);
        assert_eq!(shows(&fresh, 1012), [false; 3], "an answer to another question");
    }

    #[test]
    fn what_is_behind_the_horizon_is_not_shown_by_slot() {
        let mut fresh = asked();
        fresh.on_taken(4, &fill(5, 4));
        fresh.on_taken(5, &fill(6, 5));
        confirm(&mut fresh, (10, 4, 5), 5);
        assert_eq!(shows(&fresh, 20), [true, false, false]);
        fresh.on_taken(6, &fill(5, 6));
        assert_eq!(shows(&fresh, 20), [false; 3]);
        assert_eq!(fresh.ask(300, BOUND_US, 6), Some(300));
        confirm(&mut fresh, (300, 6, 6), 6);
        assert_eq!(shows(&fresh, 301), [true, true, false]);
        let words = slots(&[6]).words();
        fresh.on_taken(7, &Frame::Lacking { sequence: 7, table: 1, slots: &words });
        assert_eq!(shows(&fresh, 301), [true, false, false], "it is empty now");
    }

    #[test]
    fn frames_from_before_somebody_read_are_not_shown_before_all_of_them_are() {
        let mut fresh = asked();
        confirm(&mut fresh, (10, 2, 3), 3);
        assert_eq!(shows(&fresh, 20), [false; 3], "frame 3 may have touched any slot");
        assert_eq!(fresh.ask(260, BOUND_US, 3), Some(260));
        confirm(&mut fresh, (260, 3, 3), 3);
        assert_eq!(shows(&fresh, 261), [true, true, false]);
        fresh.rest();
        assert_eq!(shows(&fresh, 261), [false; 3], "nobody reads");
        fresh.on_taken(4, &fill(5, 4));
        assert_eq!(fresh.ask(600, BOUND_US, 4), Some(600));
        fresh.rest();
        confirm(&mut fresh, (600, 4, 4), 4);
        assert_eq!(shows(&fresh, 601), [false; 3]);
        assert_eq!(fresh.ask(602, BOUND_US, 4), Some(602), "it was answered");
        fresh.on_connection();
        assert_eq!(fresh.ask(900, BOUND_US, 4), Some(900), "that one never will be");
    }

    #[test]
    fn marks_are_bounded_and_show_less_rather_than_more() {
        let mut unshown = Unshown::default();
        (1..=5000).for_each(|sequence| unshown.note(sequence, LogOrdinal(sequence + 10)));
        assert_eq!(unshown.marks.len(), SYNC_MARKS_MAX);
        assert_eq!(unshown.shown(LogOrdinal(1033), 5000), 1023);
        assert_eq!(unshown.shown(LogOrdinal(5009), 5000), 1023);
        assert_eq!(unshown.shown(LogOrdinal(5010), 5000), 5000);
    }
}
