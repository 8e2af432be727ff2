//! What each member of a chain costs, as a program: a line of JSON for every slice.

use std::path::PathBuf;
use std::process::ExitCode;

use bench::chains::{Plan, run};
use bench::cluster::Place;
use bench::program::{Room, Slices, end, seconds};
use clap::Parser;

#[derive(Parser)]
#[command(name = "chains", about = "Load stores that differ in the length of their chains, in turn")]
struct Arguments {
    /// The program zerohop
    #[arg(long)]
    zerohop: PathBuf,
    #[command(flatten)]
    room: Room,
    #[command(flatten)]
    slices: Slices,
    /// Keys
    #[arg(long, default_value_t = 1_000_000)]
    keys: u64,
    /// Requests per second where the store is not saturated
    #[arg(long, default_value_t = 2000.0)]
    rate: f64,
    /// What an acknowledged write survives: interval or commit
    #[arg(long, default_value = "interval")]
    durability: String,
}

fn main() -> ExitCode {
    end("chains", measure(&Arguments::parse()))
}

fn measure(arguments: &Arguments) -> Result<(), String> {
    let plan = Plan {
        pairs: arguments.slices.pairs,
        slice: seconds(arguments.slices.slice)?,
        warm_up: seconds(arguments.slices.warm_up)?,
        keys: arguments.keys,
        rate: arguments.rate,
        durability: arguments.durability.clone(),
    };
    let place = Place::new(&arguments.room.directory)?;
    run(&arguments.zerohop, arguments.room.port, &place, &plan, |slice| {
        println!("{}", serde_json::json!({ "slice": slice }));
    })
}
