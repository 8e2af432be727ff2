//! What a soak must show: memory that does not climb, descriptors that come back, a directory within its bound, and that there
//! was something to see.

use std::time::Duration;

use base::limits::{LOG_SEGMENTS_MIN, SEGMENT_BYTES};

use super::left::Left;
use super::sample::Sample;
use super::work::LIVE_BYTES_MAX;

/// AT-26: resident memory may climb by less than this share in ten minutes.
const CLIMB_MAX: f64 = 0.01;
/// A shorter soak is judged by what it climbed in all: nothing is made of it that was not seen.
const PERIOD: Duration = Duration::from_secs(600);
/// The first part of a soak, in which stores, buffers and tables become as large as they will be.
const WARM_UP: f64 = 0.25;
/// Descriptors that may come beside connections: segments and runs that are being made or replaced.
const DESCRIPTORS_MORE_MAX: u64 = 32;
/// Segments of a core that hold nothing needed: what is left of the present one, the next one, one to be recycled.
const SEGMENTS_SPARE: u64 = 3;

/// What a soak has seen.
pub struct Evidence {
    /// Under load, in order.
    pub samples: Vec<Sample>,
    /// Before any client came.
    pub alone: Sample,
    /// When all clients had gone.
    pub left: Sample,
    /// Clients that the server still counted then.
    pub clients_left: Left,
    /// Commands that nobody called.
    pub uncalled: Vec<&'static str>,
    /// Runs published.
    pub runs: u64,
    /// Segments that runs replaced.
    pub segments_given_back: u64,
    /// Keys that expired.
    pub expired_keys: u64,
    /// What the directory may take.
    pub disk_bytes_max: u64,
}

/// One promise.
#[derive(Debug)]
pub struct Check {
    /// In words.
    pub promise: &'static str,
    /// Whether it held.
    pub holds: bool,
    /// What was found.
    pub found: String,
}

impl Check {
    /// One that held, or did not.
    pub fn new(promise: &'static str, holds: bool, found: String) -> Check {
        Check { promise, holds, found }
    }
}

/// Twice what may live and the segments that every core may hold. `arguments` are those of the start.
pub fn disk_bytes_max(arguments: &[String]) -> u64 {
    let position = arguments.iter().position(|word| word == "--cores");
    let cores = position.and_then(|at| arguments.get(at + 1)?.parse().ok()).unwrap_or(1);
    2 * LIVE_BYTES_MAX + cores * (LOG_SEGMENTS_MIN + SEGMENTS_SPARE) * SEGMENT_BYTES
}

impl Evidence {
    /// All promises.
    pub fn checks(&self) -> Vec<Check> {
        let (climb, disk) =
            (climb(&self.samples), self.samples.iter().map(|sample| sample.disk_bytes).max().unwrap_or(0));
        let descriptors_most = self.samples.iter().map(|sample| sample.descriptors).max().unwrap_or(0);
        let (before, after) = (self.alone.descriptors, self.left.descriptors);
        let met = [
            ("a run", self.runs),
            ("a segment given back", self.segments_given_back),
            ("an expiry", self.expired_keys),
        ];
        let unmet: Vec<&str> = met.iter().filter(|(_, count)| *count == 0).map(|(what, _)| *what).collect();
        vec![
            Check::new(
                "resident memory climbs by less than 1 % in ten minutes",
                climb.is_some_and(|climb| climb < CLIMB_MAX),
                climb.map_or("too few samples".to_owned(), |climb| format!("{:+.3} %", 100.0 * climb)),
            ),
            Check::new(
                "descriptors come back",
                after <= before + DESCRIPTORS_MORE_MAX,
                format!("{before} before, {descriptors_most} at most, {after} when all clients had gone"),
            ),
            Check::new(
                "no client is counted that is gone",
                self.clients_left.count == 0,
                format!("{} are {}", self.clients_left.count, self.clients_left.clients.join("; "))
                    .trim_end()
                    .to_owned(),
            ),
            Check::new(
                "the directory stays within twice what lives and its segments",
                disk <= self.disk_bytes_max,
                format!("{} of {} MiB at most", disk >> 20, self.disk_bytes_max >> 20),
            ),
            Check::new("every command was called", self.uncalled.is_empty(), format!("not {:?}", self.uncalled)),
            Check::new("there was something to see", unmet.is_empty(), format!("never met {unmet:?}")),
        ]
    }
}

/// By which share resident memory climbs in ten minutes, or climbed in all of a shorter time: the median slope between any
/// two samples behind the warm-up (Theil and Sen), so that no single sample decides.
fn climb(samples: &[Sample]) -> Option<f64> {
    let end = samples.last()?.at;
    let settled: Vec<&Sample> = samples.iter().filter(|sample| sample.at >= end.mul_f64(WARM_UP)).collect();
    let mut slopes = Vec::new();
    for (index, first) in settled.iter().enumerate() {
        for second in &settled[index + 1..] {
            let seconds = (second.at - first.at).as_secs_f64();
            slopes.push((second.resident_bytes as f64 - first.resident_bytes as f64) / seconds);
        }
    }
    let mut sizes: Vec<f64> = settled.iter().map(|sample| sample.resident_bytes as f64).collect();
    let span = (end - settled.first()?.at).min(PERIOD);
    Some(median(&mut slopes)? * span.as_secs_f64() / median(&mut sizes)?)
}

fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Evidence, Left, Sample, climb, disk_bytes_max};

    /// Samples of 100 MB every ten seconds, with so many bytes more each second and a ripple of 2 MB.
    fn samples(seconds: u64, more: u64) -> Vec<Sample> {
        let ripple = |at: u64| (at / 10 % 3) * 1_000_000;
        let at = |at: u64| Sample {
            at: Duration::from_secs(at),
            resident_bytes: 100_000_000 + more * at + ripple(at),
            ..Sample::default()
        };
        (0..=seconds / 10).map(|step| at(10 * step)).collect()
    }

    #[test]
    fn a_leak_climbs_and_a_ripple_does_not() {
        assert!(climb(&samples(1800, 0)).expect("many samples").abs() < 0.002);
        // 100 bytes of each of 500 connections a second are 30 MB in ten minutes, of 157 that it has in the middle.
        assert!(climb(&samples(1800, 50_000)).expect("many samples") > 0.15);
        // 2,500 bytes a second are 1.5 MB of 100 in ten minutes.
        let slow = climb(&samples(1800, 2_500)).expect("many samples");
        assert!((0.013..0.017).contains(&slow), "{slow}");
        assert_eq!(climb(&[]), None);
    }

    #[test]
    fn a_short_soak_is_judged_by_what_it_saw() {
        let climbed = climb(&samples(60, 10_000)).expect("some samples");
        assert!(climbed < 0.006, "{climbed}");
    }

    fn evidence() -> Evidence {
        Evidence {
            samples: samples(600, 0),
            alone: Sample { descriptors: 40, ..Sample::default() },
            left: Sample { descriptors: 45, ..Sample::default() },
            clients_left: Left::default(),
            uncalled: Vec::new(),
            runs: 1,
            segments_given_back: 1,
            expired_keys: 1,
            disk_bytes_max: 100,
        }
    }

    #[test]
    fn each_promise_can_fail() {
        let failed = |evidence: &Evidence| evidence.checks().iter().filter(|check| !check.holds).count();
        assert_eq!(failed(&evidence()), 0);
        let left = Sample { descriptors: 100, ..Sample::default() };
        assert_eq!(failed(&Evidence { left, ..evidence() }), 1);
        assert_eq!(failed(&Evidence { clients_left: Left { count: 3, clients: Vec::new() }, ..evidence() }), 1);
        assert_eq!(failed(&Evidence { uncalled: vec!["get"], ..evidence() }), 1);
        assert_eq!(failed(&Evidence { expired_keys: 0, ..evidence() }), 1);
        assert_eq!(failed(&Evidence { samples: samples(600, 50_000), ..evidence() }), 1);
        let mut samples = samples(600, 0);
        samples[3].disk_bytes = 101;
        assert_eq!(failed(&Evidence { samples, ..evidence() }), 1);
    }

    #[test]
    fn cores_add_their_segments() {
        let of = |cores: &str| disk_bytes_max(&["--cores".to_owned(), cores.to_owned()]);
        assert_eq!(of("3") - of("1"), 2 * (8 + 3) * (8 << 20));
    }
}
