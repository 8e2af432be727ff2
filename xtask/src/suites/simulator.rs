//! The suite of the simulator: a thousand seeds, the same for every commit, so that a verdict is about the commit. Other
//! seeds are a campaign: `cargo x sim --seeds N --from S`.

use std::process::Command;

use super::{Context, Counts, Suite, Turn};
use crate::{Outcome, process, workspace};

/// First seed of the run.
const FIRST_SEED: u64 = 5_000_000;
/// Seeds of one run.
const SEED_COUNT: u64 = 1000;

/// Each seed counts as one test.
pub const SEEDS: Suite = Suite {
    name: "simulator",
    about: "the shard on a virtual clock, network and disk with faults, judged by the checkers",
    needs: &[],
    budget_seconds: 240,
    turn: Turn::Fixed,
    run,
};

fn run(_context: &Context) -> Outcome<Counts> {
    let mut sim = Command::new(workspace::checked_program("sim")?);
    sim.args(["--from", &FIRST_SEED.to_string(), "--seeds", &SEED_COUNT.to_string()]);
    let mut counts = Counts::default();
    let succeeded = process::lines(&mut sim, |line| match verdict(line) {
        Some(passed) => {
            counts.add(Counts::one(passed));
            !passed
        }
        None => true,
    })?;
    if counts.passed + counts.failed != usize::try_from(SEED_COUNT).expect("few seeds") {
        return Err(format!("the simulator judged {} of {SEED_COUNT} seeds", counts.passed + counts.failed));
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
        assert_eq!(verdict("0 failed []"), None);
    }
}
