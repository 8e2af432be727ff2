//! How long increments took, counted from when they were due.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde::Serialize;

use super::counters::Acknowledgement;

/// Longest that is told apart from longer ones, microseconds.
const LATENCY_US_MAX: u64 = 120_000_000;

/// Latencies of one phase, over any number of trials.
#[derive(Clone, Debug)]
pub struct Latency(Histogram<u64>);

/// What is shown of them, milliseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Percentiles {
    /// How many.
    pub count: u64,
    /// Half took less.
    pub p50_ms: f64,
    /// One in a hundred took longer.
    pub p99_ms: f64,
    /// The longest.
    pub max_ms: f64,
}

impl Default for Latency {
    fn default() -> Latency {
        Latency(Histogram::new_with_bounds(1, LATENCY_US_MAX, 3).expect("the bounds are in order"))
    }
}

impl Latency {
    /// Adds what was due from `from` until before `until`. Beats that passed while one increment waited were due as well, and have
    /// waited until its acknowledgement: a store that stands still is not asked less for that.
    pub fn add(&mut self, acknowledged: &[Acknowledgement], beat: Duration, from: Instant, until: Instant) {
        for Acknowledgement { due, at, .. } in acknowledged {
            let mut due = *due;
            while due <= *at && due < until {
                if due >= from {
                    let us = u64::try_from(at.duration_since(due).as_micros()).unwrap_or(u64::MAX);
                    self.0.saturating_record(us);
                }
                due += beat;
            }
        }
    }

    /// Adds those of another phase of the same kind.
    pub fn merge(&mut self, other: &Latency) {
        self.0.add(&other.0).expect("both have the same bounds");
    }

    /// See there; all 0 of nothing.
    pub fn percentiles(&self) -> Percentiles {
        let ms = |us: u64| us as f64 / 1e3;
        let at = |quantile| ms(self.0.value_at_quantile(quantile));
        Percentiles { count: self.0.len(), p50_ms: at(0.5), p99_ms: at(0.99), max_ms: ms(self.0.max()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEAT: Duration = Duration::from_millis(10);

    #[test]
    fn beats_that_passed_while_one_waited_count_as_waiting() {
        let begun = Instant::now();
        let at = |ms: u64| begun + Duration::from_millis(ms);
        let acknowledged =
            [(0, 1), (10, 41), (50, 51)].map(|(due, told)| Acknowledgement { due: at(due), at: at(told), port: 1 });
        let mut latency = Latency::default();
        latency.add(&acknowledged, BEAT, at(0), at(60));
        // 1, then 31, 21, 11, 1 for what was due at 10, 20, 30 and 40, then 1.
        let all = latency.percentiles();
        assert_eq!((all.count, all.max_ms.round()), (6, 31.0));
        assert_eq!(all.p50_ms.round(), 1.0);
        let mut part = Latency::default();
        part.add(&acknowledged, BEAT, at(20), at(40));
        assert_eq!((part.percentiles().count, part.percentiles().max_ms.round()), (2, 21.0));
        part.merge(&latency);
        assert_eq!(part.percentiles().count, 8);
    }
}
