//! Whole worlds: three to six nodes, one seed, everything that may go wrong.

use crate::world::Wishes;

/// Worlds of one run in the gate, and the first of them: in these everything happens that is counted.
const WORLDS: u64 = 40;
const FROM: u64 = 761;

/// `MANAGER_WORLDS` and `MANAGER_FROM` choose others; `MANAGER_TRACE` prints the first one.
#[test]
fn no_slot_is_served_twice_and_in_the_end_each_once() {
    seeds::keep_every_promise::<Wishes>(FROM, WORLDS);
}

/// That two runs are compared is worth something only if they can differ.
#[test]
fn chance_of_the_system_makes_two_runs_part() {
    let part =
        |seed| seeds::twice(Wishes { seed, is_hasher_of_system: true, prints: false, ..Wishes::default() }).err();
    let words = part(1).expect("the order of what happens hung on chance of the system");
    assert!(words.starts_with("two runs of one seed part"), "{words}");
}
