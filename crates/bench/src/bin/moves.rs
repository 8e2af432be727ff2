//! Moves of slots under load as a program: both stores in turn, a line of JSON for every round, and one for each store.

use std::path::PathBuf;
use std::process::ExitCode;

use bench::cluster::Place;
use bench::cluster::Store;
use bench::cluster::valkey::{Replicas, Valkey};
use bench::cluster::zerohop::{Setup, Zerohop};
use bench::moves::order::Way;
use bench::moves::{Plan, Subject};
use bench::program::{Programs, Room, end, seconds};
use clap::Parser;
use serde_json::json;

/// Ports of one store.
const PORTS: u16 = 6;

#[derive(Parser)]
#[command(
    name = "moves",
    about = "Move a thousand slots under load and report what that cost those who read and write"
)]
struct Arguments {
    #[command(flatten)]
    programs: Programs,
    #[command(flatten)]
    room: Room,
    /// Moves of each store, in turn
    #[arg(long, default_value_t = 1)]
    rounds: usize,
    /// Keys in the slots that are moved
    #[arg(long, default_value_t = 61_000)]
    keys: u64,
    /// Requests per second, one of five a SET
    #[arg(long, default_value_t = 12_000.0, conflicts_with = "saturate")]
    rate: f64,
    /// Let each worker ask again as soon as it is answered
    #[arg(long)]
    saturate: bool,
    /// Workers, each with a connection to every node
    #[arg(long, default_value_t = 48)]
    workers: usize,
    /// Seconds of load before each move
    #[arg(long, default_value_t = 3.0)]
    steady: f64,
    /// What an acknowledged write of Zerohop survives: interval or commit
    #[arg(long, default_value = "interval")]
    durability: String,
    /// Milliseconds of a lease of Zerohop, where its own are too short for the machine
    #[arg(long)]
    lease_ms: Option<u32>,
    /// Count what nodes say to each other, too; needs ss of iproute2
    #[arg(long)]
    traffic: bool,
    /// File for what the nodes of Zerohop say
    #[arg(long)]
    messages: Option<PathBuf>,
}

fn main() -> ExitCode {
    end("moves", measure(&Arguments::parse()))
}

fn measure(arguments: &Arguments) -> Result<(), String> {
    let steady = seconds(arguments.steady)?;
    if !(arguments.rate > 0.0 && arguments.workers > 0) {
        return Err("--rate and --workers have to be above 0".to_owned());
    }
    let plan = Plan {
        keys: arguments.keys,
        workers: arguments.workers,
        per_second: (!arguments.saturate).then_some(arguments.rate),
        steady,
        counts_traffic: arguments.traffic,
    };
    let place = Place::new(&arguments.room.directory)?;
    let mut subjects = Vec::new();
    if let Some(program) = &arguments.programs.zerohop {
        let options = vec!["--durability".to_owned(), arguments.durability.clone()];
        let setup =
            Setup { lease_ms: arguments.lease_ms, options, messages: arguments.messages.clone(), ..Setup::default() };
        let store: Box<dyn Store> =
            Box::new(Zerohop::start(program, &setup, &place.at("zerohop"), arguments.room.port)?);
        subjects.push(("zerohop", Subject::new(store, Some(Way::Whole), plan)?));
    }
    if let Some(program) = &arguments.programs.valkey {
        let start = Valkey::start(program, Replicas::None, &place.at("valkey"), arguments.room.port + PORTS)?;
        subjects.push(("valkey", Subject::new(Box::new(start), None, plan)?));
    }
    for round in 0..arguments.rounds {
        let count = subjects.len().max(1);
        let mut broken = Vec::new();
        for step in 0..subjects.len() {
            // Each begins as often as the other.
            let index = (round + step) % count;
            let (subject, store) = &mut subjects[index];
            match store.round() {
                Ok(round) => println!("{}", json!({ "round": { "subject": subject, "seen": round } })),
                Err(problem) => {
                    println!("{}", json!({ "broken": { "subject": subject, "problem": problem } }));
                    broken.push(*subject);
                }
            }
        }
        // Others go on; what this one has acknowledged is looked at now.
        for subject in broken {
            let index = subjects.iter().position(|(name, _)| *name == subject).expect("it was just asked");
            tell(subjects.remove(index));
        }
    }
    subjects.into_iter().for_each(tell);
    Ok(())
}

fn tell((subject, store): (&str, Subject)) {
    println!("{}", json!({ "report": { "subject": subject, "seen": store.finish() } }));
}
