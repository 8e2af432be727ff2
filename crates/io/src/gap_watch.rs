//! Finds the gaps between a core's ticks: how long it was awake without taking a clock reading.
//!
//! ```text
//!   tick's reading        tick's reading      sleep           tick's reading
//!        │◄───── gap ─────────►│◄── gap ──►│··········│◄─ gap ─►│
//! ```
//!
//! It reads no clock: a busy core reads one per tick, and one that may sleep reads it before and after.

use base::street::TickGap;

/// A wait that ended sooner was no sleep: something was already there, and the time belongs to the gap around it.
/// Microseconds.
const SLEEP_US_MIN: u64 = 50;

/// When a core slept, in monotonic microseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sleep {
    pub from_us: u64,
    pub until_us: u64,
}

/// See the module.
pub(crate) struct GapWatch {
    awake_since_us: u64,
}

impl GapWatch {
    /// The core begins at `now_us`.
    pub fn new(now_us: u64) -> GapWatch {
        GapWatch { awake_since_us: now_us }
    }

    /// A tick reads the clock; the longest gap since the reading before.
    #[inline]
    pub fn tick(&mut self, sleep: Option<Sleep>, now_us: u64) -> TickGap {
        let mut longest = TickGap::default();
        if let Some(sleep) = sleep.filter(|sleep| sleep.until_us.saturating_sub(sleep.from_us) >= SLEEP_US_MIN) {
            longest = self.end(sleep.from_us);
            self.awake_since_us = sleep.until_us;
        }
        let gap = self.end(now_us);
        self.awake_since_us = now_us;
        if gap.us >= longest.us { gap } else { longest }
    }

    #[inline]
    fn end(&self, end_us: u64) -> TickGap {
        TickGap { begin_us: self.awake_since_us, us: end_us.saturating_sub(self.awake_since_us) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleep(from_us: u64, until_us: u64) -> Option<Sleep> {
        Some(Sleep { from_us, until_us })
    }

    #[test]
    fn a_busy_core_counts_from_reading_to_reading() {
        let mut watch = GapWatch::new(100);
        assert_eq!(watch.tick(None, 130), TickGap { begin_us: 100, us: 30 });
        assert_eq!(watch.tick(None, 5_130), TickGap { begin_us: 130, us: 5_000 });
        assert_eq!(watch.tick(None, 5_131), TickGap { begin_us: 5_130, us: 1 });
    }

    #[test]
    fn sleep_is_no_gap_but_what_surrounds_it_is() {
        let mut watch = GapWatch::new(0);
        // A tick of 300, an hour of sleep, 20 of receiving.
        assert_eq!(watch.tick(sleep(300, 3_600_000_300), 3_600_000_320), TickGap { begin_us: 0, us: 300 });
        // A short tick, and long receiving after the sleep.
        let after = TickGap { begin_us: 3_600_002_000, us: 900 };
        assert_eq!(watch.tick(sleep(3_600_000_400, 3_600_002_000), 3_600_002_900), after);
    }

    #[test]
    fn a_wait_that_found_something_at_once_divides_no_gap() {
        let mut watch = GapWatch::new(0);
        assert_eq!(watch.tick(sleep(1_500, 1_510), 2_500), TickGap { begin_us: 0, us: 2_500 });
    }
}
