//! Many keys at once by a client that people use, as a program: a line of JSON for every slice.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use bench::cluster::valkey::{Replicas, Valkey};
use bench::cluster::zerohop::{Setup, Zerohop};
use bench::cluster::{Place, Store};
use bench::load;
use bench::mget::{Plan, Subject, check, run};
use clap::Parser;
use serde_json::json;

/// Ports of one store.
const PORTS: u16 = 6;

#[derive(Parser)]
#[command(name = "mget", about = "Ask stores of three processes for many keys at once by a stock client, in turn")]
struct Arguments {
    /// The program zerohop
    #[arg(long)]
    zerohop: Option<PathBuf>,
    /// The program valkey-server
    #[arg(long)]
    valkey: Option<PathBuf>,
    /// The Python that has redis-py
    #[arg(long)]
    python: PathBuf,
    /// What it runs: bench/clients/mget.py
    #[arg(long)]
    client: PathBuf,
    /// First of the ports of the stores
    #[arg(long)]
    port: u16,
    /// Where their data lies for the moment
    #[arg(long)]
    directory: PathBuf,
    /// Slices of each store, in turn
    #[arg(long, default_value_t = 15)]
    pairs: usize,
    /// Measured seconds of one slice
    #[arg(long, default_value_t = 0.6)]
    slice: f64,
    /// Load before each slice, seconds
    #[arg(long, default_value_t = 0.15)]
    warm_up: f64,
    /// Keys
    #[arg(long, default_value_t = 200_000)]
    keys: u64,
    /// Keys of one MGET
    #[arg(long, default_value_t = 50)]
    batch: usize,
    /// What an acknowledged write of Zerohop survives: interval or commit
    #[arg(long, default_value = "interval")]
    durability: String,
}

fn main() -> ExitCode {
    match measure(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("mget: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn measure(arguments: Arguments) -> Result<(), String> {
    let seconds =
        |number: f64| Duration::try_from_secs_f64(number).map_err(|_| format!("{number} is no length of time"));
    check(&arguments.client)?;
    let plan = Plan {
        python: arguments.python,
        client: arguments.client,
        pairs: arguments.pairs,
        slice: seconds(arguments.slice)?,
        warm_up: seconds(arguments.warm_up)?,
        keys: arguments.keys,
        batch: arguments.batch,
    };
    let place = Place::new(&arguments.directory)?;
    // Processes start where this one is.
    load::pin(0)?;
    let mut subjects = Vec::new();
    if let Some(program) = &arguments.zerohop {
        let setup = Setup { options: vec!["--durability".to_owned(), arguments.durability], ..Setup::default() };
        let store: Box<dyn Store> = Box::new(Zerohop::start(program, &setup, &place.at("zerohop"), arguments.port)?);
        subjects.push(Subject::new("zerohop", store, &plan)?);
    }
    if let Some(program) = &arguments.valkey {
        let store = Valkey::start(program, Replicas::None, &place.at("valkey"), arguments.port + PORTS)?;
        subjects.push(Subject::new("valkey", Box::new(store), &plan)?);
    }
    for subject in &subjects {
        println!("{}", json!({ "store": subject.describe() }));
    }
    run(&mut subjects, &plan, |slice| println!("{}", json!({ "slice": slice })))
}
