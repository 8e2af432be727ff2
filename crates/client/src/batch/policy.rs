//! The one interface of all policies: when the relaxed bucket is due, given what waits and what is out.

use super::answer::Sample;
use super::config::PolicyConfig;
use super::edf::Edf;
use super::fixed::Fixed;
use super::immediate::Immediate;
use super::self_clocked::SelfClocked;
use super::stout::Stout;

/// What a policy is shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    /// When the first request of the bucket came, microseconds.
    pub first_us: u64,
    /// Requests in the bucket.
    pub count: usize,
    /// Its length, bytes.
    pub bytes: usize,
    /// Batches of the policy's own that are not answered. Urgent ones are none of its business.
    pub in_flight: usize,
    /// Requests per batch that keep deadlines, as tuned.
    pub count_tuned: usize,
    /// The same, bytes.
    pub bytes_tuned: usize,
    /// Whether it would keep the destination from an urgent request for longer than that can wait.
    pub is_heavy: bool,
    /// Whether answers come later than expected, so that deadlines are kept as well as possible only.
    pub is_best_effort: bool,
}

/// A policy. It is asked for times only: bounds and deadlines are the batcher's, and hold beside every policy.
pub(super) trait Pace {
    /// When the bucket goes, microseconds; what lies behind is now, and [`NEVER_US`](super::bucket::NEVER_US) is not before an
    /// answer. Asked again after every push and every answer.
    fn due_us(&self, waiting: &Waiting) -> u64;

    /// A batch of its own ended; without a sample when its latency says nothing.
    fn answered(&mut self, _now_us: u64, _sample: Option<&Sample>) {}

    /// The destination is another one now: what was learned is void.
    fn reset(&mut self, _now_us: u64) {}

    /// The interval that it keeps at the moment, if it keeps one, microseconds.
    fn interval_us(&self) -> Option<u64> {
        None
    }
}

/// The policies by value: no allocation and no indirect call on the way of a request.
#[derive(Clone, Debug)]
pub(super) enum Policy {
    Immediate(Immediate),
    SelfClocked(SelfClocked),
    Fixed(Fixed),
    Edf(Edf),
    Stout(Stout),
}

macro_rules! dispatch {
    ($self:expr, $policy:ident => $call:expr) => {
        match $self {
            Policy::Immediate($policy) => $call,
            Policy::SelfClocked($policy) => $call,
            Policy::Fixed($policy) => $call,
            Policy::Edf($policy) => $call,
            Policy::Stout($policy) => $call,
        }
    };
}

impl Policy {
    pub(super) fn new(config: PolicyConfig, now_us: u64) -> Policy {
        match config {
            PolicyConfig::Immediate => Policy::Immediate(Immediate),
            PolicyConfig::SelfClocked => Policy::SelfClocked(SelfClocked),
            PolicyConfig::Fixed(config) => Policy::Fixed(Fixed::new(config, now_us)),
            PolicyConfig::Edf(config) => Policy::Edf(Edf::new(config)),
            PolicyConfig::Stout(config) => Policy::Stout(Stout::new(config, now_us)),
        }
    }
}

impl Pace for Policy {
    #[inline]
    fn due_us(&self, waiting: &Waiting) -> u64 {
        dispatch!(self, policy => policy.due_us(waiting))
    }

    fn answered(&mut self, now_us: u64, sample: Option<&Sample>) {
        dispatch!(self, policy => policy.answered(now_us, sample));
    }

    fn reset(&mut self, now_us: u64) {
        dispatch!(self, policy => policy.reset(now_us));
    }

    fn interval_us(&self) -> Option<u64> {
        dispatch!(self, policy => policy.interval_us())
    }
}

/// The first time after `from_us` on the grid of `interval_us` that has `anchor_us` on it.
pub(super) fn grid_us(anchor_us: u64, interval_us: u64, from_us: u64) -> u64 {
    let interval_us = interval_us.max(1);
    let steps = from_us.saturating_sub(anchor_us) / interval_us + 1;
    anchor_us.saturating_add(steps.saturating_mul(interval_us))
}
