//! `instructions`: user-space instructions per request. A count does not depend on how busy the machine is; it also does
//! not see cache misses or the kernel, so it explains a CPU time and never replaces one.
//!
//! `perf` counts them on a machine whose processor shows its counters; otherwise callgrind runs the server. Two loads
//! of different length in two runs are subtracted, so that start, preload and end cancel out.

use std::fs;
use std::process::{Command, Stdio};

use super::options::Options;
use super::programs::{self, Zerohop, built};
use super::results::{Bar, Results};
use super::server::Start;
use crate::{Outcome, process};

const METRIC: &str = "user instructions/request";
const KEYS: &str = "20000";
const REQUESTS: [u64; 2] = [10_000, 50_000];

/// Runs what starts under callgrind.
pub fn run(options: &Options, results: &mut Results) -> Outcome<()> {
    if process::output(Command::new("valgrind").arg("--version").stderr(Stdio::null())).is_err() {
        return Err("valgrind is not installed (Debian package valgrind)".to_owned());
    }
    results.note(format!(
        "hardware counters: {}; counted by callgrind",
        if perf_counts() { "available" } else { "not supported here" }
    ));
    for (op, pipeline) in [("get", 1), ("set", 1), ("get", 16), ("set", 16), ("get", 64), ("set", 64)] {
        let cell = format!("{op}-P{pipeline}");
        if !options.wants(&cell) {
            continue;
        }
        let load = (op, pipeline);
        let peers = ["redis-server", "valkey-server"]
            .map(|peer| measure(results, &cell, load, || programs::redis_like(peer, None)));
        for backend in &options.backends {
            let null = measure(results, &cell, load, || Ok(programs::null(backend, op)));
            let zerohop = measure(results, &cell, load, || Ok(Zerohop::new(backend, &options.durability).start()));
            let Some((name, count)) = zerohop else { continue };
            for (other, other_count) in [&null, &peers[0], &peers[1]].into_iter().flatten() {
                results.ratio(&cell, METRIC, (&name, count), (other, *other_count));
            }
        }
    }
    Ok(())
}

fn perf_counts() -> bool {
    let output = Command::new("perf").args(["stat", "-e", "instructions:u", "true"]).output();
    output.is_ok_and(|output| {
        output.status.success() && !String::from_utf8_lossy(&output.stderr).contains("not supported")
    })
}

/// The server's name and its instructions per request.
fn measure(
    results: &mut Results,
    cell: &str,
    load: (&str, usize),
    make: impl Fn() -> Outcome<Start>,
) -> Option<(String, f64)> {
    let (op, pipeline) = load;
    let told = per_request(&["--op", op], pipeline, make).and_then(|(name, count)| {
        results.value(cell, &name, METRIC, &[count], Bar::None)?;
        Ok((name, count))
    });
    match told {
        Ok(told) => Some(told),
        Err(message) => {
            results.absent(format!("{cell}: {message}"));
            None
        }
    }
}

/// The server's name and the instructions of one request of a load that `words` tell to the generator.
pub fn per_request(words: &[&str], pipeline: usize, make: impl Fn() -> Outcome<Start>) -> Outcome<(String, f64)> {
    let (name, few) = count(make()?, (words, pipeline), REQUESTS[0])?;
    let (_, many) = count(make()?, (words, pipeline), REQUESTS[1])?;
    Ok((name, (many - few) / (REQUESTS[1] - REQUESTS[0]) as f64))
}

/// Instructions of a whole run with so many requests.
fn count(mut start: Start, (words, pipeline): (&[&str], usize), requests: u64) -> Outcome<(String, f64)> {
    let program = programs::behind_starter(&mut start);
    start.words[0] = program;
    let valgrind = ["valgrind", "--quiet", "--tool=callgrind", "--callgrind-out-file={dir}/counts"];
    start.words.splice(0..0, valgrind.map(str::to_owned));
    let is_null = start.name.starts_with("null");
    let mut server = start.ready()?;
    if !is_null {
        server.await_writes()?;
    }
    let mut load = Command::new(built("load-generator"));
    load.args(["--target", &format!("127.0.0.1:{}", server.port), "--server-pid", &server.pid().to_string()])
        .args(words)
        .args(["--pipeline", &pipeline.to_string(), "--keys", KEYS, "--pin", "1"])
        .args(["--requests", &requests.to_string(), "--warm-up", "0", "--json"]);
    if !is_null {
        load.arg("--preload");
    }
    process::output(&mut load)?;
    let folder = server.end()?;
    let text = fs::read_to_string(folder.join("counts"))
        .map_err(|error| format!("callgrind wrote no counts for {}: {error}", server.name))?;
    let total = text
        .lines()
        .find_map(|line| line.strip_prefix("totals: ").or_else(|| line.strip_prefix("summary: ")))
        .and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    total.map(|total| (server.name.clone(), total)).ok_or_else(|| format!("no total in the counts of {}", server.name))
}
