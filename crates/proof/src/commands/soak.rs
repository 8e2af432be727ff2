//! What the soak takes and does.

use std::io;
use std::time::Duration;

use clap::Args;

use super::{Counts, ServerArguments, parse_number};
use crate::soak;

/// Arguments of `soak`.
#[derive(Args)]
pub struct SoakArguments {
    #[command(flatten)]
    server: ServerArguments,
    /// Seed of what is asked.
    #[arg(long, default_value_t = 1, value_parser = parse_number)]
    seed: u64,
    /// How long, at least.
    #[arg(long, default_value_t = 1800)]
    seconds: u64,
    /// The binary carries this planted bug: some promise must be broken.
    #[arg(long, env = "PLANTED_BUG")]
    planted: Option<String>,
}

/// Loads a server for a long time, and looks at what it holds; with a planted bug it passes if that is noticed.
///
/// # Errors
/// When the server cannot be started or reached.
pub fn soak(arguments: &SoakArguments) -> io::Result<Counts> {
    let (passed, failed) = soak::run(&soak::Options {
        zerohop: arguments.server.zerohop.clone(),
        arguments: arguments.server.words(),
        seed: arguments.seed,
        time: Duration::from_secs(arguments.seconds),
    })?;
    let Some(bug) = &arguments.planted else { return Ok(Counts { passed, failed }) };
    println!("{bug} {} caught: {failed} promises were broken", if failed > 0 { "was" } else { "was NOT" });
    Ok(Counts { passed: u64::from(failed > 0), failed: u64::from(failed == 0) })
}
