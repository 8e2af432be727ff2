//! `embedded`: the library against other embedded stores (N1): CPU per insert, get and remove of every key once, by what a write
//! survives, each call by itself and in groups of 1000.
//!
//! The peers are one source, `bench-peers/peers.cpp`, compiled here once per engine against Debian's libraries. No test builds it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use super::options::Options;
use super::results::{Bar, Results};
use crate::needs::{self, Need, Source};
use crate::{Outcome, process, workspace};

/// A run takes a minute and more; five rounds show the spread.
const ROUNDS_MAX: usize = 5;
/// Operations where each is synced by itself. With 2,000 a phase of reads was a few milliseconds, and the bound of five rounds up to 1.9 times
/// their median.
const SYNCED_OPERATIONS: u64 = 20_000;
const GROUP: u64 = 1000;
const PHASES: [&str; 3] = ["insert", "get", "remove"];
/// What is compared.
const METRIC: &str = "CPU us per operation";
/// Context: it has the disk in it.
const WALL_METRIC: &str = "us per operation";
/// The exit code of a program that has no such class.
const NO_SUCH_CLASS: i32 = 2;

/// A store to compare with.
struct Peer {
    name: &'static str,
    /// What chooses it in the source.
    define: &'static str,
    library: &'static str,
    need: Need,
    /// Whether single calls are compared with ours as well: not with a store that keeps nothing a crash leaves whole.
    judges_single: bool,
}

const fn need(name: &'static str, header: &'static str, packages: &'static [&'static str]) -> Need {
    Need { name, program: header, source: Source::Debian(packages) }
}

/// What compiles peers.
pub(super) const COMPILER: Need = need("a C++ compiler", "g++", &["g++"]);

/// A peer here and of `tier`.
pub(super) const ROCKSDB: Need = need("RocksDB", "/usr/include/rocksdb/db.h", &["librocksdb-dev"]);

const PEERS: &[Peer] = &[
    Peer { name: "rocksdb", define: "-DENGINE_ROCKSDB", library: "-lrocksdb", need: ROCKSDB, judges_single: true },
    Peer {
        name: "lmdb",
        define: "-DENGINE_LMDB",
        library: "-llmdb",
        need: need("LMDB", "/usr/include/lmdb.h", &["liblmdb-dev"]),
        judges_single: true,
    },
    Peer {
        name: "berkeleydb",
        define: "-DENGINE_BERKELEYDB",
        library: "-ldb-5.3",
        need: need("Berkeley DB", "/usr/include/db.h", &["libdb5.3-dev"]),
        judges_single: true,
    },
    Peer {
        name: "kyotocabinet",
        define: "-DENGINE_KYOTO",
        library: "-lkyotocabinet",
        need: need("Kyoto Cabinet", "/usr/include/kchashdb.h", &["libkyotocabinet-dev"]),
        judges_single: false,
    },
];

/// A program that prints what each phase took.
struct Program {
    name: &'static str,
    path: PathBuf,
    judges_single: bool,
}

#[derive(Deserialize)]
struct Line {
    phase: String,
    cpu_us: f64,
    wall_us: f64,
}

/// Every program in every class, interleaved, the order turned by one each round.
pub fn run(options: &Options, results: &mut Results) -> Outcome<()> {
    let programs = programs(results)?;
    results
        .note(format!("{} keys of 15 B, values of 132 B, each phase in another order; one thread calls", options.keys));
    results.note("CPU is that of the whole process, its background threads included; nothing is pinned");
    results.note("process: kyotocabinet has no log: its mapped file is whole only after a clean end, so single calls are not judged");
    for class in ["memory", "process", "power"] {
        for group in [1, GROUP] {
            let cell = format!("{class}-{}", if group == 1 { "single" } else { "grouped" });
            if options.wants(&cell) {
                measure(&cell, (class, group), &programs, options, results)?;
            }
        }
    }
    Ok(())
}

fn measure(
    cell: &str,
    (class, group): (&str, u64),
    programs: &[Program],
    options: &Options,
    results: &mut Results,
) -> Outcome<()> {
    let operations = if class == "power" && group == 1 { SYNCED_OPERATIONS.min(options.keys) } else { options.keys };
    let rounds = options.pairs.min(ROUNDS_MAX);
    let mut measured: Vec<Vec<Vec<Line>>> = programs.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        for turn in 0..programs.len() {
            let index = (round + turn) % programs.len();
            measured[index].extend(run_once(&programs[index], (class, group), (options.keys, operations))?);
        }
    }
    for (phase, name) in PHASES.iter().enumerate() {
        let column = |lines: &[Vec<Line>], of: fn(&Line) -> f64| lines.iter().map(|run| of(&run[phase])).collect();
        let row = format!("{cell}-{name}");
        let ours: Vec<f64> = column(&measured[0], |line| line.cpu_us);
        for (program, lines) in programs.iter().zip(&measured).filter(|(_, lines)| !lines.is_empty()) {
            let cpu: Vec<f64> = column(lines, |line| line.cpu_us);
            let wall: Vec<f64> = column(lines, |line| line.wall_us);
            results.value(&row, program.name, WALL_METRIC, &wall, Bar::None)?;
            results.keep_values(&row, program.name, &[(METRIC, &cpu), (WALL_METRIC, &wall)]);
            if program.name != programs[0].name {
                let judges = program.judges_single || group > 1;
                let bar = if judges { Bar::AtMost(1.0) } else { Bar::None };
                results.ratios((&row, METRIC), (programs[0].name, &ours), (program.name, &cpu), bar)?;
            }
        }
    }
    Ok(())
}

/// One run on a directory of its own; `None` where the program has no such class.
fn run_once(
    program: &Program,
    (class, group): (&str, u64),
    (keys, operations): (u64, u64),
) -> Outcome<Option<Vec<Line>>> {
    let directory = folder().join("data");
    let at = |error: std::io::Error| format!("{}: {error}", directory.display());
    if directory.exists() {
        fs::remove_dir_all(&directory).map_err(at)?;
    }
    fs::create_dir_all(&directory).map_err(at)?;
    let mut command = Command::new(&program.path);
    command.arg(&directory).args([keys, operations, group].map(|number| number.to_string())).arg(class);
    let output = command.output().map_err(|error| format!("{} does not start: {error}", program.name))?;
    fs::remove_dir_all(&directory).map_err(at)?;
    if output.status.code() == Some(NO_SUCH_CLASS) {
        return Ok(None);
    }
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let lines: Result<Vec<Line>, _> = text.lines().map(serde_json::from_str).collect();
    match lines {
        Ok(lines) if output.status.success() && lines.iter().map(|line| &line.phase[..]).eq(PHASES) => Ok(Some(lines)),
        _ => Err(format!("{} {class} {group}: {} {errors}", program.name, output.status)),
    }
}

/// Ours first, and the peers that can be had.
fn programs(results: &mut Results) -> Outcome<Vec<Program>> {
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--release", "--quiet", "--package", "zerohop", "--example", "embedded_load"]);
    if !process::shown(&mut cargo)? {
        return Err(String::from("the library's load does not build"));
    }
    let path = workspace::root().join("target/release/examples/embedded_load");
    let mut programs = vec![Program { name: "zerohop", path, judges_single: true }];
    let needs: Vec<&Need> = std::iter::once(&COMPILER).chain(PEERS.iter().map(|peer| &peer.need)).collect();
    let missing: Vec<&Need> = needs.into_iter().filter(|need| !need.is_met()).collect();
    if !missing.is_empty() {
        needs::install(&missing)?;
    }
    for peer in PEERS {
        match missing_of(peer) {
            Some(need) => results.absent(format!("{}: {}", need.name, need.advice())),
            None => programs.push(compile(peer)?),
        }
    }
    Ok(programs)
}

fn missing_of(peer: &'static Peer) -> Option<&'static Need> {
    [&COMPILER, &peer.need].into_iter().find(|need| !need.is_met())
}

fn compile(peer: &Peer) -> Outcome<Program> {
    let path = folder().join(peer.name);
    fs::create_dir_all(folder()).map_err(|error| format!("{}: {error}", folder().display()))?;
    let source: &Path = &workspace::root().join("bench-peers/peers.cpp");
    let mut compiler = Command::new("g++");
    compiler.args(["-O2", "-std=c++17", peer.define]).arg(source).arg("-o").arg(&path).arg(peer.library);
    match process::shown(&mut compiler)? {
        true => Ok(Program { name: peer.name, path, judges_single: peer.judges_single }),
        false => Err(format!("{} does not compile", peer.name)),
    }
}

fn folder() -> PathBuf {
    workspace::root().join("target/bench-peers")
}
