//! How long requests took, as it is shown.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

/// Longest that is told apart from longer ones, microseconds.
const US_MAX: u64 = 60_000_000;

/// Latencies of any number of requests.
#[derive(Clone, Debug)]
pub struct Latency(Histogram<u64>);

/// What is shown of them.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Summary {
    /// How many.
    pub requests: u64,
    /// Half took less, microseconds.
    pub p50_us: u64,
    /// One in a hundred took longer.
    pub p99_us: u64,
    /// One in a thousand took longer.
    pub p999_us: u64,
}

impl Default for Latency {
    fn default() -> Latency {
        Latency(Histogram::new_with_bounds(1, US_MAX, 3).expect("the bounds are in order"))
    }
}

impl Latency {
    /// One more.
    pub fn note(&mut self, took: Duration) {
        self.0.saturating_record(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }

    /// Those of somebody else.
    pub fn merge(&mut self, other: &Latency) {
        self.0.add(&other.0).expect("both have the same bounds");
    }

    /// Share of those that took no longer than `us`; 0 of none.
    pub fn share_within(&self, us: u64) -> f64 {
        match self.0.len() {
            0 => 0.0,
            requests => self.0.count_between(0, us) as f64 / requests as f64,
        }
    }

    /// See there; all 0 of none.
    pub fn summary(&self) -> Summary {
        let at = |quantile| self.0.value_at_quantile(quantile);
        Summary { requests: self.0.len(), p50_us: at(0.5), p99_us: at(0.99), p999_us: at(0.999) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_hundreds_and_shares_are_of_all() {
        let (mut odd, mut even) = (Latency::default(), Latency::default());
        for us in 1..=1000 {
            let latency = if us % 2 == 0 { &mut even } else { &mut odd };
            latency.note(Duration::from_micros(us));
        }
        odd.merge(&even);
        let Summary { requests, p50_us, p99_us, p999_us } = odd.summary();
        assert_eq!((requests, p50_us, p99_us, p999_us), (1000, 500, 990, 999));
        assert_eq!((odd.share_within(250), odd.share_within(5000)), (0.25, 1.0));
        assert_eq!((Latency::default().summary().p50_us, Latency::default().share_within(9)), (0, 0.0));
    }
}
