//! The programs under comparison and how each is started.

use std::path::PathBuf;

use super::options::Options;
use super::results::Results;
use super::server::{Server, Start};
use crate::{Outcome, peers, process, workspace};

/// Builds what is measured, in release.
pub fn build() -> Outcome<()> {
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--release", "--quiet", "--package", "bench", "--package", "cli", "--bins"]);
    if process::shown(&mut cargo)? { Ok(()) } else { Err("the programs to measure do not build".to_owned()) }
}

/// A program of this workspace, as [`build`] left it.
pub fn built(name: &str) -> PathBuf {
    workspace::root().join("target/release").join(name)
}

/// How a Zerohop server is started.
#[derive(Clone, Debug)]
pub struct Zerohop {
    /// `uring` or `epoll`.
    pub backend: String,
    /// `memory`, `interval` or `commit`.
    pub durability: String,
    /// Instances.
    pub cores: u16,
    /// CPUs, as taskset writes them.
    pub cpus: String,
}

impl Zerohop {
    /// One instance on CPU 0.
    pub fn new(backend: &str, durability: &str) -> Zerohop {
        Zerohop { backend: backend.into(), durability: durability.into(), cores: 1, cpus: "0".into() }
    }

    /// The command, named as in tables.
    pub fn start(&self) -> Start {
        let cores = self.cores.to_string();
        let name = match (self.durability.as_str(), self.cores) {
            ("memory", 1) => format!("zerohop-{}", self.backend),
            (durability, 1) => format!("zerohop-{}-{durability}", self.backend),
            (_, cores) => format!("zerohop-{}-{cores}-cores", self.backend),
        };
        let arguments = [
            "serve",
            "--port",
            "{port}",
            "--cores",
            &cores,
            "--io",
            &self.backend,
            "--durability",
            &self.durability,
            "--dir",
            "{dir}/data",
        ];
        let mut start = Start::new(&name, &built("zerohop"), &arguments);
        start.cpus.clone_from(&self.cpus);
        start
    }
}

/// Redis or Valkey (`redis-server`, `valkey-server`) without snapshots; `append` adds the append-only file.
pub fn redis_like(program: &str, append: Option<&str>) -> Outcome<Start> {
    let peer = peers::find_or_fetch(program)?;
    let name = match append {
        Some(policy) => format!("{}-{policy}", program.trim_end_matches("-server")),
        None => program.trim_end_matches("-server").to_owned(),
    };
    let append_only = if append.is_some() { "yes" } else { "no" };
    let policy = append.unwrap_or("everysec");
    let arguments =
        ["--port", "{port}", "--save", "", "--appendonly", append_only, "--appendfsync", policy, "--dir", "{dir}"];
    Ok(Start::new(&name, &peer.program, &arguments))
}

/// memcached with one worker thread.
pub fn memcached() -> Outcome<Start> {
    let peer = peers::find_or_fetch("memcached")?;
    // It refuses to run as root without being told who to be.
    let arguments = ["-p", "{port}", "-l", "127.0.0.1", "-t", "1", "-m", "4096", "-c", "2048", "-u", "root"];
    Ok(Start::new("memcached", &peer.program, &arguments))
}

/// The null server; `reply` is `get` or `set`.
pub fn null(backend: &str, reply: &str) -> Start {
    let arguments = ["--io", backend, "--port", "{port}", "--reply", reply];
    Start::new(&format!("null-{backend}"), &built("null-server"), &arguments)
}

/// The null server that answers so many keys at once.
pub fn null_many(keys: usize) -> Start {
    Start::new("null", &built("null-server"), &["--io", "epoll", "--port", "{port}", "--keys", &keys.to_string()])
}

/// The proxy that does nothing, before null servers that answer their shares of so many keys.
pub fn null_fan_out(keys: usize, servers: &[Server]) -> Start {
    let mut start = null_many(keys);
    start.name = "null-fan-out".into();
    start.words.extend(servers.iter().flat_map(|server| ["--behind".into(), server.port.to_string()]));
    start
}

/// The null server that writes what a store in durability `interval` would, and does nothing else with it.
pub fn null_log(backend: &str) -> Start {
    let arguments = ["--io", backend, "--port", "{port}", "--reply", "set", "--log", "{dir}"];
    Start::new(&format!("null-{backend}-log"), &built("null-server"), &arguments)
}

/// The null server beside whose short requests somebody sets and gets values of 512 MiB on the port behind its own, of which it
/// receives so many megabytes a second; all that comes is logged and written as runs, but nothing else is done with it.
pub fn null_long(backend: &str, operation: &str, megabytes_per_second: f64) -> Start {
    let mut start = null(backend, operation);
    start.name = format!("null-{backend}-log");
    let record_bytes = if operation == "set" { "170" } else { "0" };
    let log = ["--log", "{dir}", "--record-bytes", record_bytes, "--run-percent", "100"].map(str::to_owned);
    start.words.extend(log);
    start.words.extend(["--long-megabytes-per-second".into(), megabytes_per_second.to_string()]);
    start
}

/// The thread-per-request server.
pub fn thread_per_request() -> Start {
    Start::new("thread-per-request", &built("thread-per-request"), &["--port", "{port}"])
}

/// Zerohop on every backend asked for. A backend that does not start is named and left out, not hidden.
pub fn zerohops(options: &Options, results: &mut Results, make: impl Fn(&str) -> Zerohop) -> Vec<(String, Server)> {
    started(options, results, |backend| make(backend).start().ready())
}

/// What starts on each backend.
pub fn started(
    options: &Options,
    results: &mut Results,
    start: impl Fn(&str) -> Outcome<Server>,
) -> Vec<(String, Server)> {
    let mut servers = Vec::new();
    for backend in &options.backends {
        match start(backend) {
            Ok(server) => servers.push((backend.clone(), server)),
            Err(message) => results.absent(message),
        }
    }
    servers
}

/// The program behind a starter script of `target/peers/bin`, with the environment the script would set; tools that
/// watch a program must start it and not a shell.
pub fn behind_starter(start: &mut Start) -> String {
    let folder = workspace::root().join("target/peers");
    let program = PathBuf::from(&start.words[0]);
    match program.strip_prefix(folder.join("bin")) {
        Ok(name) => {
            let libraries = folder.join("root/usr/lib").join(format!("{}-linux-gnu", std::env::consts::ARCH));
            start.environment.push(("LD_LIBRARY_PATH".to_owned(), libraries.display().to_string()));
            folder.join("root/usr/bin").join(name).display().to_string()
        }
        Err(_) => start.words[0].clone(),
    }
}
