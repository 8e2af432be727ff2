//! `cargo x bench <name>`: comparisons with peers and with the practical limit, as ratios within one run.
//!
//! Method: the server on CPU 0, the generator on CPU 1; short slices, interleaved and turned by one each round, so that
//! a slow minute of the machine hits everybody; per round the ratio of two entrants; the 95 % bound of the median ratio
//! decides. A slice during which anything else used the machine is repeated. Nothing here gates CI.

mod cores;
mod cost;
mod durability;
mod growth;
mod hash;
mod history;
mod idle;
mod instructions;
mod options;
mod programs;
mod results;
mod server;
mod slice;
mod start;
mod statistics;

use std::process::ExitCode;

use crate::Outcome;
use options::Options;
use results::Results;

struct Comparison {
    name: &'static str,
    about: &'static str,
    run: fn(&Options, &mut Results) -> Outcome<()>,
}

const COMPARISONS: &[Comparison] = &[
    Comparison { name: "peers", about: "CPU per request against null server, Redis and Valkey", run: cost::run },
    Comparison { name: "growth", about: "CPU per GET with 1M and with 8M keys", run: growth::run },
    Comparison {
        name: "durability",
        about: "interval against memory; commit against appendfsync always",
        run: durability::run,
    },
    Comparison { name: "cores", about: "two instances against one; one slot against all (Z2)", run: cores::run },
    Comparison { name: "z1", about: "throughput against a thread per request", run: history::run_z1 },
    Comparison { name: "z6", about: "throughput against memcached, persistence on here", run: history::run_z6 },
    Comparison { name: "z9", about: "p99 over mean latency at half load", run: history::run_z9 },
    Comparison { name: "start", about: "cold start to the first acknowledged write", run: start::run },
    Comparison { name: "idle", about: "CPU and memory of an empty idle node", run: idle::run },
    Comparison { name: "hash", about: "speed and evenness of candidate hashes", run: hash::run },
    Comparison { name: "instructions", about: "user-space instructions per request", run: instructions::run },
];

/// Runs the comparison that `arguments` names, or lists them. Exit code 1 when a bar was missed or nothing was measured.
pub fn run(arguments: &[String]) -> Outcome<ExitCode> {
    let Some((name, words)) = arguments.split_first() else {
        println!("cargo x bench <name> {}\n", options::USAGE);
        for comparison in COMPARISONS {
            println!("  {:<13}{}", comparison.name, comparison.about);
        }
        println!("  {:<13}every one of them, one after the other", "all");
        return Ok(ExitCode::FAILURE);
    };
    let chosen: Vec<&Comparison> =
        COMPARISONS.iter().filter(|comparison| name == "all" || comparison.name == name).collect();
    if chosen.is_empty() {
        return Err(format!("no comparison is called `{name}`; `cargo x bench` lists them"));
    }
    let options = Options::of(words)?;
    programs::build()?;
    let mut all_met = true;
    for comparison in chosen {
        println!("{}: {}", comparison.name, comparison.about);
        let mut results = Results::new(comparison.name);
        let ended = (comparison.run)(&options, &mut results);
        // What was measured before an error is still true.
        all_met &= results.save(&options)?;
        if let Err(message) = ended {
            all_met = false;
            println!("{} ended early: {message}", comparison.name);
        }
    }
    Ok(if all_met { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
