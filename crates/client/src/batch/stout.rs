//! `stout`: an interval that grows while batches gain nothing by being early, and shrinks while they do (McCullough et al., Stout,
//! ATC 2010, as its slides tell it; what they leave open is set in `StoutConfig`).
//!
//! ```text
//!   perf = batch / (latency + interval)
//!   recent = after a back-off: EWMA(batch) / (EWMA(latency) + EWMA(interval));  after an acceleration: the best perf of a second
//!   perf < factor · recent:  interval ← (1 + alpha) · interval                          back off
//!   otherwise:               interval ← (1 − beta) · interval + beta · √interval        accelerate
//! ```
//!
//! The root is of milliseconds, so 1 ms is where acceleration ends: the unit is part of the rule.

use super::answer::Sample;
use super::bucket::NEVER_US;
use super::config::StoutConfig;
use super::policy::{Pace, Waiting};

/// Moving averages of what makes a performance.
#[derive(Clone, Copy, Debug)]
struct Averages {
    count: f64,
    latency_ms: f64,
    interval_ms: f64,
}

/// The best of the present stretch of time and of the one before it: between one and two halves of what is remembered.
#[derive(Clone, Copy, Debug, Default)]
struct Best {
    present: f64,
    before: f64,
    since_us: u64,
}

impl Best {
    fn note(&mut self, now_us: u64, perf: f64, half_us: u64) {
        let halves = now_us.saturating_sub(self.since_us) / half_us.max(1);
        if halves > 0 {
            self.before = if halves == 1 { self.present } else { 0.0 };
            self.present = 0.0;
            self.since_us = now_us;
        }
        self.present = self.present.max(perf);
    }

    fn perf(&self) -> f64 {
        self.present.max(self.before)
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Stout {
    config: StoutConfig,
    interval_ms: f64,
    averages: Option<Averages>,
    best: Best,
    has_backed_off: bool,
    /// End of the last batch; the interval begins there, microseconds.
    anchor_us: u64,
}

impl Stout {
    pub(super) fn new(config: StoutConfig, now_us: u64) -> Stout {
        Stout {
            config,
            interval_ms: config.interval_ms_start,
            averages: None,
            best: Best::default(),
            has_backed_off: false,
            anchor_us: now_us,
        }
    }

    fn learn(&mut self, now_us: u64, sample: &Sample) {
        let count = sample.count as f64;
        let latency_ms = sample.latency_us as f64 / 1000.0;
        let perf = count / (latency_ms + self.interval_ms);
        let recent = match (self.has_backed_off, self.averages) {
            (true, Some(averages)) => averages.count / (averages.latency_ms + averages.interval_ms),
            _ => self.best.perf(),
        };
        self.note(now_us, perf, count, latency_ms);
        let StoutConfig { alpha, beta, factor, interval_ms_min, interval_ms_max, .. } = self.config;
        self.has_backed_off = perf < factor * recent;
        let next_ms = if self.has_backed_off {
            (1.0 + alpha) * self.interval_ms
        } else {
            (1.0 - beta) * self.interval_ms + beta * self.interval_ms.sqrt()
        };
        self.interval_ms = next_ms.clamp(interval_ms_min, interval_ms_max);
    }

    fn note(&mut self, now_us: u64, perf: f64, count: f64, latency_ms: f64) {
        self.best.note(now_us, perf, self.config.best_us / 2);
        let interval_ms = self.interval_ms;
        let averages = self.averages.get_or_insert(Averages { count, latency_ms, interval_ms });
        let moved = |average: &mut f64, value: f64| *average += self.config.weight * (value - *average);
        moved(&mut averages.count, count);
        moved(&mut averages.latency_ms, latency_ms);
        moved(&mut averages.interval_ms, interval_ms);
    }

    fn length_us(&self) -> u64 {
        (self.interval_ms * 1000.0) as u64
    }
}

impl Pace for Stout {
    fn due_us(&self, waiting: &Waiting) -> u64 {
        if waiting.in_flight > 0 {
            return NEVER_US;
        }
        // What comes when the interval is over waits for nothing.
        waiting.first_us.max(self.anchor_us.saturating_add(self.length_us()))
    }

    fn answered(&mut self, now_us: u64, sample: Option<&Sample>) {
        self.anchor_us = now_us;
        if let Some(sample) = sample {
            self.learn(now_us, sample);
        }
    }

    fn reset(&mut self, now_us: u64) {
        let interval_ms = self.interval_ms;
        *self = Stout { interval_ms, ..Stout::new(self.config, now_us) };
    }

    fn interval_us(&self) -> Option<u64> {
        Some(self.length_us())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fed(stout: &mut Stout, from_us: u64, batches: u64, count: usize, latency_us: u64) -> u64 {
        let mut now_us = from_us;
        for _ in 0..batches {
            now_us += stout.length_us() + latency_us;
            stout.answered(now_us, Some(&Sample { latency_us, count, bytes: count * 50 }));
        }
        now_us
    }

    #[test]
    fn steady_batches_accelerate_to_the_floor_and_a_slump_backs_off() {
        let mut stout = Stout::new(StoutConfig::default(), 0);
        let now_us = fed(&mut stout, 0, 30, 10, 800);
        assert!((1000..1200).contains(&stout.length_us()), "{}", stout.length_us());
        fed(&mut stout, now_us, 3, 1, 8000);
        assert!(stout.length_us() > 1000);
    }

    #[test]
    fn the_best_is_forgotten_after_a_second() {
        let config = StoutConfig::default();
        let mut stout = Stout::new(config, 0);
        let now_us = fed(&mut stout, 0, 5, 1000, 800);
        let sample = Sample { latency_us: 800, count: 1, bytes: 50 };
        stout.clone_and(now_us + 100, &sample, true);
        stout.clone_and(now_us + config.best_us + 1, &sample, false);
    }

    impl Stout {
        /// Whether a copy of it backs off on this sample at this time.
        fn clone_and(&self, now_us: u64, sample: &Sample, backs_off: bool) {
            let mut copy = self.clone();
            // As if a batch had been there shortly before, so that only what is too old is gone.
            copy.best.note(now_us, 0.0, copy.config.best_us / 2);
            copy.learn(now_us, sample);
            assert_eq!(copy.has_backed_off, backs_off);
        }
    }

    #[test]
    fn a_new_destination_is_judged_by_nothing_old() {
        let mut stout = Stout::new(StoutConfig::default(), 0);
        let now_us = fed(&mut stout, 0, 5, 1000, 800);
        stout.reset(now_us);
        stout.learn(now_us + 1, &Sample { latency_us: 800, count: 1, bytes: 50 });
        assert!(!stout.has_backed_off);
    }
}
