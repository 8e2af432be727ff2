//! Whole worlds: three to five members, one seed, everything that may go wrong.

use crate::world::Wishes;

/// Worlds of one run in the gate.
const WORLDS: u64 = 150;

/// `CONSENSUS_WORLDS` and `CONSENSUS_FROM` choose others; `CONSENSUS_TRACE` prints the first one.
#[test]
fn worlds_keep_every_promise() {
    seeds::keep_every_promise::<Wishes>(1, WORLDS);
}

/// That two runs are compared is worth something only if they can differ.
#[test]
fn chance_of_the_system_makes_two_runs_part() {
    let part = |seed| seeds::twice(Wishes { seed, is_hasher_of_system: true, prints: false }).err();
    let words = part(1).expect("the order of messages hung on chance of the system");
    assert!(words.starts_with("two runs of one seed part"), "{words}");
}
