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

impl Slices {
    /// What it says.
    ///
    /// # Errors
    /// When a number is no length of time.
    pub fn rounds(&self) -> Result<Rounds, String> {
        Ok(Rounds { pairs: self.pairs, slice: seconds(self.slice)?, warm_up: seconds(self.warm_up)? })
    }
}

/// [`Slices`], read.
#[derive(Clone, Copy, Debug)]
pub struct Rounds {
    /// Slices of every store under every load, in turn.
    pub pairs: usize,
    /// Length of a slice.
    pub slice: Duration,
    /// Load before each slice.
    pub warm_up: Duration,
}

impl Rounds {
    /// Which of so many stores has its turn, slice by slice: each follows every other as often.
    pub fn turns(&self, stores: usize) -> impl Iterator<Item = usize> {
        (0..self.pairs).flat_map(move |round| (0..stores).map(move |step| (round + step) % stores))
    }
}

/// What an acknowledged write survives, and how many there are.
#[derive(Args)]
pub struct Writing {
    /// SETs per second where they have a rate
    #[arg(long, default_value_t = 2000.0)]
    pub rate: f64,
    /// What an acknowledged write of Zerohop survives: interval or commit
    #[arg(long, default_value = "interval")]
    pub durability: String,
}

/// A slice for whoever judges.
pub fn print_slice(slice: &impl serde::Serialize) {
    println!("{}", serde_json::json!({ "slice": slice }));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_store_has_as_many_turns_and_begins_as_often_as_every_other() {
        let rounds = Rounds { pairs: 3, slice: Duration::ZERO, warm_up: Duration::ZERO };
        assert_eq!(rounds.turns(3).collect::<Vec<_>>(), [0, 1, 2, 1, 2, 0, 2, 0, 1]);
    }
}
