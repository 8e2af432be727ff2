//! RocksDB of `bench-peers/tier.cpp`: compiled here, started inside a memory cgroup, told line by line what to read.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::Deserialize;

use super::embedded::{COMPILER, ROCKSDB};
use super::memory_group::MemoryGroup;
use super::server::outranking;
use crate::needs::{self, Need};
use crate::{Outcome, process, workspace};

/// What is read, and with what.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub keys: u64,
    pub value_bytes: u64,
    pub cache_bytes: u64,
    pub threads: usize,
}

/// What the program says after each command.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Line {
    pub gets: u64,
    pub wall_s: f64,
    pub cpu_s: f64,
}

/// A store that is loaded; killed when dropped, and its files removed.
pub struct RocksDb {
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
    folder: PathBuf,
}

impl RocksDb {
    /// Compiles it where that is possible, loads it, and says how long that took.
    pub fn loaded(settings: Settings, group: &MemoryGroup) -> Outcome<(RocksDb, Line)> {
        let program = compiled()?;
        let folder = workspace::root().join("target/bench-data").join(format!("rocksdb-{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let Settings { keys, value_bytes, cache_bytes, threads } = settings;
        let numbers = [keys, value_bytes, cache_bytes, threads as u64, 0].map(|number| number.to_string());
        let words: Vec<String> =
            [&program, &folder].map(|path| path.display().to_string()).into_iter().chain(numbers).collect();
        // As the server: preferred over its neighbours, and gone when this chore is killed.
        let mut child = outranking("setpriv")
            .args(["--pdeathsig", "KILL"])
            .args(group.around(&words))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("RocksDB's program does not start: {error}"))?;
        let commands = child.stdin.take().ok_or("its standard input was piped above")?;
        let answers = BufReader::new(child.stdout.take().ok_or("its standard output was piped above")?);
        let mut store = RocksDb { child, commands, answers, folder };
        let loaded = store.answer()?;
        Ok((store, loaded))
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Reads keys of `distribution` (`uniform` or `zipf`) for so long, on these CPUs.
    pub fn read(&mut self, distribution: &str, seconds: f64, cpus: &str) -> Outcome<Line> {
        writeln!(self.commands, "{distribution} {seconds} {cpus}")
            .and_then(|()| self.commands.flush())
            .map_err(|error| format!("RocksDB's program takes no command: {error}"))?;
        self.answer()
    }

    fn answer(&mut self) -> Outcome<Line> {
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(|error| format!("RocksDB's program is lost: {error}"))?;
        if line.is_empty() {
            let status = self.child.wait().map_err(|error| format!("RocksDB's program is lost: {error}"))?;
            return Err(format!("RocksDB's program ended ({status}); what it said stands above"));
        }
        serde_json::from_str(&line).map_err(|error| format!("RocksDB's program said {line:?}: {error}"))
    }
}

impl Drop for RocksDb {
    fn drop(&mut self) {
        if self.child.kill().is_ok() && self.child.wait().is_err() {
            eprintln!("RocksDB's program could not be waited for");
        }
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            eprintln!("cannot remove {}: {error}", self.folder.display());
        }
    }
}

fn compiled() -> Outcome<PathBuf> {
    let needs = [&COMPILER, &ROCKSDB];
    let missing: Vec<&Need> = needs.into_iter().filter(|need| !need.is_met()).collect();
    if !missing.is_empty() {
        needs::install(&missing)?;
    }
    if let Some(need) = needs.into_iter().find(|need| !need.is_met()) {
        return Err(format!("{}: {}", need.name, need.advice()));
    }
    let folder = workspace::root().join("target/bench-peers");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let path = folder.join("tier");
    let mut compiler = Command::new("g++");
    compiler.args(["-O2", "-std=c++17"]).arg(workspace::root().join("bench-peers/tier.cpp")).arg("-o").arg(&path);
    match process::shown(compiler.args(["-lrocksdb", "-pthread"]))? {
        true => Ok(path),
        false => Err("bench-peers/tier.cpp does not compile".to_owned()),
    }
}
