//! Planted bugs, and the worlds that show them. Grants that a start forgets (M32) and grants on an old table (M34) need moments
//! that these worlds meet too rarely: the tests of `control` catch them.

use std::sync::Mutex;

use base::planted::{Bug, plant};
use seeds::number;

use crate::world::Wishes;

/// A planted bug is one for the process: tests take turns.
static TURN: Mutex<()> = Mutex::new(());

/// Worlds that are tried, unless `MANAGER_WORLDS` says otherwise.
const WORLDS: u64 = 60;

/// With `bug` one of the worlds from `from` on fails with `word`, and the same world keeps every promise without it.
fn caught(bug: Bug, from: u64, word: &str) {
    let turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    plant(Some(bug));
    let run = |seed| seeds::once(Wishes { seed, ..Wishes::default() }).err();
    let found = (from..from + number("MANAGER_WORLDS", WORLDS)).find_map(|seed| Some((seed, run(seed)?)));
    plant(None);
    let (seed, shown) = found.expect("the planted bug shows in one of the worlds");
    println!("{bug:?}: seed {seed}: {shown}");
    assert!(shown.contains(word), "seed {seed} fails with {bug:?}, but: {shown}");
    assert_eq!(run(seed), None, "seed {seed} without the bug");
    drop(turn);
}

/// The rule stands in the cores, which are fakes here: what is shown is that the judge sees it.
#[test]
fn m6_a_lease_that_survives_a_stop_is_caught() {
    caught(Bug::M6LeaseSurvivesStop, 10, "one server");
}

#[test]
fn m47_a_seal_that_is_given_up_is_caught() {
    caught(Bug::M47SealGivenUp, 30, "one server");
}

#[test]
fn m33_a_promotion_without_a_majority_is_caught() {
    caught(Bug::M33PromoteUnasked, 20, "one server");
}
