//! How much a tick takes: so many connections that their requests keep the gap between two ticks short.
//!
//! Requests differ a thousandfold in what they cost, and only the clock tells. A long gap halves the batch, a full batch
//! with a short gap lets it grow, as a sender does with its window. What is not used is given up again: a batch that grew
//! under cheap requests says nothing about the next ones.
//!
//! What comes of a connection is weighed by its bytes, because 500 connections with one request each are as much as 45 with 16,
//! and one kind of load follows the other without a warning.

use base::limits::{RECEIVE_BUFFERS, RECEIVE_BYTES};

/// A gap above this halves the batch, microseconds. Below the millisecond that a core reaches for: the next batch may be dearer.
const GAP_US_MAX: u64 = 700;
/// A gap below this lets a full batch grow, microseconds.
const GAP_US_SHORT: u64 = 500;
/// Never less, so that what a tick costs by itself is still shared.
const WORK_MIN: usize = 4;
/// At first: unknown requests are met with care.
const WORK_FIRST: usize = 32;
/// All that fits into the buffers.
const WORK_MAX: usize = RECEIVE_BUFFERS * (1 + RECEIVE_BYTES / WORK_BYTES);
/// Bytes that weigh as much as having received.
const WORK_BYTES: usize = 256;

/// What a receive of so many bytes weighs.
#[inline]
pub(crate) fn work_of(bytes: usize) -> usize {
    1 + bytes / WORK_BYTES
}

/// How much a tick may take, or took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    /// Connections that were received from, or were ready for something else.
    pub connections: usize,
    /// What came from them ([`work_of`]), one each for those from which nothing did.
    pub work: usize,
}

impl Taken {
    /// Whatever there is.
    pub const ALL: Taken = Taken { connections: RECEIVE_BUFFERS, work: WORK_MAX };
}

/// See the module.
pub(crate) struct BatchSize {
    work: usize,
    last: Taken,
}

impl BatchSize {
    pub fn new() -> BatchSize {
        BatchSize { work: WORK_FIRST, last: Taken::default() }
    }

    /// What the next tick may take: so much work, or as many connections as brought so much last time.
    #[inline]
    pub fn next(&self) -> Taken {
        let connections = self.work * self.last.connections.max(1) / self.last.work.max(1);
        Taken { connections: connections.clamp(WORK_MIN, RECEIVE_BUFFERS), work: self.work }
    }

    /// After a gap of `gap_us` in which the batch before was served, of which `taken` was used.
    #[inline]
    pub fn adapt(&mut self, gap_us: u64, taken: Taken) {
        // Who took all connections that there is room for had no more work to take.
        let connections = self.next().connections;
        let is_full = taken.work >= self.work || connections < RECEIVE_BUFFERS && taken.connections >= connections;
        if gap_us > GAP_US_MAX {
            self.work = (self.work / 2).max(WORK_MIN);
        } else if is_full && gap_us < GAP_US_SHORT {
            self.work = (self.work + 1 + self.work / 8).min(WORK_MAX);
        } else if taken.work * 2 < self.work && self.work > WORK_FIRST {
            self.work -= self.work / 8;
        }
        if taken.connections > 0 {
            self.last = taken;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As many connections as a driver takes of a thousand, each of which brings `bytes`.
    fn take(batch: &BatchSize, bytes: usize) -> Taken {
        let (next, work) = (batch.next(), work_of(bytes));
        let connections = next.work.div_ceil(work).min(RECEIVE_BUFFERS);
        Taken { connections, work: connections * work }
    }

    /// The gaps of `ticks` ticks, when each of them brings `bytes` and costs `us`.
    fn gaps(batch: &mut BatchSize, (bytes, us): (usize, u64), ticks: usize) -> Vec<u64> {
        let tick = |_| {
            let taken = take(batch, bytes);
            let gap_us = us * taken.connections as u64;
            batch.adapt(gap_us, taken);
            gap_us
        };
        (0..ticks).map(tick).collect()
    }

    #[test]
    fn dear_requests_are_taken_a_few_at_a_time() {
        // One request of each connection, 64 us each: 2 ms at first.
        let gaps = gaps(&mut BatchSize::new(), (170, 64), 100);
        assert_eq!(gaps[0], 2_048);
        assert!(gaps[3..].iter().all(|gap| *gap <= GAP_US_MAX + 64), "{gaps:?}");
    }

    #[test]
    fn cheap_ones_are_taken_by_the_hundred() {
        assert_eq!(gaps(&mut BatchSize::new(), (170, 1), 100).last(), Some(&(RECEIVE_BUFFERS as u64)));
    }

    #[test]
    fn the_first_pipelines_behind_single_requests_are_met_with_care() {
        let mut batch = BatchSize::new();
        gaps(&mut batch, (170, 1), 100);
        // 16 requests of each connection, 1 us each.
        let first = gaps(&mut batch, (16 * 170, 16), 1)[0];
        assert!(first < GAP_US_MAX, "{first} us");
        assert!(gaps(&mut batch, (16 * 170, 16), 100).iter().all(|gap| *gap <= GAP_US_MAX + 64));
    }

    #[test]
    fn long_values_are_taken_as_long_as_the_gap_is_short() {
        // 16 KiB each, copied in 2 us.
        let mut batch = BatchSize::new();
        assert_eq!(take(&batch, RECEIVE_BYTES).connections, 1);
        let gaps = gaps(&mut batch, (RECEIVE_BYTES, 2), 200);
        assert!(*gaps.last().expect("200") >= GAP_US_SHORT, "{gaps:?}");
    }

    #[test]
    fn how_many_connections_bring_so_much_is_learnt() {
        let mut batch = BatchSize::new();
        batch.adapt(10, Taken { connections: 4, work: 44 });
        assert_eq!(batch.next(), Taken { connections: WORK_MIN, work: 37 });
        (0..20).for_each(|_| batch.adapt(10, Taken { connections: 40, work: 440 }));
        assert_eq!(batch.next().connections, batch.next().work / 11);
    }

    #[test]
    fn what_a_few_connections_left_unused_is_given_up() {
        let single = |connections| Taken { connections, work: connections };
        let mut batch = BatchSize::new();
        (0..100).for_each(|_| batch.adapt(10, single(RECEIVE_BUFFERS)));
        assert_eq!(batch.next().connections, RECEIVE_BUFFERS);
        (0..100).for_each(|_| batch.adapt(10, single(50)));
        assert!((50..=100).contains(&batch.next().work), "{:?}", batch.next());
        (0..100).for_each(|_| batch.adapt(10, single(1)));
        assert!(batch.next().work <= WORK_FIRST);
    }

    #[test]
    fn one_stall_is_soon_forgotten_and_idleness_changes_nothing() {
        let (one, all) = (Taken { connections: 1, work: 1 }, Taken { connections: RECEIVE_BUFFERS, work: WORK_MAX });
        let mut batch = BatchSize::new();
        batch.adapt(26_000, one);
        assert_eq!(batch.next().work, WORK_FIRST / 2);
        (0..1_000).for_each(|_| batch.adapt(10, one));
        assert_eq!(batch.next().work, WORK_FIRST / 2);
        (0..8).for_each(|_| batch.adapt(10, all));
        assert!(batch.next().work > WORK_FIRST);
        (0..1_000).for_each(|_| batch.adapt(1_000_000, all));
        assert_eq!(batch.next().work, WORK_MIN);
    }
}
