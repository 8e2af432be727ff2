//! The memory that a fork takes: Redis's BGSAVE under half load, by the proportional sizes of both processes.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::super::conditions;
use super::super::info::number_of;
use super::super::options::Options;
use super::super::programs;
use super::super::results::{Bar, Results};
use super::super::server::Server;
use super::super::slice::{Entrant, Load, preload, quiet_slice};
use crate::Outcome;

/// Snapshots; each takes seconds.
const ROUNDS_MAX: usize = 3;
/// Seconds of load around a snapshot: it is over before the load is.
const LOAD_SECONDS: f64 = 6.0;
/// The load is under way before the snapshot begins.
const BEGINS_AFTER: Duration = Duration::from_millis(500);
const LOOK_EVERY: Duration = Duration::from_millis(20);
const METRIC: &str = "% more memory at most";

/// `--keys` keys of 15 B with values of 132 B, GET and SET 1:1 as Zerohop has it.
pub fn measure(options: &Options, results: &mut Results) -> Outcome<()> {
    let server = programs::redis_like("redis-server", None)?.ready()?;
    let keys = options.keys;
    let mut load = Load {
        words: vec!["--ratio".into(), "1:1".into()],
        connections: 50,
        pipeline: 1,
        keys,
        pin: Some(1),
        goes_first: false,
    };
    preload(&server, &load)?;
    let options = Options { slice_seconds: 1.0, ..options.clone() };
    let half = quiet_slice(&Entrant::new(&server, &load), &options, &mut 0)?.per_second / 2.0;
    load = load.with(&["--rate", &format!("{half:.0}")]);
    let mut extra = Vec::new();
    for _ in 0..options.pairs.min(ROUNDS_MAX) {
        extra.push(extra_percent(&server, &load, &options)?);
    }
    results.note(format!("fork: redis-server with {keys} keys, BGSAVE under {half:.0} requests a second"));
    results.note(conditions::line("none but BGSAVE", "irrelevant"));
    results.value("fork-BGSAVE", &server.name, METRIC, &extra, Bar::None)?;
    Ok(())
}

fn extra_percent(server: &Server, load: &Load, options: &Options) -> Outcome<f64> {
    let before = proportional_bytes(server.pid())?;
    let (options, is_over) = (Options { slice_seconds: LOAD_SECONDS, ..options.clone() }, AtomicBool::new(false));
    let most = std::thread::scope(|scope| {
        let loading = scope.spawn(|| {
            let done = quiet_slice(&Entrant::new(server, load), &options, &mut 0);
            is_over.store(true, Ordering::Relaxed);
            done
        });
        std::thread::sleep(BEGINS_AFTER);
        let most = snapshot(server, &is_over);
        loading.join().map_err(|_| "the load ended by a panic".to_owned())??;
        most
    })?;
    Ok((most / before - 1.0) * 100.0)
}

/// The most that parent and child took together while the snapshot was written.
fn snapshot(server: &Server, is_over: &AtomicBool) -> Outcome<f64> {
    server.ask("BGSAVE")?;
    let mut most = 0.0f64;
    loop {
        most = most.max(with_children(server.pid())?);
        if number_of(&server.ask("INFO persistence")?, "rdb_bgsave_in_progress")? < 1.0 {
            return Ok(most);
        }
        if is_over.load(Ordering::Relaxed) {
            return Err(format!("a snapshot takes longer than the {LOAD_SECONDS} s of its load"));
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn with_children(pid: u32) -> Outcome<f64> {
    let own = proportional_bytes(pid)?;
    // A child that has just ended takes nothing.
    Ok(children(pid).into_iter().filter_map(|child| proportional_bytes(child).ok()).sum::<f64>() + own)
}

/// Pages that several processes share count in equal parts, so the sum is what the system gave.
fn proportional_bytes(pid: u32) -> Outcome<f64> {
    let path = format!("/proc/{pid}/smaps_rollup");
    let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kilobytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    kilobytes.map(|kilobytes| kilobytes * 1024.0).ok_or_else(|| format!("{path} tells no size"))
}

fn children(pid: u32) -> Vec<u32> {
    let parent_of = |id: u32| parent(&fs::read_to_string(format!("/proc/{id}/stat")).ok()?);
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|id| parent_of(*id) == Some(pid)).collect()
}

/// The parent in `/proc/PID/stat`; the name before it may hold anything.
fn parent(stat: &str) -> Option<u32> {
    stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::parent;

    #[test]
    fn the_parent_is_found_behind_any_name() {
        assert_eq!(parent("12 (a b) c) S 7 12 12 0"), Some(7));
        assert_eq!(parent("12 (a"), None);
    }
}
