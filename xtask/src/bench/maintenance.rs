//! `maintenance` (H1): what writes wait for while slot groups become runs, with the scheduler and without it.
//!
//! Both arms are one program, the build with planted bugs: in one of them M26 makes all 64 groups due at once, each walked in
//! one slice, as fast as the disk takes it. Open loop at half of what a closed loop reaches; latency counts from when a
//! request was to be sent.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::info::number_of;
use super::options::Options;
use super::programs::Zerohop;
use super::progress::Progress;
use super::quiet_machine::QuietMachine;
use super::results::{Bar, Results};
use super::server::Server;
use super::slice::{Entrant, Load, Slice, preload, quiet_slice};
use crate::{Outcome, kill};

/// Seconds of a slice, and more where the machine is slow: every one has a burst of the arm without a scheduler.
const SLICE_SECONDS: f64 = 15.0;
const SLICE_SECONDS_MAX: f64 = 60.0;
/// Rounds of runs in a slice, at least.
const ROUNDS: f64 = 1.2;
/// Keys of 15 bytes with values of 132: a round of runs comes every few seconds at half load. Ten times as many, as checkpoints are
/// measured with, are `--keys 5000000`, and take ten times as long.
const KEYS: u64 = 500_000;
const BUG: &str = "M26";
const VARIABLE: &str = "PLANTED_BUG";
/// Between two looks at INFO.
const LOOK: Duration = Duration::from_millis(200);

/// One of the two, and what it showed.
struct Arm {
    server: Server,
    load: Load,
    slices: Vec<Slice>,
    /// Longest time without a tick of each slice, milliseconds.
    gap_ms: Vec<f64>,
    /// The most log that a start would have had to replay, of each slice, megabytes.
    held_mb: Vec<f64>,
    /// Bytes of log and of runs since the start, at every look.
    written: Vec<(f64, f64)>,
}

/// Every backend, durability `interval`.
pub fn run(options: &Options, results: &mut Results) -> Outcome<()> {
    let program = kill::planted_release_binary()?.display().to_string();
    let _quiet = QuietMachine::new(results);
    let keys = options.keys_asked.unwrap_or(KEYS);
    for backend in &options.backends {
        let arm = |name: &str, bug: Option<&str>| -> Outcome<Arm> {
            let mut start = Zerohop::new(backend, "interval").start();
            start.name = format!("{}-{name}", start.name);
            start.words[0].clone_from(&program);
            start.environment = bug.iter().map(|bug| (VARIABLE.to_owned(), (*bug).to_owned())).collect();
            Arm::new(start.ready()?, keys)
        };
        let mut arms = [arm("scheduled", None)?, arm("synchronised", Some(BUG))?];
        let per_second = set_rate(&mut arms, options, results)?;
        let mut options = options.clone();
        options.slice_seconds = slice_seconds(keys, per_second).max(options.slice_seconds);
        results.note(format!("{keys} keys in 64 slot groups, slices of {:.0} s", options.slice_seconds));
        let mut progress = Progress::new(&format!("maintenance-{backend}"), options.pairs * 2);
        for round in 0..options.pairs {
            for step in 0..2 {
                arms[(round + step) % 2].measure(&options)?;
                progress.show(2 * round + step + 1);
            }
        }
        judge(backend, &arms, results)?;
    }
    Ok(())
}

fn set_rate(arms: &mut [Arm; 2], options: &Options, results: &mut Results) -> Outcome<f64> {
    let mut short = options.clone();
    short.slice_seconds = 3.0;
    let mut slowest = f64::INFINITY;
    for arm in arms.iter() {
        slowest = slowest.min(quiet_slice(&Entrant::new(&arm.server, &arm.load), &short, &mut 3)?.per_second);
    }
    let half = format!("{:.0}", slowest / 2.0);
    results.note(format!("{half} requests a second: half of what the slower arm reaches"));
    arms.iter_mut().for_each(|arm| arm.load = arm.load.clone().with(&["--rate", &half]));
    Ok(slowest / 2.0)
}

/// A round comes when seven eighths of the keys have been written, about.
fn slice_seconds(keys: u64, per_second: f64) -> f64 {
    (ROUNDS * keys as f64 * 7.0 / 8.0 / per_second).clamp(SLICE_SECONDS, SLICE_SECONDS_MAX)
}

fn judge(backend: &str, [scheduled, synchronised]: &[Arm; 2], results: &mut Results) -> Outcome<()> {
    let cell = format!("maintenance-{backend}");
    let column = |arm: &Arm, of: fn(&Slice) -> f64| -> Vec<f64> { arm.slices.iter().map(of).collect() };
    let ratios = |ours: &[f64], theirs: &[f64]| -> Vec<f64> { ours.iter().zip(theirs).map(|(a, b)| a / b).collect() };
    for arm in [scheduled, synchronised] {
        let name = &arm.server.name;
        results.value(&cell, name, "p50, us", &column(arm, |slice| slice.p50_us), Bar::None)?;
        results.value(&cell, name, "p99, us", &column(arm, |slice| slice.p99_us), Bar::None)?;
        results.value(&cell, name, "p99.9, us", &column(arm, |slice| slice.p99_9_us), Bar::None)?;
        results.value(&cell, name, "longest, us", &column(arm, |slice| slice.max_us), Bar::None)?;
        results.value(&cell, name, "longest time without a tick, ms", &arm.gap_ms, Bar::None)?;
        results.value(&cell, name, "log to replay at most, MB", &arm.held_mb, Bar::None)?;
    }
    let name = "scheduled / synchronised";
    let p99_9 = |arm: &Arm| column(arm, |slice| slice.p99_9_us);
    results.value(&cell, name, "p99.9 (H1)", &ratios(&p99_9(scheduled), &p99_9(synchronised)), Bar::AtMost(0.20))?;
    // Of all slices: in one of them the other arm may never come to the end of its round.
    let held = [most(&scheduled.held_mb) / most(&synchronised.held_mb)];
    results.value(&cell, name, "log to replay at most", &held, Bar::AtMost(1.2))?;
    let bytes = [run_bytes_per_log_byte(&scheduled.written) / run_bytes_per_log_byte(&synchronised.written)];
    results.value(&cell, name, "bytes of runs per byte of log", &bytes, Bar::AtMost(1.02))?;
    results.value(&cell, name, "bytes of runs per byte of log", &bytes, Bar::AtLeast(0.98))?;
    Ok(())
}

fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NAN, f64::max)
}

impl Arm {
    fn new(server: Server, keys: u64) -> Outcome<Arm> {
        let load = Load::new("set", 1, keys);
        preload(&server, &load)?;
        Ok(Arm { server, load, slices: Vec::new(), gap_ms: Vec::new(), held_mb: Vec::new(), written: Vec::new() })
    }

    fn measure(&mut self, options: &Options) -> Outcome<()> {
        self.server.ask("CONFIG RESETSTAT")?;
        let (server, entrant, is_over) = (&self.server, Entrant::new(&self.server, &self.load), AtomicBool::new(false));
        let (slice, looks) = std::thread::scope(|scope| {
            let watcher = scope.spawn(|| looks(server, &is_over));
            // Not repeated: what a slice does to the runs is part of the next one.
            let slice = quiet_slice(&entrant, options, &mut 0);
            is_over.store(true, Ordering::Relaxed);
            (slice, watcher.join())
        });
        let looks = looks.map_err(|_| "the watcher ended by a panic".to_owned())??;
        self.slices.push(slice?);
        self.held_mb.push(looks.iter().map(|look| look.held_bytes / 1e6).fold(0.0, f64::max));
        self.written.extend(looks.iter().map(|look| (look.log_bytes, look.run_bytes)));
        self.gap_ms.push(number_of(&self.server.ask("INFO zerohop")?, "tick_gap_us_max")? / 1e3);
        Ok(())
    }
}

/// What INFO says at one moment.
struct Look {
    log_bytes: f64,
    held_bytes: f64,
    run_bytes: f64,
}

fn looks(server: &Server, is_over: &AtomicBool) -> Outcome<Vec<Look>> {
    let mut looks = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        let info = server.ask("INFO persistence maintenance")?;
        looks.push(Look {
            log_bytes: number_of(&info, "log_bytes_written")?,
            held_bytes: number_of(&info, "log_held_bytes")?,
            run_bytes: number_of(&info, "checkpoint_bytes")?,
        });
        std::thread::sleep(LOOK);
    }
    Ok(looks)
}

/// Bytes of runs for one of log. Bursts are stairs: between the feet of the first and of the last one lie whole rounds. Who
/// writes all the time has none, and is judged from the first look to the last.
fn run_bytes_per_log_byte(written: &[(f64, f64)]) -> f64 {
    let rises = written.windows(4).filter(|looks| looks[0].1 == looks[2].1 && looks[3].1 > looks[2].1);
    let feet: Vec<(f64, f64)> = rises.map(|looks| looks[2]).collect();
    let ends = if feet.len() > 1 { &feet[..] } else { written };
    match (ends.first(), ends.last()) {
        (Some(first), Some(last)) => (last.1 - first.1) / (last.0 - first.0),
        _ => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::run_bytes_per_log_byte;

    #[test]
    fn whole_rounds_are_compared() {
        // A round of 50 with every 100 of log; the looks begin and end in the middle of one.
        let bursts: Vec<(f64, f64)> =
            (30..=770).step_by(10).map(|log| (f64::from(log), f64::from(log / 100 * 50))).collect();
        assert!((run_bytes_per_log_byte(&bursts) - 0.5).abs() < 1e-9, "{}", run_bytes_per_log_byte(&bursts));
        let steady: Vec<(f64, f64)> = (0..80).map(|log| (f64::from(log), f64::from(log) / 2.0)).collect();
        assert!((run_bytes_per_log_byte(&steady) - 0.5).abs() < 1e-9);
        assert!(run_bytes_per_log_byte(&[]).is_nan());
    }
}
