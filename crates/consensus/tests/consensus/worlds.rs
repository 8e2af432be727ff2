//! Whole worlds: three to five members, one seed, everything that may go wrong.

use crate::runner::{self, number};
use crate::world::Wishes;

/// Worlds of one run in the gate.
const WORLDS: u64 = 150;

/// `CONSENSUS_WORLDS` and `CONSENSUS_FROM` choose others; `CONSENSUS_TRACE` prints the first one.
#[test]
fn worlds_keep_every_promise() {
    let (from, count) = (number("CONSENSUS_FROM", 1), number("CONSENSUS_WORLDS", WORLDS));
    if number("CONSENSUS_TRACE", 0) > 0 {
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
    let part = |seed| runner::twice(Wishes { seed, is_hasher_of_system: true, prints: false }).err();
    let words = part(1).expect("the order of messages hung on chance of the system");
    assert!(words.starts_with("two runs of one seed part"), "{words}");
}
