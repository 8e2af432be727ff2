//! Kills of one store as a program: a line of JSON for every kill, and one for all of them.

use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bench::cluster::Place;
use bench::failover::{Plan, Report, Subject, Task, run};
use bench::program::{Programs, Room, end, seconds};
use clap::{ArgGroup, Parser};

#[derive(Parser)]
#[command(name = "failover", about = "Kill nodes of a store under counters and report what that cost those who write")]
#[command(group(ArgGroup::new("store").required(true).args(["zerohop", "valkey"])))]
struct Arguments {
    #[command(flatten)]
    programs: Programs,
    #[command(flatten)]
    room: Room,
    /// Nodes to kill, one after the other
    #[arg(long, default_value_t = 1)]
    kills: usize,
    /// Counters, each with a writer
    #[arg(long, default_value_t = 24)]
    counters: usize,
    /// Milliseconds from one increment of a counter to the next
    #[arg(long, default_value_t = 2.0)]
    beat_ms: f64,
    /// Seconds of load before each kill
    #[arg(long, default_value_t = 1.0)]
    before: f64,
    /// Draws which of the nodes that serve many counters is killed
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Enough to see that it goes on.
const AFTER: Duration = Duration::from_millis(200);

fn main() -> ExitCode {
    let report = measure(&Arguments::parse());
    end("failover", report.map(|report| println!("{}", serde_json::json!({ "report": report }))))
}

fn measure(arguments: &Arguments) -> Result<Report, String> {
    let plan = Plan {
        counters: arguments.counters.max(1),
        beat: seconds(arguments.beat_ms / 1e3)?,
        before: seconds(arguments.before)?,
        after: AFTER,
    };
    let place = Place::new(&arguments.room.directory)?;
    let subject: Subject<'_> = match (&arguments.programs.zerohop, &arguments.programs.valkey) {
        (Some(program), _) => Subject::Zerohop(program, None),
        (None, program) => Subject::Valkey(program.as_deref().unwrap_or(Path::new("valkey-server"))),
    };
    let directory = place.at("data");
    let (port, kills, seed) = (arguments.room.port, arguments.kills, Some(arguments.seed));
    let task = Task { subject, directory: &directory, port, plan, kills, seed };
    // Nobody asks it to stop: who started it kills it, and what it started ends with it.
    run(&task, &AtomicBool::new(false), &mut |_| {}, &mut |trial| {
        let gap_ms = trial.gap.as_secs_f64() * 1e3;
        println!("{}", serde_json::json!({ "killed": { "port": trial.killed, "gap_ms": gap_ms } }));
    })
}
