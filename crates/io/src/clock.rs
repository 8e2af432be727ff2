//! The real clock, read once per tick.

use base::street::{Now, Stopwatch};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// How long a measured distance between the two clocks is trusted, microseconds: a stepped wall clock is noticed
/// within that time, and a busy core reads one clock per tick instead of two.
const OFFSET_TRUSTED_US: u64 = 10_000;

/// Reads [`Now`] from the monotonic clock, adding the wall clock's distance.
pub struct Clock {
    offset_us: i64,
    offset_read_at_us: Option<u64>,
}

impl Clock {
    /// A clock that has not been read.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Clock {
        Clock { offset_us: 0, offset_read_at_us: None }
    }

    /// The present.
    pub fn now(&mut self) -> Now {
        let monotonic_us = monotonic_us();
        if self.offset_read_at_us.is_none_or(|at| monotonic_us - at >= OFFSET_TRUSTED_US) {
            let unix_us = microseconds(clock_gettime(ClockId::Realtime));
            self.offset_us = unix_us as i64 - monotonic_us as i64;
            self.offset_read_at_us = Some(monotonic_us);
        }
        Now { monotonic_us, unix_ms: (monotonic_us as i64 + self.offset_us).max(0) as u64 / 1000 }
    }
}

/// A [`Stopwatch`] by the same clock.
pub struct MonotonicStopwatch;

impl Stopwatch for MonotonicStopwatch {
    fn elapsed_us(&mut self, start: Now) -> u64 {
        monotonic_us().saturating_sub(start.monotonic_us)
    }

    fn measured_ns(&mut self, start: Now) -> u64 {
        let time = clock_gettime(ClockId::Monotonic);
        let now_ns = time.tv_sec.max(0) as u64 * 1_000_000_000 + time.tv_nsec as u64;
        now_ns.saturating_sub(start.monotonic_us * 1000)
    }
}

/// Microseconds of the monotonic clock; comparable between threads of one machine.
pub fn monotonic_us() -> u64 {
    microseconds(clock_gettime(ClockId::Monotonic))
}

fn microseconds(time: Timespec) -> u64 {
    time.tv_sec.max(0) as u64 * 1_000_000 + time.tv_nsec as u64 / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unix_time_agrees_with_the_system() {
        let mut clock = Clock::new();
        let first = clock.now();
        let system = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
        let second = clock.now();
        assert!(second.monotonic_us >= first.monotonic_us);
        let system_ms = system.as_millis() as u64;
        assert!(first.unix_ms <= system_ms + 20 && system_ms <= second.unix_ms + 20);
    }
}
