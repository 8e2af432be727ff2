//! Checkpoints while a long value is on its way.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::testing::Scratch;

#[test]
fn a_checkpoint_in_the_middle_of_a_long_value_does_not_lose_its_beginning() {
    let scratch = Scratch::new("middle");
    let store = Store::options().checkpoint_bytes(1000).open(scratch.path()).unwrap();
    let value: Vec<u8> = (0..1_000_000u32).map(|at| (at / 11) as u8).collect();
    let mut stage = None;
    store.shared().log_slices(b"long", &value, &mut stage).unwrap();
    // Until every slot group has had its turn; none gets a second one, because no run may go further than the first slice.
    let published = || store.shared().lock().journal.as_ref().unwrap().checkpoints.published().0;
    let before = published();
    let logged = || store.shared().lock().journal.as_ref().unwrap().log.bytes_total();
    while published() < before + u64::from(base::SLOT_GROUP_COUNT) || logged() < 24 << 20 {
        for number in 0..100u32 {
            store.put(&number.to_be_bytes(), &[7; 100]).unwrap();
        }
    }
    assert!(store.get(b"long").unwrap().is_none());
    store.shared().name_slices(b"long", (&Blocks::of(&value), stage), None).unwrap();
    // As after a crash: nothing is checkpointed any more.
    store.shared().lock().journal.as_mut().unwrap().log.on_log_failed(String::from("planted"));
    store.close().unwrap_err();
    let store = Store::open(scratch.path()).unwrap();
    assert_eq!(store.get(b"long").unwrap().unwrap(), value.as_slice());
    assert_eq!(store.len(), 101);
}

#[test]
fn no_run_goes_further_than_the_first_slice_of_a_value_on_its_way() {
    let mut uploads = Uploads::default();
    assert_eq!(uploads.begin_of_runs(LogOrdinal(9)), LogOrdinal(9));
    assert_ne!(uploads.open(LogOrdinal(7)), uploads.open(LogOrdinal(5)));
    assert_eq!(uploads.begin_of_runs(LogOrdinal(9)), LogOrdinal(4));
    assert_eq!(uploads.begin_of_runs(LogOrdinal(3)), LogOrdinal(3));
    uploads.clear();
    assert_eq!(uploads.begin_of_runs(LogOrdinal(9)), LogOrdinal(9));
}

#[test]
fn long_values_beyond_all_log_that_may_be_come_to_an_end_and_so_does_who_writes_beside_them() {
    let scratch = Scratch::new("beyond");
    // So there may be four segments, 32 MiB, of log.
    let store = Store::options().checkpoint_bytes(1000).open(scratch.path()).unwrap();
    let value = vec![7; 20 << 20];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..1000u32 {
                store.put(&number.to_be_bytes(), &[7; 100]).unwrap();
            }
        });
        for _ in 0..6 {
            store.put(b"long", &value).unwrap();
        }
    });
    assert_eq!((store.len(), store.get(b"long").unwrap().unwrap().len()), (1001, value.len()));
}

#[test]
fn a_long_end_of_a_value_is_logged_in_slices_and_is_there_again() {
    let scratch = Scratch::new("end");
    let end: Vec<u8> = (0..1_000_000u32).map(|at| (at / 7) as u8).collect();
    let before: [&[u8]; 4] = [b"", b"short", &[7; BLOCK_BYTES], &[8; 100_000]];
    let store = Store::open(scratch.path()).unwrap();
    for (number, before) in before.into_iter().enumerate() {
        let name = number.to_be_bytes();
        if number > 0 {
            store.put(&name, before).unwrap();
        }
        let groups = || store.shared().lock().journal.as_ref().unwrap().log.sealed().0;
        let earlier = groups();
        assert_eq!(store.append(&name, &end).unwrap(), (before.len() + end.len()) as u64);
        assert!(groups() > earlier + (end.len() / SLICE_BYTES) as u64, "it came in one group");
    }
    // Somebody else appends while the slices are on their way: it lies otherwise than it was laid out.
    let mut stage = None;
    store.shared().log_slices(b"raced", &end, &mut stage).unwrap();
    store.append(b"raced", b"first").unwrap();
    assert_eq!(store.name_end(b"raced", (&Blocks::of(&end), 0, stage)).unwrap(), 5 + end.len() as u64);
    store.shared().lock().close_upload(stage);
    // As after a crash: nothing is checkpointed any more.
    store.shared().lock().journal.as_mut().unwrap().log.on_log_failed(String::from("planted"));
    store.close().unwrap_err();
    let store = Store::open(scratch.path()).unwrap();
    for (number, before) in before.into_iter().enumerate() {
        assert_eq!(store.get(&number.to_be_bytes()).unwrap().unwrap(), [before, &end].concat().as_slice());
    }
    assert_eq!(store.get(b"raced").unwrap().unwrap(), [b"first", &end[..]].concat().as_slice());
    assert!(matches!(store.append(b"raced", &vec![0; 512 << 20]), Err(Error::ValueTooLong { .. })));
}
