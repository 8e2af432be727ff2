//! `amplification`: bytes to the device for one that a user writes, and bytes of the directory for one that lives.
//!
//! ```text
//!  preload ─ overwrites, until the log grew by two rounds ─ window │ window │ …      a window: as many overwrites as `--keys`
//!                                                            └ bytes to the device, bytes that the product counted, the
//!                                                              directory every 50 ms
//! ```
//!
//! Half of the data is dead by itself: keys are drawn uniformly and values keep their length, so each overwrite makes one record
//! dead, and the product holds log of seven eighths of what lives beside its runs. The share that was there is a row.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::conditions;
use super::info::number_of;
use super::options::Options;
use super::programs::{Zerohop, built};
use super::progress::Progress;
use super::results::{Bar, Results, number};
use super::server::Server;
use super::slice::{Load, preload};
use crate::{Outcome, process};

/// Keys, in `--keys`: with fewer the least log that a core holds weighs more than what lives.
const SIZE: u64 = 5;
/// The same of a look.
const LOOK_SIZE: u64 = 2;
/// Bytes of a key and a value: what a user writes and what lives.
const RECORD_BYTES: f64 = 15.0 + 132.0;
/// Log before the first window, in runs' bytes: more than two rounds, so every run was made under this load.
const LOG_BEFORE: f64 = 2.0;
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// A file's blocks, as the system counts them.
const BLOCK_BYTES: u64 = 512;

/// What is counted up from the start of the process.
#[derive(Clone, Copy)]
struct Written {
    sets: f64,
    /// What the kernel charged the process with, less what was removed before it was written.
    device_bytes: f64,
    log_bytes: f64,
    run_bytes: f64,
}

/// The directory at one moment.
struct Look {
    directory_bytes: f64,
    /// Every live record once, as runs have them.
    live_record_bytes: f64,
}

/// What one window showed.
struct Window {
    device: f64,
    counted: f64,
    runs: f64,
    directory: f64,
    directory_of_records: f64,
    dead_percent: f64,
}

/// The first backend asked for; the log is the same for all.
pub fn run(options: &Options, results: &mut Results) -> Outcome<()> {
    let keys = options.keys * if options.is_look() { LOOK_SIZE } else { SIZE };
    let server = Zerohop::new(&options.backends[0], "interval").start().ready()?;
    results.note(conditions::line("interval", "log in the page cache, synced every second; runs written past it"));
    results.note(format!(
        "{keys} keys of 15 B with values of 132 B, drawn uniformly; a window is {} overwrites; 1 byte written or living is one of \
         a key or a value; device: write_bytes less cancelled_write_bytes of the process, without the file system's own",
        options.keys
    ));
    preload(&server, &Load::new("get", 1, keys))?;
    let first = Written::of(&server)?;
    loop {
        overwrite(&server, (keys, options.keys), 64)?;
        let runs_bytes = number_of(&server.ask("INFO persistence")?, "run_bytes")?;
        if Written::of(&server)?.log_bytes - first.log_bytes > LOG_BEFORE * runs_bytes && runs_bytes > 0.0 {
            break;
        }
    }
    for pipeline in [64, 1].into_iter().filter(|pipeline| options.wants(&format!("P{pipeline}"))) {
        measure(&server, (keys, pipeline), options, results)?;
    }
    Ok(())
}

fn measure(server: &Server, (keys, pipeline): (u64, u64), options: &Options, results: &mut Results) -> Outcome<()> {
    let cell = format!("overwrite-P{pipeline}");
    // The first one begins with what another load left.
    window(server, (keys, options.keys), pipeline)?;
    let (mut windows, mut progress) = (Vec::new(), Progress::new(&cell, options.pairs));
    for round in 0..options.pairs {
        windows.push(window(server, (keys, options.keys), pipeline)?);
        progress.show(round + 1);
    }
    drop(progress);
    let column = |of: fn(&Window) -> f64| windows.iter().map(of).collect::<Vec<f64>>();
    let most = |of: fn(&Window) -> f64| vec![column(of).into_iter().fold(0.0, f64::max)];
    let name = &server.name;
    results.value(&cell, name, "bytes to the device per byte written", &column(|w| w.device), Bar::AtMost(3.0))?;
    results.value(&cell, name, "the same by the product's counters", &column(|w| w.counted), Bar::AtMost(3.0))?;
    results.value(&cell, name, "of which runs", &column(|w| w.runs), Bar::None)?;
    results.value(
        &cell,
        name,
        "most bytes of the directory per byte that lives",
        &most(|w| w.directory),
        Bar::AtMost(2.0),
    )?;
    let metric = "the same per byte of live records with their heads";
    results.value(&cell, name, metric, &most(|w| w.directory_of_records), Bar::None)?;
    results.value(&cell, name, "% of the directory that is dead", &column(|w| w.dead_percent), Bar::None)?;
    results.keep_values(&cell, name, &[("device", &column(|w| w.device)), ("counted", &column(|w| w.counted))]);
    let difference = column(|w| w.device / w.counted - 1.0).into_iter().fold(0.0f64, |most, of| most.max(of.abs()));
    results.note(format!("{cell}: device and counters differ by at most {} %", number(100.0 * difference)));
    Ok(())
}

fn window(server: &Server, keys_and_count: (u64, u64), pipeline: u64) -> Outcome<Window> {
    let (before, is_over) = (Written::of(server)?, AtomicBool::new(false));
    let looks = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| looks(server, &is_over));
        let done = overwrite(server, keys_and_count, pipeline);
        is_over.store(true, Ordering::Relaxed);
        let looks = watcher.join().map_err(|_| "the watcher ended by a panic".to_owned())?;
        done.and(looks)
    })?;
    let after = Written::of(server)?;
    Ok(Window::of((&before, &after), &looks, keys_and_count.0))
}

fn overwrite(server: &Server, (keys, count): (u64, u64), pipeline: u64) -> Outcome<()> {
    let mut load = Command::new(built("load-generator"));
    load.args(["--target", &format!("127.0.0.1:{}", server.port), "--pin", "1", "--op", "set", "--warm-up", "0"])
        .args(["--pipeline", &pipeline.to_string(), "--keys", &keys.to_string(), "--requests", &count.to_string()])
        .args(["--seed", &(server.run_time_ns()? | 1).to_string(), "--json"]);
    process::output(&mut load).map(|_| ())
}

fn looks(server: &Server, is_over: &AtomicBool) -> Outcome<Vec<Look>> {
    let mut looks = Vec::new();
    let mut has_more = true;
    while has_more {
        has_more = !is_over.load(Ordering::Relaxed);
        let live_record_bytes = number_of(&server.ask("INFO persistence")?, "run_bytes")?;
        let directory_bytes = directory_bytes(&server.folder().join("data"))?;
        looks.push(Look { directory_bytes, live_record_bytes });
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(looks)
}

/// What the files take on the disk, their room included.
fn directory_bytes(folder: &Path) -> Outcome<f64> {
    let listed = fs::read_dir(folder).map_err(|error| format!("cannot list {}: {error}", folder.display()))?;
    // A file that goes between the two looks is none.
    let sizes = listed.flatten().filter_map(|entry| entry.metadata().ok());
    Ok(sizes.map(|metadata| (metadata.blocks() * BLOCK_BYTES).max(metadata.len()) as f64).sum())
}

impl Written {
    fn of(server: &Server) -> Outcome<Written> {
        let path = format!("/proc/{}/io", server.pid());
        let io = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        let info = server.ask("INFO persistence maintenance commandstats")?;
        Ok(Written {
            sets: calls(&info, "set").unwrap_or(0.0),
            device_bytes: number_of(&io, "write_bytes")? - number_of(&io, "cancelled_write_bytes")?,
            log_bytes: number_of(&info, "log_bytes_written")?,
            run_bytes: number_of(&info, "checkpoint_bytes")?,
        })
    }
}

/// How often a command was called, by INFO.
fn calls(info: &str, command: &str) -> Option<f64> {
    let line =
        info.lines().find_map(|line| line.strip_prefix("cmdstat_")?.strip_prefix(command)?.strip_prefix(":calls="));
    line?.split(',').next()?.parse().ok()
}

impl Window {
    fn of((before, after): (&Written, &Written), looks: &[Look], keys: u64) -> Window {
        let written = (after.sets - before.sets) * RECORD_BYTES;
        let grew = |of: fn(&Written) -> f64| (of(after) - of(before)) / written;
        let most = |of: &dyn Fn(&Look) -> f64| looks.iter().map(of).fold(0.0, f64::max);
        let dead: f64 = looks.iter().map(|look| 1.0 - look.live_record_bytes / look.directory_bytes).sum();
        Window {
            device: grew(|written| written.device_bytes),
            counted: grew(|written| written.log_bytes + written.run_bytes),
            runs: grew(|written| written.run_bytes),
            directory: most(&|look| look.directory_bytes / (keys as f64 * RECORD_BYTES)),
            directory_of_records: most(&|look| look.directory_bytes / look.live_record_bytes),
            dead_percent: 100.0 * dead / looks.len() as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Look, Window, Written, calls};

    #[test]
    fn what_was_written_is_held_against_what_a_user_wrote() {
        let before = Written { sets: 100.0, device_bytes: 1000.0, log_bytes: 500.0, run_bytes: 300.0 };
        let after = Written { sets: 110.0, device_bytes: 5410.0, log_bytes: 2705.0, run_bytes: 2505.0 };
        let looks = [(2940.0, 1470.0), (4410.0, 1470.0)]
            .map(|(directory_bytes, live_record_bytes)| Look { directory_bytes, live_record_bytes });
        let window = Window::of((&before, &after), &looks, 10);
        assert!((window.device - 3.0).abs() < 1e-9 && (window.counted - 3.0).abs() < 1e-9);
        assert!((window.runs - 1.5).abs() < 1e-9 && (window.directory - 3.0).abs() < 1e-9);
        assert!((window.dead_percent - 100.0 * (0.5 + 2.0 / 3.0) / 2.0).abs() < 1e-9);
    }

    #[test]
    fn calls_are_those_of_the_whole_name() {
        let info = "cmdstat_setex:calls=9,usec=0\r\ncmdstat_set:calls=12,usec=0\r\n";
        assert_eq!(calls(info, "set"), Some(12.0));
        assert_eq!(calls(info, "get"), None);
    }
}
