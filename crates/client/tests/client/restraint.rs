//! A destination at which others' deadlines are to be kept: what is relaxed comes a little at a time.

use client::batch::*;

/// Work of so many requests of [`push`], microseconds: by what is assumed before anything was measured.
const REQUEST_US: u64 = 2;

fn push(batcher: &mut Batcher<()>, qos: Qos) -> bool {
    batcher.push(0, 1, qos, (), |bytes| bytes.extend_from_slice(b"PING\r\n")).is_ok()
}

fn push_all(batcher: &mut Batcher<()>) -> u64 {
    (0..10_000).take_while(|_| push(batcher, Qos::Batch)).count() as u64
}

#[test]
fn what_lies_at_the_destination_is_its_share_and_leaves_in_halves() {
    let mut batcher = Batcher::new(BatcherConfig::default(), 0);
    batcher.restrain(Some(100 * REQUEST_US));
    assert!(push(&mut batcher, Qos::Batch));
    let first = batcher.due(0).unwrap();
    // A batch is out: the next one goes when it is half of what may lie there.
    for _ in 0..48 {
        assert!(push(&mut batcher, Qos::Batch) && batcher.due(0).is_none());
    }
    let more = (0..10).take_while(|_| push(&mut batcher, Qos::Batch) && batcher.due(0).is_none()).count();
    assert!(more < 3, "{more}");
    let rest = push_all(&mut batcher);
    assert!((45..=52).contains(&rest) && batcher.is_held_back(), "{rest}");
    assert!(push(&mut batcher, Qos::Within { us: 5000 }), "who has a deadline is not held back");
    batcher.answered(300, BatchAnswer { ticket: first.ticket, outcome: BatchOutcome::Failed });
    batcher.restrain(None);
    assert!(!batcher.is_held_back());
    assert!(push_all(&mut batcher) > 1000, "lifted, nothing is refused that was not refused before");
}

#[test]
fn whatever_the_share_some_requests_are_taken() {
    let mut batcher = Batcher::new(BatcherConfig::default(), 0);
    batcher.restrain(Some(0));
    assert!(push_all(&mut batcher) > 0);
    let batch = batcher.due(0).unwrap();
    assert!(!push(&mut batcher, Qos::Batch));
    batcher.answered(300, BatchAnswer { ticket: batch.ticket, outcome: BatchOutcome::Answered });
    assert!(push_all(&mut batcher) > 0);
}

#[test]
fn another_connection_begins_without_a_restraint() {
    let mut batcher = Batcher::new(BatcherConfig::default(), 0);
    batcher.restrain(Some(0));
    push_all(&mut batcher);
    batcher.reset(0);
    // What was lost on the old one is asked again there, and was promised long ago.
    assert!(!batcher.is_restrained() && push(&mut batcher, Qos::Batch));
}
