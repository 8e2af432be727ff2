//! A store whose values are more than its memory limit.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use zerohop::testing::Scratch;
use zerohop::{Condition, Durability, Error, Partition, Store, Waited};

const LIMIT: usize = 8 << 20;
const KEYS: usize = 32_000;

fn open(path: &Path) -> Store {
    Store::options().memory_limit(LIMIT).checkpoint_bytes(64 << 10).open(path).unwrap()
}

fn name(number: usize) -> Vec<u8> {
    format!("{{{}}}key:{number}", number % 100).into_bytes()
}

fn value(number: usize, round: usize) -> Vec<u8> {
    (0..1000).map(|at| (number * 7 + round * 31 + at / 9) as u8).collect()
}

fn check(store: &Store, numbers: impl Iterator<Item = usize>, round: usize) {
    for number in numbers {
        assert!(store.get(&name(number)).unwrap().unwrap() == value(number, round).as_slice(), "key {number}");
        let bytes = store.memory_bytes();
        assert!(bytes <= LIMIT / 20 * 21, "{bytes} bytes in memory, {LIMIT} may be");
    }
}

/// Four times the limit, in memory as far as it goes.
fn filled(path: &Path) -> Store {
    let store = open(path);
    for number in 0..KEYS {
        store.put(&name(number), &value(number, 0)).unwrap();
    }
    store
}

#[test]
fn four_times_the_limit_is_written_read_and_loaded_within_it() {
    let scratch = Scratch::new("tiering");
    let store = filled(scratch.path());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let store = &store;
            scope.spawn(move || check(store, (thread..KEYS).step_by(4), 0));
        }
    });
    store.close().unwrap();
    let store = open(scratch.path());
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let store = &store;
            scope.spawn(move || {
                for number in (thread..KEYS).step_by(4) {
                    store.put(&name(number), &value(number, 1)).unwrap();
                }
            });
        }
        scope.spawn(|| check(&store, (2..KEYS).step_by(4), 0));
    });
    check(&store, (0..KEYS).step_by(4), 1);
    store.close().unwrap();
    check(&open(scratch.path()), (1..KEYS).step_by(4), 1);
}

#[test]
fn what_needs_a_value_that_is_on_the_disk_has_it() {
    let scratch = Scratch::new("tiering-calls");
    let store = filled(scratch.path());
    // The first ones were used longest ago.
    assert_eq!(store.append(&name(0), b"more").unwrap(), 1004);
    assert!(store.get(&name(0)).unwrap().unwrap() == [value(0, 0), b"more".to_vec()].concat().as_slice());
    assert!(store.compare_and_swap(&name(1), Some(&value(1, 0)), Some(b"new")).unwrap().is_ok());
    let other = store.compare_and_swap(&name(2), Some(b"another"), None).unwrap().unwrap_err();
    assert!(other.unwrap() == value(2, 0).as_slice());
    let waited = store.wait(&name(3), Condition::Equals(&value(3, 0)), std::time::Duration::MAX).unwrap();
    assert!(matches!(waited, Waited::Met(Some(_))));
    assert!(store.delete(&name(4)).unwrap() && store.get(&name(4)).unwrap().is_none());
    // A walk comes by every key once, whatever has to be read for it; a partition is one moment.
    let mut seen = 0;
    for entry in store.iter_prefix(b"{7}") {
        let entry = entry.unwrap();
        let number: usize = std::str::from_utf8(&entry.key[7..]).unwrap().parse().unwrap();
        assert!(entry.value == value(number, 0).as_slice(), "key {number}");
        seen += 1;
    }
    let snapshot = store.snapshot(Partition::of(b"{7}")).unwrap();
    assert_eq!((seen, snapshot.entries().len()), (KEYS / 100, KEYS / 100));
    assert!(snapshot.entries().iter().all(|entry| entry.value.len() == 1000));
}

/// Every run in the directory.
fn runs(directory: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "run")).collect()
}

#[test]
fn a_value_that_cannot_be_read_is_an_error_and_stays() {
    let scratch = Scratch::new("tiering-damage");
    filled(scratch.path()).close().unwrap();
    let store = open(scratch.path());
    let mut saved = Vec::new();
    for path in runs(scratch.path()) {
        let content = fs::read(&path).unwrap();
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.write_all_at(&vec![0xA5; content.len()], 0).unwrap();
        file.sync_all().unwrap();
        saved.push((path, content));
    }
    let reads: Vec<_> = (0..KEYS).map(|number| store.get(&name(number))).collect();
    let failed = reads.iter().filter(|read| read.is_err()).count();
    assert!(failed > KEYS / 2, "{failed} reads failed");
    for read in reads.iter().filter_map(|read| read.as_ref().err()) {
        let Error::Unreadable(text) = read else { panic!("{read}") };
        assert!(text.contains(".run at offset "), "{text}");
    }
    for (path, content) in saved {
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.write_all_at(&content, 0).unwrap();
        file.sync_all().unwrap();
    }
    check(&store, 0..KEYS, 0);
}

#[test]
fn keys_that_fill_the_memory_are_refused_until_some_go() {
    let scratch = Scratch::new("tiering-full");
    let store = open(scratch.path());
    let refused = (0..LIMIT).find_map(|number| store.put(&name(number), b"short").err().map(|error| (number, error)));
    let (count, error) = refused.unwrap();
    assert_eq!(error, Error::MemoryFull { bytes_max: LIMIT });
    assert!(store.memory_bytes() > LIMIT / 2, "{count} keys in {} bytes", store.memory_bytes());
    // Whatever is left beside what was refused: not even the shortest value fits.
    (0..64).for_each(|number| drop(store.put(&[number], b"")));
    let mut batch = store.batch();
    (0..count / 4).for_each(|number| batch.delete(&name(number)).unwrap());
    batch.commit().unwrap();
    (count / 4..count / 2).for_each(|number| assert!(store.delete(&name(number)).unwrap()));
    store.put(b"another", b"short").unwrap();
}

#[test]
fn a_limit_without_a_disk_is_refused() {
    let scratch = Scratch::new("tiering-memory");
    let opened = Store::options().durability(Durability::Memory).memory_limit(LIMIT).open(scratch.path());
    assert_eq!(opened.unwrap_err(), Error::LimitWithoutDisk);
}

/// A publication replaces the runs of dozens of groups: what each of them leaves behind was one job for the disk thread,
/// which takes 64, and the next run failed.
#[test]
fn short_runs_of_many_groups_are_replaced_and_the_store_closes() {
    let scratch = Scratch::new("tiering-short");
    let store = Store::options().memory_limit(2 << 20).open(scratch.path()).unwrap();
    for number in 0..8000 {
        store.put(format!("key:{number}").as_bytes(), &value(number, 0)).unwrap();
    }
    for number in 0..8000 {
        assert!(store.get(format!("key:{number}").as_bytes()).unwrap().unwrap() == value(number, 0).as_slice());
    }
    store.close().unwrap();
}
