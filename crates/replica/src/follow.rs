//! The end of a link that takes: copies of slots that another instance serves.
//!
//! ```text
//!  frame ─► who says so, and may it? ─► store, own log ─► (the own log's promise) ─► persisted
//! ```

use std::collections::VecDeque;

use base::planted::{Bug, is_planted};
use base::{InstanceName, LogOrdinal, Slot, Version};
use placement::ClusterView;
use storage::{Arriving, Marks, Store};
use wire::frame::Frame;

use crate::fresh::Fresh;

/// Frames, or stretches of them, that either end of a link remembers until they are synced: later ones are told of with
/// the last of them.
pub(crate) const SYNC_MARKS_MAX: usize = 1024;

/// What became of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It was done.
    Done,
    /// It is of a table that is not known here yet: it has to wait.
    Later,
    /// The sender is not first of all its slots any more.
    Refused,
    /// The link cannot go on: what is wrong.
    Broken(String),
}

/// See the module.
pub struct Follow {
    from: InstanceName,
    life: u64,
    /// A life that cannot go on.
    voided: u64,
    /// The last frame that was done.
    taken: u64,
    /// Frames whose log group is not as durable as promised.
    pending: VecDeque<(u64, LogOrdinal)>,
    persisted: u64,
    told: u64,
    /// Frames whose log group would not outlive a power cut yet.
    unsynced: VecDeque<(u64, LogOrdinal)>,
    synced: u64,
    synced_told: u64,
    /// Whether the first was told over this connection that there is no room here.
    is_full_told: bool,
    pub(crate) fresh: Fresh,
    /// Long values on their way.
    pub(crate) arriving: Arriving,
    /// When something came of it last, microseconds.
    pub(crate) heard_us: Option<u64>,
}

impl Follow {
    /// A link from `from` that took nothing yet.
    pub fn new(from: InstanceName) -> Follow {
        Follow {
            from,
            life: 0,
            voided: 0,
            taken: 0,
            pending: VecDeque::new(),
            persisted: 0,
            told: 0,
            unsynced: VecDeque::new(),
            synced: 0,
            synced_told: 0,
            is_full_told: false,
            fresh: Fresh::default(),
            arriving: Arriving::default(),
            heard_us: None,
        }
    }

    /// Who leads.
    pub fn from(&self) -> InstanceName {
        self.from
    }

    /// The last frame of this life that was done.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// The life that can go on; 0: none.
    pub(crate) fn life(&self) -> u64 {
        self.life
    }

    /// A connection of this life begins; the last frame of it that was done.
    pub fn greet(&mut self, life: u64) -> u64 {
        // One that was voided is not begun again, even if all of it is still on its way.
        if life != self.life && life != self.voided {
            self.arriving.clear();
            let arriving = std::mem::take(&mut self.arriving);
            *self = Follow { life, arriving, heard_us: self.heard_us, ..Follow::new(self.from) };
        }
        // What was told over another connection may not have arrived.
        (self.told, self.synced_told, self.is_full_told) = (0, 0, false);
        self.fresh.on_connection();
        self.taken
    }

    /// Whether the first is to be told that there is room here, or none.
    pub(crate) fn tells_room(&mut self, is_full: bool) -> bool {
        std::mem::replace(&mut self.is_full_told, is_full) != is_full
    }

    /// Nothing of this life is of use any more.
    pub fn void(&mut self) {
        if self.life != 0 {
            self.voided = std::mem::take(&mut self.life);
        }
        self.arriving.clear();
        self.fresh = Fresh::default();
    }

    /// A table came: of a slot that the first leads no more nothing comes to its end.
    pub(crate) fn set_view(&mut self, (me, view): (InstanceName, &ClusterView)) {
        let from = self.from;
        self.arriving.keep(|slot| is_led(from, slot, me, view));
    }

    /// Does what a frame says. `me` is who takes it; what it does is in log group `next`.
    pub fn take(
        &mut self,
        frame: &Frame<'_>,
        (me, view): (InstanceName, &ClusterView),
        (store, next): (&mut Store, LogOrdinal),
    ) -> Taken {
        let Some((sequence, table)) = number_of(frame) else {
            return Taken::Broken("a frame that a link never carries this way".to_owned());
        };
        if table > view.version() {
            return Taken::Later;
        }
        if sequence != self.taken + 1 {
            return Taken::Broken(format!("frame {sequence} follows {}", self.taken));
        }
        let from = self.from;
        let holds = |slot: Slot| is_led(from, slot, me, view);
        let done = match *frame {
            // What is here is no copy any more, and stays: the fill of each slot compares it, or begins anew.
            Frame::Lacking { .. } => Ok(()),
            Frame::Group { records, .. } if !storage::are_of_slots(records, &holds) => return Taken::Refused,
            Frame::Group { count, records, .. } => store.follow(records, count, (&mut self.arriving, next)),
            Frame::Match { slot, .. } | Frame::Fill { slot, .. } if !holds(slot) => return Taken::Refused,
            Frame::Fill { slot, records, .. } if !storage::are_of_slots(records, &|found| found == slot) => {
                return Taken::Broken(format!("a fill of slot {} has records of others", slot.number()));
            }
            Frame::Match { slot, last, gone, .. } => {
                let names: Vec<u64> = gone.iter().map(|name| u64::from_le_bytes(*name)).collect();
                store.remove_marked(slot, self.life, &names, Version(last))
            }
            Frame::Fill { slot, is_end, is_anew, count, last, removed, records, .. } => {
                if is_anew {
                    store.forget_slot(slot);
                }
                let done = store.follow(records, count, (&mut self.arriving, next));
                if is_end && done.is_ok() {
                    store.end_copy(slot, Version(last), Version(removed));
                }
                done
            }
            _ => unreachable!("it has no number"),
        };
        match done {
            Ok(()) => {
                self.taken = sequence;
                self.fresh.on_taken(sequence, frame);
                Taken::Done
            }
            Err(reason) => Taken::Broken(reason),
        }
    }

    /// The first answered a question of this end.
    pub(crate) fn on_confirm(&mut self, frame: &Frame<'_>) {
        self.fresh.on_confirm(frame, self.taken);
    }

    pub(crate) fn ask(&mut self, now_us: u64, bound_us: u64) -> Option<u64> {
        self.fresh.ask(now_us, bound_us, self.taken)
    }

    /// What this end has of a slot that it is about to be filled with.
    pub(crate) fn answer(&self, slot: Slot, (me, view): (InstanceName, &ClusterView), store: &Store) -> Marks {
        match is_led(self.from, slot, me, view) {
            true => store.marks(slot, self.life),
            false => Marks::NOTHING,
        }
    }

    /// What was done since the last call is in log group `ordinal` at the latest.
    pub fn note_logged(&mut self, ordinal: LogOrdinal) {
        let noted = self.pending.back().map_or(self.persisted, |(sequence, _)| *sequence);
        if self.taken > noted {
            self.pending.push_back((self.taken, ordinal));
            if self.unsynced.len() >= SYNC_MARKS_MAX {
                self.unsynced.pop_back();
            }
            self.unsynced.push_back((self.taken, ordinal));
        }
    }

    /// The own log's promise holds up to `promised`: what there is to tell.
    pub fn persisted(&mut self, promised: LogOrdinal) -> Option<u64> {
        let promised = if is_planted(Bug::M3SecondaryAcknowledgesEarly) { LogOrdinal(u64::MAX) } else { promised };
        while let Some((sequence, _)) = self.pending.pop_front_if(|(_, ordinal)| *ordinal <= promised) {
            self.persisted = sequence;
        }
        (self.persisted > self.told).then(|| {
            self.told = self.persisted;
            self.told
        })
    }

    /// The own log outlives a power cut up to `durable`: what there is to tell.
    pub fn synced(&mut self, durable: LogOrdinal) -> Option<u64> {
        while let Some((sequence, _)) = self.unsynced.pop_front_if(|(_, ordinal)| *ordinal <= durable) {
            self.synced = sequence;
        }
        (self.synced > self.synced_told).then(|| {
            self.synced_told = self.synced;
            self.synced_told
        })
    }
}

/// Whether `from` is first of the slot, and `me` behind it.
fn is_led(from: InstanceName, slot: Slot, me: InstanceName, view: &ClusterView) -> bool {
    let members = &view.chain(slot).members;
    let is_led = members.first() == Some(&from) || is_planted(Bug::M5NoEpochFence);
    is_led && members.iter().skip(1).any(|member| *member == me)
}

/// Its number in the link's life, and the table that it was sent by.
pub(crate) fn number_of(frame: &Frame<'_>) -> Option<(u64, u64)> {
    match *frame {
        Frame::Lacking { sequence, table, .. }
        | Frame::Group { sequence, table, .. }
        | Frame::Fill { sequence, table, .. }
        | Frame::Match { sequence, table, .. } => Some((sequence, table)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_types, reason = "a planted bug is one for the process: tests take turns")]

    use std::sync::Mutex;

    use base::{CoreId, Database, NodeId, SlotGroupId};
    use placement::{Chain, SlotSet};
    use storage::SlotGroup;
    use storage::log::LogBuffer;
    use types::{Change, Expiry};

    use super::*;
    use crate::places::place;

    static TURN: Mutex<()> = Mutex::new(());

    fn name(node: u32) -> InstanceName {
        InstanceName { node: NodeId(node), core: CoreId(0) }
    }

    /// A table by which node `first` leads and node `second` follows everywhere.
    fn view(version: u64, first: u32, second: u32) -> ClusterView {
        let chain = Chain { epoch: version, members: vec![name(first), name(second)], whole: 2 };
        ClusterView::new([0; 16], version, vec![place(1), place(2), place(3)], vec![(Slot::wrapping(0), chain)])
    }

    fn store() -> Store {
        let mut store = Store::new(CoreId(0), 1, true);
        SlotGroupId::all().for_each(|group| store.insert_group(Box::new(SlotGroup::new(group, CoreId(0)))));
        store
    }

    /// The records of setting a key of slot 5.
    fn set(value: &[u8]) -> (u32, Vec<u8>) {
        let mut log = LogBuffer::default();
        let store = store();
        let key = store.key(b"name", Database(0), Slot::wrapping(5));
        log.append(&key, Version(value.len() as u64), &Change::put_string(value, Expiry::Clear));
        (log.records(), log.record_slice().to_vec())
    }

    fn take(follow: &mut Follow, (sequence, table): (u64, u64), known: &ClusterView, store: &mut Store) -> Taken {
        let (count, records) = set(&vec![b'v'; sequence as usize]);
        follow.take(
            &Frame::Group { sequence, table, count, records: &records },
            (name(2), known),
            (store, LogOrdinal(1)),
        )
    }

    #[test]
    fn frames_count_in_order_and_by_a_table_that_is_known() {
        let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let (mut follow, mut store) = (Follow::new(name(1)), store());
        assert_eq!(follow.greet(7), 0);
        let known = view(4, 1, 2);
        assert_eq!(take(&mut follow, (1, 5), &known, &mut store), Taken::Later, "a table to come");
        assert_eq!(take(&mut follow, (1, 4), &known, &mut store), Taken::Done);
        assert!(matches!(take(&mut follow, (3, 4), &known, &mut store), Taken::Broken(_)), "a gap");
        assert_eq!(take(&mut follow, (2, 4), &known, &mut store), Taken::Done);
        assert_eq!(follow.greet(7), 2, "another connection of the same life");
        assert_eq!(follow.greet(8), 0, "another life");
    }

    #[test]
    fn a_life_that_was_voided_is_not_gone_on_with_from_its_begin() {
        let mut follow = Follow::new(name(1));
        follow.greet(7);
        follow.void();
        follow.greet(7);
        assert_ne!(follow.life(), 7, "all of it may be on its way still");
        follow.greet(8);
        assert_eq!(follow.life(), 8);
    }

    #[test]
    fn a_fill_brings_its_own_slot_only() {
        let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let (mut follow, mut store, known) = (Follow::new(name(1)), store(), view(4, 1, 2));
        follow.greet(7);
        let (count, records) = set(b"value");
        let fill = |slot| Frame::Fill {
            sequence: 1,
            table: 4,
            slot: Slot::wrapping(slot),
            is_end: true,
            is_anew: true,
            count,
            last: 5,
            removed: 0,
            records: &records,
        };
        let taken = follow.take(&fill(6), (name(2), &known), (&mut store, LogOrdinal(1)));
        assert!(matches!(taken, Taken::Broken(_)) && !store.has_unsealed(), "{taken:?}");
        assert_eq!(follow.take(&fill(5), (name(2), &known), (&mut store, LogOrdinal(1))), Taken::Done);
    }

    /// What a new life finds stays until the slot is filled, and what of it is right stays then.
    #[test]
    fn what_is_here_stays_unless_the_fill_begins_anew_or_says_that_it_is_gone() {
        let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let (slot, known) = (Slot::wrapping(5), view(4, 1, 2));
        let fill = |sequence, is_anew| Frame::Fill {
            sequence,
            table: 4,
            slot,
            is_end: true,
            is_anew,
            count: 0,
            last: 9,
            removed: 9,
            records: &[],
        };
        for (is_anew, is_gone) in [(false, false), (true, false), (false, true)] {
            let (mut follow, mut store) = (Follow::new(name(1)), store());
            follow.greet(7);
            assert_eq!(take(&mut follow, (1, 4), &known, &mut store), Taken::Done);
            follow.greet(8);
            let words = [slot].into_iter().collect::<SlotSet>().words();
            let lacking = Frame::Lacking { sequence: 1, table: 4, slots: &words };
            assert_eq!(follow.take(&lacking, (name(2), &known), (&mut store, LogOrdinal(1))), Taken::Done);
            let answer = follow.answer(slot, (name(2), &known), &store);
            assert_eq!((answer.last, answer.keys.len()), (Version(1), 1));
            assert_eq!(follow.answer(slot, (name(2), &view(4, 1, 3)), &store), Marks::NOTHING, "it is not held here");
            let gone: Vec<[u8; 8]> = answer.keys.iter().map(|mark| mark.name.to_le_bytes()).collect();
            let gone = if is_gone { &gone[..] } else { &[] };
            let matched = Frame::Match { sequence: 2, table: 4, slot, last: 9, gone };
            assert_eq!(follow.take(&matched, (name(2), &known), (&mut store, LogOrdinal(1))), Taken::Done);
            assert_eq!(follow.take(&fill(3, is_anew), (name(2), &known), (&mut store, LogOrdinal(1))), Taken::Done);
            assert_eq!(store.slot_len(slot), u32::from(!is_anew && !is_gone));
            assert_eq!(store.sequence(slot).0, Version(9));
        }
    }

    fn a_stranger_is_refused() -> bool {
        let (mut follow, mut store) = (Follow::new(name(1)), store());
        follow.greet(7);
        take(&mut follow, (1, 4), &view(5, 3, 2), &mut store) == Taken::Refused && !store.has_unsealed()
    }

    fn nothing_is_told_before_it_is_durable() -> bool {
        let (mut follow, mut store) = (Follow::new(name(1)), store());
        follow.greet(7);
        let done = take(&mut follow, (1, 4), &view(4, 1, 2), &mut store) == Taken::Done;
        follow.note_logged(LogOrdinal(9));
        done && follow.persisted(LogOrdinal(8)).is_none()
            && follow.persisted(LogOrdinal(9)) == Some(1)
            && follow.persisted(LogOrdinal(9)).is_none()
    }

    #[test]
    fn who_is_not_first_any_more_is_refused_and_nothing_is_told_early() {
        let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        assert!(a_stranger_is_refused());
        assert!(nothing_is_told_before_it_is_durable());
    }

    #[cfg(feature = "planted")]
    #[test]
    fn m3_and_m5_are_caught() {
        let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        base::planted::plant(Some(Bug::M3SecondaryAcknowledgesEarly));
        assert!(!nothing_is_told_before_it_is_durable());
        base::planted::plant(Some(Bug::M5NoEpochFence));
        assert!(!a_stranger_is_refused());
        base::planted::plant(None);
    }
}
