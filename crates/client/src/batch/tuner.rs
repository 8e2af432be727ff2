//! The tuner that keeps deadlines: limits halved and the reserve doubled when an answer is later than expected, and both back by
//! steps after good batches (Li 2015, algorithm 4.3, which never recovers; additive increase as in TCP).

use super::config::TunerConfig;

/// Steps from the floor to the cap.
const STEPS: u64 = 16;

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Tuner {
    config: TunerConfig,
    count: usize,
    bytes: usize,
    reserve_us: u64,
    good: u32,
    is_best_effort: bool,
    /// When it backed off last: batches sent before tell nothing new, microseconds.
    backed_off_us: u64,
}

impl Tuner {
    pub(super) fn new(config: TunerConfig) -> Tuner {
        Tuner {
            config,
            count: config.count_max,
            bytes: config.bytes_max,
            reserve_us: config.reserve_us_min,
            good: 0,
            is_best_effort: false,
            backed_off_us: 0,
        }
    }

    /// Requests per batch.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Bytes per batch.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Time to keep before a deadline beyond the estimate, microseconds.
    pub(super) fn reserve_us(&self) -> u64 {
        self.reserve_us
    }

    /// Whether answers came late and there were not enough good ones since.
    pub(super) fn is_best_effort(&self) -> bool {
        self.is_best_effort
    }

    /// A batch sent at `sent_us` was answered later than expected.
    pub(super) fn note_late(&mut self, now_us: u64, sent_us: u64) {
        self.good = 0;
        if sent_us < self.backed_off_us {
            return;
        }
        self.backed_off_us = now_us;
        self.is_best_effort = true;
        self.count = (self.count / 2).max(self.config.count_min);
        self.bytes = (self.bytes / 2).max(self.config.bytes_min);
        self.reserve_us = (self.reserve_us * 2).min(self.config.reserve_us_max);
    }

    /// A batch was answered as expected or earlier.
    pub(super) fn note_good(&mut self) {
        self.good += 1;
        if self.good < self.config.good_batches {
            return;
        }
        self.good = 0;
        self.is_best_effort = false;
        let config = &self.config;
        let count_step = ((config.count_max - config.count_min) as u64 / STEPS).max(1) as usize;
        let bytes_step = ((config.bytes_max - config.bytes_min) as u64 / STEPS).max(1) as usize;
        let reserve_step_us = ((config.reserve_us_max - config.reserve_us_min) / STEPS).max(1);
        self.count = (self.count + count_step).min(config.count_max);
        self.bytes = (self.bytes + bytes_step).min(config.bytes_max);
        self.reserve_us = self.reserve_us.saturating_sub(reserve_step_us).max(config.reserve_us_min);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(tuner: &Tuner) -> (usize, usize, u64, bool) {
        (tuner.count(), tuner.bytes(), tuner.reserve_us(), tuner.is_best_effort())
    }

    #[test]
    fn it_backs_off_to_its_floors_and_recovers_to_its_caps() {
        let config = TunerConfig::default();
        let mut tuner = Tuner::new(config);
        let best = state(&tuner);
        (1..20).for_each(|now_us| tuner.note_late(now_us, now_us));
        assert_eq!(state(&tuner), (config.count_min, config.bytes_min, config.reserve_us_max, true));
        (0..config.good_batches - 1).for_each(|_| tuner.note_good());
        assert!(tuner.is_best_effort());
        tuner.note_good();
        assert!(!tuner.is_best_effort() && tuner.count() > config.count_min);
        // One step more than there are, for what division leaves.
        (0..config.good_batches * (STEPS as u32 + 1)).for_each(|_| tuner.note_good());
        assert_eq!(state(&tuner), best);
    }

    #[test]
    fn batches_that_were_out_already_back_off_once() {
        let mut tuner = Tuner::new(TunerConfig::default());
        tuner.note_late(1000, 500);
        let once = state(&tuner);
        tuner.note_late(1100, 600);
        tuner.note_late(1200, 999);
        assert_eq!(state(&tuner), once);
        tuner.note_late(1300, 1000);
        assert_ne!(state(&tuner), once);
    }
}
