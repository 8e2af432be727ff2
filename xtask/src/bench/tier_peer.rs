//! Stores that are called, not asked over a network: RocksDB by `bench-peers/tier.cpp`, compiled here, and the library's example
//! `embedded_tier`. Each is started inside a memory cgroup, and told line by line what to read.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
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
    /// RocksDB's block cache, or what the library may take.
    pub memory_bytes: u64,
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
pub struct Library {
    name: &'static str,
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
    folder: PathBuf,
}

impl Library {
    /// RocksDB, compiled where that is possible, loaded, and how long that took.
    pub fn rocksdb(settings: Settings, group: &MemoryGroup) -> Outcome<(Library, Line)> {
        // Past the page cache or not: as it does by itself.
        Library::loaded("rocksdb", &compiled()?, settings, &["0"], group)
    }

    /// Zerohop, without a server.
    pub fn zerohop(settings: Settings, group: &MemoryGroup) -> Outcome<(Library, Line)> {
        let mut cargo = workspace::cargo();
        cargo.args(["build", "--release", "--quiet", "--package", "cli", "--example", "embedded_tier"]);
        if !process::shown(&mut cargo)? {
            return Err(String::from("the library's load does not build"));
        }
        let program = workspace::root().join("target/release/examples/embedded_tier");
        Library::loaded("zerohop-library", &program, settings, &[], group)
    }

    fn loaded(
        name: &'static str,
        program: &Path,
        settings: Settings,
        more: &[&str],
        group: &MemoryGroup,
    ) -> Outcome<(Library, Line)> {
        let folder = workspace::root().join("target/bench-data").join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let Settings { keys, value_bytes, memory_bytes, threads } = settings;
        let numbers = [keys, value_bytes, memory_bytes, threads as u64].map(|number| number.to_string());
        let paths = [program, &folder].map(|path| path.display().to_string());
        let more = more.iter().map(|word| (*word).to_owned());
        let words: Vec<String> = paths.into_iter().chain(numbers).chain(more).collect();
        // As the server: preferred over its neighbours, and gone when this chore is killed.
        let mut child = outranking("setpriv")
            .args(["--pdeathsig", "KILL"])
            .args(group.around(&words))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{name}'s program does not start: {error}"))?;
        let commands = child.stdin.take().ok_or("its standard input was piped above")?;
        let answers = BufReader::new(child.stdout.take().ok_or("its standard output was piped above")?);
        let mut store = Library { name, child, commands, answers, folder };
        let loaded = store.answer()?;
        Ok((store, loaded))
    }

    /// As tables call it.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Reads keys of `distribution` (`uniform` or `zipf`) for so long, on these CPUs.
    pub fn read(&mut self, distribution: &str, seconds: f64, cpus: &str) -> Outcome<Line> {
        writeln!(self.commands, "{distribution} {seconds} {cpus}")
            .and_then(|()| self.commands.flush())
            .map_err(|error| format!("{}'s program takes no command: {error}", self.name))?;
        self.answer()
    }

    fn answer(&mut self) -> Outcome<Line> {
        let (name, mut line) = (self.name, String::new());
        self.answers.read_line(&mut line).map_err(|error| format!("{name}'s program is lost: {error}"))?;
        if line.is_empty() {
            let status = self.child.wait().map_err(|error| format!("{name}'s program is lost: {error}"))?;
            return Err(format!("{name}'s program ended ({status}); what it said stands above"));
        }
        serde_json::from_str(&line).map_err(|error| format!("{name}'s program said {line:?}: {error}"))
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        if self.child.kill().is_ok() && self.child.wait().is_err() {
            eprintln!("{}'s program could not be waited for", self.name);
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
