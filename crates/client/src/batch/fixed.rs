//! `fixed`: count, bytes, interval. The pipelined form sends on a grid of times whatever is out; the stop-and-wait form counts its
//! interval from the answer. What Stout (Section 4 of its evaluation) was compared with.

use super::answer::Sample;
use super::bucket::NEVER_US;
use super::config::FixedConfig;
use super::policy::{Pace, Waiting, grid_us};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fixed {
    config: FixedConfig,
    /// A time of the grid, microseconds.
    anchor_us: u64,
}

impl Fixed {
    pub(super) fn new(config: FixedConfig, now_us: u64) -> Fixed {
        Fixed { config, anchor_us: now_us }
    }
}

impl Pace for Fixed {
    fn due_us(&self, waiting: &Waiting) -> u64 {
        if self.config.is_stop_and_wait && waiting.in_flight > 0 {
            return NEVER_US;
        }
        if waiting.count >= self.config.count_max || waiting.bytes >= self.config.bytes_max {
            return waiting.first_us;
        }
        grid_us(self.anchor_us, self.config.interval_us, waiting.first_us)
    }

    fn answered(&mut self, now_us: u64, _: Option<&Sample>) {
        if self.config.is_stop_and_wait {
            self.anchor_us = now_us;
        }
    }

    fn reset(&mut self, now_us: u64) {
        self.anchor_us = now_us;
    }
}
