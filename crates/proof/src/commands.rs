//! What each command of the tool takes and does.

mod soak;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::damage;
use crate::differential::exceptions;
use crate::differential::lanes::Servers;
use crate::differential::run;
use crate::hostile;
use crate::kill;
use crate::package_index;
use crate::power;
use crate::process::Server;
use crate::split;
pub use soak::{SoakArguments, soak};

/// How many checks held.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Held.
    pub passed: u64,
    /// Did not.
    pub failed: u64,
}

/// Personality of the server under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shape {
    /// One server with several databases.
    Standalone,
    /// Nodes of a cluster.
    Cluster,
    /// A cluster behind one address that knows where each key is.
    Gathered,
}

/// Arguments of `differential`.
#[derive(Args)]
pub struct DifferentialArguments {
    /// Sequences to run.
    #[arg(long, default_value_t = 10_000)]
    sequences: u64,
    /// Seed of the run; the same seed gives the same sequences.
    #[arg(long, default_value_t = 1, value_parser = parse_number)]
    seed: u64,
    /// Run only the sequence of this seed.
    #[arg(long, value_parser = parse_number)]
    only: Option<u64>,
    /// host:port of the server under test; of a cluster, once for each node.
    #[arg(long, required = true)]
    target: Vec<String>,
    /// Start this redis-server as the judge.
    #[arg(long, value_name = "BINARY")]
    redis_server: String,
    /// Start this valkey-server as the judge of newer commands.
    #[arg(long, value_name = "BINARY")]
    valkey_server: Option<String>,
    /// Personality of the target.
    #[arg(long, value_enum, default_value = "standalone")]
    shape: Shape,
    /// Leave the table of numeric boundaries out.
    #[arg(long)]
    no_boundaries: bool,
    /// Allowed differences; may be given more than once.
    #[arg(long, default_value = "tests/differential-exceptions.txt")]
    exceptions: Vec<PathBuf>,
}

fn parse_number(text: &str) -> Result<u64, std::num::ParseIntError> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    }
}

/// Runs the differential comparison.
///
/// # Errors
/// When a server cannot be started or reached, or the exceptions cannot be read.
pub fn differential(arguments: &DifferentialArguments) -> io::Result<Counts> {
    let is_cluster = arguments.shape != Shape::Standalone;
    let redis = Server::start_redis(&arguments.redis_server, is_cluster)?;
    let valkey = arguments.valkey_server.as_ref().map(|binary| Server::start_redis(binary, is_cluster)).transpose()?;
    let options = run::Options {
        servers: Servers {
            targets: arguments.target.clone(),
            redis: redis.address.clone(),
            valkey: valkey.as_ref().map(|server| server.address.clone()),
        },
        is_cluster,
        is_gathered: arguments.shape == Shape::Gathered,
        sequences: arguments.sequences,
        seed: arguments.seed,
        only: arguments.only,
        boundaries: !arguments.no_boundaries && arguments.only.is_none(),
        exceptions: arguments
            .exceptions
            .iter()
            .map(|path| read_exceptions(path))
            .collect::<io::Result<Vec<_>>>()?
            .concat(),
    };
    let outcome = run::differential(&options)?;
    Ok(Counts { passed: outcome.passed, failed: outcome.failed + outcome.gaps.len() as u64 })
}

/// Arguments of `split`.
#[derive(Args)]
pub struct SplitArguments {
    /// host:port of the server under test.
    #[arg(long, required = true)]
    target: Vec<String>,
    /// Start this redis-server and compare the uncut replies with its.
    #[arg(long, value_name = "BINARY")]
    redis_server: Option<String>,
    /// Seed of the corpus.
    #[arg(long, default_value_t = 1, value_parser = parse_number)]
    seed: u64,
}

/// Runs the split corpus against each target.
///
/// # Errors
/// When a server cannot be started or reached.
pub fn split(arguments: &SplitArguments) -> io::Result<Counts> {
    let redis = arguments.redis_server.as_ref().map(|binary| Server::start_redis(binary, false)).transpose()?;
    let mut counts = Counts::default();
    for target in &arguments.target {
        let judge = redis.as_ref().map(|server| server.address.as_str());
        let outcome = split::split(target, judge, arguments.seed)?;
        counts.passed += outcome.passed;
        counts.failed += outcome.failed;
    }
    Ok(counts)
}

/// How to start the server under test.
#[derive(Args)]
pub struct ServerArguments {
    /// The binary zerohop.
    #[arg(long, env = "ZEROHOP_BIN")]
    zerohop: String,
    /// Its number of cores.
    #[arg(long, default_value = "2")]
    cores: String,
    /// Its I/O backend.
    #[arg(long, default_value = "auto")]
    io: String,
    /// Its durability.
    #[arg(long, default_value = "memory")]
    durability: String,
}

impl ServerArguments {
    fn words(&self) -> Vec<String> {
        ["--cores", &self.cores, "--io", &self.io, "--durability", &self.durability].map(String::from).to_vec()
    }
}

/// Arguments of `hostile`.
#[derive(Args)]
pub struct HostileArguments {
    #[command(flatten)]
    server: ServerArguments,
    /// Which mutations of requests are tried.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Attacks a server that it starts.
///
/// # Errors
/// Never; a server that does not start fails its checks.
pub fn hostile(arguments: &HostileArguments) -> io::Result<Counts> {
    let server = &arguments.server;
    let target = hostile::Target { binary: server.zerohop.clone(), arguments: server.words(), seed: arguments.seed };
    let (passed, failed) = hostile::run(&target);
    Ok(Counts { passed, failed })
}

/// Arguments of `package-index`.
#[derive(Args)]
pub struct PackageIndexArguments {
    #[command(flatten)]
    server: ServerArguments,
    /// The program redis-cli.
    #[arg(long, default_value = "redis-cli")]
    redis_cli: String,
}

/// Loads the machine's package index, kills the server in the middle of a second load, and compares.
///
/// # Errors
/// When there is no package index, or a server or redis-cli cannot be run.
pub fn package_index(arguments: &PackageIndexArguments) -> io::Result<Counts> {
    let (passed, failed) = package_index::run(&package_index::Options {
        zerohop: arguments.server.zerohop.clone(),
        arguments: arguments.server.words(),
        redis_cli: arguments.redis_cli.clone(),
    })?;
    Ok(Counts { passed, failed })
}

/// Arguments of `damage`.
#[derive(Args)]
pub struct DamageArguments {
    /// The binary zerohop.
    #[arg(long, env = "ZEROHOP_BIN")]
    zerohop: String,
    /// Draws files and places.
    #[arg(long, default_value_t = 1, value_parser = parse_number)]
    seed: u64,
    /// The binary carries this planted bug: some case must be wrong.
    #[arg(long, env = "PLANTED_BUG")]
    planted: Option<String>,
}

/// Harms copies of a store, and holds `check` and `serve` to what they say about them.
///
/// # Errors
/// When the store cannot be made.
pub fn damage(arguments: &DamageArguments) -> io::Result<Counts> {
    let options = damage::Options { zerohop: arguments.zerohop.clone(), seed: arguments.seed };
    let (passed, failed) = damage::run(&options)?;
    match &arguments.planted {
        None => Ok(Counts { passed, failed }),
        Some(bug) => {
            println!("planted {bug}: {failed} cases wrong");
            Ok(Counts { passed: u64::from(failed > 0), failed: u64::from(failed == 0) })
        }
    }
}

/// Arguments of `kill`.
#[derive(Args)]
pub struct KillArguments {
    /// The binary zerohop.
    #[arg(long, env = "ZEROHOP_BIN")]
    zerohop: String,
    /// Seed of the campaign: which rounds it has.
    #[arg(long, default_value_t = 1, value_parser = parse_number)]
    seed: u64,
    /// Ends after so many rounds.
    #[arg(long, default_value_t = u64::MAX)]
    rounds: u64,
    /// Ends with the first round that is over after this time.
    #[arg(long, default_value_t = u64::MAX)]
    seconds: u64,
    /// Largest load of a round.
    #[arg(long, default_value_t = 512)]
    load_mib_max: u64,
    /// The binary carries this planted bug: some round must be wrong.
    #[arg(long, env = "PLANTED_BUG")]
    planted: Option<String>,
}

/// Kills a server under load, round by round; with a planted bug it passes if that is noticed.
///
/// # Errors
/// When no directory can be made.
pub fn kill(arguments: &KillArguments) -> io::Result<Counts> {
    let verdict = kill::run(&kill::Options {
        zerohop: arguments.zerohop.clone(),
        seed: arguments.seed,
        rounds_max: arguments.rounds,
        time_max: Duration::from_secs(arguments.seconds),
        load_bytes_max: arguments.load_mib_max << 20,
        keeps_evidence: arguments.planted.is_none(),
    })?;
    Ok(judged(arguments.planted.as_deref(), verdict.rounds, !verdict.problems.is_empty()))
}

/// Arguments of `power`.
#[derive(Args)]
pub struct PowerArguments {
    /// QEMU for this machine's kind of processor.
    #[arg(long, default_value = "qemu-system-x86_64")]
    qemu: String,
    /// The guest's kernel.
    #[arg(long)]
    kernel: String,
    /// The guest's root, with the server in it.
    #[arg(long)]
    initramfs: String,
    /// Which server that is.
    #[arg(long, value_enum, default_value = "zerohop")]
    subject: power::Subject,
    /// So many of it in the one machine: 1 on its own, or a cluster of 3 to 5.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=5))]
    nodes: u64,
    /// Seed of the campaign: which rounds it has.
    #[arg(long, default_value_t = 1, value_parser = parse_number)]
    seed: u64,
    /// Ends after so many rounds.
    #[arg(long, default_value_t = u64::MAX)]
    rounds: u64,
    /// Ends with the first round that is over after this time.
    #[arg(long, default_value_t = u64::MAX)]
    seconds: u64,
    /// The binary carries this planted bug: some round must be wrong.
    #[arg(long, env = "PLANTED_BUG")]
    planted: Option<String>,
}

/// Cuts the power of a machine under load, round by round; with a planted bug, or a subject that must lose, it passes if that
/// is noticed.
///
/// # Errors
/// When no disk can be made.
pub fn power(arguments: &PowerArguments) -> io::Result<Counts> {
    let PowerArguments { qemu, kernel, initramfs, subject, planted, .. } = arguments;
    let loser = subject.loser().or(planted.as_deref());
    let verdict = power::run(&power::Options {
        machine: power::Machine { qemu: qemu.clone(), kernel: kernel.clone(), initramfs: initramfs.clone() },
        subject: *subject,
        nodes: usize::try_from(arguments.nodes).expect("it is small"),
        planted: planted.clone(),
        seed: arguments.seed,
        rounds_max: arguments.rounds,
        time_max: Duration::from_secs(arguments.seconds),
        keeps_evidence: loser.is_none(),
    })?;
    let noticed = if loser.is_some() { verdict.noticed() } else { !verdict.problems.is_empty() };
    Ok(judged(loser, verdict.rounds, noticed))
}

/// Each right round is a test that passed; of a loser there is one test, that it is caught.
fn judged(loser: Option<&str>, rounds: u64, has_problems: bool) -> Counts {
    let failed = u64::from(has_problems);
    let Some(loser) = loser else { return Counts { passed: rounds, failed } };
    match failed {
        0 => println!("{loser} was NOT caught by {rounds} rounds"),
        _ => println!("{loser} was caught by round {}", rounds + 1),
    }
    Counts { passed: failed, failed: 1 - failed }
}

/// Arguments of `with-server`.
#[derive(Args)]
pub struct WithServerArguments {
    #[command(flatten)]
    server: ServerArguments,
    /// Puts a proxy in front of it: {port} is the proxy's, {direct} that of what is behind it.
    #[arg(long)]
    proxied: bool,
    /// A Redis or Valkey in place of Zerohop.
    #[arg(long)]
    store: Option<String>,
    /// Behind the proxy is a cluster: Zerohop's cores, or three nodes of the other store.
    #[arg(long, requires = "proxied")]
    clustered: bool,
    /// The command; {host}, {port}, {cluster} (first node) and {cluster1} (second node) are filled in.
    #[arg(trailing_var_arg = true, required = true)]
    command: Vec<String>,
}

/// Runs a command beside a server; the command's last line of counts is the result.
///
/// # Errors
/// When the server or the command cannot be started, or the command prints no counts.
pub fn with_server(arguments: &WithServerArguments) -> io::Result<Counts> {
    let words = arguments.server.words();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let servers = match &arguments.store {
        Some(binary) if arguments.clustered => Server::start_redis_cluster(binary, 3)?,
        Some(binary) => vec![Server::start_redis(binary, false)?],
        None => vec![Server::start_zerohop(&arguments.server.zerohop, &words, None)?],
    };
    let server = &servers[0];
    let upstream = match (&arguments.store, arguments.clustered) {
        (None, true) => format!("127.0.0.1:{}", server.port + 1),
        _ => server.address.clone(),
    };
    let proxy = arguments
        .proxied
        .then(|| Server::start_proxy(&arguments.server.zerohop, &upstream, &["--io", &arguments.server.io]))
        .transpose()?;
    let port = proxy.as_ref().unwrap_or(server).port;
    let fill = |word: &String| {
        word.replace("{host}", "127.0.0.1")
            .replace("{port}", &port.to_string())
            .replace("{direct}", &server.port.to_string())
            .replace("{cluster}", &(server.port + 1).to_string())
            .replace("{cluster1}", &(server.port + 2).to_string())
    };
    let filled: Vec<String> = arguments.command.iter().map(fill).collect();
    let output = Command::new(&filled[0]).args(&filled[1..]).stderr(Stdio::inherit()).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut counts = None;
    for line in text.lines() {
        match parse_counts(line) {
            Some(found) => counts = Some(found),
            None => println!("{line}"),
        }
    }
    let mut counts = counts.ok_or_else(|| io::Error::other(format!("{filled:?} prints no counts")))?;
    if !output.status.success() && counts.failed == 0 {
        counts.failed = 1;
    }
    Ok(counts)
}

/// `N passed, N failed`
fn parse_counts(line: &str) -> Option<Counts> {
    let (passed, failed) = line.split_once(" passed, ")?;
    Some(Counts { passed: passed.parse().ok()?, failed: failed.split(' ').next()?.parse().ok()? })
}

fn read_exceptions(path: &Path) -> io::Result<Vec<exceptions::Exception>> {
    let text = fs::read_to_string(path)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
    exceptions::parse(&text).map_err(io::Error::other)
}
