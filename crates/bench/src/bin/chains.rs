//! What each member of a chain costs, as a program: a line of JSON for every slice.

use std::path::PathBuf;
use std::process::ExitCode;

use bench::chains::{Plan, run};
use bench::cluster::Place;
use bench::program::{Room, Slices, Writing, end, print_slice};
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
    #[command(flatten)]
    writing: Writing,
}

fn main() -> ExitCode {
    end("chains", measure(Arguments::parse()))
}

fn measure(arguments: Arguments) -> Result<(), String> {
    let Writing { rate, durability } = arguments.writing;
    let plan = Plan { rounds: arguments.slices.rounds()?, keys: arguments.keys, rate, durability };
    let place = Place::new(&arguments.room.directory)?;
    run(&arguments.zerohop, arguments.room.port, &place, &plan, print_slice)
}
