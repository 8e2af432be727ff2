//! `recovery`: from the start of the process after `kill -9` to the first answered command: a log without runs, and
//! runs with the log behind them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;

use super::options::Options;
use super::programs::Zerohop;
use super::results::{Bar, Results};
use super::server::Server;
use super::slice::{Entrant, Load, preload, quiet_slice};
use crate::{Outcome, process};

const REPETITIONS: usize = 3;
/// A core has its first run when its log grew by its share of `LOG_SEGMENTS_MIN` segments, and gives the
/// first segment back when all its slot groups have one. So many cores hold a few hundred megabytes before that.
const LOG_CORES: u16 = 8;
/// Keys of the log without runs: about 40 MB per core. With 50 a disk that is late made whole rounds of runs before the kill.
const LOG_KEYS: u64 = 1_800_000;
const LOG_KEYS_LOOK: u64 = 1_000_000;
/// Keys of the store with runs, in `--keys`.
const STORE_SIZE: u64 = 10;
/// How long random keys are overwritten before the second kill.
const OVERWRITE_SECONDS: f64 = 10.0;
/// Runs under way are published before the kill, so that all loads have as many.
const REST_BEFORE_KILL: Duration = Duration::from_secs(3);
const GIVE_UP_AFTER: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(1);
const LOG_METRIC: &str = "MB of log/s to the first answer";
const STORE_METRIC: &str = "s to the first answer";
const CPU_METRIC: &str = "s of CPU to the first answer";
const DELAY_METRIC: &str = "s without the CPU, which others had";

/// Runs the first backend asked for: until the first answer there is hardly anything that it does.
pub fn run(options: &Options, results: &mut Results) -> Outcome<()> {
    results.note(
        "`interval`, keys of 15 B, values of 132 B; one core on one CPU after each kill; the first answer is that of \
         DBSIZE, with all keys. Unless the load is called cold, all files are in the page cache, read through before each \
         start. The first start after a kill also writes again and syncs what no group of the log states to be durable: the \
         last second of the load",
    );
    if options.wants("log-alone") {
        log_alone(options, results)?;
    }
    if options.wants("store") {
        store(options, results)?;
    }
    Ok(())
}

fn log_alone(options: &Options, results: &mut Results) -> Outcome<()> {
    let keys = if options.is_look() { LOG_KEYS_LOOK } else { LOG_KEYS };
    let start = Zerohop::new(&options.backends[0], "interval");
    let many = Zerohop { cores: LOG_CORES, cpus: "0,1".into(), ..start.clone() };
    let mut server = many.start().ready()?;
    preload(&server, &Load::new("get", 1, keys))?;
    kill_at_rest(&mut server)?;
    server.become_start(start.start());
    let bytes = remove_runs(&server)?;
    let starts = starts(&mut server, keys, read_through)?;
    let per_second: Vec<f64> = starts.iter().map(|start| bytes as f64 / 1e6 / start.seconds).collect();
    results.note(format!("log-alone: {keys} keys in {:.0} MB of log of {LOG_CORES} cores", bytes as f64 / 1e6));
    results.value("log-alone", &server.name, LOG_METRIC, &per_second, Bar::AtLeast(400.0))?;
    show_cpu("log-alone", &server, &starts, results)
}

/// Removes the runs, which no manifest names before the second start, and returns the length of all logs, which have to
/// be there from their beginnings.
fn remove_runs(server: &Server) -> Outcome<u64> {
    for path in files(server, ".run")?.iter().chain(&files(server, ".run.new")?) {
        fs::remove_file(path).map_err(|error| format!("cannot remove {}: {error}", path.display()))?;
    }
    let logs = files(server, ".log")?;
    let firsts = logs.iter().filter(|path| path.to_string_lossy().ends_with("-0000000000.log")).count();
    if firsts != usize::from(LOG_CORES) {
        return Err(format!("only {firsts} of {LOG_CORES} logs are whole: too much was written before the kill"));
    }
    Ok(bytes_of(&logs))
}

fn store(options: &Options, results: &mut Results) -> Outcome<()> {
    let keys = if options.is_look() { options.keys } else { STORE_SIZE * options.keys };
    let bars = if options.is_look() { [Bar::None; 2] } else { [Bar::AtMost(10.0), Bar::AtMost(5.0)] };
    let mut server = Zerohop::new(&options.backends[0], "interval").start().ready()?;
    preload(&server, &Load::new("get", 1, keys))?;
    repeat(&format!("store-{keys}-loaded"), &mut server, keys, bars, read_through, results)?;
    server.start_again()?;
    answer(&mut server, keys)?;
    let load = Load::new("set", 16, keys);
    let length = Options { slice_seconds: OVERWRITE_SECONDS, ..options.clone() };
    quiet_slice(&Entrant::new(&server, &load), &length, &mut 0)?;
    repeat(&format!("store-{keys}-overwritten"), &mut server, keys, bars, read_through, results)?;
    let cold = format!("store-{keys}-overwritten-cold");
    repeat(&cold, &mut server, keys, [Bar::None; 2], drop_cached, results)
}

/// Kills the server, and starts it again and again; it ends killed.
fn repeat(
    cell: &str,
    server: &mut Server,
    keys: u64,
    [bar, reach]: [Bar; 2],
    prepare: fn(&Server) -> Outcome<()>,
    results: &mut Results,
) -> Outcome<()> {
    kill_at_rest(server)?;
    let megabytes = |ending| files(server, ending).map(|paths| bytes_of(&paths) as f64 / 1e6);
    results.note(format!("{cell}: {:.0} MB of runs, {:.0} MB of log", megabytes(".run")?, megabytes(".log")?));
    let starts = starts(server, keys, prepare)?;
    let seconds: Vec<f64> = starts.iter().map(|start| start.seconds).collect();
    results.value(cell, &server.name, STORE_METRIC, &seconds, bar)?.reach(reach);
    show_cpu(cell, server, &starts, results)
}

/// What of a start's time was its own, and what the neighbours': neither is judged, both tell a slow start from a busy
/// machine.
fn show_cpu(cell: &str, server: &Server, starts: &[Measured], results: &mut Results) -> Outcome<()> {
    let column = |of: fn(&Measured) -> f64| starts.iter().map(of).collect::<Vec<f64>>();
    let (cpu, delay) = (column(|start| start.cpu_seconds), column(|start| start.delay_seconds));
    results.slices.push(json!({
        "cell": cell, "server": server.name, "seconds": column(|start| start.seconds), "cpu_seconds": cpu,
        "delay_seconds": delay,
    }));
    results.value(cell, &server.name, CPU_METRIC, &cpu, Bar::None)?;
    results.value(cell, &server.name, DELAY_METRIC, &delay, Bar::None)?;
    Ok(())
}

/// One start, up to the first answer.
struct Measured {
    seconds: f64,
    cpu_seconds: f64,
    delay_seconds: f64,
}

/// Starts the server again and again; it is killed before and after.
fn starts(server: &mut Server, keys: u64, prepare: fn(&Server) -> Outcome<()>) -> Outcome<Vec<Measured>> {
    let mut starts = Vec::new();
    for _ in 0..REPETITIONS {
        prepare(server)?;
        let began = Instant::now();
        server.start_again()?;
        answer(server, keys)?;
        let seconds = began.elapsed().as_secs_f64();
        let cpu_seconds = server.run_time_ns()? as f64 / 1e9;
        starts.push(Measured { seconds, cpu_seconds, delay_seconds: server.run_delay_ns()? as f64 / 1e9 });
        server.kill()?;
    }
    Ok(starts)
}

fn kill_at_rest(server: &mut Server) -> Outcome<()> {
    if server.check_alive().is_ok() {
        std::thread::sleep(REST_BEFORE_KILL);
    }
    server.kill()
}

fn answer(server: &mut Server, keys: u64) -> Outcome<()> {
    let began = Instant::now();
    let wanted = format!(":{keys}");
    loop {
        let heard = server.ask("DBSIZE");
        match heard {
            Ok(number) if number == wanted => return Ok(()),
            // Anything but a number is said by a server that still loads.
            Ok(number) if number.starts_with(':') => {
                return Err(format!("{} has {number} of {keys} keys", server.name));
            }
            _ => server.check_alive()?,
        }
        if began.elapsed() > GIVE_UP_AFTER {
            return Err(format!("{} answers nothing within {GIVE_UP_AFTER:?}: {heard:?}", server.name));
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// The files of the data directory with this ending.
fn files(server: &Server, ending: &str) -> Outcome<Vec<PathBuf>> {
    let folder = server.folder().join("data");
    let listed = fs::read_dir(&folder).map_err(|error| format!("cannot list {}: {error}", folder.display()))?;
    let has_ending = |path: &PathBuf| path.to_string_lossy().ends_with(ending);
    Ok(listed.flatten().map(|entry| entry.path()).filter(has_ending).collect())
}

fn bytes_of(paths: &[PathBuf]) -> u64 {
    paths.iter().filter_map(|path| fs::metadata(path).ok()).map(|metadata| metadata.len()).sum()
}

/// Brings everything into the page cache: runs are written past it.
fn read_through(server: &Server) -> Outcome<()> {
    each_file(server, &[])
}

/// Takes these files, and no others of the machine, out of the page cache.
fn drop_cached(server: &Server) -> Outcome<()> {
    each_file(server, &["iflag=nocache", "count=0"])
}

fn each_file(server: &Server, words: &[&str]) -> Outcome<()> {
    let paths = files(server, "")?;
    paths.iter().try_for_each(|path| copy_to_nowhere(path, words))
}

fn copy_to_nowhere(path: &Path, words: &[&str]) -> Outcome<()> {
    let mut copy = Command::new("dd");
    copy.arg(format!("if={}", path.display())).args(["of=/dev/null", "bs=1M", "status=none"]).args(words);
    process::output(&mut copy).map(|_| ())
}
