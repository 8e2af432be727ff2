//! What the command `nemesis` takes and does.

use std::io;
use std::path::PathBuf;

use clap::Args;

use super::{Options, run};
use crate::commands::Counts;
use crate::process::new_directory;

/// Arguments of `nemesis`.
#[derive(Args)]
pub struct NemesisArguments {
    /// The binary zerohop.
    #[arg(long, env = "ZEROHOP_BIN")]
    zerohop: PathBuf,
    /// Draws faults, requests and moves.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How long faults go on, about.
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Nodes.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(3..=5))]
    nodes: u64,
    /// The lease in milliseconds, instead of one that the seed draws.
    #[arg(long)]
    lease_ms: Option<u64>,
    /// Cores of each node, instead of a number that the seed draws.
    #[arg(long)]
    cores: Option<u16>,
    /// No slots are moved.
    #[arg(long)]
    no_moves: bool,
    /// Where history, faults and what nodes print are kept; what was there before is removed.
    #[arg(long)]
    folder: Option<PathBuf>,
    /// The binary carries this planted bug: something must be wrong.
    #[arg(long, env = "PLANTED_BUG")]
    planted: Option<String>,
}

/// Runs a seed; each check is a test, and a planted bug is one test.
///
/// # Errors
/// When what it needs cannot be made.
pub fn nemesis(arguments: &NemesisArguments) -> io::Result<Counts> {
    let folder = arguments.folder.clone().map_or_else(new_directory, Ok)?;
    let verdict = run(&Options {
        zerohop: arguments.zerohop.clone(),
        seed: arguments.seed,
        faults_ms: arguments.seconds * 1000,
        nodes: usize::try_from(arguments.nodes).expect("it is 3 to 5"),
        moves: !arguments.no_moves,
        folder: folder.clone(),
        lease_ms: arguments.lease_ms,
        cores: arguments.cores,
    })?;
    if arguments.folder.is_some() || !verdict.is_good() {
        println!("  history, faults and what nodes printed: {}", folder.display());
    } else {
        std::fs::remove_dir_all(&folder)?;
    }
    let failed = verdict.checks.iter().filter(|(_, problems)| !problems.is_empty()).count() as u64;
    let passed = verdict.checks.len() as u64 - failed;
    let Some(bug) = &arguments.planted else { return Ok(Counts { passed, failed }) };
    // What only says that the run proves nothing has not noticed the bug.
    let noticed = verdict.noticed();
    println!("planted {bug}, seed {}: {}", arguments.seed, if noticed { "noticed" } else { "NOT NOTICED" });
    Ok(Counts { passed: u64::from(noticed), failed: u64::from(!noticed) })
}
