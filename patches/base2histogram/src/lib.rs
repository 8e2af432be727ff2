//! In place of the package `base2histogram`, in which `openraft` counts for its feature `runtime-stats`, which is off here: it still
//! makes histograms and records into them, and nothing can read them.
//!
//! The package, at its first histogram, makes the tables of all its sixteen resolutions, 26 MB that stay: three quarters of the
//! memory of a node of a cluster (`cargo x bench table`). Here a histogram keeps how many values there were. What is here is what
//! openraft compiles against, no more; with `runtime-stats` on, the package has to come back.

use std::fmt;
use std::marker::PhantomData;

/// How many values were recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram<T = ()> {
    samples: u64,
    label: PhantomData<T>,
}

impl<T> Default for Histogram<T> {
    fn default() -> Self {
        Histogram::new()
    }
}

impl<T> Histogram<T> {
    /// Without any.
    pub fn new() -> Self {
        Histogram { samples: 0, label: PhantomData }
    }

    /// One value more.
    pub fn record(&mut self, value: u64) {
        self.record_n(value, 1);
    }

    /// The same value several times.
    pub fn record_n(&mut self, _value: u64, count: u64) {
        self.samples = self.samples.saturating_add(count);
    }

    /// The count; the rest is 0.
    pub fn percentile_stats(&self) -> PercentileStats {
        PercentileStats { samples: self.samples, ..PercentileStats::default() }
    }
}

/// What openraft would show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the package's, and nothing fills them in")]
pub struct PercentileStats {
    pub samples: u64,
    pub p0_1: u64,
    pub p1: u64,
    pub p5: u64,
    pub p10: u64,
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub p99_9: u64,
}

impl fmt::Display for PercentileStats {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} samples", self.samples)
    }
}

/// A chart of nothing.
#[derive(Default)]
pub struct AsciiChart;

impl AsciiChart {
    /// Without any histogram.
    pub fn new() -> Self {
        AsciiChart
    }

    /// The same: there is nothing to draw.
    #[must_use]
    pub fn add(self, _name: &str, _histogram: Histogram) -> Self {
        self
    }

    /// Words in place of bars.
    pub fn detailed(&self) -> &'static str {
        "(not recorded)"
    }
}
