//! `edf`: as late as the earliest deadline permits, so that batches are as large as deadlines permit (Li, ZHT/Q 2015, corrected:
//! the batch's deadline is the *earliest* of its requests', and it is sent by that minus the estimated latency).
//!
//! ```text
//!   guaranteed ── an answer later than expected ──► best effort: limits halved, reserve doubled, self-clocked
//!        ▲                                               │
//!        └──────── M good batches: one step up ──────────┘
//! ```
//!
//! The deadline itself is kept by the batcher, for every policy; what is left for this one is how long the others wait. In best
//! effort nothing is gained by many small batches: one at a time, each with all that came, empties the queue soonest.

use super::bucket::NEVER_US;
use super::config::EdfConfig;
use super::policy::{Pace, Waiting};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edf {
    config: EdfConfig,
}

impl Edf {
    pub(super) fn new(config: EdfConfig) -> Edf {
        Edf { config }
    }
}

impl Pace for Edf {
    fn due_us(&self, waiting: &Waiting) -> u64 {
        if waiting.is_best_effort {
            return if waiting.in_flight == 0 { waiting.first_us } else { NEVER_US };
        }
        if waiting.is_heavy || waiting.count >= waiting.count_tuned || waiting.bytes >= waiting.bytes_tuned {
            return waiting.first_us;
        }
        waiting.first_us.saturating_add(self.config.wait_us_max)
    }
}
