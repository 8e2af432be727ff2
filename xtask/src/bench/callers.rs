//! `callers`: 64 callers in one process, as tasks and as threads, by Zerohop's client and by others.
//!
//! ```text
//!  CPU 0   Zerohop, Valkey                            one is asked, the other is idle
//!  CPU 1   one process for each client and store      one asks, the others are idle
//! ```
//!
//! What counts is the CPU of client and store together: a client that asks in fewer writes makes the store cheaper, too. The other clients
//! are programs of `bench/callers`, which is no part of the workspace.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde::Deserialize;

use super::options::Options;
use super::programs::{self, Zerohop};
use super::progress::Progress;
use super::results::{Bar, Results};
use super::server::{Server, outranking};
use super::slice::{Load, preload};
use crate::needs::{self, GO};
use crate::{Outcome, process, workspace};

const CALLERS: usize = 64;
const KEYS: u64 = 100_000;
/// Against another client of the same store, and of Valkey; what to reach for.
const SAME_STORE: (f64, f64) = (1.5, 3.0);
const WHOLE_STACK: (f64, f64) = (2.0, 4.0);

/// A client, by the name it has in its program.
#[derive(Clone, Copy)]
struct Client {
    name: &'static str,
    program: Program,
    /// Whether its callers can be threads of the system.
    has_threads: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Program {
    Rust,
    Go,
}

const OURS: Client = Client { name: "zerohop", program: Program::Rust, has_threads: true };
const OTHERS: &[Client] = &[
    Client { name: "redis-rs", program: Program::Rust, has_threads: true },
    Client { name: "redis-rs-pool", program: Program::Rust, has_threads: true },
    Client { name: "fred", program: Program::Rust, has_threads: true },
    Client { name: "go-redis", program: Program::Go, has_threads: false },
    Client { name: "rueidis", program: Program::Go, has_threads: false },
];

/// Tasks and threads, GET and SET.
pub fn run(options: &Options, results: &mut Results) -> Outcome<()> {
    let rust = rust_program()?;
    let go = go_program();
    let go = go.inspect_err(|why| results.absent(format!("go-redis, rueidis: {why}"))).ok();
    let keys = options.keys_asked.unwrap_or(KEYS);
    results.note(format!(
        "{CALLERS} callers in one process, each asks for one of {keys} keys after the other; 15 B keys, 132 B values; operations per second \
         of CPU, that of the client and of the store together"
    ));
    let ours = Zerohop::new("uring", "memory").start().ready()?;
    let theirs = programs::redis_like("valkey-server", None)?.ready()?;
    for store in [&ours, &theirs] {
        preload(store, &Load::new("get", 1, keys))?;
    }
    for callers in ["tasks", "threads"] {
        for operation in ["get", "set"] {
            let cell = format!("{operation}-{callers}");
            if !options.wants(&cell) {
                continue;
            }
            let words = ["--callers", callers, "--operation", operation, "--keys", &keys.to_string()];
            let others = OTHERS.iter().filter(|client| client.has_threads || callers == "tasks");
            let mut entrants = vec![Asking::start(OURS, &rust, &ours, &words)?];
            for client in others {
                let program = if client.program == Program::Rust { Some(&rust) } else { go.as_ref() };
                let Some(program) = program else { continue };
                for store in [&ours, &theirs] {
                    entrants.push(Asking::start(*client, program, store, &words)?);
                }
            }
            judge(&cell, &interleaved(&cell, &mut entrants, options)?, &ours.name, results)?;
        }
    }
    Ok(())
}

/// What one client showed in all rounds.
struct Column {
    name: String,
    /// Of the store behind it.
    store: String,
    slices: Vec<Slice>,
}

struct Slice {
    per_cpu_second: f64,
    per_second: f64,
    client_us: f64,
    store_us: f64,
}

/// Every client in turn, whoever came first comes last in the next round.
fn interleaved(cell: &str, entrants: &mut [Asking<'_>], options: &Options) -> Outcome<Vec<Column>> {
    let mut columns: Vec<Column> = entrants
        .iter()
        .map(|entrant| Column { name: entrant.name(), store: entrant.store.name.clone(), slices: Vec::new() })
        .collect();
    let mut progress = Progress::new(cell, options.pairs * entrants.len());
    for round in 0..options.pairs {
        for place in 0..entrants.len() {
            let number = (round + place) % entrants.len();
            entrants[number].ask_for(options.warm_up_seconds)?;
            columns[number].slices.push(entrants[number].ask_for(options.slice_seconds)?);
            progress.show(round * entrants.len() + place + 1);
        }
    }
    Ok(columns)
}

fn judge(cell: &str, columns: &[Column], our_store: &str, results: &mut Results) -> Outcome<()> {
    let of = |column: &Column, value: fn(&Slice) -> f64| column.slices.iter().map(value).collect::<Vec<f64>>();
    for column in columns {
        let kept: [(&str, Vec<f64>); 4] = [
            ("per_cpu_second", of(column, |slice| slice.per_cpu_second)),
            ("per_second", of(column, |slice| slice.per_second)),
            ("client_us", of(column, |slice| slice.client_us)),
            ("store_us", of(column, |slice| slice.store_us)),
        ];
        let kept: Vec<(&str, &[f64])> = kept.iter().map(|(name, values)| (*name, values.as_slice())).collect();
        results.keep_values(cell, &column.name, &kept);
    }
    let (ours, others) = columns.split_first().ok_or("nobody was measured")?;
    for other in others {
        let (bar, reach) = if other.store == our_store { SAME_STORE } else { WHOLE_STACK };
        for (metric, value, bar, reach) in [
            (
                "operations/CPU s",
                (|slice| slice.per_cpu_second) as fn(&Slice) -> f64,
                Bar::AtLeast(bar),
                Bar::AtLeast(reach),
            ),
            ("operations/s", |slice| slice.per_second, Bar::None, Bar::None),
        ] {
            let (mine, theirs) = (of(ours, value), of(other, value));
            let row = results.ratios((cell, metric), (&ours.name, &mine), (&other.name, &theirs), bar)?;
            if reach != Bar::None {
                row.reach(reach);
            }
        }
    }
    Ok(())
}

/// What a program says of a slice.
#[derive(Deserialize)]
struct Told {
    operations: u64,
    seconds: f64,
    cpu_us: f64,
    errors: u64,
    example: Option<String>,
}

/// A client's process, which asks when it is told to; gone when dropped.
struct Asking<'a> {
    client: Client,
    store: &'a Server,
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl<'a> Asking<'a> {
    fn start(client: Client, program: &Path, store: &'a Server, words: &[&str]) -> Outcome<Asking<'a>> {
        let mut child = outranking("setpriv")
            .args(["--pdeathsig", "KILL", "taskset", "-c", "1"])
            .arg(program)
            .arg(client.name)
            .args(["--port", &store.port.to_string(), "--count", &CALLERS.to_string()])
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{} does not start: {error}", client.name))?;
        let commands = child.stdin.take().ok_or("its standard input was piped above")?;
        let answers = BufReader::new(child.stdout.take().ok_or("its standard output was piped above")?);
        Ok(Asking { client, store, child, commands, answers })
    }

    fn name(&self) -> String {
        format!("{} on {}", self.client.name, self.store.name)
    }

    fn ask_for(&mut self, seconds: f64) -> Outcome<Slice> {
        let lost = |error| format!("{} is lost: {error}", self.client.name);
        let before_ns = self.store.run_time_ns()?;
        writeln!(self.commands, "{seconds}").and_then(|()| self.commands.flush()).map_err(lost)?;
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(lost)?;
        let store_us = (self.store.run_time_ns()? - before_ns) as f64 / 1e3;
        let told: Told =
            serde_json::from_str(&line).map_err(|error| format!("{} said {line:?}: {error}", self.client.name))?;
        if told.errors > 0 || told.operations == 0 {
            let example = told.example.unwrap_or_else(|| "it did nothing".to_owned());
            return Err(format!("{}: {} errors, {example}", self.name(), told.errors));
        }
        let operations = told.operations as f64;
        Ok(Slice {
            per_cpu_second: operations * 1e6 / (told.cpu_us + store_us),
            per_second: operations / told.seconds,
            client_us: told.cpu_us / operations,
            store_us: store_us / operations,
        })
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        if self.child.kill().is_ok() && self.child.wait().is_err() {
            eprintln!("{} could not be waited for", self.client.name);
        }
    }
}

/// The clients of Rust, built apart from the workspace.
fn rust_program() -> Outcome<PathBuf> {
    let folder = workspace::root().join("target/callers");
    let mut cargo = workspace::cargo();
    cargo.args([
        "build",
        "--release",
        "--quiet",
        "--locked",
        "--manifest-path",
        "bench/callers/Cargo.toml",
        "--target-dir",
    ]);
    match process::shown(cargo.arg(&folder))? {
        true => Ok(folder.join("release/callers")),
        false => Err("bench/callers does not build".to_owned()),
    }
}

/// Those of Go.
fn go_program() -> Outcome<PathBuf> {
    if !GO.is_met() {
        needs::install(&[&GO])?;
    }
    let program = workspace::root().join("target/callers/go-callers");
    let mut go = std::process::Command::new("go");
    go.args(["build", "-C"]).arg(workspace::root().join("bench/callers/go")).arg("-o").arg(&program).arg(".");
    match process::shown(&mut go)? {
        true => Ok(program),
        false => Err("bench/callers/go does not build".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, store: &str, per_cpu_second: f64) -> Column {
        let slice = |_| Slice { per_cpu_second, per_second: 1.0, client_us: 1.0, store_us: 1.0 };
        Column { name: name.to_owned(), store: store.to_owned(), slices: (0..15).map(slice).collect() }
    }

    #[test]
    fn other_clients_are_judged_by_the_store_behind_them() {
        let columns = [column("ours", "zerohop", 160.0), column("a", "zerohop", 100.0), column("a", "valkey", 100.0)];
        let mut results = Results::new("callers");
        judge("cell", &columns, "zerohop", &mut results).expect("everything is there");
        let verdicts: Vec<&str> = results.rows.iter().map(|row| row.verdict).collect();
        assert_eq!(verdicts, ["PASS", "", "FAIL", ""], "1.6 is enough on the same store, and not on Valkey");
    }
}
