//! `gaps`: the longest time in which a core, under load, took no clock reading although a canary beside it could run.
//!
//! The server tells its longest gaps in INFO; the canary, pinned to the same CPU, says when that CPU was taken away from
//! both. What scans the machine's memory takes it from the server alone, and is kept off. Every load is measured alone, and
//! once per server a stop of the process is planted: a measure that does not see it measures nothing.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::gap_match::{Interval, Judged, judge, parse};
use super::options::Options;
use super::programs::{Zerohop, built};
use super::quiet_machine::QuietMachine;
use super::results::{Bar, Results};
use super::server::{Server, outranking};
use crate::{Outcome, process};

const MS_MAX: f64 = 2.0;
const MS_REACH: f64 = 1.0;
const CANARY_PERIOD_US: &str = "200";
/// The load generator's.
const OTHER_CPU: &str = "1";
const METRIC: &str = "ms without a tick, canary's subtracted";

/// What is done to a server while its gaps are watched.
enum Work {
    /// Options of the load generator, which runs on the other CPU.
    Load(&'static str),
    /// One command.
    Ask(&'static str),
    /// `MULTI`, `SET` of so many MiB, `EXEC`.
    Exec(usize),
}
use Work::{Ask, Exec, Load};

/// In this order, on one server: the index grows from nothing, then there are many keys under every other load.
const WORKS: &[(&str, Work)] = &[
    ("grow-to-3M", Load("--op get --keys 3000000 --preload --duration 0.1")),
    ("mix-P1-50c", Load("--ratio 1:1 --keys 3000000 --duration 1.5")),
    ("mix-P16-50c", Load("--ratio 1:1 --keys 3000000 --pipeline 16 --duration 1.5")),
    ("mix-P64-50c", Load("--ratio 1:1 --keys 3000000 --pipeline 64 --duration 1.5")),
    ("mix-P1-500c", Load("--ratio 1:1 --keys 3000000 --connections 500 --duration 1.5")),
    ("mix-P16-500c", Load("--ratio 1:1 --keys 3000000 --connections 500 --pipeline 16 --duration 1.5")),
    ("mix-P64-500c", Load("--ratio 1:1 --keys 3000000 --connections 500 --pipeline 64 --duration 1.5")),
    ("values-64KiB", Load("--ratio 1:1 --key-prefix a: --keys 256 --value-bytes 65536 --preload --duration 1")),
    ("values-1MiB", Load("--ratio 1:1 --key-prefix b: --keys 64 --value-bytes 1048576 --preload --duration 1")),
    (
        "values-64MiB",
        Load("--ratio 1:1 --key-prefix c: --keys 2 --value-bytes 67108864 --connections 2 --preload --requests 8"),
    ),
    (
        "values-512MiB",
        Load("--ratio 1:1 --key-prefix d: --keys 1 --value-bytes 536870912 --connections 1 --preload --requests 2"),
    ),
    ("append-64MiB", Load("--command APPEND~long~__value__ --value-bytes 67108864 --connections 1 --requests 3")),
    (
        "setrange-64MiB",
        Load("--command SETRANGE~long~100000~__value__ --value-bytes 67108864 --connections 1 --requests 2"),
    ),
    ("copy-192MiB", Ask("COPY long copy")),
    ("rename-192MiB", Ask("RENAME copy long")),
    ("del-192MiB", Ask("DEL long")),
    ("exec-192MiB", Exec(192)),
    ("del-queued-192MiB", Ask("DEL queued")),
    ("del-1MiB", Load("--op del --key-prefix b: --keys 64 --requests 64")),
    ("del-64MiB", Load("--op del --key-prefix c: --keys 2 --connections 1 --requests 2")),
    ("del-512MiB", Load("--op del --key-prefix d: --keys 1 --connections 1 --requests 1")),
    ("list-push-1M", Load("--pipeline 64 --requests 1000000 --value-bytes 32 --command RPUSH~list~__value__")),
    ("list-mix", Load("--pipeline 16 --duration 0.5 --command LRANGE~list~500000~500099")),
    ("list-del-1M", Ask("DEL list")),
    ("expire-set", Load("--pipeline 16 --key-prefix e: --duration 1.2 --command SET~__key__~__value__~PX~800")),
    ("expire-read", Load("--ratio 1:1 --keys 3000000 --duration 1.5")),
    ("flush-3M", Ask("FLUSHALL")),
];

#[derive(Deserialize)]
struct Sighting {
    scheduling_class: String,
    wakings: u64,
    late: Vec<Interval>,
    late_unnoted: u64,
}

/// What one piece of work showed.
pub struct Watched {
    /// Its longest gap, judged.
    pub judged: Judged,
    gaps: Vec<Interval>,
    sighting: Sighting,
}

/// Runs every backend in every durability.
pub fn run(options: &Options, results: &mut Results) -> Outcome<()> {
    let class = if may_be_fifo() { "SCHED_FIFO" } else { "SCHED_OTHER, so that it may be late because the server ran" };
    results.note(format!("canary: every {CANARY_PERIOD_US} us on the server's CPU, {class}"));
    results.note("values: the row's own measure / the longest gap at all, both in ms");
    let _quiet = QuietMachine::new(results);
    for durability in ["memory", "interval", "commit"] {
        for backend in &options.backends {
            let server = match Zerohop::new(backend, durability).start().ready() {
                Ok(server) => server,
                Err(message) => {
                    results.absent(message);
                    continue;
                }
            };
            planted(&server, durability, results)?;
            for (name, work) in WORKS {
                let cell = format!("{durability}-{name}");
                // Without the growth there is nothing for the others to read.
                if options.wants(&cell) || *name == WORKS[0].0 {
                    let (_, watched) = watch(&server, || perform(&server, work))?;
                    keep(&cell, &server.name, &watched, Bar::AtMost(MS_MAX), results)?;
                }
            }
        }
    }
    Ok(())
}

/// Stops the process five times for 20 ms in a load that keeps it busy. Without seeing at least 15 ms the measure is blind.
fn planted(server: &Server, durability: &str, results: &mut Results) -> Outcome<()> {
    let signal = |name: &str| process::output(Command::new("kill").args(["-s", name, &server.pid().to_string()]));
    let (_, watched) = watch(server, || {
        let mut load =
            generator(server, "--op get --pipeline 16 --keys 1000 --preload --duration 1").spawn().map_err(told)?;
        for _ in 0..5 {
            std::thread::sleep(Duration::from_millis(150));
            signal("STOP")?;
            std::thread::sleep(Duration::from_millis(20));
            signal("CONT")?;
        }
        load.wait().map(|_| ()).map_err(told)
    })?;
    if watched.judged.own_us < 15_000 {
        results.absent(format!("{}: a planted stop of 20 ms was seen as {} us", server.name, watched.judged.own_us));
    }
    keep(&format!("{durability}-planted-stop"), &server.name, &watched, Bar::None, results)
}

fn told(error: std::io::Error) -> String {
    format!("the load generator was lost: {error}")
}

fn perform(server: &Server, work: &Work) -> Outcome<()> {
    match work {
        Ask(command) => match server.ask(command)? {
            reply if reply.starts_with('-') => Err(format!("{} answers {command} with {reply}", server.name)),
            _ => Ok(()),
        },
        Exec(mebibytes) => transact(server, *mebibytes),
        Load(words) => {
            let report: Value = serde_json::from_str(&process::output(&mut generator(server, words))?)
                .map_err(|error| format!("the load generator's report is not understood: {error}"))?;
            match report["first_error"].as_str() {
                Some(error) => Err(format!("{} answered {words} with {error}", server.name)),
                None => Ok(()),
            }
        }
    }
}

fn transact(server: &Server, mebibytes: usize) -> Outcome<()> {
    let head = format!("*1\r\n$5\r\nMULTI\r\n*3\r\n$3\r\nSET\r\n$6\r\nqueued\r\n${}\r\n", mebibytes << 20);
    let requests = [head.as_bytes(), &vec![b'x'; mebibytes << 20], b"\r\n*1\r\n$4\r\nEXEC\r\n"].concat();
    let told = server.lines(&requests, 4)?;
    match told == ["+OK", "+QUEUED", "*1", "+OK"] {
        true => Ok(()),
        false => Err(format!("{} answers a transaction of {mebibytes} MiB with {told:?}", server.name)),
    }
}

/// `~` stands for a space within one option.
fn generator(server: &Server, words: &str) -> Command {
    let mut command = outranking(built("load-generator"));
    command
        .args(["--target", &format!("127.0.0.1:{}", server.port), "--server-pid", &server.pid().to_string()])
        .args(["--pin", OTHER_CPU, "--warm-up", "0", "--json"])
        .args(words.split(' ').map(|word| word.replace('~', " ")))
        .stdout(Stdio::piped());
    command
}

/// What `work` returns, and the server's gaps while it runs, judged by a canary. INFO counts anew from its beginning.
///
/// # Errors
/// Those of `work`, and when the canary does not start or the server does not tell its gaps.
pub fn watch<R>(server: &Server, work: impl FnOnce() -> Outcome<R>) -> Outcome<(R, Watched)> {
    server.ask("CONFIG RESETSTAT")?;
    let canary = start_canary()?;
    let done = work();
    let info = server.ask("INFO zerohop");
    let sighting = end_canary(canary)?;
    let (done, info) = (done?, info?);
    let gaps = info
        .lines()
        .find_map(|line| line.strip_prefix("tick_gaps_core0:"))
        .and_then(|text| parse(text.trim()))
        .ok_or_else(|| format!("{} does not tell its gaps", server.name))?;
    Ok((done, Watched { judged: judge(&gaps, &sighting.late), gaps, sighting }))
}

fn may_be_fifo() -> bool {
    Command::new("chrt").args(["-f", "50", "true"]).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

fn start_canary() -> Outcome<Child> {
    let mut command = if may_be_fifo() { Command::new("chrt") } else { Command::new("nice") };
    command.args(if may_be_fifo() { ["-f", "50"] } else { ["-n", "-20"] });
    command
        .args(["taskset", "-c", "0"])
        .arg(built("canary"))
        .args(["--period-us", CANARY_PERIOD_US])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("the canary does not start: {error}"))
}

fn end_canary(mut canary: Child) -> Outcome<Sighting> {
    drop(canary.stdin.take());
    let output = canary.wait_with_output().map_err(|error| format!("the canary was lost: {error}"))?;
    serde_json::from_slice(&output.stdout).map_err(|error| format!("the canary is not understood: {error}"))
}

fn keep(cell: &str, server: &str, watched: &Watched, bar: Bar, results: &mut Results) -> Outcome<()> {
    let Watched { judged, gaps, sighting } = watched;
    let ms = |us: u64| us as f64 / 1e3;
    let row = results.value(cell, server, METRIC, &[ms(judged.own_us)], bar)?;
    if bar != Bar::None {
        row.reach(Bar::AtMost(MS_REACH));
    }
    (row.subject_value, row.against_value) = (Some(ms(judged.own_us)), Some(ms(judged.longest_us)));
    let during_gaps = |late: &&Interval| gaps.iter().any(|gap| judge(&[*gap], &[**late]).own_us < gap.us);
    results.slices.push(json!({
        "cell": cell, "server": server, "own_us": judged.own_us, "begin_us": judged.begin_us,
        "longest_us": judged.longest_us, "gaps": gaps, "canary": sighting.scheduling_class,
        "canary_wakings": sighting.wakings, "canary_late": sighting.late.len() as u64 + sighting.late_unnoted,
        "canary_late_during_gaps": sighting.late.iter().filter(during_gaps).collect::<Vec<_>>(),
        "canary_late_us_max": sighting.late.iter().map(|late| late.us).max(),
    }));
    Ok(())
}
