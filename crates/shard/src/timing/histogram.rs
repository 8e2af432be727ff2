//! How often commands took how long, while `latency-tracking` is on.

use std::collections::BTreeMap;

use wire::registry::{CommandSpec, all};

/// Powers of two of microseconds that are told apart: up to 18 minutes.
const BUCKETS: usize = 31;

/// How often one command took how long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// `counts[n]`: so often it took at most `1 << n` microseconds, and more than half of that.
    counts: [u64; BUCKETS],
    sum_ns: u64,
}

impl Histogram {
    fn note(&mut self, took_ns: u64) {
        let us = took_ns.div_ceil(1000).max(1);
        let bucket = us.next_power_of_two().trailing_zeros() as usize;
        self.counts[bucket.min(BUCKETS - 1)] += 1;
        self.sum_ns += took_ns;
    }

    fn add(&mut self, other: &Histogram) {
        self.counts.iter_mut().zip(other.counts).for_each(|(mine, theirs)| *mine += theirs);
        self.sum_ns += other.sum_ns;
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// All of them together, microseconds.
    pub fn sum_us(&self) -> u64 {
        self.sum_ns / 1000
    }

    /// In the mean, microseconds.
    pub fn mean_us(&self) -> f64 {
        self.sum_ns as f64 / 1000.0 / self.count().max(1) as f64
    }

    /// At most so many microseconds, and how many took no longer, for each bound at which there are more.
    pub fn cumulative(&self) -> Vec<(u64, u64)> {
        let mut sum = 0;
        let with_some = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let told = with_some.map(|(bucket, count)| {
            sum += count;
            (1 << bucket, sum)
        });
        told.collect()
    }

    /// A bound that so many of a thousand keep, microseconds.
    pub fn quantile_us(&self, of_thousand: u64) -> u64 {
        let rank = (self.count() * of_thousand).div_ceil(1000).max(1);
        self.cumulative().into_iter().find(|(_, sum)| *sum >= rank).map_or(0, |(bound_us, _)| bound_us)
    }
}

/// By command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Durations(BTreeMap<usize, Histogram>);

impl Durations {
    /// Counts one.
    pub fn note(&mut self, spec: &CommandSpec, took_ns: u64) {
        self.0.entry(spec.id as usize).or_default().note(took_ns);
    }

    /// Adds what another core counted.
    pub fn add(&mut self, other: &Durations) {
        other.0.iter().for_each(|(id, histogram)| self.0.entry(*id).or_default().add(histogram));
    }

    /// Of one command.
    pub fn of(&self, spec: &CommandSpec) -> Option<&Histogram> {
        self.0.get(&(spec.id as usize))
    }

    /// Every command and subcommand that was counted, in the registry's order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static CommandSpec, &Histogram)> {
        let with_subcommands = |spec: &'static CommandSpec| std::iter::once(spec).chain(spec.subcommands);
        all().flat_map(with_subcommands).filter_map(|spec| self.of(spec).map(|histogram| (spec, histogram)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::registry::{CommandId, spec};

    #[test]
    fn durations_are_told_by_powers_of_two() {
        let mut durations = Durations::default();
        for took_ns in [0, 400, 1000, 1001, 2000, 5000, u64::MAX >> 1] {
            durations.note(spec(CommandId::Get), took_ns);
        }
        let histogram = durations.of(spec(CommandId::Get)).expect("it was counted");
        assert_eq!(histogram.cumulative(), [(1, 3), (2, 5), (8, 6), (1 << 30, 7)]);
        assert_eq!(
            [1, 500, 714, 715, 999].map(|of_thousand| histogram.quantile_us(of_thousand)),
            [1, 2, 2, 8, 1 << 30]
        );
    }

    #[test]
    fn cores_are_added_up() {
        let (mut one, mut other) = (Durations::default(), Durations::default());
        one.note(spec(CommandId::Get), 3000);
        other.note(spec(CommandId::Get), 1000);
        other.note(spec(CommandId::Set), 1000);
        one.add(&other);
        let told: Vec<_> =
            one.iter().map(|(spec, histogram)| (spec.name, histogram.count(), histogram.sum_us())).collect();
        assert_eq!(told, [("get", 2, 4), ("set", 1, 1)]);
        assert_eq!(one.of(spec(CommandId::Get)).map(Histogram::mean_us), Some(2.0));
    }
}
