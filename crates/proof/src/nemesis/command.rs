//! What the command `nemesis` takes and does.

use std::io;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{Gate, Options, Size, What, run};
use crate::commands::Counts;
use crate::process::new_directory;

/// What is done to the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SceneName {
    /// Faults of every kind while slots move.
    Faults,
    /// Slots that go to and fro under load.
    Fire,
    /// Processes that are not what they say.
    Strangers,
}

/// Arguments of `nemesis`.
#[derive(Args)]
pub struct NemesisArguments {
    /// The binary zerohop.
    #[arg(long, env = "ZEROHOP_BIN")]
    zerohop: PathBuf,
    /// What is done to the cluster.
    #[arg(long, value_enum, default_value = "faults")]
    scene: SceneName,
    /// Of `fire`: moves, most of which meet a fault in a phase of theirs.
    #[arg(long, default_value_t = 20)]
    rounds: usize,
    /// Of `fire`: bytes of a value that goes with the slots, in mebibytes.
    #[arg(long, default_value_t = 64)]
    long_mib: usize,
    /// Of `fire`: keys of a slot that goes with the others.
    #[arg(long, default_value_t = 100_000)]
    many_keys: usize,
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
    /// Of `faults`: proxies through which further clients ask; every other one collapses writes.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=8))]
    proxies: u64,
    /// Of `faults`: the example `library_gate`, through which further clients ask.
    #[arg(long)]
    library: Option<PathBuf>,
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

fn gates(arguments: &NemesisArguments) -> io::Result<Vec<Gate>> {
    let library = arguments.library.as_ref().map(std::fs::canonicalize).transpose()?;
    let proxies = (0..arguments.proxies).map(|number| Gate::Proxy { collapses: number % 2 == 0 });
    Ok(proxies.chain(library.map(Gate::Library)).collect())
}

/// Runs a seed; each check is a test, and a planted bug is one test.
///
/// # Errors
/// When what it needs cannot be made.
pub fn nemesis(arguments: &NemesisArguments) -> io::Result<Counts> {
    let folder = arguments.folder.clone().map_or_else(new_directory, Ok)?;
    let what = match arguments.scene {
        SceneName::Faults => What::Faults,
        SceneName::Fire => What::Fire(Size {
            rounds: arguments.rounds,
            long_bytes: arguments.long_mib << 20,
            many_keys: arguments.many_keys,
        }),
        SceneName::Strangers => What::Strangers,
    };
    let verdict = run(&Options {
        what,
        zerohop: arguments.zerohop.clone(),
        seed: arguments.seed,
        faults_ms: arguments.seconds * 1000,
        nodes: usize::try_from(arguments.nodes).expect("it is 3 to 5"),
        moves: !arguments.no_moves,
        gates: gates(arguments)?,
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
