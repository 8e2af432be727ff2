//! How many connections a tick takes: so many that their requests keep the gap between two ticks short.
//!
//! Requests differ a thousandfold in what they cost, and only the clock tells. A long gap halves the batch, a full batch
//! with a short gap lets it grow, as a sender does with its window. What is not used is given up again: a batch that grew
//! under cheap requests says nothing about the next ones.

use base::limits::RECEIVE_BUFFERS;

/// A gap above this halves the batch, microseconds. Below the millisecond that a core reaches for: the next batch may be dearer.
const GAP_US_MAX: u64 = 700;
/// A gap below this lets a full batch grow, microseconds.
const GAP_US_SHORT: u64 = 500;
/// Never fewer, so that what a tick costs by itself is still shared.
const CONNECTIONS_MIN: usize = 4;
/// At first: unknown requests are met with care.
const CONNECTIONS_FIRST: usize = 32;

/// See the module.
pub(crate) struct BatchSize(usize);

impl BatchSize {
    pub fn new() -> BatchSize {
        BatchSize(CONNECTIONS_FIRST)
    }

    /// Connections that the next tick may take.
    #[inline]
    pub fn connections(&self) -> usize {
        self.0
    }

    /// After a gap of `gap_us` in which `taken` connections were taken.
    #[inline]
    pub fn adapt(&mut self, gap_us: u64, taken: usize) {
        if gap_us > GAP_US_MAX {
            self.0 = (self.0 / 2).max(CONNECTIONS_MIN);
        } else if taken >= self.0 && gap_us < GAP_US_SHORT {
            self.0 = (self.0 + 1 + self.0 / 8).min(RECEIVE_BUFFERS);
        } else if taken * 2 < self.0 && self.0 > CONNECTIONS_FIRST {
            self.0 -= self.0 / 8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The gaps of `ticks` ticks when every connection costs `us` and there are more of them than any batch takes.
    fn gaps(us: u64, ticks: usize) -> Vec<u64> {
        let mut batch = BatchSize::new();
        let tick = |_| {
            let gap_us = us * batch.connections() as u64;
            batch.adapt(gap_us, batch.connections());
            gap_us
        };
        (0..ticks).map(tick).collect()
    }

    #[test]
    fn dear_requests_are_taken_a_few_at_a_time() {
        // 64 requests of each connection, 1 us each: 2 ms at first.
        let gaps = gaps(64, 100);
        assert_eq!(gaps[0], 2_048);
        assert!(gaps[3..].iter().all(|gap| *gap <= GAP_US_MAX + 64), "{gaps:?}");
    }

    #[test]
    fn cheap_ones_are_taken_by_the_hundred() {
        assert_eq!(gaps(1, 100).last(), Some(&(RECEIVE_BUFFERS as u64)));
    }

    #[test]
    fn what_a_few_connections_left_unused_is_given_up() {
        let mut batch = BatchSize::new();
        (0..100).for_each(|_| batch.adapt(10, RECEIVE_BUFFERS));
        assert_eq!(batch.connections(), RECEIVE_BUFFERS);
        (0..100).for_each(|_| batch.adapt(10, 50));
        assert!((50..=100).contains(&batch.connections()), "{}", batch.connections());
        (0..100).for_each(|_| batch.adapt(10, 1));
        assert!(batch.connections() <= CONNECTIONS_FIRST);
    }

    #[test]
    fn one_stall_is_soon_forgotten_and_idleness_changes_nothing() {
        let mut batch = BatchSize::new();
        batch.adapt(26_000, 1);
        assert_eq!(batch.connections(), CONNECTIONS_FIRST / 2);
        (0..1_000).for_each(|_| batch.adapt(10, 1));
        assert_eq!(batch.connections(), CONNECTIONS_FIRST / 2);
        (0..8).for_each(|_| batch.adapt(10, RECEIVE_BUFFERS));
        assert!(batch.connections() > CONNECTIONS_FIRST);
        (0..1_000).for_each(|_| batch.adapt(1_000_000, RECEIVE_BUFFERS));
        assert_eq!(batch.connections(), CONNECTIONS_MIN);
    }
}
