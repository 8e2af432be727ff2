//! What a returned write has survived, shared syncs, a failed log.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::testing::Scratch;
use crate::{Condition, Store, Waited};

/// Log groups sealed, written and durable, and syncs so far; nothing waits to be sealed.
fn log_of(store: &Store) -> (u64, u64, u64, u64) {
    let engine = store.shared().lock();
    assert!(!engine.data.has_unsealed());
    let log = &engine.journal.as_ref().unwrap().log;
    (log.sealed().0, log.written().0, log.durable().0, log.syncs_total())
}

#[test]
fn a_write_returns_when_its_promise_holds() {
    for durability in [Durability::Interval, Durability::Commit] {
        let scratch = Scratch::new("promise");
        let store = Store::options().durability(durability).open(scratch.path()).unwrap();
        for number in 0..20u8 {
            let before = log_of(&store).0;
            let long = vec![number; 5 << 20];
            match number % 4 {
                0 => drop(store.put(&[number], b"value").unwrap()),
                1 => drop(store.append(&[number], b"value").unwrap()),
                2 => drop(store.put(&[number], &long).unwrap()),
                _ => {
                    let mut batch = store.batch();
                    (0..100).for_each(|key| batch.put(&[key], b"value").unwrap());
                    batch.commit().unwrap();
                }
            }
            let (sealed, written, durable, _) = log_of(&store);
            assert!(sealed > before && written == sealed);
            assert!(
                durability == Durability::Interval || durable == sealed,
                "{durable} of {sealed} groups are durable"
            );
        }
    }
}

#[test]
fn those_who_wait_for_the_disk_share_the_next_sync() {
    const THREADS: u8 = 8;
    let scratch = Scratch::new("share");
    let store = Store::options().durability(Durability::Commit).open(scratch.path()).unwrap();
    store.put(b"first", b"x").unwrap();
    std::thread::scope(|scope| {
        // A sync is under way, and takes its time.
        let mut guard = store.shared().lock();
        let engine = &mut *guard;
        let (journal, now) = (engine.journal.as_mut().unwrap(), base::Now::default());
        engine.data.log_mut().unwrap().append_seal();
        journal.seal(&mut engine.data, &engine.uploads, now);
        let sync = journal.begin_sync((&mut engine.data, &engine.uploads), engine.life, now).unwrap();
        let syncs = journal.log.syncs_total();
        drop(guard);
        let writers: Vec<_> = (0..THREADS)
            .map(|number| {
                scope.spawn({
                    let store = &store;
                    move || store.put(&[number], b"x").unwrap()
                })
            })
            .collect();
        while store.len() < u64::from(THREADS) + 1 {
            std::thread::yield_now();
        }
        // Whoever sees one of them waits as well, and is told what was written.
        let reader = scope.spawn(|| store.get(&[0]).unwrap().unwrap());
        let waiter = scope.spawn(|| store.wait(&[1], Condition::Exists, std::time::Duration::MAX).unwrap());
        assert!(writers.iter().all(|writer| !writer.is_finished()), "nobody returns before its sync");
        let mut guard = store.shared().lock();
        let engine = &mut *guard;
        let journal = engine.journal.as_mut().unwrap();
        journal.end_sync(sync.perform(), (&mut engine.data, &engine.uploads), engine.life, now);
        drop(guard);
        store.shared().progress.notify_all();
        writers.into_iter().for_each(|writer| assert!(writer.join().unwrap() > base::Version::ABSENT));
        assert_eq!(reader.join().unwrap(), b"x");
        assert!(matches!(waiter.join().unwrap(), Waited::Met(Some(_))));
        // The keeper may have begun one of its own in between.
        let more = log_of(&store).3 - syncs;
        assert!((2..=3).contains(&more), "{more} syncs for {THREADS} writers");
    });
}

#[test]
fn behind_a_failed_log_nothing_is_written_or_acknowledged() {
    let scratch = Scratch::new("failed");
    let store = Store::open(scratch.path()).unwrap();
    store.put(b"kept", b"x").unwrap();
    store.shared().lock().journal.as_mut().unwrap().log.on_log_failed(String::from("planted"));
    let failed = Error::LogFailed(String::from("planted"));
    assert_eq!(store.put(b"lost", b"x").unwrap_err(), failed);
    assert_eq!(store.delete(b"kept").unwrap_err(), failed);
    assert_eq!(store.batch().commit().unwrap_err(), failed);
    assert_eq!(store.get(b"kept").unwrap().unwrap(), b"x");
    assert_eq!(store.close().unwrap_err(), failed);
    let store = Store::open(scratch.path()).unwrap();
    assert_eq!(store.len(), 1);
}
