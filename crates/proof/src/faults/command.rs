//! What the command `faults` takes and does.

use std::io;
use std::path::PathBuf;

use clap::Args;

use super::{Options, Part, run};
use crate::commands::Counts;

/// Arguments of `faults`.
#[derive(Args)]
pub struct FaultsArguments {
    /// What to run.
    #[arg(value_enum)]
    part: Part,
    /// The binary zerohop, linked dynamically.
    #[arg(long, env = "ZEROHOP_BIN")]
    zerohop: String,
    /// Draws loads and calls.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Trials of the parts `calls` and `crashes`.
    #[arg(long, default_value_t = 24)]
    trials: u64,
    /// Part `crashes`: at every call of a life in turn, each on a directory of its own.
    #[arg(long)]
    every: bool,
    /// Part `crashes`: where the first directory stays that is judged wrong, as the last cut left it.
    #[arg(long)]
    keep: Option<PathBuf>,
    /// Only cases with this in their name.
    #[arg(long)]
    only: Option<String>,
    /// Only these thirds of the cases, for example 1,2.
    #[arg(long, value_delimiter = ',', default_value = "0,1,2", value_parser = clap::value_parser!(u64).range(0..3))]
    thirds: Vec<u64>,
    /// The binary carries this planted bug: some case must be wrong.
    #[arg(long, env = "PLANTED_BUG")]
    planted: Option<String>,
}

/// Runs a part; each case is a test, and a planted bug is one test.
///
/// # Errors
/// When what it needs cannot be made.
pub fn faults(arguments: &FaultsArguments) -> io::Result<Counts> {
    let (passed, wrong) = run(&Options {
        zerohop: arguments.zerohop.clone(),
        part: arguments.part,
        seed: arguments.seed,
        trials: arguments.trials,
        every: arguments.every,
        keep: arguments.keep.clone(),
        only: arguments.only.clone(),
        thirds: arguments.thirds.clone(),
    })?;
    let failed = wrong.len() as u64;
    let Some(bug) = &arguments.planted else { return Ok(Counts { passed, failed }) };
    println!("planted {bug}: {failed} cases wrong");
    Ok(Counts { passed: u64::from(failed > 0), failed: u64::from(failed == 0) })
}
