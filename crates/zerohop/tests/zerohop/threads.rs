//! Many threads: waits, changes of one key, commits that share syncs, walks while others write.

use std::sync::Barrier;
use std::time::Duration;

use zerohop::testing::Scratch;
use zerohop::{Condition, Durability, Error, Store, Waited, limits};

fn met(waited: Waited) -> Option<Vec<u8>> {
    match waited {
        Waited::Met(value) => value.map(|value| value.to_vec()),
        Waited::TimedOut => panic!("it was to be met"),
    }
}

#[test]
fn a_value_that_is_there_for_one_write_only_is_seen() {
    for durability in [Durability::Interval, Durability::Commit] {
        let scratch = Scratch::new("fire");
        let store = Store::options().durability(durability).open(scratch.path()).unwrap();
        std::thread::scope(|scope| {
            let waits = |condition| met(store.wait(b"light", condition, Duration::MAX).unwrap());
            let waiters = [
                scope.spawn(move || (waits(Condition::Equals(b"green")), b"green".to_vec())),
                scope.spawn(move || (waits(Condition::Equals(b"red")), b"red".to_vec())),
                scope.spawn(move || (waits(Condition::Equals(b"amber")), b"amber".to_vec())),
            ];
            while !waiters.iter().all(|waiter| waiter.is_finished()) {
                for colour in [b"green".as_slice(), b"amber", b"red"] {
                    store.put(b"light", colour).unwrap();
                    store.delete(b"light").unwrap();
                }
            }
            for waiter in waiters {
                let (seen, wanted) = waiter.join().unwrap();
                assert_eq!(seen, Some(wanted));
            }
        });
    }
}

#[test]
fn every_waiter_hears_of_its_own_key_and_condition() {
    let store = Store::in_memory().unwrap();
    let version = store.put(b"there", b"1").unwrap();
    std::thread::scope(|scope| {
        let store = &store;
        let wait = |key: &'static [u8], condition| {
            scope.spawn(move || met(store.wait(key, condition, Duration::MAX).unwrap()))
        };
        let waiters = [
            (wait(b"there", Condition::Absent), None),
            (wait(b"there", Condition::Differs(b"1")), None),
            (wait(b"there", Condition::NotVersion(version)), None),
            (wait(b"a", Condition::Exists), Some(b"2".to_vec())),
            (wait(b"b", Condition::Exists), Some(b"3".to_vec())),
        ];
        // Those who come late find it so already.
        store.delete(b"there").unwrap();
        let mut batch = store.batch();
        batch.put(b"a", b"2").unwrap();
        batch.put(b"b", b"3").unwrap();
        batch.commit().unwrap();
        for (waiter, expected) in waiters {
            assert_eq!(waiter.join().unwrap(), expected);
        }
    });
}

#[test]
fn waits_that_are_over_leave_nothing_behind() {
    let store = Store::in_memory().unwrap();
    for _ in 0..=limits::WAITERS_MAX {
        let waited = store.wait(b"never", Condition::Exists, Duration::ZERO).unwrap();
        assert!(matches!(waited, Waited::TimedOut));
    }
}

#[test]
fn the_end_of_the_store_ends_waits() {
    let store = Store::in_memory().unwrap();
    std::thread::scope(|scope| {
        let waiters: Vec<_> =
            (0..3).map(|_| scope.spawn(|| store.wait(b"never", Condition::Exists, Duration::MAX))).collect();
        store.clone().close().unwrap();
        for waiter in waiters {
            assert_eq!(waiter.join().unwrap().unwrap_err(), Error::Closed);
        }
    });
}

#[test]
fn no_change_of_a_key_is_lost_between_threads() {
    const THREADS: u64 = 4;
    for (durability, rounds) in [(Durability::Interval, 2000), (Durability::Commit, 40)] {
        let scratch = Scratch::new("lost");
        let store = Store::options().durability(durability).checkpoint_bytes(10_000).open(scratch.path()).unwrap();
        let together = Barrier::new(THREADS as usize);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (store, together) = (&store, &together);
                scope.spawn(move || {
                    together.wait();
                    for round in 0..rounds {
                        store.append(b"all", b".").unwrap();
                        store.put(format!("{thread}:{round}").as_bytes(), &[b'x'; 100]).unwrap();
                        let mut seen = store.get(b"count").unwrap();
                        loop {
                            let expected = seen.as_ref().map(|seen| seen.to_vec());
                            let count = expected
                                .as_ref()
                                .map_or(0, |count| String::from_utf8(count.clone()).unwrap().parse::<u64>().unwrap());
                            let next = (count + 1).to_string();
                            match store.compare_and_swap(b"count", expected.as_deref(), Some(next.as_bytes())).unwrap()
                            {
                                Ok(_) => break,
                                Err(current) => seen = current,
                            }
                        }
                    }
                });
            }
            // Keys that stay are shown once by every walk, however much comes and goes beside them.
            for _ in 0..5 {
                let mut keys: Vec<_> = store.iter_prefix(b"").map(|entry| entry.unwrap().key).collect();
                let count = keys.len();
                keys.sort_unstable();
                keys.dedup();
                assert_eq!(keys.len(), count);
            }
        });
        store.close().unwrap();
        let store = Store::open(scratch.path()).unwrap();
        let total = THREADS * rounds;
        assert_eq!(store.get(b"count").unwrap().unwrap().to_vec(), total.to_string().into_bytes());
        assert_eq!(store.get(b"all").unwrap().unwrap().len() as u64, total);
        assert_eq!(store.len(), total + 2);
    }
}

#[test]
fn a_batch_is_seen_whole() {
    let store = Store::in_memory().unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for round in 0..500u32 {
                let mut batch = store.batch();
                for key in 0..50u32 {
                    batch.put(format!("{{one}}{key}").as_bytes(), &round.to_be_bytes()).unwrap();
                }
                batch.commit().unwrap();
            }
        });
        let mut is_last = false;
        while !is_last {
            is_last = writer.is_finished();
            let snapshot = store.snapshot(zerohop::Partition::of(b"{one}")).unwrap();
            let values: std::collections::BTreeSet<Vec<u8>> =
                snapshot.entries().iter().map(|entry| entry.value.to_vec()).collect();
            assert!(values.len() <= 1, "a snapshot has {} rounds in it", values.len());
        }
    });
}

#[test]
fn a_wait_that_is_interrupted_leaves_nothing_behind_and_one_that_is_not_goes_on() {
    let store = Store::in_memory().unwrap();
    let waited = store.wait_unless(b"never", Condition::Exists, Duration::MAX, Some(&|| true)).unwrap();
    assert!(matches!(waited, Waited::TimedOut));
    let writer = store.clone();
    // It is asked while the wait is under way: what is written then is seen.
    let write = move || writer.put(b"now", b"1").is_err();
    let waited = store.wait_unless(b"now", Condition::Exists, Duration::MAX, Some(&write)).unwrap();
    assert_eq!(met(waited), Some(b"1".to_vec()));
}
