//! What the programs that start stores have in common: what they are told, and how they end.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

/// Where stores are for the moment.
#[derive(Args)]
pub struct Room {
    /// First of the ports of the stores
    #[arg(long)]
    pub port: u16,
    /// Where their data lies for the moment
    #[arg(long)]
    pub directory: PathBuf,
}

/// Which stores.
#[derive(Args)]
pub struct Programs {
    /// The program zerohop
    #[arg(long)]
    pub zerohop: Option<PathBuf>,
    /// The program valkey-server or redis-server
    #[arg(long)]
    pub valkey: Option<PathBuf>,
}

/// How long each store is measured, and how often.
#[derive(Args)]
pub struct Slices {
    /// Slices of every store under every load, in turn
    #[arg(long, default_value_t = 15)]
    pub pairs: usize,
    /// Measured seconds of one slice
    #[arg(long, default_value_t = 0.6)]
    pub slice: f64,
    /// Load before each slice, seconds
    #[arg(long, default_value_t = 0.15)]
    pub warm_up: f64,
}

/// A length of time as a person types it.
pub fn seconds(number: f64) -> Result<Duration, String> {
    Duration::try_from_secs_f64(number).map_err(|_| format!("{number} is no length of time"))
}

/// The end of the program `name`.
pub fn end(name: &str, result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{name}: {problem}");
            ExitCode::FAILURE
        }
    }
}
