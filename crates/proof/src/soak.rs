//! The real binary under mixed load, with connections that come and go, for as long as asked: what it holds must not grow
//! (AT-26).
//!
//! ```text
//!   work      sequences of all families of commands, a bulk that is overwritten, long values, keys that expire
//!   churn     500 connections a second that come, ask and go in every way a client can
//!   left      who is counted when everybody has gone, and what the system says of their sockets
//!   sample    resident bytes, file descriptors, bytes of the directory: every few seconds, and when everybody has gone
//!   verdict   what of that may be
//! ```
//!
//! The verdict goes by bytes and counts. A machine that is slower takes longer: the end comes when the time is over and as many
//! connections have come as belong to it.

mod churn;
mod left;
mod sample;
mod verdict;
mod work;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{io, thread};

use crate::kill::told::{self, segments_given_back};
use crate::process::{Server, new_directory};
use left::{Left, left};
use sample::{Sample, sample};
use verdict::Evidence;

/// Connections of the churn in a second.
pub const CONNECTIONS_PER_SECOND: u64 = 500;
/// A soak that takes so many times its time is given up.
const SLOWNESS_MAX: u32 = 3;
/// Between two samples.
const SAMPLE_EVERY: Duration = Duration::from_secs(5);
/// How long the server may take to see that everybody has gone.
const GONE_WITHIN: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The binary zerohop.
    pub zerohop: String,
    /// Arguments for its start: cores, backend, durability.
    pub arguments: Vec<String>,
    /// What requests are drawn from.
    pub seed: u64,
    /// How long.
    pub time: Duration,
}

/// What clients have come to, and what they are told.
#[derive(Default)]
struct Gauge {
    connections: AtomicU64,
    requests: AtomicU64,
    is_over: AtomicBool,
}

impl Gauge {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

/// Runs it, prints what it meets, and says which promises held and which did not.
///
/// # Errors
/// When the server cannot be started or reached.
pub fn run(options: &Options) -> io::Result<(u64, u64)> {
    let directory = new_directory()?;
    let arguments: Vec<&str> = options.arguments.iter().map(String::as_str).collect();
    let mut server = Server::start_zerohop(&options.zerohop, &arguments, Some(&directory))?;
    work::load(&server.address)?;
    let (gauge, alone) = (Gauge::default(), sample(&server, &directory, Duration::ZERO)?);
    let parts_alone = memory_parts(&server)?;
    let (samples, mut problems) = under_load(&server, &directory, options, &gauge);
    let (left, clients_left) = await_gone(&server, &directory)?;
    let mut connection = server.connect()?;
    let info = connection.call_line("INFO everything")?;
    let evidence = Evidence {
        samples: samples?,
        alone,
        left,
        clients_left,
        uncalled: work::uncalled(&String::from_utf8_lossy(&info)),
        runs: told::gauge(&info, "runs_published").unwrap_or(0),
        segments_given_back: segments_given_back(&directory)?,
        expired_keys: told::gauge(&info, "expired_keys").unwrap_or(0),
        disk_bytes_max: verdict::disk_bytes_max(&options.arguments),
    };
    problems.extend(told::panic(&server.output()));
    problems.extend((!server.is_alive()).then(|| "the server is gone".to_owned()));
    println!(
        "{} connections came and went in {} s, {} requests beside them; {} runs published, {} segments given back, {} keys \
         expired",
        gauge.connections.load(Ordering::Relaxed),
        evidence.samples.last().map_or(0, |last| last.at.as_secs()),
        gauge.requests.load(Ordering::Relaxed),
        evidence.runs,
        evidence.segments_given_back,
        evidence.expired_keys,
    );
    println!("memory by INFO before any client: {parts_alone}");
    println!("memory by INFO when all had gone: {}", memory_parts(&server)?);
    let mut checks = evidence.checks();
    checks.push(verdict::Check::new("it serves all the time", problems.is_empty(), problems.join("; ")));
    for check in &checks {
        println!("{}  {}: {}", if check.holds { "ok    " } else { "FAILED" }, check.promise, check.found);
    }
    drop(connection);
    drop(server);
    std::fs::remove_dir_all(&directory)?;
    let passed = checks.iter().filter(|check| check.holds).count() as u64;
    Ok((passed, checks.len() as u64 - passed))
}

/// What the server says its memory is for: where to look when it climbs.
fn memory_parts(server: &Server) -> io::Result<String> {
    let info = server.connect()?.call_line("INFO memory")?;
    let text = String::from_utf8_lossy(&info).into_owned();
    let is_part = |line: &&str| line.starts_with("used_memory_") && !line.contains("human") && !line.contains("peak");
    Ok(text.lines().filter(is_part).map(|line| line.trim_start_matches("used_memory_")).collect::<Vec<_>>().join(", "))
}

/// Samples, and what clients met that must not be.
fn under_load(
    server: &Server,
    directory: &std::path::Path,
    options: &Options,
    gauge: &Gauge,
) -> (io::Result<Vec<Sample>>, Vec<String>) {
    thread::scope(|scope| {
        let clients = [
            scope.spawn(|| work::sequences(&server.address, options.seed, gauge)),
            scope.spawn(|| work::sequences(&server.address, !options.seed, gauge)),
            scope.spawn(|| work::bulk(&server.address, options.seed, gauge)),
            scope.spawn(|| churn::run(&server.address, options.seed, gauge)),
        ];
        let samples =
            until_over(server, directory, options.time, gauge, || clients.iter().any(|one| one.is_finished()));
        gauge.is_over.store(true, Ordering::Relaxed);
        let ended = clients.into_iter().map(|client| client.join().expect("no panic"));
        (samples, ended.filter_map(|result| result.err().map(|error| error.to_string())).collect())
    })
}

fn until_over(
    server: &Server,
    directory: &std::path::Path,
    time: Duration,
    gauge: &Gauge,
    has_failed: impl Fn() -> bool,
) -> io::Result<Vec<Sample>> {
    let (begun, mut samples) = (Instant::now(), Vec::new());
    let wanted = CONNECTIONS_PER_SECOND * time.as_secs();
    loop {
        let next = begun.elapsed() + SAMPLE_EVERY.min(time / 10);
        while begun.elapsed() < next && !has_failed() {
            thread::sleep(LOOK_EVERY);
        }
        samples.push(sample(server, directory, begun.elapsed())?);
        let connections = gauge.connections.load(Ordering::Relaxed);
        println!("round {}: {}, {connections} connections", samples.len(), samples[samples.len() - 1]);
        let is_late = begun.elapsed() >= SLOWNESS_MAX * time;
        if has_failed() || is_late || (begun.elapsed() >= time && connections >= wanted) {
            return Ok(samples);
        }
    }
}

/// When every client but the one that asks is gone: the last sample, and who is still counted.
fn await_gone(server: &Server, directory: &std::path::Path) -> io::Result<(Sample, Left)> {
    let (begun, mut connection) = (Instant::now(), server.connect()?);
    loop {
        let others = left(&mut connection)?;
        if others.count == 0 || begun.elapsed() > GONE_WITHIN {
            return Ok((sample(server, directory, begun.elapsed())?, others));
        }
        thread::sleep(LOOK_EVERY);
    }
}
