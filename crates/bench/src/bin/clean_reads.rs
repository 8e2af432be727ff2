//! Reads of what nobody writes while others write, as a program: a line of JSON for every slice.

use std::path::PathBuf;
use std::process::ExitCode;

use bench::clean_reads::{Plan, run};
use bench::cluster::Place;
use bench::program::{Room, Slices, Writing, end, print_slice};
use clap::Parser;

#[derive(Parser)]
#[command(name = "clean-reads", about = "Load two stores that differ in what a read asks, in turn")]
struct Arguments {
    /// The program zerohop, of a build that carries planted bugs
    #[arg(long)]
    zerohop: PathBuf,
    #[command(flatten)]
    room: Room,
    #[command(flatten)]
    slices: Slices,
    /// Keys that are read, and as many that are written
    #[arg(long, default_value_t = 200_000)]
    keys: u64,
    #[command(flatten)]
    writing: Writing,
}

fn main() -> ExitCode {
    end("clean-reads", measure(Arguments::parse()))
}

fn measure(arguments: Arguments) -> Result<(), String> {
    let Writing { rate, durability } = arguments.writing;
    let plan = Plan { rounds: arguments.slices.rounds()?, keys: arguments.keys, rate, durability };
    let place = Place::new(&arguments.room.directory)?;
    run(&arguments.zerohop, arguments.room.port, &place, &plan, print_slice)
}
