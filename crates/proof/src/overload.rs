//! The proxy before a store that is asked for more than it can, with real processes: tenants beside each other (AT-15), more load than
//! anybody can answer (AT-16), and a hot key and long values beside small requests (AT-25).
//!
//! ```text
//!   caller.rs, crowd.rs   many connections of one thread: what happens first is known, and no clock is asked
//!   stage.rs              store and proxy, their memory, what the proxy counts
//!   tenants.rs            AT-15      flood.rs   AT-16      hot.rs, long.rs   AT-25
//!   rates.rs              the same by the clock: for a quiet machine, and no verdict of the gate
//! ```
//!
//! Judged are counts, bytes and what comes back, so a busy machine makes a run longer and not wrong.

mod caller;
mod crowd;
mod flood;
mod hot;
mod long;
mod rates;
mod stage;
mod tenants;

use std::io;

use clap::{Args, ValueEnum};

use crate::commands::Counts;

/// Arguments of `overload`.
#[derive(Args)]
pub struct OverloadArguments {
    /// The binary zerohop.
    #[arg(long, env = "ZEROHOP_BIN")]
    zerohop: String,
    /// What moves bytes, of the proxy and of Zerohop behind it.
    #[arg(long, default_value = "auto")]
    io: String,
    /// A redis-server or valkey-server as the store, in place of Zerohop.
    #[arg(long, value_name = "BINARY")]
    store: Option<String>,
    /// Only these scenes.
    #[arg(long, value_enum)]
    scene: Vec<Scene>,
    /// When tenants and callers ask.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Length of the long values.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=512))]
    long_mib: u64,
    /// Judges latencies and rates, too: on a quiet machine only.
    #[arg(long)]
    measure: bool,
    /// The binary carries this planted bug: some promise must be broken.
    #[arg(long, env = "PLANTED_BUG")]
    planted: Option<String>,
}

/// A part of it, with a store and a proxy of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scene {
    /// Classes with weights, and tenants that ask little beside one that does what it can.
    Tenants,
    /// More load than can be answered, and a store that stands still.
    Flood,
    /// A key that most ask for.
    HotKey,
    /// Long values beside small requests.
    LongValue,
}

impl Scene {
    const ALL: [Scene; 4] = [Scene::Tenants, Scene::Flood, Scene::HotKey, Scene::LongValue];

    fn run(self, arguments: &OverloadArguments, verdicts: &mut Verdicts) -> io::Result<()> {
        match self {
            Scene::Tenants => tenants::run(arguments, verdicts),
            Scene::Flood => flood::run(arguments, verdicts),
            Scene::HotKey => hot::run(arguments, verdicts),
            Scene::LongValue => long::run(arguments, verdicts),
        }
    }
}

/// What was promised, and whether it was kept.
#[derive(Debug, Default)]
struct Verdicts {
    counts: Counts,
}

impl Verdicts {
    /// One promise, in words, and what was found.
    fn judge(&mut self, promise: &str, holds: bool, found: &str) {
        println!("{}: {promise}: {found}", if holds { "passed" } else { "FAILED" });
        match holds {
            true => self.counts.passed += 1,
            false => self.counts.failed += 1,
        }
    }

    /// Nobody was told an error.
    fn judge_errors(&mut self, who: &str, error: Option<String>) {
        self.judge(&format!("{who}: no error"), error.is_none(), error.as_deref().unwrap_or("none"));
    }
}

/// Runs the scenes; with a planted bug it passes if that is noticed.
///
/// # Errors
/// When a store or a proxy does not start.
pub fn overload(arguments: &OverloadArguments) -> io::Result<Counts> {
    let scenes = if arguments.scene.is_empty() { &Scene::ALL[..] } else { &arguments.scene };
    let mut verdicts = Verdicts::default();
    for scene in scenes {
        // Who is not answered is what these scenes are about: that ends its scene, and no other.
        if let Err(error) = scene.run(arguments, &mut verdicts) {
            verdicts.judge(&format!("{scene:?} comes to its end"), false, &error.to_string());
        }
    }
    let counts = verdicts.counts;
    let Some(bug) = &arguments.planted else { return Ok(counts) };
    println!("planted {bug}: {} promises were broken", counts.failed);
    Ok(Counts { passed: u64::from(counts.failed > 0), failed: u64::from(counts.failed == 0) })
}
