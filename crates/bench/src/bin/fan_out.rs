//! Gateways of several ways under the same load, as a program: a line of JSON for every slice.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use bench::fan_out::measure::{Cell, Plan, run};
use bench::program::{Room, Slices, end, print_slice};
use clap::Parser;

#[derive(Parser)]
#[command(name = "fan-out", about = "Load gateways that fetch many keys from many instances, in turn")]
struct Arguments {
    #[command(flatten)]
    room: Room,
    #[command(flatten)]
    slices: Slices,
    /// The program of the gateways
    #[arg(long)]
    gateway: PathBuf,
    /// The gateway on zerohop::serve
    #[arg(long)]
    integrated: PathBuf,
    /// Its backends
    #[arg(long, value_delimiter = ',', default_value = "uring,epoll")]
    io: Vec<String>,
    /// Loads: keys of a request, bytes of a value, and "offered" if a rate follows, as in 5-100-offered
    #[arg(long, value_delimiter = ',', value_parser = cell)]
    cells: Vec<Cell>,
    /// Keys
    #[arg(long, default_value_t = 1_000_000)]
    keys: u64,
    /// From a request to its reply at the store, microseconds
    #[arg(long, default_value_t = 100)]
    delay_us: u64,
}

fn cell(text: &str) -> Result<Cell, String> {
    let mut parts = text.split('-');
    let mut number = || parts.next().and_then(|part| part.parse().ok());
    let (width, value_bytes) = (number(), number());
    match (width, value_bytes, parts.next()) {
        (Some(width), Some(value_bytes), offered @ (None | Some("offered"))) => {
            Ok(Cell { width, value_bytes, is_offered: offered.is_some() })
        }
        _ => Err("two numbers are expected, and perhaps \"offered\"".to_owned()),
    }
}

fn main() -> ExitCode {
    end("fan-out", measure(Arguments::parse()))
}

fn measure(arguments: Arguments) -> Result<(), String> {
    let plan = Plan {
        rounds: arguments.slices.rounds()?,
        cells: arguments.cells,
        keys: arguments.keys,
        delay: Duration::from_micros(arguments.delay_us),
        first_port: arguments.room.port,
        gateway: arguments.gateway,
        integrated: arguments.integrated,
        backends: arguments.io,
    };
    run(&plan, print_slice)
}
