//! `immediate`: what was pushed between two looks is one write. What a pipelining client does without any policy.

use super::policy::{Pace, Waiting};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Immediate;

impl Pace for Immediate {
    fn due_us(&self, waiting: &Waiting) -> u64 {
        waiting.first_us
    }
}
