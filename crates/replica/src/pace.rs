//! How fast slots are filled: as fast as followers take it while nobody is served here, and so many bytes in a time while clients are.
//!
//! ```text
//!   nobody is served      ████████████████████   what may be on its way is the only bound
//!   clients are served    █   █   █   █   █      a slice, and time for them; the core sleeps in between, so whoever else has to run on
//!                                                its CPU (the follower, a client beside it) does not wait for a turn's end either
//! ```

use storage::maintenance::bucket::Bucket;

/// Fills of one core while it serves clients, bytes in a second: a million keys of 132 bytes in five seconds.
const BYTES_PER_SECOND: u64 = 48 << 20;
/// What may go at once after a sleep: as much as a millisecond's worth, because some timers count those.
const BURST_BYTES: u32 = 64 << 10;
/// For so long behind the last request clients count as being served, microseconds.
const PRESSED_US: u64 = 20_000;

/// See the module.
pub(crate) struct Pace {
    bucket: Bucket,
    pressed_until_us: u64,
    now_us: u64,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace { bucket: Bucket::new(BYTES_PER_SECOND, BURST_BYTES), pressed_until_us: 0, now_us: 0 }
    }
}

impl Pace {
    /// Requests are served in this tick.
    pub(crate) fn note_served(&mut self, now_us: u64) {
        self.pressed_until_us = now_us + PRESSED_US;
    }

    /// What is asked next is as of this tick.
    pub(crate) fn begin(&mut self, now_us: u64) {
        self.now_us = now_us;
    }

    /// Whether a slice may go now.
    pub(crate) fn is_open(&self) -> bool {
        self.now_us >= self.pressed_until_us || self.bucket.is_open(self.now_us)
    }

    /// A slice of so many bytes went.
    pub(crate) fn take(&mut self, bytes: usize) {
        if self.now_us < self.pressed_until_us {
            self.bucket.take(bytes as u64, self.now_us);
        }
    }

    /// When the next one may go, if it may not now, microseconds.
    pub(crate) fn opens_at_us(&self) -> Option<u64> {
        (!self.is_open()).then(|| self.bucket.opens_at_us().min(self.pressed_until_us))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICE_BYTES: usize = 16 << 10;

    /// Bytes that go in a second in which requests are served or not.
    fn second(has_served: bool) -> u64 {
        let (mut pace, mut bytes, mut now_us) = (Pace::default(), 0, 5_000_000);
        while now_us < 6_000_000 {
            if has_served {
                pace.note_served(now_us);
            }
            pace.begin(now_us);
            if pace.is_open() {
                pace.take(SLICE_BYTES);
                bytes += SLICE_BYTES as u64;
            }
            now_us = pace.opens_at_us().unwrap_or(now_us + 10);
        }
        bytes
    }

    #[test]
    fn clients_are_left_time_and_nobody_waits_for_nobody() {
        let paced = second(true);
        let most = BYTES_PER_SECOND + u64::from(BURST_BYTES) + SLICE_BYTES as u64;
        assert!((BYTES_PER_SECOND * 9 / 10..=most).contains(&paced), "{paced}");
        assert_eq!(second(false), 100_000 * SLICE_BYTES as u64);
    }

    #[test]
    fn the_last_request_presses_for_a_while() {
        let mut pace = Pace::default();
        pace.note_served(1_000_000);
        pace.begin(1_000_000);
        pace.take(1 << 30);
        assert_eq!((pace.is_open(), pace.opens_at_us()), (false, Some(1_000_000 + PRESSED_US)));
        pace.begin(1_000_000 + PRESSED_US);
        assert_eq!((pace.is_open(), pace.opens_at_us()), (true, None));
    }
}
