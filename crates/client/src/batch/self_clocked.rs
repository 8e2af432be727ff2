//! `self-clocked`: one outstanding batch; the next one is what came meanwhile. A lonely request waits for nothing, and under
//! load batches grow until the destination keeps up: the latency is the interval (Nagle's rule, RFC 896, applied to batches).

use super::bucket::NEVER_US;
use super::policy::{Pace, Waiting};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(super) struct SelfClocked;

impl Pace for SelfClocked {
    #[inline]
    fn due_us(&self, waiting: &Waiting) -> u64 {
        if waiting.in_flight == 0 { waiting.first_us } else { NEVER_US }
    }
}
