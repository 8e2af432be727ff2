//! Every operation once, and what is there after the next opening.

use std::time::Duration;

use zerohop::testing::Scratch;
use zerohop::{Condition, Durability, Error, Partition, Store, Version, Waited, limits};

const ALL: [Durability; 2] = [Durability::Interval, Durability::Commit];

#[test]
fn what_was_put_is_there_again() {
    for durability in ALL {
        let scratch = Scratch::new("again");
        let store = Store::options().durability(durability).open(scratch.path()).unwrap();
        for number in 0..2000u32 {
            store.put(&number.to_be_bytes(), format!("value {number}").as_bytes()).unwrap();
        }
        for number in (0..2000u32).step_by(3) {
            assert!(store.delete(&number.to_be_bytes()).unwrap());
            assert!(!store.delete(&number.to_be_bytes()).unwrap());
        }
        assert_eq!(store.append(b"appended", b"one").unwrap(), 3);
        assert_eq!(store.append(b"appended", b" two").unwrap(), 7);
        store.close().unwrap();

        let store = Store::options().durability(durability).open(scratch.path()).unwrap();
        for number in 0..2000u32 {
            let value = store.get(&number.to_be_bytes()).unwrap();
            match number % 3 {
                0 => assert!(value.is_none()),
                _ => assert_eq!(value.unwrap().into_vec(), format!("value {number}").into_bytes()),
            }
        }
        assert_eq!(store.get(b"appended").unwrap().unwrap(), b"one two");
        assert_eq!(store.len(), 2000 - 667 + 1);
    }
}

#[test]
fn a_clean_end_leaves_nothing_to_replay() {
    let scratch = Scratch::new("clean");
    let store = Store::open(scratch.path()).unwrap();
    for number in 0..100u32 {
        store.put(&number.to_be_bytes(), b"x").unwrap();
    }
    // Dropping is closing.
    drop(store);
    let names =
        std::fs::read_dir(scratch.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let runs = names.filter(|name| name.ends_with(".run")).count();
    let groups: std::collections::BTreeSet<u16> =
        (0..100u32).map(|number| Partition::of(&number.to_be_bytes()).number() / 256).collect();
    assert_eq!(runs, groups.len(), "every slot group that changed has its run");
    assert_eq!(Store::open(scratch.path()).unwrap().len(), 100);
}

#[test]
fn a_directory_has_one_user() {
    let scratch = Scratch::new("one-user");
    let store = Store::open(scratch.path()).unwrap();
    let error = Store::open(scratch.path()).unwrap_err();
    assert_eq!(error, Error::Held { holder: format!("pid {} (a program that embeds the store)", std::process::id()) });
    store.close().unwrap();
    Store::open(scratch.path()).unwrap();
}

#[test]
fn a_closed_store_says_so() {
    let scratch = Scratch::new("closed");
    let store = Store::open(scratch.path()).unwrap();
    let other = store.clone();
    store.close().unwrap();
    assert_eq!(other.get(b"a").unwrap_err(), Error::Closed);
    assert_eq!(other.put(b"a", b"b").unwrap_err(), Error::Closed);
    assert_eq!(other.wait(b"a", Condition::Exists, Duration::MAX).unwrap_err(), Error::Closed);
    assert_eq!(other.snapshot(Partition::of(b"a")).unwrap_err(), Error::Closed);
    assert_eq!(other.iter_prefix(b"").next().unwrap().unwrap_err(), Error::Closed);
    assert_eq!(other.close(), Ok(()));
}

#[test]
fn compare_and_swap_by_value_and_by_version() {
    let store = Store::in_memory().unwrap();
    assert_eq!(store.compare_and_swap(b"k", Some(b"a"), Some(b"b")).unwrap().unwrap_err().map(|v| v.to_vec()), None);
    let first = store.compare_and_swap(b"k", None, Some(b"a")).unwrap().unwrap();
    assert!(first > Version::ABSENT);
    let second = store.compare_and_swap(b"k", Some(b"a"), Some(b"b")).unwrap().unwrap();
    assert!(second > first);
    assert_eq!(store.compare_and_swap_version(b"k", first, None).unwrap().unwrap_err().unwrap(), b"b");
    store.compare_and_swap_version(b"k", second, None).unwrap().unwrap();
    assert!(store.get(b"k").unwrap().is_none());
    assert_eq!(store.compare_and_swap_version(b"k", Version::ABSENT, None).unwrap().unwrap(), Version::ABSENT);
    assert!(store.compare_and_swap_version(b"k", Version::ABSENT, Some(b"c")).unwrap().unwrap() > second);
}

#[test]
fn what_is_too_long_is_refused_and_named() {
    let store = Store::in_memory().unwrap();
    let long_key = vec![b'k'; limits::KEY_BYTES_MAX + 1];
    assert_eq!(store.put(&long_key, b"").unwrap_err(), Error::KeyTooLong { bytes: limits::KEY_BYTES_MAX + 1 });
    store.put(&long_key[1..], b"").unwrap();
    assert!(store.get(&long_key[1..]).unwrap().unwrap().is_empty());
    let long_value = vec![0; limits::VALUE_BYTES_MAX + 1];
    let too_long = Error::ValueTooLong { key: b"k".to_vec(), bytes: limits::VALUE_BYTES_MAX as u64 + 1 };
    assert_eq!(store.put(b"k", &long_value).unwrap_err(), too_long);
    store.put(b"k", &long_value[1..]).unwrap();
    assert_eq!(store.append(b"k", b"x").unwrap_err(), too_long);
    assert!(too_long.to_string().contains("536870913") && too_long.to_string().contains("\"k\""), "{too_long}");
    let mut batch = store.batch();
    batch.put(b"a", &long_value[1..]).unwrap();
    assert!(matches!(batch.put(b"b", &long_value[1..]).unwrap_err(), Error::BatchTooLong { .. }));
    assert_eq!(batch.len(), 1);
}

#[test]
fn keys_expire() {
    let scratch = Scratch::new("expire");
    let store = Store::open(scratch.path()).unwrap();
    store.put_with_expiry(b"short", b"x", Duration::from_millis(1)).unwrap();
    store.put_with_expiry(b"long", b"x", Duration::from_secs(1_000_000)).unwrap();
    // The keeper removes it without anybody looking.
    assert!(matches!(store.wait(b"short", Condition::Absent, Duration::MAX).unwrap(), Waited::Met(None)));
    assert_eq!(store.len(), 1);
    let at = store.get(b"long").unwrap().unwrap().expires_at();
    store.close().unwrap();
    let store = Store::open(scratch.path()).unwrap();
    assert_eq!(store.get(b"long").unwrap().unwrap().expires_at(), at);
    store.put(b"long", b"y").unwrap();
    assert_eq!(store.get(b"long").unwrap().unwrap().expires_at(), None);
}

#[test]
fn durability_memory_reads_a_directory_and_leaves_it_alone() {
    let scratch = Scratch::new("memory");
    Store::open(scratch.path()).unwrap().put(b"kept", b"1").unwrap();
    let store = Store::options().durability(Durability::Memory).open(scratch.path()).unwrap();
    assert_eq!(store.get(b"kept").unwrap().unwrap(), b"1");
    store.put(b"lost", b"2").unwrap();
    store.close().unwrap();
    let store = Store::open(scratch.path()).unwrap();
    assert!(store.get(b"lost").unwrap().is_none());
    assert!(store.get(b"kept").unwrap().is_some());
}

#[test]
fn every_end_checkpoints_all_slot_groups() {
    let scratch = Scratch::new("every-end");
    for round in 1..=4u64 {
        let store = Store::open(scratch.path()).unwrap();
        for number in 0..2000u32 {
            assert_eq!(store.append(&number.to_be_bytes(), b"x").unwrap(), round);
        }
        assert_eq!(store.close(), Ok(()));
        let names = std::fs::read_dir(scratch.path()).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(names.filter(|name| name.to_string_lossy().ends_with(".run")).count(), 64);
    }
}
