//! A store that follows another one: in memory, and after a recovery from its own log.

use std::collections::BTreeSet;

use base::rng::Rng;
use base::{CoreId, Database, LogOrdinal, SegmentNumber, Slot, SlotGroupId};
use storage::log::format::{GROUP_HEADER_BYTES, GroupHeader, SegmentHeader};
use storage::log::record::RecordForm;
use storage::log::{LogBuffer, MANIFEST_FILE_NAME, Manifest};
use storage::{Arriving, Comparison, Known, Pass, PassedStages, SlotCopy, SlotGroup, Store};
use types::{Change, Expiry};

use crate::changes::{random_change, random_name};
use crate::disk::Disk;
use crate::model::{Model, Snapshot, slot_of, snapshot};
use crate::node::Node;

const STORE_ID: [u8; 16] = [6; 16];
const NAMES: u64 = 24;
const VALUE_BYTES_MAX: usize = 300_000;

/// What both ends of a link know of long values on their way.
#[derive(Default)]
pub(crate) struct Link {
    passed: PassedStages,
    stages: u64,
    arriving: Arriving,
    /// Bytes of the longest stretch of records that went at once.
    pub(crate) longest_bytes: usize,
}

impl Link {
    /// A log group goes to the follower; whether some of it did as copies.
    pub(crate) fn pass<'k>(
        &mut self,
        leader: &Store,
        group: &[u8],
        pass: &dyn Fn(Slot) -> Pass<'k>,
        follower: &mut Store,
    ) -> bool {
        let mut records = LogBuffer::default();
        let copied = leader.pass_on(group, pass, &mut self.passed, &mut records);
        self.take(&records, follower);
        !copied.is_empty()
    }

    /// The next slice of a slot does; whether it was the last one.
    pub(crate) fn fill(&mut self, leader: &Store, copy: &mut SlotCopy, follower: &mut Store) -> bool {
        let mut copies = LogBuffer::default();
        // Names in fills are others than in the log.
        let mut stages = self.stages | 1 << 63;
        let is_end = leader.copy_slice(copy, 1, Some(&mut stages), &mut copies);
        self.stages = stages;
        self.take(&copies, follower);
        is_end
    }

    fn take(&mut self, records: &LogBuffer, follower: &mut Store) {
        self.longest_bytes = self.longest_bytes.max(records.record_bytes());
        follower.follow(records.record_slice(), records.records(), (&mut self.arriving, LogOrdinal(1))).unwrap();
    }

    /// Bytes of long values whose changes did not come.
    pub(crate) fn arriving_bytes(&self) -> usize {
        self.arriving.bytes()
    }
}

fn follow(follower: &mut Store, records: &[u8], count: u32) -> Result<(), String> {
    follower.follow(records, count, (&mut Arriving::default(), LogOrdinal(1)))
}

pub(crate) fn store(seed: u64) -> Store {
    let mut store = Store::new(CoreId(0), seed, true);
    SlotGroupId::all().for_each(|group| store.insert_group(Box::new(SlotGroup::new(group, CoreId(0)))));
    store
}

fn header(records: u32, bytes: usize) -> GroupHeader {
    let record_bytes = u32::try_from(bytes).unwrap();
    let identity = segment().identity();
    GroupHeader {
        record_bytes,
        records,
        ordinal: LogOrdinal(1),
        durable: LogOrdinal(0),
        identity,
        unix_ms: 0,
        form: RecordForm::Short,
    }
}

fn segment() -> SegmentHeader {
    SegmentHeader {
        store_id: STORE_ID,
        incarnation: 1,
        core: 0,
        cores: 1,
        segment: SegmentNumber(0),
        first_ordinal: LogOrdinal(1),
        room_bytes: 0,
    }
}

/// The tick's records as a sealed group; the store goes on with none.
pub(crate) fn seal(store: &mut Store) -> Vec<u8> {
    let full = std::mem::take(store.log_mut().unwrap());
    let (records, bytes) = (full.records(), full.record_bytes());
    let mut group = full.into_bytes();
    header(records, bytes).seal(&mut group);
    group
}

/// What a recovery makes of a log of these records.
pub(crate) fn recovered(store: &mut Store) -> Snapshot {
    let log = store.log_mut().unwrap();
    let mut group = vec![0; GROUP_HEADER_BYTES];
    group.extend_from_slice(log.record_slice());
    header(log.records(), log.record_bytes()).seal(&mut group);
    let mut disk = Disk::default();
    let (closed, cuts) = (Vec::new(), Vec::new());
    let manifest = Manifest { store_id: STORE_ID, incarnation: 1, cores: 1, serving: true, closed, cuts };
    disk.write(MANIFEST_FILE_NAME, 0, &manifest.encode());
    disk.write(&segment().file_name(), 0, &[segment().encode().to_vec(), group].concat());
    Node::open(disk, 2, 4096, false).unwrap().snapshot()
}

/// Fills a slot, a slice at a time, with changes of others in between if there are more slices.
fn fill(leader: &Store, follower: &mut Store, slot: Slot, known: &Known) {
    let (mut copy, mut link, mut is_end) = (SlotCopy::new(slot, known.clone()), Link::default(), false);
    while !is_end {
        is_end = link.fill(leader, &mut copy, follower);
    }
    let (last, removed) = leader.sequence(slot);
    follower.end_copy(slot, last, removed);
}

#[test]
fn a_follower_has_what_the_leader_has_and_a_recovery_finds_it() {
    for seed in 0..25 {
        let mut rng = Rng::new(seed);
        let (mut leader, mut follower, mut model) = (store(1), store(2), Model::default());
        let mut whole: BTreeSet<u16> = BTreeSet::new();
        let slots: BTreeSet<u16> = (0..NAMES).map(|number| slot_of(&name(number)).number()).collect();
        for _ in 0..120 {
            for _ in 0..1 + rng.below(4) {
                change(&mut rng, &mut leader, &mut model);
            }
            let group = seal(&mut leader);
            let pass = |slot: Slot| match whole.contains(&slot.number()) {
                true => Pass::Records,
                false => Pass::No,
            };
            Link::default().pass(&leader, &group, &pass, &mut follower);
            let next = slots.iter().find(|slot| !whole.contains(slot));
            if let Some(slot) = next.copied().filter(|_| rng.chance(1, 3)) {
                fill(&leader, &mut follower, Slot::wrapping(slot), &Known::default());
                whole.insert(slot);
            }
        }
        slots.iter().filter(|slot| !whole.contains(slot)).for_each(|slot| {
            fill(&leader, &mut follower, Slot::wrapping(*slot), &Known::default());
        });
        assert_eq!(snapshot(&follower), snapshot(&leader), "seed {seed}");
        assert_eq!(recovered(&mut follower), snapshot(&leader), "seed {seed}, recovered");
        // What leaves memory unlogged is all there again after a recovery,
        slots.iter().for_each(|slot| drop_all(&mut follower, Slot::wrapping(*slot)));
        assert!(snapshot(&follower).is_empty(), "seed {seed}, dropped");
        assert_eq!(recovered(&mut follower), snapshot(&leader), "seed {seed}, dropped and recovered");
        // and once it is forgotten it never comes again.
        slots.iter().for_each(|slot| follower.forget_slot(Slot::wrapping(*slot)));
        assert!(snapshot(&follower).is_empty() && recovered(&mut follower).is_empty(), "seed {seed}, forgotten");
    }
}

/// All keys of a slot leave memory, a key at a time.
fn drop_all(store: &mut Store, slot: Slot) {
    let (len, mut from, mut all_gone) = (store.slot_len(slot), None, 0);
    loop {
        let (gone, rest) = store.drop_keys(slot, from, 1);
        all_gone += gone as u32;
        if rest.is_none() {
            break assert_eq!(all_gone, len);
        }
        from = rest;
    }
}

/// Bytes of long values in a follower's log behind a change that set as many bytes, and in the leader's, where its writer did not bring them
/// a block at a time.
fn block_bytes_of(bytes: usize) -> [u64; 2] {
    let (mut leader, mut follower) = (store(1), store(2));
    let (name, value) = (name(1), vec![7; bytes]);
    let key = leader.key(&name, Database(0), slot_of(&name));
    leader.apply(&key, &Change::Put { kind: types::Kind::String, value: &value, expiry: Expiry::Clear }).unwrap();
    let of_leader = leader.log_mut().unwrap().block_bytes();
    pass_all(&mut leader, &mut follower, Pass::Records);
    [follower.log_mut().unwrap().block_bytes(), of_leader]
}

#[test]
fn a_follower_s_writers_wait_for_none_of_a_long_value_that_its_leader_sends() {
    assert_eq!(block_bytes_of(1000), [0, 0]);
    let [of_follower, of_leader] = block_bytes_of(300_000);
    assert!((300_000..301_000).contains(&of_follower), "{of_follower} bytes");
    assert_eq!(of_leader, 0, "there it is what somebody wrote");
}

/// What is sealed goes to the follower, or does not.
fn pass_all(leader: &mut Store, follower: &mut Store, pass: Pass) {
    let group = seal(leader);
    Link::default().pass(leader, &group, &|_| pass, follower);
}

/// Fills a slot of which the follower has something, while keys change; how many keys it needed no copy of, or `None` when it began
/// anew.
fn fill_what_differs(
    rng: &mut Rng,
    (leader, follower): (&mut Store, &mut Store),
    slot: Slot,
    is_whole: &dyn Fn(Slot) -> bool,
) -> Option<usize> {
    let seed = rng.next_u64();
    let theirs = follower.marks(slot, seed);
    if rng.chance(3, 4) {
        change(rng, leader, &mut Model::default());
        let pass = |other: Slot| if is_whole(other) { Pass::Records } else { Pass::No };
        let group = seal(leader);
        Link::default().pass(leader, &group, &pass, follower);
    }
    let known = match leader.compare(slot, seed, &theirs) {
        Comparison::Anew => {
            follower.forget_slot(slot);
            None
        }
        Comparison::Match { known, gone } => {
            let (last, _) = leader.sequence(slot);
            follower.remove_marked(slot, seed, &gone, last).unwrap();
            Some(Known { seed, names: known })
        }
    };
    fill(leader, follower, slot, known.as_ref().unwrap_or(&Known::default()));
    known.map(|known| known.names.len())
}

/// The follower was away, or was first itself and gave versions that the new first gave as well, to something else.
#[test]
fn what_a_follower_had_stays_where_it_is_right_and_a_recovery_finds_it() {
    let (mut kept, mut begun_anew) = (0, 0);
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let (mut leader, mut follower) = (store(1), store(2));
        let slots: BTreeSet<u16> = (0..NAMES).map(|number| slot_of(&name(number)).number()).collect();
        let slots = || slots.iter().map(|slot| Slot::wrapping(*slot));
        for _ in 0..60 {
            change(&mut rng, &mut leader, &mut Model::default());
            pass_all(&mut leader, &mut follower, Pass::Records);
        }
        for _ in 0..3 {
            if rng.chance(1, 2) {
                slots().for_each(|slot| follower.promote(slot));
                (0..rng.below(6)).for_each(|_| change(&mut rng, &mut follower, &mut Model::default()));
                slots().for_each(|slot| leader.promote(slot));
            }
            (0..rng.below(20)).for_each(|_| change(&mut rng, &mut leader, &mut Model::default()));
            seal(&mut leader);
            for slot in slots() {
                // They are filled in their order.
                let is_whole = |other: Slot| other.number() < slot.number();
                match fill_what_differs(&mut rng, (&mut leader, &mut follower), slot, &is_whole) {
                    Some(keys) => kept += keys,
                    None => begun_anew += 1,
                }
            }
            for _ in 0..10 {
                change(&mut rng, &mut leader, &mut Model::default());
                pass_all(&mut leader, &mut follower, Pass::Records);
            }
            assert_eq!(snapshot(&follower), snapshot(&leader), "seed {seed}");
            assert_eq!(recovered(&mut follower), snapshot(&leader), "seed {seed}, recovered");
        }
    }
    assert!(kept > 500 && begun_anew > 500, "{kept} {begun_anew}");
}

/// Who was first for a while gave versions that nobody else knows; who is first now goes on below them.
#[test]
fn what_was_forgotten_says_nothing_about_the_versions_that_come() {
    let mut rng = Rng::new(1);
    let (mut leader, mut follower, mut model) = (store(1), store(2), Model::default());
    let slots: BTreeSet<u16> = (0..NAMES).map(|number| slot_of(&name(number)).number()).collect();
    slots.iter().for_each(|slot| follower.promote(Slot::wrapping(*slot)));
    (0..60).for_each(|_| change(&mut rng, &mut follower, &mut Model::default()));
    slots.iter().for_each(|slot| follower.forget_slot(Slot::wrapping(*slot)));
    slots.iter().for_each(|slot| fill(&leader, &mut follower, Slot::wrapping(*slot), &Known::default()));
    for _ in 0..60 {
        change(&mut rng, &mut leader, &mut model);
        pass_all(&mut leader, &mut follower, Pass::Records);
    }
    assert_eq!(snapshot(&follower), snapshot(&leader));
    assert_eq!(recovered(&mut follower), snapshot(&leader), "recovered");
}

/// Two copies of a slot: one is first twice and writes nothing, then the other one is.
#[test]
fn who_is_first_without_writing_leaves_no_versions_that_others_lack() {
    let (mut one, mut other) = (store(1), store(2));
    let slot = slot_of(b"a");
    let write = |store: &mut Store, bytes: &[u8]| {
        let key = store.key(b"a", Database(0), slot);
        store
            .apply(&key, &types::Change::Put { kind: types::Kind::String, value: bytes, expiry: types::Expiry::Clear })
            .unwrap()
    };
    let pass_on = |from: &mut Store, to: &mut Store| {
        let (group, mut records) = (seal(from), LogBuffer::default());
        from.pass_on(&group, &|_| Pass::Records, &mut PassedStages::default(), &mut records);
        follow(to, records.record_slice(), records.records())
    };
    let first = write(&mut one, b"1");
    pass_on(&mut one, &mut other).unwrap();
    // What it followed is in its own log, too.
    seal(&mut other);
    (0..2).for_each(|_| one.promote(slot));
    other.promote(slot);
    let second = write(&mut other, b"2");
    assert!(second > first);
    pass_on(&mut other, &mut one).unwrap();
    one.promote(slot);
    assert!(write(&mut one, b"3") > second);
    assert_eq!(snapshot(&one).len(), 1);
}

/// What the follower wrote while it was first, and nobody else has, of a slot with `{t}a` and `{t}b`; what the next first writes.
type Stray = (&'static [(&'static str, bool)], &'static [(&'static str, bool)]);

/// Versions only ever grow in a log, so nothing stays of a slot with one that the first has not come to.
#[test]
fn versions_that_the_first_has_not_come_to_make_a_slot_begin_anew() {
    let slot = slot_of(b"{t}");
    let write = |store: &mut Store, (name, is_there): (&str, bool)| {
        let (key, value) = (store.key(name.as_bytes(), Database(0), slot), name.as_bytes());
        let put = types::Change::Put { kind: types::Kind::String, value, expiry: types::Expiry::Clear };
        store.apply(&key, if is_there { &put } else { &types::Change::Remove }).unwrap();
    };
    let newer_and_gone_again: Stray = (&[("{t}c", true), ("{t}c", true), ("{t}c", false)], &[]);
    let as_new: Stray = (&[("{t}c", true)], &[("{t}d", true)]);
    for (theirs, ours) in [newer_and_gone_again, as_new] {
        let (mut leader, mut follower) = (store(1), store(2));
        ["{t}a", "{t}b"].into_iter().for_each(|name| write(&mut leader, (name, true)));
        pass_all(&mut leader, &mut follower, Pass::Records);
        [&mut leader, &mut follower].into_iter().for_each(|store| store.promote(slot));
        theirs.iter().for_each(|change| write(&mut follower, *change));
        ours.iter().for_each(|change| write(&mut leader, *change));
        seal(&mut leader);
        let kept = fill_what_differs(&mut Rng::new(0), (&mut leader, &mut follower), slot, &|other| other != slot);
        write(&mut leader, ("{t}a", true));
        pass_all(&mut leader, &mut follower, Pass::Records);
        assert_eq!(recovered(&mut follower), snapshot(&leader), "{theirs:?}");
        assert_eq!(kept, None);
    }
}

fn name(number: u64) -> Vec<u8> {
    format!("name {number}").into_bytes()
}

fn change(rng: &mut Rng, leader: &mut Store, model: &mut Model) {
    if rng.chance(1, 60) {
        leader.clear(None);
        return model.clear(None);
    }
    let name = name(rng.below(NAMES));
    let key = leader.key(&name, Database(0), slot_of(&name));
    let most = if rng.chance(1, 20) { VALUE_BYTES_MAX } else { 40 };
    let change = random_change(rng, model.keys.get(&(0, name.clone())), most);
    let version = change.with(|change| leader.apply(&key, change)).unwrap();
    change.with(|change| model.apply(0, &name, change, version));
}

#[test]
fn what_is_no_record_or_of_another_slot_is_refused() {
    let (mut leader, mut follower) = (store(1), store(2));
    let name = random_name(&mut Rng::new(1), NAMES);
    let key = leader.key(&name, Database(0), slot_of(&name));
    leader.apply(&key, &types::Change::put_string(b"value", types::Expiry::Clear)).unwrap();
    let log = leader.log_mut().unwrap();
    let (count, records) = (log.records(), log.record_slice().to_vec());
    assert!(!storage::are_of_slots(&records, &|slot| slot != key.slot));
    assert!(storage::are_of_slots(&records, &|slot| slot == key.slot));
    assert!(follow(&mut follower, &records[..records.len() - 1], count).is_err(), "cut short");
    assert!(follow(&mut follower, &records, count + 1).is_err(), "one is missing");
    let mut follower = store(2);
    follow(&mut follower, &records, count).unwrap();
    assert!(follow(&mut follower, &records, count).is_err(), "the same again");
    assert_eq!(snapshot(&follower), snapshot(&leader));
}

/// What others serve they say of: a key that expired there stays here until they remove it, also behind a clear.
#[test]
fn what_expires_in_a_followed_slot_is_for_its_first_to_say() {
    let mut store = store(7);
    // The edges of words and of groups.
    let slots = [0, 63, 64, 255, 256, 9000, 16383].map(Slot::wrapping);
    let followed = |slot: Slot| slot.number() % 2 == 1;
    store.set_followed(|_| 0xaaaa_aaaa_aaaa_aaaa);
    for round in 0..2 {
        for slot in slots {
            let key = store.key(b"key", Database(0), slot);
            let change = Change::put_string(b"value", Expiry::At(1000));
            store.apply(&key, &change).unwrap();
            assert!(store.read(&key, 999).is_some() && store.read(&key, 1000).is_none());
            let keys = store.group(slot.group()).unwrap().keys_in_slot(slot);
            assert_eq!(keys, u32::from(followed(slot)), "slot {} in round {round}", slot.number());
        }
        store.clear(None);
    }
}
