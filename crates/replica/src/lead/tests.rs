//! One link without a connection: a store that leads, one that follows, and log groups that are passed on late.

mod long;

use base::{ConnectionId, CoreId, Database, NodeId, SlotGroupId};
use placement::{Chain, ClusterView};
use storage::SlotGroup;
use storage::log::format::GroupHeader;
use storage::log::record::RecordForm;
use types::{Change, Expiry};
use wire::frame::ParsedFrame;
use wire::trust::Token;

use super::sending::{GATHER_BYTES, GATHER_US};
use super::*;
use crate::follow::{Follow, Taken};
use crate::links::{Contact, Links};
use crate::places::place;
use crate::standing::Fills;

fn slot() -> Slot {
    Slot::wrapping(5)
}

fn name(node: u32) -> InstanceName {
    InstanceName { node: NodeId(node), core: CoreId(0) }
}

fn store() -> Store {
    let mut store = Store::new(CoreId(0), 1, true);
    SlotGroupId::all().for_each(|group| store.insert_group(Box::new(SlotGroup::new(group, CoreId(0)))));
    store
}

struct Rig {
    store: Store,
    lead: Lead,
    /// Sealed, and not passed on.
    groups: VecDeque<Vec<u8>>,
    sealed: u64,
    follow: Follow,
    copy: Store,
    fills: Fills,
    view: ClusterView,
}

impl Rig {
    fn new() -> Rig {
        let mut slots = SlotSet::default();
        slots.insert(slot());
        let mut lead = Lead::new(name(2), 7, LogOrdinal(0));
        lead.set_slots(Wanted { awaited: slots.clone(), slots, ..Wanted::default() }, 1, |_| 1);
        let chain = Chain { epoch: 1, members: vec![name(1), name(2)], whole: 2 };
        let view = ClusterView::new([0; 16], 9, vec![place(1), place(2)], vec![(Slot::wrapping(0), chain)]);
        let mut follow = Follow::new(name(1));
        follow.greet(7);
        Rig {
            store: store(),
            lead,
            groups: VecDeque::new(),
            sealed: 0,
            follow,
            copy: store(),
            fills: Fills::default(),
            view,
        }
    }

    /// A whole slot with a key.
    fn whole() -> Rig {
        let mut rig = Rig::new();
        rig.set(b"one", 10);
        rig.seal();
        rig.pass();
        rig.fill();
        rig.compare(&[b"one"]);
        rig
    }

    fn newest(&self) -> LogOrdinal {
        LogOrdinal(self.sealed + u64::from(self.store.has_unsealed()))
    }

    fn set(&mut self, key: &[u8], bytes: usize) {
        let key = self.store.key(key, Database(0), slot());
        let value = vec![bytes as u8; bytes];
        self.store.apply(&key, &Change::put_string(&value, Expiry::Clear)).expect("there is room");
    }

    fn remove(&mut self, key: &[u8]) {
        let key = self.store.key(key, Database(0), slot());
        self.store.apply(&key, &Change::Remove).expect("a removal needs no room");
    }

    fn seal(&mut self) {
        let full = std::mem::take(self.store.log_mut().expect("it has a log"));
        self.sealed += 1;
        let header = GroupHeader {
            record_bytes: full.record_bytes() as u32,
            records: full.records(),
            ordinal: LogOrdinal(self.sealed),
            durable: LogOrdinal(0),
            identity: 0,
            unix_ms: 0,
            form: RecordForm::Short,
        };
        let mut group = full.into_bytes();
        header.seal(&mut group);
        self.groups.push_back(group);
    }

    /// The follower says what it has, and everything is filled.
    fn fill(&mut self) {
        self.lead.on_kept(self.copy.slots_with_keys().collect());
        for slot in self.lead.slots_to_compare() {
            let answer = self.follow.answer(slot, (name(2), &self.view), &self.copy);
            let marks: Vec<_> = answer.keys.iter().map(crate::compare::encode).collect();
            assert!(self.lead.on_marks(slot, (true, answer.last.0), &marks));
        }
        while self.lead.may_fill() {
            let newest = self.newest();
            self.lead.fill((&self.store, newest), &mut self.fills);
        }
    }

    /// The oldest group that waits is passed on.
    fn pass(&mut self) {
        let group = self.groups.pop_front().expect("one was sealed");
        let ordinal = LogOrdinal(self.lead.considered.0 + 1);
        assert!(self.lead.replicate(ordinal, &group, &self.store, self.newest()));
    }

    /// The follower takes the next frame; false: there is none.
    fn take_frame(&mut self) -> bool {
        let Some(entry) = self.lead.backlog.front() else { return false };
        let ParsedFrame::Whole(frame, _) = wire::frame::Frame::parse(&entry.bytes) else { panic!("a whole frame") };
        assert_eq!(self.follow.take(&frame, (name(2), &self.view), (&mut self.copy, LogOrdinal(1))), Taken::Done);
        let sequence = entry.sequence;
        self.lead.on_persisted(sequence);
        true
    }

    /// The follower takes all frames, and has what the leader has.
    fn compare(&mut self, keys: &[&[u8]]) {
        while self.take_frame() {}
        for key in keys {
            let has = |store: &Store| {
                let key = store.key(key, Database(0), slot());
                let group = store.group(key.group()).expect("it has all");
                group.find(&key).map(|found| (group.record(found).version, store.value_bytes(&key)))
            };
            assert!(has(&self.store).is_some());
            assert_eq!(has(&self.copy), has(&self.store), "{}", key.escape_ascii());
        }
        assert!(self.lead.held.contains(slot()) && self.lead.passed() == self.lead.considered);
    }
}

#[test]
fn groups_that_a_fill_may_have_go_however_many_wait() {
    let mut rig = Rig::new();
    rig.set(b"one", 10);
    rig.seal();
    rig.set(b"two", 20);
    rig.seal();
    rig.set(b"one", 11);
    // Two groups wait for the disk, and one is to come.
    rig.fill();
    (0..2).for_each(|_| rig.pass());
    rig.seal();
    rig.pass();
    rig.compare(&[b"one", b"two"]);
    rig.set(b"two", 21);
    rig.seal();
    assert!(rig.lead.whole.contains(slot()), "records go again");
    rig.pass();
    rig.compare(&[b"one", b"two"]);
}

/// Who was third lacks what was acknowledged without it, until that is in its log, too.
#[test]
fn who_comes_next_is_vouched_for_once_it_has_what_it_was_not_waited_for() {
    let mut rig = Rig::new();
    let mut slots = SlotSet::default();
    slots.insert(slot());
    let awaited = |counts| if counts { slots.clone() } else { SlotSet::default() };
    let table = |counts| Wanted { slots: slots.clone(), awaited: awaited(counts), ..Wanted::default() };
    rig.lead.set_slots(table(false), 2, |_| 2);
    rig.set(b"one", 10);
    rig.seal();
    rig.pass();
    rig.fill();
    rig.compare(&[b"one"]);
    assert!(rig.lead.vouched().contains(slot()));
    rig.set(b"one", 11);
    rig.seal();
    rig.pass();
    assert!(rig.lead.vouched().contains(slot()), "nobody's heir may lag");
    rig.lead.set_slots(table(true), 3, |_| 2);
    rig.lead.count_from(rig.lead.considered);
    assert!(rig.lead.held().contains(slot()) && !rig.lead.vouched().contains(slot()));
    rig.compare(&[b"one"]);
    assert!(rig.lead.vouched().contains(slot()));
}

#[test]
fn behind_a_copy_groups_that_were_sealed_before_it_may_be_known() {
    let mut rig = Rig::whole();
    // In pieces, so it goes as it is by then.
    rig.set(b"long", 100_000);
    rig.seal();
    rig.set(b"one", 11);
    rig.seal();
    rig.set(b"long", 70_000);
    rig.seal();
    (0..3).for_each(|_| rig.pass());
    assert!(rig.lead.whole.contains(slot()), "records go again");
    rig.compare(&[b"one", b"long"]);
}

/// What the table says of the follower's one slot, under which epoch.
fn told(rig: &mut Rig, table: u64, is_trusted: bool, epoch: u64) {
    let slots: SlotSet = [slot()].into_iter().collect();
    let trusted = if is_trusted { slots.clone() } else { SlotSet::default() };
    rig.lead.set_slots(Wanted { awaited: slots.clone(), slots, trusted, ..Wanted::default() }, table, |_| epoch);
}

#[test]
fn who_is_said_to_be_whole_is_not_made_to_forget_before_it_is_doubted_and_replies_wait_meanwhile() {
    let mut rig = Rig::new();
    rig.fill();
    rig.set(b"one", 10);
    rig.seal();
    rig.pass();
    rig.compare(&[b"one"]);
    rig.lead.note_told();
    told(&mut rig, 2, true, 1);
    rig.lead.begin_life(8);
    assert!(rig.lead.backlog.is_empty() && rig.lead.suspects().contains(slot()), "nothing goes to it");
    rig.set(b"one", 11);
    rig.seal();
    rig.pass();
    let behind = rig.lead.considered;
    assert!(rig.lead.horizon() < behind && !rig.lead.may_fill(), "a reply waits");
    // The managers agree on what they were told of the life before.
    told(&mut rig, 3, true, 1);
    told(&mut rig, 4, false, 1);
    assert!(!rig.lead.suspects().is_empty(), "that may still be agreed on");
    told(&mut rig, 5, false, 5);
    assert!(rig.lead.suspects().is_empty() && rig.lead.horizon() < behind);
    rig.follow.greet(8);
    rig.fill();
    rig.compare(&[b"one"]);
    assert_eq!(rig.lead.horizon(), behind);
}

#[test]
fn a_source_that_handed_over_is_told_what_comes_next_and_keeps_what_it_has() {
    let mut rig = Rig::new();
    rig.fill();
    rig.set(b"one", 10);
    rig.seal();
    rig.pass();
    rig.compare(&[b"one"]);
    // The follower has it all, however it came there.
    let slots: SlotSet = [slot()].into_iter().collect();
    rig.lead = Lead::new(name(2), 9, rig.lead.considered);
    let wanted =
        Wanted { awaited: slots.clone(), trusted: slots.clone(), settled: slots.clone(), slots, ..Wanted::default() };
    rig.lead.set_slots(wanted, 1, |_| 1);
    rig.follow.greet(9);
    assert!(rig.lead.backlog.is_empty() && rig.lead.suspects().is_empty() && rig.lead.held().contains(slot()));
    rig.set(b"two", 20);
    rig.seal();
    rig.pass();
    rig.compare(&[b"one", b"two"]);
}

#[test]
fn frames_of_slots_that_left_the_link_go_without_them() {
    let mut rig = Rig::new();
    let other = Slot::wrapping(6);
    let both: SlotSet = [slot(), other].into_iter().collect();
    rig.lead.set_slots(Wanted { awaited: both.clone(), slots: both, ..Wanted::default() }, 1, |_| 1);
    rig.fill();
    let keys = [(b"one", slot()), (b"two", other)].map(|(key, slot)| rig.store.key(key, Database(0), slot));
    for key in &keys {
        rig.store.apply(key, &Change::put_string(b"value", Expiry::Clear)).expect("there is room");
    }
    rig.seal();
    rig.pass();
    told(&mut rig, 1, false, 1);
    let view = &rig.view;
    for entry in &rig.lead.backlog {
        let ParsedFrame::Whole(frame, _) = wire::frame::Frame::parse(&entry.bytes) else { panic!("a whole frame") };
        if let wire::frame::Frame::Group { records, .. } = frame {
            assert!(storage::are_of_slots(records, &|found| found == slot()));
        }
        assert!(!matches!(frame, wire::frame::Frame::Fill { slot, .. } if slot == other));
        assert_eq!(rig.follow.take(&frame, (name(2), view), (&mut rig.copy, LogOrdinal(1))), Taken::Done);
    }
    let count = |store: &Store, slot| store.keys_in_slot(slot, Database(0), 9).len();
    assert_eq!((count(&rig.copy, slot()), count(&rig.copy, other)), (1, 0));
}

/// What a reader at the follower may be shown: a fill and copies say something of groups that are not passed on yet.
#[test]
fn frames_are_shown_with_the_newest_group_that_they_say_something_of() {
    let mut rig = Rig::new();
    let shown = |rig: &mut Rig, horizon| rig.lead.unshown.shown(LogOrdinal(horizon), rig.lead.sequence);
    rig.set(b"one", 10);
    rig.seal();
    rig.set(b"one", 11);
    rig.seal();
    // Frame 1 forgets the slot, of which nothing is passed on before its fill.
    rig.pass();
    assert_eq!([0, 1, 2].map(|horizon| shown(&mut rig, horizon)), [1, 1, 1]);
    rig.set(b"one", 12);
    // Frame 2 fills the slot with what group 3 is to have, and frame 3 is of group 2, and says that, too.
    rig.fill();
    rig.pass();
    assert_eq!([2, 3].map(|horizon| shown(&mut rig, horizon)), [1, 3]);
    rig.seal();
    rig.pass();
    rig.set(b"one", 13);
    rig.seal();
    rig.set(b"one", 14);
    // Records are of their group alone.
    rig.pass();
    assert_eq!([3, 4].map(|horizon| shown(&mut rig, horizon)), [4, 5]);
}

/// A member of a longer chain: who comes next may be told to have what was acknowledged once all that was passed on before
/// replies waited for it is in its log, and not before.
#[test]
fn who_comes_next_is_counted_once_it_has_what_was_acknowledged_before() {
    let mut rig = Rig::new();
    let mut slots = SlotSet::default();
    slots.insert(slot());
    let awaited = |counts| if counts { slots.clone() } else { SlotSet::default() };
    let wanted =
        |counts| Wanted { slots: slots.clone(), trusted: slots.clone(), awaited: awaited(counts), ..Wanted::default() };
    // It is filled as one for whom nobody waits.
    rig.lead.set_slots(Wanted { trusted: SlotSet::default(), ..wanted(false) }, 1, |_| 1);
    rig.set(b"one", 10);
    rig.seal();
    rig.fill();
    rig.pass();
    rig.compare(&[b"one"]);
    assert!(rig.lead.counted().is_empty(), "nobody waits for it, and the table does not say that it is whole");
    rig.lead.set_slots(Wanted { trusted: SlotSet::default(), ..wanted(true) }, 1, |_| 1);
    assert!(rig.lead.counted().is_empty(), "a table by which nobody waits for it may come before it is whole");
    rig.lead.set_slots(wanted(false), 2, |_| 1);
    rig.lead.count_from(rig.lead.considered);
    assert!(rig.lead.counted().is_empty(), "nobody waits for it");
    // This one is acknowledged without it: the chain is longer by a table that comes after it was passed on.
    rig.set(b"two", 20);
    rig.seal();
    rig.pass();
    rig.lead.set_slots(wanted(true), 3, |_| 1);
    rig.lead.count_from(rig.lead.considered);
    assert!(rig.lead.counted().is_empty(), "it may lack what was acknowledged a moment ago");
    rig.compare(&[b"one", b"two"]);
    assert!(rig.lead.counted().contains(slot()));
    // What comes later is acknowledged with it only.
    rig.set(b"one", 30);
    rig.seal();
    rig.pass();
    assert!(rig.lead.counted().contains(slot()), "replies wait for it");
    assert!(rig.lead.horizon() < rig.lead.considered);
}

/// A table says of the slot that its chain is of this epoch, and whether the follower is whole.
fn tell(lead: &mut Lead, table: u64, epoch: u64, is_trusted: bool) {
    let slots: SlotSet = [slot()].into_iter().collect();
    let trusted = if is_trusted { slots.clone() } else { SlotSet::default() };
    lead.set_slots(Wanted { awaited: slots.clone(), slots, trusted, ..Wanted::default() }, table, |_| epoch);
}

/// Between two tables that are known here the follower may have left the slot, and swept it.
#[test]
fn a_slot_whose_chain_changed_is_held_once_the_follower_took_a_frame_by_the_new_table() {
    for was_trusted in [false, true] {
        let mut rig = Rig::new();
        rig.fill();
        rig.compare(&[]);
        tell(&mut rig.lead, 2, 1, was_trusted);
        assert!(rig.lead.held.contains(slot()) && rig.lead.backlog.is_empty(), "the chain is the same");
        rig.lead.note_told();
        tell(&mut rig.lead, 9, 8, false);
        let says = |lead: &Lead| lead.held.contains(slot()) || lead.vouched().contains(slot());
        assert!(!says(&rig.lead) && !rig.lead.is_whole(), "who knows what became of it?");
        assert!(!rig.lead.told.contains(slot()), "what was told is of another chain");
        tell(&mut rig.lead, 10, 8, false);
        assert!(!says(&rig.lead), "that there is nothing new says nothing");
        rig.compare(&[]);
        assert!(says(&rig.lead) && rig.lead.is_whole());
        tell(&mut rig.lead, 12, 12, true);
        assert!(says(&rig.lead), "only the first says that somebody is whole");
    }
}

/// What was on its way before the new table says nothing for it.
#[test]
fn the_end_of_a_fill_by_an_older_table_does_not_make_a_slot_held() {
    let mut rig = Rig::new();
    rig.fill();
    let filled = rig.lead.sequence;
    tell(&mut rig.lead, 9, 8, false);
    rig.lead.on_persisted(filled);
    assert!(!rig.lead.held.contains(slot()));
    rig.lead.on_persisted(filled + 1);
    assert!(rig.lead.held.contains(slot()));
}

/// How many frames a connection takes at `now_us`, and until when it gathers.
/// Copies that it has take memory of a follower with each write; those that it is to get take none before there is room.
#[test]
fn a_follower_without_room_is_filled_with_nothing_new() {
    let mut rig = Rig::new();
    rig.set(b"one", 10);
    assert_eq!(rig.lead.crowded(), None);
    rig.lead.is_full = true;
    rig.fill();
    rig.set(b"two", 20);
    rig.seal();
    rig.pass();
    assert!(rig.lead.crowded().is_some_and(|slots| slots.is_empty()), "the follower has none of it");
    assert!(rig.take_frame() && !rig.take_frame(), "it is told that it lacks the slot, and no more");
    assert_eq!(rig.copy.slot_len(slot()), 0);

    rig.lead.is_full = false;
    rig.fill();
    rig.compare(&[b"one", b"two"]);
    rig.lead.is_full = true;
    assert!(rig.lead.crowded().is_some_and(|slots| slots.contains(slot())));
    rig.set(b"one", 30);
    rig.seal();
    rig.pass();
    rig.compare(&[b"one", b"two"]);
    rig.lead.go_on_from(rig.lead.sent);
    assert_eq!(rig.lead.crowded(), None, "another connection, over which nothing was said");
}

/// A slot of which a part was filled goes on, and changes of it are passed on: the fill does not come by them again.
#[test]
fn a_follower_whose_room_ends_within_a_slot_gets_the_rest_of_it() {
    let mut rig = Rig::new();
    // A slice ends between buckets, and a slot has few.
    let names: Vec<String> = (0..20_000).map(|number| format!("key{number}")).collect();
    let names: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
    names.iter().for_each(|name| rig.set(name, 30));
    rig.lead.on_kept(SlotSet::default());
    let newest = rig.newest();
    rig.lead.fill((&rig.store, newest), &mut rig.fills);
    assert!(rig.lead.filling.is_some(), "a part of it");
    rig.lead.is_full = true;
    names.iter().for_each(|name| rig.set(name, 20));
    rig.seal();
    rig.pass();
    while rig.take_frame() || rig.lead.may_fill() {
        let newest = rig.newest();
        rig.lead.fill((&rig.store, newest), &mut rig.fills);
    }
    rig.compare(&names);
}

/// What is written while a slot is filled goes as the log has it behind the cursor, and not at all in front of it, where the fill will come
/// by; also keys that come, go and come again, and those that the follower had.
#[test]
fn changes_of_a_slot_that_is_being_filled_go_once() {
    for has_some in [false, true] {
        let mut rig = Rig::new();
        let names: Vec<String> = (0..20_000).map(|number| format!("key{number}")).collect();
        let names: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
        names.iter().for_each(|name| rig.set(name, 30));
        rig.seal();
        rig.pass();
        if has_some {
            let same = |store: &Store, name: &&[u8]| {
                let key = store.key(name, Database(0), slot());
                let version = store.group(key.group()).and_then(|group| Some(group.record(group.find(&key)?).version));
                version.expect("it was set")
            };
            for name in names.iter().step_by(2) {
                let (version, key) = (same(&rig.store, name), rig.copy.key(name, Database(0), slot()));
                rig.copy
                    .replay(&key, &Change::put_string(&[30; 30], Expiry::Clear), version, true)
                    .expect("there is room");
            }
        }
        rig.lead.on_kept(rig.copy.slots_with_keys().collect());
        for slot in rig.lead.slots_to_compare() {
            let answer = rig.follow.answer(slot, (name(2), &rig.view), &rig.copy);
            let marks: Vec<_> = answer.keys.iter().map(crate::compare::encode).collect();
            assert!(rig.lead.on_marks(slot, (true, answer.last.0), &marks));
        }
        let (mut step, mut passed_bytes) = (0, 0);
        while rig.take_frame() || rig.lead.may_fill() {
            let newest = rig.newest();
            rig.lead.fill((&rig.store, newest), &mut rig.fills);
            while rig.take_frame() {}
            // Some stay, some go, some of these come again.
            for name in names.iter().skip(step % 4).step_by(40) {
                match step % 3 {
                    0 => rig.set(name, 20 + step % 7),
                    _ => rig.remove(name),
                }
            }
            step += 1;
            rig.seal();
            // Some wait, for room in the log.
            while step % 5 > 0 && !rig.groups.is_empty() {
                rig.pass();
                passed_bytes += rig.lead.backlog_bytes;
            }
        }
        assert!(step > 10 && passed_bytes > 0, "{step} steps, {passed_bytes} bytes");
        while !rig.groups.is_empty() {
            rig.pass();
        }
        while rig.take_frame() {}
        assert_eq!(rig.copy.slot_len(slot()), rig.store.slot_len(slot()));
        let is_there = |name: &&&[u8]| {
            let key = rig.store.key(name, Database(0), slot());
            rig.store.group(key.group()).is_some_and(|group| group.find(&key).is_some())
        };
        let there: Vec<&[u8]> = names.iter().filter(is_there).copied().collect();
        rig.compare(&there);
    }
}

/// What is behind the cursor waits for its turn, though a slice was cut while its change waited for the disk.
#[test]
fn no_key_goes_before_its_turn() {
    let mut rig = Rig::new();
    let names: Vec<String> = (0..20_000).map(|number| format!("key{number}")).collect();
    names.iter().for_each(|name| rig.set(name.as_bytes(), 30));
    rig.seal();
    rig.pass();
    rig.lead.on_kept(SlotSet::default());
    let slice = |rig: &mut Rig| {
        let newest = rig.newest();
        rig.lead.fill((&rig.store, newest), &mut rig.fills);
        while rig.take_frame() {}
    };
    slice(&mut rig);
    let is_there = |rig: &Rig, name: &str| {
        let key = rig.copy.key(name.as_bytes(), Database(0), slot());
        rig.copy.group(key.group()).is_some_and(|group| group.find(&key).is_some())
    };
    let late: Vec<&String> = names.iter().filter(|name| !is_there(&rig, name)).collect();
    late.iter().for_each(|name| rig.set(name.as_bytes(), 20));
    rig.seal();
    slice(&mut rig);
    rig.pass();
    while rig.take_frame() {}
    assert!(late.len() > 100 && late.iter().filter(|name| is_there(&rig, name)).count() < late.len() / 2);
    late.iter().for_each(|name| rig.remove(name.as_bytes()));
    rig.seal();
    rig.pass();
    while rig.take_frame() || rig.lead.may_fill() {
        slice(&mut rig);
    }
    assert!(!late.iter().any(|name| is_there(&rig, name)));
    assert_eq!(rig.copy.slot_len(slot()), rig.store.slot_len(slot()));
}

/// What a follower has keys of goes on being filled: they may be too many.
#[test]
fn a_follower_without_room_is_told_what_of_its_keys_is_gone() {
    let mut rig = Rig::new();
    rig.set(b"one", 10);
    let stale = rig.copy.key(b"stale", Database(0), slot());
    rig.copy.apply(&stale, &Change::put_string(b"value", Expiry::Clear)).expect("there is room");
    rig.lead.is_full = true;
    rig.fill();
    rig.compare(&[b"one"]);
    assert_eq!(rig.copy.slot_len(slot()), 1);
}

#[test]
fn a_first_hears_once_whether_there_is_room() {
    let mut follow = Follow::new(name(1));
    assert_eq!([false, true, true, false].map(|is_full| follow.tells_room(is_full)), [false, true, false, true]);
    follow.tells_room(true);
    follow.greet(7);
    assert!(follow.tells_room(true), "another connection");
}

fn sent(rig: &mut Rig, now_us: u64, hurries: bool) -> (usize, Option<u64>) {
    let mut frames = 0;
    rig.lead.send(now_us, hurries, |_| {
        frames += 1;
        true
    });
    (frames, rig.lead.gathers_until_us())
}

#[test]
fn whom_nobody_waits_for_gets_several_groups_at_once_and_soon() {
    let mut rig = Rig::new();
    let write = |rig: &mut Rig, bytes| {
        rig.set(b"key", bytes);
        rig.seal();
        rig.pass();
    };
    rig.fill();
    write(&mut rig, 10);
    assert!(sent(&mut rig, 0, false).0 > 1, "replies wait for it");
    let slots = rig.lead.slots.clone();
    rig.lead.set_slots(Wanted { slots: slots.clone(), ..Wanted::default() }, 2, |_| 1);
    // Time, and what came meanwhile.
    write(&mut rig, 10);
    assert_eq!(sent(&mut rig, 1_000, false), (0, Some(1_000 + GATHER_US)));
    write(&mut rig, 10);
    assert_eq!(sent(&mut rig, 1_000 + GATHER_US - 1, false), (0, Some(1_000 + GATHER_US)));
    assert_eq!(sent(&mut rig, 1_000 + GATHER_US, false), (2, None));
    // Somebody waits, or asks; bytes; what fills it.
    write(&mut rig, 10);
    assert_eq!((sent(&mut rig, 9_000, false).0, sent(&mut rig, 9_001, true)), (0, (1, None)));
    write(&mut rig, 10);
    assert_eq!(sent(&mut rig, 9_002, false).0, 0);
    rig.lead.asked = Some(1);
    assert_eq!(sent(&mut rig, 9_003, false), (1, None));
    rig.lead.asked = None;
    write(&mut rig, GATHER_BYTES / 2);
    assert_eq!(sent(&mut rig, 10_000, false).0, 0);
    write(&mut rig, GATHER_BYTES / 2);
    assert_eq!(sent(&mut rig, 10_001, false), (2, None));
    write(&mut rig, 10);
    rig.lead.push_lacking(&slots);
    assert_eq!(sent(&mut rig, 11_000, false), (2, None));
    assert_eq!(sent(&mut rig, 12_000, false), (0, None));
    // A table by which replies wait for it.
    write(&mut rig, 10);
    assert_eq!(sent(&mut rig, 13_000, false).0, 0);
    rig.lead.set_slots(Wanted { awaited: slots.clone(), slots: slots.clone(), ..Wanted::default() }, 3, |_| 1);
    assert_eq!(sent(&mut rig, 13_001, false), (1, None));
    // It is second of another slot only: what that one gets takes along what was gathered.
    let (mut both, mut other) = (slots, SlotSet::default());
    [&mut both, &mut other].into_iter().for_each(|slots| slots.insert(Slot::wrapping(6)));
    rig.lead.set_slots(Wanted { awaited: other, slots: both, ..Wanted::default() }, 4, |_| 1);
    rig.fill();
    assert!(sent(&mut rig, 14_000, false).0 > 0, "it lacks that one");
    write(&mut rig, 10);
    assert_eq!(sent(&mut rig, 15_000, false), (0, Some(15_000 + GATHER_US)));
    let key = rig.store.key(b"key", Database(0), Slot::wrapping(6));
    rig.store.apply(&key, &Change::put_string(b"value", Expiry::Clear)).expect("there is room");
    rig.seal();
    rig.pass();
    assert_eq!(sent(&mut rig, 15_001, false), (2, None));
}

/// A deadline that has passed would have the node tick for ever, for nothing.
#[test]
fn a_link_that_breaks_while_it_gathers_has_no_deadline_of_that() {
    let mut rig = Rig::new();
    rig.lead.set_slots(Wanted { slots: rig.lead.slots.clone(), ..Wanted::default() }, 2, |_| 1);
    rig.fill();
    sent(&mut rig, 0, false);
    rig.set(b"key", 10);
    rig.seal();
    rig.pass();
    assert_eq!(sent(&mut rig, 1_000, false), (0, Some(1_000 + GATHER_US)));
    let connection = ConnectionId { index: 3, generation: 1 };
    let mut links = Links::new(name(1), 1, &Token::new([7; 16]));
    links.leads.push((rig.lead, Contact::Going { connection }));
    assert_eq!(links.deadline_us(), Some(1_000 + GATHER_US));
    links.on_closed(connection, 1_500);
    let deadline_us = links.deadline_us().expect("it dials again");
    assert!(deadline_us > 1_000 + GATHER_US, "{deadline_us}");
    links.leads[0].1 = Contact::Dialing { token: 1 };
    assert_eq!(links.deadline_us(), None);
    // The next connection gathers anew.
    links.leads[0].0.go_on_from(0);
    links.leads[0].1 = Contact::Going { connection };
    assert_eq!(links.deadline_us(), None);
}
