//! Many keys at once by a client that people use, as a program: a line of JSON for every slice.

use std::path::PathBuf;
use std::process::ExitCode;

use bench::cluster::valkey::{Replicas, Valkey};
use bench::cluster::zerohop::{Setup, Zerohop};
use bench::cluster::{Place, Store};
use bench::load;
use bench::mget::{Plan, Subject, check, run};
use bench::program::{Programs, Room, Slices, end, print_slice};
use clap::Parser;
use serde_json::json;

/// Ports of one store.
const PORTS: u16 = 6;

#[derive(Parser)]
#[command(name = "mget", about = "Ask stores of three processes for many keys at once by a stock client, in turn")]
struct Arguments {
    #[command(flatten)]
    programs: Programs,
    /// The Python that has redis-py
    #[arg(long)]
    python: PathBuf,
    /// What it runs: bench/clients/mget.py
    #[arg(long)]
    client: PathBuf,
    #[command(flatten)]
    room: Room,
    #[command(flatten)]
    slices: Slices,
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
    end("mget", measure(Arguments::parse()))
}

fn measure(arguments: Arguments) -> Result<(), String> {
    check(&arguments.client)?;
    let plan = Plan {
        python: arguments.python,
        client: arguments.client,
        rounds: arguments.slices.rounds()?,
        keys: arguments.keys,
        batch: arguments.batch,
    };
    let place = Place::new(&arguments.room.directory)?;
    // Processes start where this one is.
    load::pin(0)?;
    let mut subjects = Vec::new();
    if let Some(program) = &arguments.programs.zerohop {
        let setup = Setup { options: vec!["--durability".to_owned(), arguments.durability], ..Setup::default() };
        let store: Box<dyn Store> =
            Box::new(Zerohop::start(program, &setup, &place.at("zerohop"), arguments.room.port)?);
        subjects.push(Subject::new("zerohop", store, &plan)?);
    }
    if let Some(program) = &arguments.programs.valkey {
        let store = Valkey::start(program, Replicas::None, &place.at("valkey"), arguments.room.port + PORTS)?;
        subjects.push(Subject::new("valkey", Box::new(store), &plan)?);
    }
    for subject in &subjects {
        println!("{}", json!({ "store": subject.describe() }));
    }
    run(&mut subjects, &plan, print_slice)
}
