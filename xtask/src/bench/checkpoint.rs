//! `checkpoint`: what others suffer, and what memory it takes, while slot groups become runs, while a million keys expire at one
//! moment, and while a backup is taken.
//!
//! ```text
//!  pair    steady      no run under way ──────────────── slice ┐  every other round the other way about
//!          disturbed   a burst, an expiry or a backup ── slice ┘
//! ```
//!
//! Both slices are the same load on the same server. Runs cannot be held or asked for: a steady slice fits between two of them
//! and is thrown away where one began, and the burst makes so many due that one is under way in all of the other.

mod disturbance;
mod fork;
mod stage;

use super::conditions;
use super::options::Options;
use super::programs::Zerohop;
use super::progress::Progress;
use super::quiet_machine::QuietMachine;
use super::results::{Bar, Results, number};
use super::slice::Slice;
use crate::Outcome;
use disturbance::Disturbance;
use stage::{Pace, Seen, Stage};

/// Keys of 15 bytes with values of 132, in `--keys`. Ten, as AT-18 has it, are `--keys 2000000`.
/// With fewer a run is over before a slice is.
const SIZE: u64 = 5;
/// Less than this is no difference: medians of slices of one server differ by as much.
const NO_DIFFERENCE: f64 = 1.05;
/// A disturbance that was under way for a smaller share of its slices than this was not measured.
const SHARE_MIN: f64 = 1.0 / 3.0;

/// What the disturbed slices may show.
struct Bars {
    p99_9_ratio: f64,
    p99_9_reach: Option<f64>,
    gap_ms: f64,
    gap_reach_ms: Option<f64>,
    /// `None` where the disturbance brings data of its own.
    extra_percent: Option<f64>,
    extra_reach_percent: Option<f64>,
}

/// The storage's issue: a checkpoint at half load.
const CHECKPOINT: Bars = Bars {
    p99_9_ratio: 1.5,
    p99_9_reach: Some(NO_DIFFERENCE),
    gap_ms: 2.0,
    gap_reach_ms: Some(1.0),
    extra_percent: Some(5.0),
    extra_reach_percent: Some(1.0),
};
/// The storage's issue: an expiry disturbs nobody, and so no more than a checkpoint may.
const EXPIRY: Bars = Bars { extra_percent: None, extra_reach_percent: None, ..CHECKPOINT };
/// AT-18 of the reliability page.
const AT_18: Bars = Bars {
    p99_9_ratio: 2.0,
    p99_9_reach: None,
    gap_ms: 20.0,
    gap_reach_ms: None,
    extra_percent: Some(10.0),
    extra_reach_percent: None,
};

/// One disturbance under one load.
struct Cell {
    name: &'static str,
    pace: Pace,
    disturbance: Disturbance,
    bars: Bars,
}

const CELLS: &[Cell] = &[
    Cell { name: "runs", pace: Pace::Half, disturbance: Disturbance::Runs { strides: 2.5 }, bars: CHECKPOINT },
    Cell { name: "hurried", pace: Pace::Half, disturbance: Disturbance::Runs { strides: 16.0 }, bars: AT_18 },
    Cell { name: "full", pace: Pace::Full, disturbance: Disturbance::Runs { strides: 16.0 }, bars: AT_18 },
    Cell { name: "backup", pace: Pace::Half, disturbance: Disturbance::Backup, bars: AT_18 },
    // Last: the memory of what it brings stays with the process.
    Cell { name: "expiry", pace: Pace::Half, disturbance: Disturbance::Expiry, bars: EXPIRY },
];

/// The first backend asked for in `interval`; Redis for the memory that a fork takes.
pub fn run(options: &Options, results: &mut Results) -> Outcome<()> {
    let _quiet = QuietMachine::new(results);
    let cells: Vec<&Cell> = CELLS.iter().filter(|cell| options.wants(cell.name)).collect();
    if !cells.is_empty() {
        let keys = options.keys * SIZE;
        let server = Zerohop::new(&options.backends[0], "interval").start().ready()?;
        results.note(conditions::line("interval", "log in the page cache, runs written past it, reads from memory"));
        results
            .note("steady: no run under way. half: GET and SET 1:1, open loop at half of what a closed loop reaches");
        results.note(
            "full: SET, closed loop; hurried and full: so much is due that runs are made without their bound in time",
        );
        let mut stage = Stage::new(server, keys, options, results)?;
        for cell in cells {
            if let Err(message) = measure(cell, &mut stage, options, results) {
                results.absent(format!("{}: {message}", cell.name));
            }
        }
        if options.wants("backup") {
            disturbance::whole_backup(&stage, results)?;
        }
    }
    if options.wants("fork") {
        fork::measure(options, results)?;
    }
    Ok(())
}

fn measure(cell: &Cell, stage: &mut Stage, options: &Options, results: &mut Results) -> Outcome<()> {
    let name = format!("{}-{}", cell.name, stage.server.name);
    let mut progress = Progress::new(&name, options.pairs);
    let (mut steady, mut disturbed) = (Vec::new(), Vec::new());
    for round in 0..options.pairs {
        if round % 2 == 0 {
            steady.push(stage.steady(cell.pace)?);
            disturbed.push(stage.disturbed(cell.pace, cell.disturbance)?);
        } else {
            disturbed.push(stage.disturbed(cell.pace, cell.disturbance)?);
            steady.push(stage.steady(cell.pace)?);
        }
        progress.show(round + 1);
    }
    drop(progress);
    if cell.bars.extra_percent.is_some() {
        // What stays with the process behind the first disturbance is in its steady slices, too.
        let over_rest = column(&disturbed, |seen| (seen.peak_bytes / stage.rest_bytes - 1.0) * 100.0);
        let metric = "% more resident at most than at rest before all slices";
        results.value(&name, "disturbed", metric, &over_rest, Bar::None)?;
    }
    judge(&name, cell, (&steady, &disturbed), results)
}

fn judge(name: &str, cell: &Cell, (steady, disturbed): (&[Seen], &[Seen]), results: &mut Results) -> Outcome<()> {
    let bars = &cell.bars;
    let p99_9 = |seen: &[Seen]| column(seen, |seen| seen.slice.p99_9_us);
    let sides = (("disturbed", &p99_9(disturbed)[..]), ("steady", &p99_9(steady)[..]));
    let row = results.ratios((name, "p99.9, us"), sides.0, sides.1, Bar::AtMost(bars.p99_9_ratio))?;
    bars.p99_9_reach.into_iter().for_each(|reach| row.reach(Bar::AtMost(reach)));
    let longest = |seen: &[Seen]| vec![column(seen, |seen| seen.gap_ms).into_iter().fold(0.0, f64::max)];
    let metric = "longest time without a tick in all slices, canary's subtracted, ms";
    let row = results.value(name, "disturbed", metric, &longest(disturbed), Bar::AtMost(bars.gap_ms))?;
    bars.gap_reach_ms.into_iter().for_each(|reach| row.reach(Bar::AtMost(reach)));
    results.value(name, "steady", metric, &longest(steady), Bar::None)?;
    if let Some(percent) = bars.extra_percent {
        let extra: Vec<f64> =
            steady.iter().zip(disturbed).map(|(steady, other)| extra_percent(steady, other)).collect();
        let row = results.value(name, "disturbed", "% more resident at most", &extra, Bar::AtMost(percent))?;
        bars.extra_reach_percent.into_iter().for_each(|reach| row.reach(Bar::AtMost(reach)));
    }
    for (side, seen) in [("steady", steady), ("disturbed", disturbed)] {
        results.value(name, side, "p99, us", &column(seen, |seen| seen.slice.p99_us), Bar::None)?;
        results.value(name, side, "longest, us", &column(seen, |seen| seen.slice.max_us), Bar::None)?;
        results.value(name, side, "requests/s", &column(seen, |seen| seen.slice.per_second), Bar::None)?;
        keep(name, side, seen, results);
    }
    let shares = column(disturbed, |seen| cell.disturbance.share(seen));
    let share = results.value(name, "disturbed", "share of the slice with it under way", &shares, Bar::None)?.median;
    let hurried = column(disturbed, |seen| seen.hurried_share);
    results.value(name, "disturbed", "share of the slice in which runs hurried", &hurried, Bar::None)?;
    match share < SHARE_MIN {
        true => Err(format!("it was under way in {} of its slices only, which proves nothing", number(share))),
        false => Ok(()),
    }
}

fn keep(name: &str, side: &str, seen: &[Seen], results: &mut Results) {
    let of = |of: fn(&Slice) -> f64| seen.iter().map(|seen| of(&seen.slice)).collect::<Vec<f64>>();
    let columns = [
        ("p50_us", of(|slice| slice.p50_us)),
        ("p99_9_us", of(|slice| slice.p99_9_us)),
        ("max_us", of(|slice| slice.max_us)),
        ("foreign_cores", of(|slice| slice.foreign_cores)),
        ("gap_ms", column(seen, |seen| seen.gap_ms)),
        ("resident_bytes_max", column(seen, |seen| seen.peak_bytes)),
    ];
    results.keep_values(name, side, &columns.each_ref().map(|(metric, values)| (*metric, &values[..])));
}

fn column(seen: &[Seen], of: impl Fn(&Seen) -> f64) -> Vec<f64> {
    seen.iter().map(of).collect()
}

fn extra_percent(steady: &Seen, disturbed: &Seen) -> f64 {
    (disturbed.peak_bytes / steady.peak_bytes - 1.0) * 100.0
}
