//! The suite of the simulator: a thousand seeds of one node and some of several, the same for every commit, so that a verdict
//! is about the commit. Other seeds are a campaign: `cargo x sim --seeds N --from S`.

use std::process::Command;

use super::{Company, Context, Counts, Suite, Turn};
use crate::{Outcome, process, workspace};

/// First seed of the run.
const FIRST_SEED: u64 = 5_000_000;
/// Seeds of one run with one node.
const SEED_COUNT: u64 = 1000;
/// Seeds of one run with several nodes: at 140 ms each they take 20 s of one core.
const TOWN_COUNT: u64 = 140;

/// Each seed counts as one test.
pub const SEEDS: Suite = Suite {
    name: "simulator",
    about: "the shard on a virtual clock, network and disk with faults, judged by the checkers",
    needs: &[],
    budget_seconds: 240,
    turn: Turn::Fixed,
    company: Company::SideBySide,
    run,
};

fn run(_context: &Context) -> Outcome<Counts> {
    let mut counts = judged(&[], SEED_COUNT)?;
    counts.add(judged(&["--nodes", "any"], TOWN_COUNT)?);
    Ok(counts)
}

/// Runs so many seeds of one kind of worlds.
fn judged(kind: &[&str], seeds: u64) -> Outcome<Counts> {
    let mut sim = Command::new(workspace::checked_program("sim")?);
    sim.args(kind);
    sim.args(["--from", &FIRST_SEED.to_string(), "--seeds", &seeds.to_string()]);
    let mut counts = Counts::default();
    let succeeded = process::lines(&mut sim, |line| match verdict(line) {
        Some(passed) => {
            counts.add(Counts::one(passed));
            !passed
        }
        None => true,
    })?;
    if counts.passed + counts.failed != usize::try_from(seeds).expect("few seeds") {
        return Err(format!("the simulator judged {} of {seeds} seeds {kind:?}", counts.passed + counts.failed));
    }
    if !succeeded && counts.failed == 0 {
        return Err("the simulator failed although every seed passed".to_owned());
    }
    Ok(counts)
}

/// `seed N trace … ok` -> passed; any other verdict of a seed -> failed.
fn verdict(line: &str) -> Option<bool> {
    line.starts_with("seed ").then(|| line.ends_with("] ok"))
}

#[cfg(test)]
mod tests {
    use super::verdict;

    #[test]
    fn verdicts_are_read() {
        assert_eq!(verdict("seed 3 trace 00ff ok 12 refused 0 unknown 1 faults [Killx2] ok"), Some(true));
        assert_eq!(verdict("seed 3 trace 00ff ok 12 refused 0 unknown 1 faults [] FAILED lost a write"), Some(false));
        assert_eq!(verdict("seed 3 trace 00ff ok 0 refused 0 unknown 1 faults [] VACUOUS too few"), Some(false));
        let town = "seed 3 trace 00ff ok 12 refused 0 unknown 1 nodes 3 promotions 2 moved 3 faults [Killx2] ok";
        assert_eq!(verdict(town), Some(true));
        assert_eq!(verdict("0 failed []"), None);
    }
}
