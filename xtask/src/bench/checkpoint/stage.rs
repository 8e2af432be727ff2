//! The server with its data, and one slice on it with what the server says of itself meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::super::gaps;
use super::super::info::number_of;
use super::super::options::Options;
use super::super::results::{Results, number};
use super::super::server::Server;
use super::super::slice::{Entrant, Load, Slice, preload, quiet_slice};
use crate::Outcome;

/// Seconds of the closed loop that says what half of it is.
const PROBE_SECONDS: f64 = 2.0;
/// Load before each slice, seconds: short, because a steady slice has to fit between two runs.
pub const WARM_UP_SECONDS: f64 = 0.05;
/// What a steady slice may log, in strides: the next run is due after 0.8 of them at the earliest.
const STEADY_STRIDES: f64 = 0.5;
/// Less tells no p99.9.
const SLICE_SECONDS_MIN: f64 = 0.1;
/// Between two looks at INFO, in steady and in disturbed slices alike.
const LOOK: Duration = Duration::from_millis(25);
/// A server is at rest when no run has grown and no key has expired for so long.
const AT_REST_FOR: Duration = Duration::from_millis(150);
/// One that never is gets its slice all the same; what it did in it is looked at.
const REST_WITHIN: Duration = Duration::from_secs(20);
/// Slices that are thrown away because a run began in them.
const TRIES_MAX: usize = 8;
/// Slot groups, each with its run.
const GROUPS: f64 = 64.0;
/// Bytes of log of a round at least: four segments.
const ROUND_BYTES_MIN: f64 = 67_108_864.0;

/// How fast requests come.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// Open loop at half of what a closed one reaches; GET and SET.
    Half,
    /// Closed loop; SET.
    Full,
}

/// A slice, and what was seen meanwhile.
pub struct Seen {
    /// What the load generator saw.
    pub slice: Slice,
    /// Longest time without a tick, a canary's lateness subtracted, milliseconds.
    pub gap_ms: f64,
    /// Most resident memory.
    pub peak_bytes: f64,
    /// Share of the looks between which a run grew.
    pub run_share: f64,
    /// Share of the looks with a backup under way.
    pub backup_share: f64,
    /// Share of the looks in which runs were made without their bound in time.
    pub hurried_share: f64,
    /// Share of the looks between which keys expired.
    pub expiry_share: f64,
}

/// What INFO says at one moment.
struct Look {
    run_bytes: f64,
    expired_keys: f64,
    is_backed_up: bool,
    is_hurried: bool,
}

/// A load, and how long its slices are.
struct Paced {
    load: Load,
    options: Options,
}

/// See the module.
pub struct Stage {
    /// The server.
    pub server: Server,
    /// Its keys.
    pub keys: u64,
    /// How long the last load of keys that expire took.
    pub expiry_load_seconds: f64,
    /// Bytes of log from one run to the next.
    pub stride_bytes: f64,
    /// What it takes at rest, before the first slice.
    pub rest_bytes: f64,
    half: Paced,
    full: Paced,
}

impl Stage {
    /// Loads the keys, lets every slot group have its run, and finds out what half load is.
    pub fn new(server: Server, keys: u64, options: &Options, results: &mut Results) -> Outcome<Stage> {
        let words = |words: [&str; 2]| words.map(str::to_owned).to_vec();
        let mix = Load {
            words: words(["--ratio", "1:1"]),
            connections: 50,
            pipeline: 1,
            keys,
            pin: Some(1),
            goes_first: false,
        };
        let set = Load::new("set", 1, keys);
        preload(&server, &mix)?;
        let overwrite = Options { slice_seconds: PROBE_SECONDS, ..options.clone() };
        let fast = Load { pipeline: 64, ..set.clone() };
        // Runs say what a stride is once every group has one with all its keys.
        let published = || number_of(&server.ask("INFO persistence")?, "runs_published");
        let first = published()?;
        while published()? < first + GROUPS {
            quiet_slice(&Entrant::new(&server, &fast), &overwrite, &mut 0)?;
        }
        let run_bytes = number_of(&server.ask("INFO persistence")?, "run_bytes")?;
        let stride_bytes = (run_bytes * 14.0 / 16.0).max(ROUND_BYTES_MIN) / GROUPS;
        let (per_second, log_per_second) = probe(&server, &mix, options)?;
        let rate = format!("{:.0}", per_second / 2.0);
        let half = Paced::new(mix.with(&["--rate", &rate]), log_per_second / 2.0, stride_bytes, options);
        let (_, log_per_second) = probe(&server, &set, options)?;
        let full = Paced::new(set, log_per_second, stride_bytes, options);
        results.note(format!(
            "{keys} keys of 15 B with values of 132 B; {} MB of runs, one due with every {} MB of log; half load: {rate} \
             requests a second in slices of {} s; full load: slices of {} s",
            number(run_bytes / 1e6),
            number(stride_bytes / 1e6),
            number(half.options.slice_seconds),
            number(full.options.slice_seconds),
        ));
        let mut stage = Stage { server, keys, expiry_load_seconds: 3.0, stride_bytes, rest_bytes: 0.0, half, full };
        stage.settle()?;
        stage.rest_bytes = stage.server.memory_bytes("VmRSS")?;
        Ok(stage)
    }

    /// A slice in which no run is under way, none begins, nothing expires and nobody takes a backup.
    pub fn steady(&self, pace: Pace) -> Outcome<Seen> {
        for _ in 0..TRIES_MAX {
            self.settle()?;
            let seen = self.observe(pace)?;
            if seen.run_share + seen.backup_share + seen.expiry_share == 0.0 {
                return Ok(seen);
            }
        }
        Err(format!("{TRIES_MAX} slices that were to be steady were not"))
    }

    /// Waits until runs and memory are at rest.
    pub fn settle(&self) -> Outcome<()> {
        let began = Instant::now();
        let mut last = ((f64::NAN, f64::NAN), Instant::now());
        while last.1.elapsed() < AT_REST_FOR && began.elapsed() < REST_WITHIN {
            std::thread::sleep(LOOK);
            let info = self.server.ask("INFO maintenance")?;
            let done = (number_of(&info, "checkpoint_bytes")?, number_of(&info, "expiry_keys")?);
            if done != last.0 || number_of(&info, "reclaim_backlog_bytes")? > 0.0 {
                last = (done, Instant::now());
            }
        }
        Ok(())
    }

    /// A slice as the server is.
    pub fn observe(&self, pace: Pace) -> Outcome<Seen> {
        let Paced { load, options } = match pace {
            Pace::Half => &self.half,
            Pace::Full => &self.full,
        };
        let (server, entrant, is_over) = (&self.server, Entrant::new(&self.server, load), AtomicBool::new(false));
        server.reset_peak()?;
        let ((slice, looks), watched) = gaps::watch(server, || {
            std::thread::scope(|scope| {
                let watcher = scope.spawn(|| looks(server, &is_over));
                let slice = quiet_slice(&entrant, options, &mut 0);
                is_over.store(true, Ordering::Relaxed);
                let looks = watcher.join().map_err(|_| "the watcher ended by a panic".to_owned())??;
                Ok((slice?, looks))
            })
        })?;
        let gap_ms = watched.judged.own_us as f64 / 1e3;
        Ok(Seen::of(slice, &looks, gap_ms, server.memory_bytes("VmHWM")?))
    }

    /// Overwrites random keys until so many strides of log are due.
    pub fn burst(&self, strides: f64) -> Outcome<()> {
        let load = Load { pipeline: 64, ..Load::new("set", 64, self.keys) };
        let options = Options { slice_seconds: 0.1, warm_up_seconds: 0.0, ..self.half.options.clone() };
        let began = Instant::now();
        let due = || number_of(&self.server.ask("INFO maintenance")?, "checkpoint_backlog_bytes");
        while due()? < strides * self.stride_bytes && began.elapsed() < REST_WITHIN {
            quiet_slice(&Entrant::new(&self.server, &load), &options, &mut 0)?;
        }
        Ok(())
    }
}

/// Requests and bytes of log in a second of a closed loop.
fn probe(server: &Server, load: &Load, options: &Options) -> Outcome<(f64, f64)> {
    let options = Options { slice_seconds: PROBE_SECONDS, warm_up_seconds: 0.0, ..options.clone() };
    let log_bytes = || number_of(&server.ask("INFO persistence")?, "log_bytes_written");
    let (before, began) = (log_bytes()?, Instant::now());
    let slice = quiet_slice(&Entrant::new(server, load), &options, &mut 0)?;
    Ok((slice.per_second, (log_bytes()? - before) / began.elapsed().as_secs_f64()))
}

fn looks(server: &Server, is_over: &AtomicBool) -> Outcome<Vec<Look>> {
    let mut looks = Vec::new();
    let mut has_more = true;
    while has_more {
        // One more after the end: short slices have few.
        has_more = !is_over.load(Ordering::Relaxed);
        let info = server.ask("INFO persistence maintenance")?;
        looks.push(Look {
            run_bytes: number_of(&info, "checkpoint_bytes")?,
            expired_keys: number_of(&info, "expiry_keys")?,
            is_backed_up: number_of(&info, "backup_under_way")? > 0.0,
            is_hurried: info.lines().any(|line| line.trim() == "maintenance_alarm:behind"),
        });
        std::thread::sleep(LOOK);
    }
    Ok(looks)
}

impl Seen {
    fn of(slice: Slice, looks: &[Look], gap_ms: f64, peak_bytes: f64) -> Seen {
        let share = |of: fn(&Look) -> bool| looks.iter().filter(|look| of(look)).count() as f64 / looks.len() as f64;
        Seen {
            slice,
            gap_ms,
            peak_bytes,
            run_share: grown_share(looks, |look| look.run_bytes),
            expiry_share: grown_share(looks, |look| look.expired_keys),
            backup_share: share(|look| look.is_backed_up),
            hurried_share: share(|look| look.is_hurried),
        }
    }
}

/// Share of the times between two looks in which a number grew.
fn grown_share(looks: &[Look], of: fn(&Look) -> f64) -> f64 {
    let grew = looks.windows(2).filter(|two| of(&two[1]) > of(&two[0])).count();
    grew as f64 / (looks.len().max(2) - 1) as f64
}

impl Paced {
    fn new(load: Load, log_bytes_per_second: f64, stride_bytes: f64, options: &Options) -> Paced {
        let seconds = fitting_seconds(options.slice_seconds, log_bytes_per_second, stride_bytes);
        let options = Options { slice_seconds: seconds, warm_up_seconds: WARM_UP_SECONDS, ..options.clone() };
        Paced { load, options }
    }
}

/// The slice asked for, or one that fits between two runs with its warm-up.
fn fitting_seconds(seconds: f64, log_bytes_per_second: f64, stride_bytes: f64) -> f64 {
    let room_seconds = STEADY_STRIDES * stride_bytes / log_bytes_per_second - WARM_UP_SECONDS;
    seconds.min(room_seconds).max(SLICE_SECONDS_MIN)
}

#[cfg(test)]
mod tests {
    use super::{Look, fitting_seconds, grown_share};

    fn at(run_bytes: f64) -> Look {
        Look { run_bytes, expired_keys: 0.0, is_backed_up: false, is_hurried: false }
    }

    #[test]
    fn a_steady_slice_fits_between_two_runs() {
        assert_eq!(fitting_seconds(0.6, 5e6, 12e6), 0.6);
        assert!((fitting_seconds(0.6, 20e6, 12e6) - 0.25).abs() < 1e-9);
        assert_eq!(fitting_seconds(0.6, 1e9, 12e6), 0.1);
    }

    #[test]
    fn a_run_is_under_way_while_it_grows() {
        let looks: Vec<Look> = [5.0, 5.0, 7.0, 9.0, 9.0].map(at).into_iter().collect();
        assert_eq!(grown_share(&looks, |look| look.run_bytes), 0.5);
        assert_eq!(grown_share(&looks[..1], |look| look.run_bytes), 0.0);
    }
}
