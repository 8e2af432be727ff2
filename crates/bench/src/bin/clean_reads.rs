//! Reads of what nobody writes while others write, as a program: a line of JSON for every slice.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use bench::clean_reads::{Plan, run};
use bench::cluster::Place;
use clap::Parser;

#[derive(Parser)]
#[command(name = "clean-reads", about = "Load two stores that differ in what a read asks, in turn")]
struct Arguments {
    /// The program zerohop, of a build that carries planted bugs
    #[arg(long)]
    zerohop: PathBuf,
    /// First of the ports of the stores
    #[arg(long)]
    port: u16,
    /// Where their data lies for the moment
    #[arg(long)]
    directory: PathBuf,
    /// Slices of every store under every load, in turn
    #[arg(long, default_value_t = 15)]
    pairs: usize,
    /// Measured seconds of one slice
    #[arg(long, default_value_t = 0.6)]
    slice: f64,
    /// Load before each slice, seconds
    #[arg(long, default_value_t = 0.15)]
    warm_up: f64,
    /// Keys that are read, and as many that are written
    #[arg(long, default_value_t = 200_000)]
    keys: u64,
    /// SETs per second
    #[arg(long, default_value_t = 2000.0)]
    rate: f64,
    /// What an acknowledged write survives: interval or commit
    #[arg(long, default_value = "interval")]
    durability: String,
}

fn main() -> ExitCode {
    match measure(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("clean-reads: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn measure(arguments: Arguments) -> Result<(), String> {
    let seconds =
        |number: f64| Duration::try_from_secs_f64(number).map_err(|_| format!("{number} is no length of time"));
    let plan = Plan {
        pairs: arguments.pairs,
        slice: seconds(arguments.slice)?,
        warm_up: seconds(arguments.warm_up)?,
        keys: arguments.keys,
        rate: arguments.rate,
        durability: arguments.durability,
    };
    let place = Place::new(&arguments.directory)?;
    run(&arguments.zerohop, arguments.port, &place, &plan, |slice| {
        println!("{}", serde_json::json!({ "slice": slice }));
    })
}
