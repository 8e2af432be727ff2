//! The suite `kill`: the binary killed under load, sixteen rounds on one directory for a fixed seed and for one of the commit.
//! Hours of it are a campaign: `cargo x campaign kill`.

use std::path::Path;

use super::{Company, Context, Counts, Suite, Turn, commit_number};
use crate::{Outcome, kill, process, workspace};

/// The seed that every commit is asked.
const FIXED_SEED: u64 = 12;
/// Rounds of one seed.
const ROUNDS: u64 = 16;
/// Largest load of a round: a run comes after a few MiB, the whole round of runs is left to the campaign.
const LOAD_MIB_MAX: u64 = 128;

/// Each round counts as one test.
pub const KILL: Suite = Suite {
    name: "kill",
    about: "kill -9 and SIGTERM under load, on one directory with 1, 2 and 4 cores: every key of every client judged",
    needs: &[],
    budget_seconds: 60,
    turn: Turn::Fixed,
    company: Company::SideBySide,
    run,
};

fn run(context: &Context) -> Outcome<Counts> {
    let (proof, zerohop) = (workspace::checked_program("proof")?, context.zerohop()?);
    let mut counts = Counts::default();
    for seed in [FIXED_SEED, commit_number(&context.commit)] {
        counts.add(campaign(context, (&proof, &zerohop), seed, None)?);
    }
    Ok(counts)
}

/// A short campaign; with a planted bug it is one test.
pub(super) fn campaign(
    context: &Context,
    (proof, zerohop): (&Path, &Path),
    seed: u64,
    planted: Option<&str>,
) -> Outcome<Counts> {
    let mut command = kill::command(proof, zerohop, seed, planted);
    command.args(["--rounds", &ROUNDS.to_string(), "--load-mib-max", &LOAD_MIB_MAX.to_string()]);
    println!("  again: {}", process::describe(&command));
    context.counted(&mut command)
}
