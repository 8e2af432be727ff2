//! The store against the model over all changes, databases, expiry and clearing, in many slots and one hot one.

use std::collections::BTreeSet;

use base::rng::Rng;
use base::{CoreId, Database, Lanes, LogOrdinal, SLOT_COUNT, SLOT_GROUP_COUNT, Scope, Slot, SlotGroupId, Version};
use storage::{DatabaseCount, EXPIRED_KEY_COST, ScanCursor, SlotGroup, Store};
use types::{Change, Expiry};

use crate::changes::{random_change, random_name};
use crate::model::{Model, slot_of, snapshot};

fn store() -> Store {
    let mut store = Store::new(CoreId(0), 42, true);
    SlotGroupId::all().for_each(|group| store.insert_group(Box::new(SlotGroup::new(group, CoreId(0)))));
    store
}

fn count_of(model: &Model, database: u8) -> DatabaseCount {
    let entries = model.keys.iter().filter(|((number, _), _)| *number == database);
    let expiring = entries.clone().filter(|(_, entry)| entry.expire_at_ms.is_some()).count() as u64;
    DatabaseCount { keys: entries.count() as u64, expiring }
}

fn compare(store: &Store, model: &Model) {
    assert_eq!(snapshot(store), model.keys);
    for number in 0..base::limits::DATABASE_COUNT {
        assert_eq!(store.count(Database(number)), count_of(model, number), "database {number}");
    }
    let slots: BTreeSet<Slot> = model.keys.keys().map(|(_, name)| slot_of(name)).collect();
    for slot in slots.into_iter().take(40) {
        let names = |database: u8| -> BTreeSet<Vec<u8>> {
            let of_slot = model.keys.keys().filter(|(number, name)| *number == database && slot_of(name) == slot);
            of_slot.map(|(_, name)| name.clone()).collect()
        };
        let counted: usize = (0..16).map(|database| names(database).len()).sum();
        assert_eq!(store.group(slot.group()).unwrap().keys_in_slot(slot) as usize, counted);
        let listed: BTreeSet<Vec<u8>> = store.keys_in_slot(slot, Database(1), usize::MAX).into_iter().collect();
        assert_eq!(listed, names(1));
    }
}

/// One random step on both; the version that the store gave.
fn step(rng: &mut Rng, store: &mut Store, model: &mut Model, last: &mut [u64]) {
    let name = random_name(rng, 1500);
    let database = [0, 0, 0, 1, 15][rng.below(5) as usize];
    let slot = slot_of(&name);
    let key = store.key(&name, Database(database), slot);
    let present = model.keys.get(&(database, name.clone()));
    let read_version = store.version(&key, 0);
    assert_eq!(read_version.0, present.map_or(0, |entry| entry.version));
    let change = random_change(rng, present, 200 << 10);
    change.with(|change| {
        let version = store.apply(&key, change).unwrap();
        assert!(version.0 > last[usize::from(slot.number())], "versions of a partition ascend");
        last[usize::from(slot.number())] = version.0;
        model.apply(database, &name, change, version);
    });
}

#[test]
fn agrees_with_a_map_over_every_change() {
    let (mut rng, mut store, mut model) = (Rng::new(11), store(), Model::default());
    let mut last = vec![0; 16384];
    for round in 0..100_000 {
        step(&mut rng, &mut store, &mut model, &mut last);
        if round % 10_000 == 9999 {
            compare(&store, &model);
        }
        if rng.chance(1, 20_000) {
            let database = [None, Some(Database(0)), Some(Database(1)), Some(Database(9))][rng.below(4) as usize];
            store.clear(database);
            model.clear(database);
            last = SlotGroupId::all()
                .flat_map(|group| (0..=255).map(move |position| group.slot(position)))
                .map(|slot| store.group(slot.group()).unwrap().last_version(slot).0)
                .collect();
            compare(&store, &model);
        }
        let log = store.log_mut().unwrap();
        if log.record_bytes() > 1 << 20 {
            *log = Default::default();
        }
    }
    store.clear(None);
    model.clear(None);
    compare(&store, &model);
    assert!(store.heap_bytes() > 1 << 20, "much of it waits to be given back");
    while store.has_garbage() {
        store.lazy_free_step(1 << 20);
    }
    assert!(store.heap_bytes() < 16 << 10, "{} bytes after everything went", store.heap_bytes());
}

#[test]
fn memory_comes_back_when_keys_are_removed_one_by_one() {
    let (mut rng, mut store, mut model) = (Rng::new(12), store(), Model::default());
    let mut last = vec![0; 16384];
    (0..20_000).for_each(|_| step(&mut rng, &mut store, &mut model, &mut last));
    let full = store.record_bytes();
    for (database, name) in model.keys.keys() {
        let key = store.key(name, Database(*database), slot_of(name));
        store.apply(&key, &Change::Remove).unwrap();
    }
    assert_eq!(store.count(Database(0)), DatabaseCount::default());
    // Pages of shared slots stay for the next records of their size; what had pages of its own is gone.
    assert!(store.record_bytes() < full / 2, "{} of {full} bytes are left", store.record_bytes());
    for database in 0..16 {
        assert_eq!(store.random_key(Database(database), 0, 99), None);
    }
}

#[test]
fn expired_keys_are_gone_for_everybody_and_are_removed_by_record() {
    let mut store = store();
    let name = |number: u64| format!("e{number}").into_bytes();
    for number in 0..3000u64 {
        let name = name(number);
        let key = store.key(&name, Database((number % 2) as u8), slot_of(&name));
        store.apply(&key, &Change::put_string(b"v", Expiry::At(1000 + number))).unwrap();
    }
    let shown = |store: &Store, now_ms: u64| {
        let mut count = 0;
        let mut cursor = Some(ScanCursor(0));
        while let Some(from) = cursor {
            cursor = store.scan(from, (10, SLOT_GROUP_COUNT), Database(0), now_ms, |_| count += 1);
        }
        count
    };
    assert_eq!(shown(&store, 999), 1500);
    assert_eq!(shown(&store, 2000), 999, "the key that expires at 2000 is gone at 2000");
    let name_500 = name(500);
    let key = store.key(&name_500, Database(0), slot_of(&name_500));
    assert!(store.read(&key, 1499).is_some());
    assert!(store.read(&key, 1500).is_none());
    assert_eq!(store.expired(), 1, "the read removed it");
    let removed = store.group(slot_of(&name_500).group()).unwrap().removed_version(slot_of(&name_500));
    assert!(removed > Version::ABSENT);
    let mut went = 1;
    for _ in 0..100_000 {
        let step = store.expire_step(2499, 64);
        // A bucket of the index is looked through whole.
        assert!(step * EXPIRED_KEY_COST <= 64 + 16 * EXPIRED_KEY_COST, "{step} went: as short where much goes");
        went += step;
        if went == 1500 {
            break;
        }
    }
    assert_eq!(went, 1500, "every key that is due goes, in bounded steps");
    assert_eq!(store.count(Database(0)).expiring + store.count(Database(1)).expiring, 1500);
    assert!(store.has_expiring());
    store.clear(Some(Database(1)));
    assert_eq!(store.count(Database(0)).expiring, 750);
}

#[test]
fn a_lent_group_expires_nothing_outside_its_unit() {
    let (mut owner, mut home) = (store(), Store::new(CoreId(1), 42, true));
    let slot = slot_of(b"k");
    let key = owner.key(b"k", Database(0), slot);
    owner.apply(&key, &Change::put_string(b"v", Expiry::At(1000))).unwrap();
    home.insert_group(owner.take_group(slot.group()).unwrap());
    assert_eq!(home.expire_step(2000, 64), 0);
    assert!(home.take_lent().is_empty(), "nobody would log it");
    owner.insert_group(home.take_group(slot.group()).unwrap());
    assert!(owner.may_expire());
    assert_eq!(owner.expire_step(2000, 64), 1);
}

#[test]
fn a_scan_shows_every_key_that_stays_while_others_come_and_go() {
    let mut rng = Rng::new(13);
    let mut store = store();
    let put = |store: &mut Store, name: &[u8]| {
        let key = store.key(name, Database(3), slot_of(name));
        store.apply(&key, &Change::put_string(&[1; 30], Expiry::Clear)).unwrap();
    };
    let staying: BTreeSet<Vec<u8>> = (0..5000).map(|number| format!("stays{number}").into_bytes()).collect();
    staying.iter().for_each(|name| put(&mut store, name));
    let mut seen = BTreeSet::new();
    let mut cursor = Some(ScanCursor(0));
    while let Some(from) = cursor {
        cursor = store.scan(from, (10, SLOT_GROUP_COUNT), Database(3), 0, |record| {
            seen.insert(record.key.to_vec());
        });
        assert!(cursor.is_none_or(|next| next.0 > from.0 && next.0 < 1 << 38), "a scan moves on");
        for _ in 0..30 {
            let name = format!("goes{}", rng.below(20_000)).into_bytes();
            put(&mut store, &name);
            let name = format!("goes{}", rng.below(20_000)).into_bytes();
            let key = store.key(&name, Database(3), slot_of(&name));
            if store.read(&key, 0).is_some() {
                store.apply(&key, &Change::Remove).unwrap();
            }
        }
    }
    assert!(staying.is_subset(&seen));
}

#[test]
fn a_scan_of_a_store_that_was_large_once_stays_short() {
    let mut store = store();
    assert_eq!(store.scan(ScanCursor(0), (10, SLOT_GROUP_COUNT), Database(0), 0, |_| ()), None, "empty: one step");
    let names: Vec<Vec<u8>> = (0..60_000).map(|number| format!("n{number}").into_bytes()).collect();
    for name in &names {
        let key = store.key(name, Database(0), slot_of(name));
        store.apply(&key, &Change::put_string(b"", Expiry::Clear)).unwrap();
    }
    let mut kept_groups = BTreeSet::new();
    for name in &names {
        if kept_groups.insert(slot_of(name).group()) {
            continue;
        }
        let key = store.key(name, Database(0), slot_of(name));
        store.apply(&key, &Change::Remove).unwrap();
    }
    let (mut calls, mut shown, mut cursor) = (0, 0, Some(ScanCursor(0)));
    while let Some(from) = cursor {
        cursor = store.scan(from, (10, SLOT_GROUP_COUNT), Database(0), 0, |_| shown += 1);
        calls += 1;
    }
    assert_eq!(shown, 64);
    assert!(calls > 40, "{calls} calls walked the buckets of 60,000 keys");
}

#[test]
fn random_keys_are_keys_and_differ() {
    let mut store = store();
    let names: BTreeSet<Vec<u8>> = (0..500).map(|number| format!("r{number}").into_bytes()).collect();
    for name in &names {
        let key = store.key(name, Database(2), slot_of(name));
        store.apply(&key, &Change::put_string(b"v", Expiry::Clear)).unwrap();
    }
    let mut rng = Rng::new(5);
    let found: BTreeSet<Vec<u8>> = (0..2000).filter_map(|_| store.random_key(Database(2), 0, rng.next_u64())).collect();
    assert!(found.is_subset(&names));
    assert!(found.len() > 200, "{} different ones in 2000 draws", found.len());
    assert_eq!(store.random_key(Database(4), 0, 1), None);
}

#[test]
fn what_is_committed_while_its_group_is_lent_is_clean_when_it_comes_home() {
    let mut store = store();
    let slot = slot_of(b"lent");
    store.track_uncommitted(Some(LogOrdinal(1)));
    let key = store.key(b"lent", Database(0), slot);
    store.apply(&key, &Change::put_string(b"v", Expiry::Clear)).unwrap();
    assert!(store.has_uncommitted());
    let lent = store.take_group(slot.group()).unwrap();
    store.commit(|_| LogOrdinal(1));
    assert!(store.has_uncommitted(), "nobody told the group yet");
    store.insert_group(lent);
    assert!(!store.has_uncommitted());
    assert!(store.read(&key, 0).is_some());
    assert!(!store.take_saw_uncommitted());
}

/// What WATCH asks about an absent key: clearing counts as its removal only if it was there, or if too many were.
#[test]
fn clearing_removes_what_was_there() {
    let mut store = store();
    let (present, absent, slot) = (b"present".as_slice(), b"absent".as_slice(), Slot::wrapping(777));
    let put = |store: &mut Store, name: &[u8], database: u8| {
        let key = store.key(name, Database(database), slot);
        store.apply(&key, &Change::put_string(b"v", Expiry::Clear)).unwrap();
    };
    let has_removed = |store: &Store, name: &[u8], count: u64| {
        let key = store.key(name, Database(0), slot);
        store.group(slot.group()).unwrap().may_have_removed(&key, count)
    };
    for cleared in [None, Some(Database(0))] {
        put(&mut store, present, 0);
        put(&mut store, absent, 1);
        let count = store.group(slot.group()).unwrap().removal_count();
        store.clear(cleared);
        assert!(has_removed(&store, present, count));
        assert!(!has_removed(&store, absent, count), "it was in another database");
    }
    let count = store.group(slot.group()).unwrap().removal_count();
    (0..300).for_each(|number| put(&mut store, number.to_string().as_bytes(), 0));
    store.clear(None);
    assert!(has_removed(&store, absent, count), "more than are remembered may include any");
}

#[test]
fn slots_of_different_lanes_are_committed_apart_and_what_waits_moves_with_its_slot() {
    let mut store = store();
    let (one, other) = (Slot::wrapping(7), Slot::wrapping(8));
    let mut lanes = [1; SLOT_COUNT as usize];
    lanes[8] = 2;
    store.set_lanes(Lanes::new(lanes));
    let put = |store: &mut Store, slot, ordinal| {
        store.track_uncommitted(Some(LogOrdinal(ordinal)));
        let key = store.key(b"k", Database(0), slot);
        store.apply(&key, &Change::put_string(b"v", Expiry::Clear)).unwrap();
    };
    let sees = |store: &mut Store, slot| {
        let key = store.key(b"k", Database(0), slot);
        store.changes_from_here();
        assert!(store.read(&key, 0).is_some());
        assert_eq!(store.uncommitted_scope().is_some(), store.take_saw_uncommitted());
        store.uncommitted_scope()
    };
    put(&mut store, one, 3);
    put(&mut store, other, 4);
    put(&mut store, other, 6);
    store.commit(|lane| LogOrdinal([3, 2, 5][lane]));
    assert_eq!(sees(&mut store, one), Some(Scope::One(one)), "its lane stands at 2");
    assert_eq!(sees(&mut store, other), Some(Scope::One(other)), "its last change is of group 6");
    lanes.fill(2);
    lanes[8] = 1;
    store.set_lanes(Lanes::new(lanes));
    store.commit(|lane| LogOrdinal([3, 2, 5][lane]));
    assert_eq!(sees(&mut store, one), None, "it has changed its lane");
    assert_eq!(sees(&mut store, other), Some(Scope::One(other)));
    store.set_lanes(Lanes::default());
    store.commit(|_| LogOrdinal(6));
    assert_eq!(sees(&mut store, other), None);
    assert!(!store.has_uncommitted());
}
