//! Whole worlds: three to six nodes, one seed, everything that may go wrong.

use crate::runner::{self, number};
use crate::world::Wishes;

/// Worlds of one run in the gate, and the first of them: in these everything happens that is counted.
const WORLDS: u64 = 40;
const FROM: u64 = 101;

/// `MANAGER_WORLDS` and `MANAGER_FROM` choose others; `MANAGER_TRACE` prints the first one.
#[test]
fn no_slot_is_served_twice_and_in_the_end_each_once() {
    let (from, count) = (number("MANAGER_FROM", FROM), number("MANAGER_WORLDS", WORLDS));
    if number("MANAGER_TRACE", 0) > 0 {
        drop(runner::once(Wishes { seed: from, prints: true, ..Wishes::default() }));
    }
    let sum = runner::many(from, count);
    println!("{count} worlds from {from}, {} virtual seconds, each twice", sum.virtual_s);
    sum.coverage.lines().iter().for_each(|(name, count)| println!("{name:>20} {count:>12}"));
    assert!(sum.failed.is_empty(), "{} worlds failed:\n{}", sum.failed.len(), sum.failed.join("\n"));
    let missed: Vec<&str> = sum.coverage.lines().into_iter().filter(|line| line.1 == 0).map(|line| line.0).collect();
    assert!(count < WORLDS || missed.is_empty(), "no world met {missed:?}");
}

/// That two runs are compared is worth something only if they can differ.
#[test]
fn chance_of_the_system_makes_two_runs_part() {
    let part =
        |seed| runner::twice(Wishes { seed, is_hasher_of_system: true, prints: false, ..Wishes::default() }).err();
    let words = part(1).expect("the order of what happens hung on chance of the system");
    assert!(words.starts_with("two runs of one seed part"), "{words}");
}
