//! `memory-limit`: ten times the limit, in values of changing sizes, by what the system says the process takes.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::options::Options;
use super::programs::{self, Zerohop, built};
use super::results::{Bar, Results};
use super::server::Server;
use crate::Outcome;

const LIMIT_MB: u64 = 256;
/// Lengths of the values, one after the other; of each one and a half times the limit.
const VALUE_BYTES: [&str; 7] = ["100", "1000-1500", "20-60", "5000-9000", "300", "20000-60000", "132"];
/// Where values go to the disk, and keys do not: such as are long enough that all keys fit.
const TIERED_VALUE_BYTES: [&str; 4] = ["1000-1500", "5000-9000", "600", "20000-60000"];
/// A policy that no option names, but `CONFIG SET` does.
const RANDOM: &str = "allkeys-random";
/// The policy that needs keys which expire.
const EXPIRING: &str = "evict-ttl";
/// Requests ahead.
const AHEAD: u64 = 64;
/// Between two looks at the process.
const LOOK: Duration = Duration::from_millis(10);

/// Loads it, and looks.
pub fn run(options: &Options, results: &mut Results) -> Outcome<()> {
    for durability in ["memory", "interval"] {
        for policy in ["evict-lru", "evict-lfu", EXPIRING, RANDOM, "refuse"] {
            measure(durability, policy, &VALUE_BYTES, options, results)?;
        }
    }
    measure("commit", "evict-lru", &VALUE_BYTES, options, results)?;
    measure("interval", "tier", &TIERED_VALUE_BYTES, options, results)
}

fn measure(
    durability: &str,
    policy: &str,
    value_bytes: &[&str],
    options: &Options,
    results: &mut Results,
) -> Outcome<()> {
    let cell = format!("{policy}-{durability}");
    if !options.wants(&cell) {
        return Ok(());
    }
    let limit_bytes = LIMIT_MB << 20;
    let when_full = if policy == RANDOM { "evict-lru" } else { policy };
    let start = |backend: &str| {
        let mut start = Zerohop::new(backend, durability).start();
        start.words.extend(["--memory-limit", &limit_bytes.to_string(), "--when-full", when_full].map(str::to_owned));
        start.ready()
    };
    for (_, server) in programs::started(options, results, start) {
        if when_full != policy {
            server.ask(&format!("CONFIG SET maxmemory-policy {policy}"))?;
        }
        let most_kb = watched(server.pid(), || value_bytes.iter().try_for_each(|bytes| load(&server, policy, bytes)))?;
        let percent = (most_kb << 10) as f64 / limit_bytes as f64 * 100.0;
        results.value(&cell, &server.name, "% of the limit resident at most", &[percent], Bar::AtMost(105.0))?;
        let info = server.ask("INFO memory")?;
        let used = info.lines().find_map(|line| line.strip_prefix("used_memory:")).unwrap_or("?");
        results.note(format!("{cell}, {}: {used} bytes of {limit_bytes} in use at the end", server.name));
    }
    Ok(())
}

fn load(server: &Server, policy: &str, value_bytes: &str) -> Outcome<()> {
    let ends: Vec<u64> = value_bytes.split('-').filter_map(|end| end.parse().ok()).collect();
    let mean = ends.iter().sum::<u64>() / ends.len().max(1) as u64 + 60;
    let count = (LIMIT_MB * 3 / 2 * (1 << 20) / mean).to_string();
    let prefix = format!("k{}:", ends.first().copied().unwrap_or_default());
    if policy == EXPIRING {
        return load_expiring(server, &prefix, &ends, LIMIT_MB * 3 / 2 * (1 << 20) / mean)
            .map_err(|error| format!("values of {value_bytes} bytes that expire: {error}"));
    }
    let done = Command::new(built("load-generator"))
        .args(["--target", &format!("127.0.0.1:{}", server.port), "--pin", "1", "--op", "set", "--pipeline", "64"])
        .args(["--distribution", "sequential", "--key-bytes", "20", "--value-bytes", value_bytes, "--keys", &count])
        .args(["--requests", &count, "--key-prefix", &prefix])
        .output()
        .map_err(|error| format!("the load generator does not start: {error}"))?;
    match done.status.success() {
        true => Ok(()),
        false => Err(format!("values of {value_bytes} bytes: {}", String::from_utf8_lossy(&done.stderr))),
    }
}

/// Keys that expire, the earlier ones sooner; which length a value has goes from the shortest to the longest and begins anew.
fn load_expiring(server: &Server, prefix: &str, ends: &[u64], count: u64) -> io::Result<()> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port))?;
    let mut replies = BufReader::new(stream.try_clone()?);
    let (first, last) = (ends.first().copied().unwrap_or(1), ends.last().copied().unwrap_or(1));
    let mut line = String::new();
    for from in (0..count).step_by(AHEAD as usize) {
        let mut batch = Vec::new();
        for number in from..count.min(from + AHEAD) {
            let (key, seconds) = (format!("{prefix}{number:016}"), (10_000 + number).to_string());
            let length = (first + number % (last - first + 1)) as usize;
            let head = format!("*5\r\n$3\r\nSET\r\n${}\r\n{key}\r\n${length}\r\n", key.len());
            batch.extend_from_slice(head.as_bytes());
            batch.resize(batch.len() + length, b'v');
            batch.extend_from_slice(format!("\r\n$2\r\nEX\r\n${}\r\n{seconds}\r\n", seconds.len()).as_bytes());
        }
        stream.write_all(&batch)?;
        for _ in from..count.min(from + AHEAD) {
            line.clear();
            replies.read_line(&mut line)?;
            if line != "+OK\r\n" {
                return Err(io::Error::other(line.trim_end().to_owned()));
            }
        }
    }
    Ok(())
}

/// The most that a process took while `work` went on, kilobytes.
fn watched(pid: u32, work: impl FnOnce() -> Outcome<()>) -> Outcome<u64> {
    let (is_over, most) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let watcher = {
        let (is_over, most) = (Arc::clone(&is_over), Arc::clone(&most));
        std::thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
                let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
                let kilobytes = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0);
                most.fetch_max(kilobytes, Ordering::Relaxed);
                std::thread::sleep(LOOK);
            }
        })
    };
    let done = work();
    is_over.store(true, Ordering::Relaxed);
    watcher.join().map_err(|_| "the watcher ended by a panic".to_owned())?;
    done.map(|()| most.load(Ordering::Relaxed))
}
