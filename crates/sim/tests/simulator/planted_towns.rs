//! Planted bugs (AT-01) of the chain: each is caught in a town by the test that bears its number within a bounded number of
//! seeds, and without it the same seeds pass.

use std::ops::Range;

use base::planted::{Bug, plant};
use sim::node::Durability;
use sim::town::{Verdict, Wish, run};

use crate::planted::{Planted, first_of};

/// One of these seeds catches it, by words that fit it; then, without the bug, no seed up to that one shows anything.
fn assert_caught_within(seeds: Range<u64>, bug: Bug, wish: impl Fn(u64) -> Wish + Sync, words: &[&str]) {
    let planted = Planted::new(bug);
    let violation = |seed| {
        let Verdict { seed, violation, .. } = run(&wish(seed), false);
        violation.map(|violation| (seed, violation))
    };
    let Some((number, (seed, caught))) = first_of(seeds.clone(), violation) else {
        panic!("{bug:?} was not caught by {seeds:?}");
    };
    assert!(
        words.iter().any(|word| caught.contains(word)),
        "{bug:?} was caught for another reason: seed {seed}: {caught}"
    );
    println!("{bug:?} caught by seed {seed}: {caught}");
    plant(None);
    assert_eq!(first_of(seeds.start..number + 1, violation), None, "without {bug:?}");
    drop(planted);
}

/// What the checkers say of something acknowledged that is not there, and of what differs.
const LOST: &[&str] = &[
    "RealTime",
    "Length",
    "Fork",
    "Compare",
    "Duplicate",
    "were told",
    "was told",
    "missing",
    "lies behind",
    "popped",
    // The model of clients' own keys.
    "was answered",
];

/// What they say of a copy that a reader is shown, from which something acknowledged is missing for longer than it may.
const UNSEEN: &str = ", without ";

/// Whoever is told that a write is done while only the first has it, and the first goes. Nobody reads from copies: they would see
/// it while the first still lives, and it is the loss that has to show.
#[test]
fn m2_acknowledged_before_the_secondary_has_it() {
    let unread = |seed| Wish { readers: false, ..Wish::of(seed) };
    assert_caught_within(0..150, Bug::M2AcknowledgedBeforeSecondary, unread, LOST);
}

/// Everybody loses power, and the one that goes on had told what its disk did not have. Of towns with disks of any speed one in 400
/// has that, of slow ones one in twenty.
#[test]
fn m3_secondary_acknowledges_early() {
    let (durability, sync_us_max) = (Some(Durability::Commit), Some(100_000));
    let commit = |seed| Wish { durability, sync_us_max, moves: false, readers: false, ..Wish::of(seed) };
    assert_caught_within(1400..1750, Bug::M3SecondaryAcknowledgesEarly, commit, LOST);
}

/// Slots go elsewhere while writes are on their way.
#[test]
fn m11_cut_over_drops_writes() {
    let words = [LOST, &[UNSEEN, "differs between"]].concat();
    assert_caught_within(300..900, Bug::M11CutOverDropsWrites, Wish::of, &words);
}

/// Slots that are about to go elsewhere are served again, and then they go.
#[test]
fn m47_seal_given_up() {
    let words = [LOST, &[UNSEEN, "differs between", "keys at", " back to "]].concat();
    assert_caught_within(0..600, Bug::M47SealGivenUp, Wish::of, &words);
}

/// Who is not first any more, and does not know, writes on at who took over.
#[test]
fn m5_no_epoch_fence() {
    // Readers at copies would see it, too: a value that goes back in time. A log in which two firsts gave the same version is refused.
    let words = [LOST, &["differs between", "keys at", " comes after "]].concat();
    let still = |seed| Wish { moves: false, readers: false, ..Wish::of(seed) };
    assert_caught_within(500..900, Bug::M5NoEpochFence, still, &words);
}
