//! What a follower takes, refuses and persists.
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
    follow.take(&Frame::Group { sequence, table, count, records: &records }, (name(2), known), (store, LogOrdinal(1)))
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
