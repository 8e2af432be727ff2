//! Each planted bug, and the world or the file that shows it.

use std::sync::Mutex;

use base::planted::{Bug, plant};
use seeds::number;

use crate::harm::find_misread;
use crate::world::Wishes;

/// A planted bug is one for the process: tests take turns.
static TURN: Mutex<()> = Mutex::new(());

/// Worlds that are tried, unless `CONSENSUS_WORLDS` says otherwise.
const WORLDS: u64 = 100;

/// With `bug` one of 100 worlds from `from` on fails with one of `words`, and the same world keeps every promise without it.
fn caught(bug: Bug, from: u64, words: &[&str]) {
    let turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    plant(Some(bug));
    let run = |seed| seeds::once(Wishes { seed, ..Wishes::default() }).err();
    let found = (from..from + number("CONSENSUS_WORLDS", WORLDS)).find_map(|seed| Some((seed, run(seed)?)));
    plant(None);
    let (seed, shown) = found.expect("the planted bug shows in one of the worlds");
    println!("{bug:?}: seed {seed}: {shown}");
    assert!(words.iter().any(|word| shown.contains(word)), "seed {seed} fails with {bug:?}, but: {shown}");
    assert_eq!(run(seed), None, "seed {seed} without the bug");
    drop(turn);
}

#[test]
fn an_entry_acknowledged_before_it_is_stored() {
    caught(Bug::M40EntryNotYetStored, 1, &["leader completeness", "promise", "log reversion is not allowed"]);
}

#[test]
fn a_vote_in_memory_only() {
    caught(Bug::M41VoteInMemory, 1, &["election safety", "a start read", "a vote was forgotten"]);
}

#[test]
fn a_cut_that_is_forgotten() {
    caught(Bug::M42CutForgotten, 1, &["a start read", "something between them was forgotten"]);
}

#[test]
fn a_leader_that_goes_on_after_a_restart() {
    caught(Bug::M45LeaderRestored, 1, &["log matching", "promise", "leader completeness"]);
}

#[test]
fn damage_taken_for_a_torn_tail() {
    let turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    plant(Some(Bug::M16DamageTakenAsEnd));
    let shown = find_misread(1).expect_err("the planted bug shows");
    plant(None);
    assert!(shown.contains("were synced"), "{shown}");
    assert_eq!(find_misread(1), Ok(()));
    drop(turn);
}
