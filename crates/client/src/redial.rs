//! When to dial again somebody who did not answer: later each time, and not all at once.

use base::limits::{REDIAL_US_MAX, REDIAL_US_MIN};
use base::rng::Rng;

/// The waits between the dials of one lane: each twice as long as the one before, less a random part of up to a half, so that a
/// node that comes back is not met by everybody in the same moment.
#[derive(Debug)]
pub(crate) struct Redial {
    rng: Rng,
    wait_us: u64,
    due_us: u64,
}

impl Redial {
    /// One that may dial at once.
    pub fn new(seed: u64) -> Redial {
        Redial { rng: Rng::new(seed), wait_us: 0, due_us: 0 }
    }

    /// Whether it is too early.
    #[inline]
    pub fn waits(&self, now_us: u64) -> bool {
        now_us < self.due_us
    }

    /// When it no longer is.
    pub fn due_us(&self) -> u64 {
        self.due_us
    }

    /// Nobody answered, or whoever did refused.
    pub fn failed(&mut self, now_us: u64) {
        self.wait_us = (self.wait_us * 2).clamp(REDIAL_US_MIN, REDIAL_US_MAX);
        self.due_us = now_us + self.wait_us - self.rng.below(self.wait_us / 2);
    }

    /// The connection is usable.
    pub fn succeeded(&mut self) {
        (self.wait_us, self.due_us) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_bound_and_end_with_a_success() {
        let mut redial = Redial::new(7);
        assert!(!redial.waits(0));
        let mut longest_us = 0;
        for _ in 0..20 {
            redial.failed(1_000);
            let wait_us = redial.due_us() - 1_000;
            assert!((REDIAL_US_MIN / 2..=REDIAL_US_MAX).contains(&wait_us));
            longest_us = longest_us.max(wait_us);
        }
        assert!(longest_us > REDIAL_US_MAX / 2);
        redial.succeeded();
        assert!(!redial.waits(1_000));
    }

    #[test]
    fn lanes_do_not_dial_in_the_same_moment() {
        let due: std::collections::BTreeSet<u64> = (0..64)
            .map(|seed| {
                let mut redial = Redial::new(seed);
                (0..10).for_each(|_| redial.failed(0));
                redial.due_us()
            })
            .collect();
        assert!(due.len() > 60, "{}", due.len());
    }
}
