//! Each planted bug, and the world that shows it.

use std::sync::Mutex;

use base::planted::{Bug, plant};

use crate::runner::{self, number};
use crate::world::Wishes;

/// A planted bug is one for the process: tests take turns.
static TURN: Mutex<()> = Mutex::new(());

/// Worlds that are tried, unless `MANAGER_WORLDS` says otherwise.
const WORLDS: u64 = 60;

/// With `bug` one of the worlds from `from` on fails with `word`, and the same world keeps every promise without it.
fn caught(bug: Bug, from: u64, word: &str) {
    let turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    plant(Some(bug));
    let run = |seed| runner::once(Wishes { seed, ..Wishes::default() }).err();
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
    caught(Bug::M6LeaseSurvivesStop, 1, "one server");
}

#[test]
fn m32_grants_that_a_start_forgets_are_caught() {
    caught(Bug::M32GrantsForgotten, 1, "one server");
}

#[test]
fn m33_a_promotion_without_a_majority_is_caught() {
    caught(Bug::M33PromoteUnasked, 1, "one server");
}

#[test]
fn m34_grants_on_an_old_table_are_caught() {
    caught(Bug::M34GrantsOnOldTable, 1, "one server");
}
