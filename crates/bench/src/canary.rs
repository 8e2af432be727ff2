//! A thread that only wakes up, again and again, and notes when it was late: on its core nobody could run then. Beside it,
//! a server's gap is the server's own or the machine's.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

/// Least lateness that is noted, microseconds: waking up itself takes some.
const LATE_US_MIN: u64 = 50;
/// Times noted, the first ones; a canary that is late more often than that says so and excuses nobody further.
const NOTED_MAX: usize = 1 << 16;

/// A time in which the canary should have run and did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Lateness {
    /// When it should have woken, microseconds of the monotonic clock.
    pub begin_us: u64,
    /// How much later it did, microseconds.
    pub us: u64,
}

/// What a canary saw.
#[derive(Clone, Debug, Serialize)]
pub struct Sighting {
    /// `fifo` when it outranks everything that is not real-time and is late only when the core itself was taken away;
    /// `other` when it competes like everybody, and may be late because the server ran.
    pub scheduling_class: &'static str,
    /// Microseconds between wakings.
    pub period_us: u64,
    /// Wakings.
    pub wakings: u64,
    /// In the order in which they happened.
    pub late: Vec<Lateness>,
    /// Times it was late that are not noted.
    pub late_unnoted: u64,
}

/// Wakes every `period_us` until `stop` is set.
pub fn watch(period_us: u64, stop: &AtomicBool) -> Sighting {
    let scheduling_class = if is_fifo().unwrap_or(false) { "fifo" } else { "other" };
    let mut sighting = Sighting { scheduling_class, period_us, wakings: 0, late: Vec::new(), late_unnoted: 0 };
    let mut due_us = monotonic_us() + period_us;
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_micros(due_us.saturating_sub(monotonic_us())));
        sighting.woke(due_us, monotonic_us());
        due_us = monotonic_us() + period_us;
    }
    sighting
}

impl Sighting {
    fn woke(&mut self, due_us: u64, now_us: u64) {
        self.wakings += 1;
        let us = now_us.saturating_sub(due_us);
        if us < LATE_US_MIN {
            return;
        }
        if self.late.len() < NOTED_MAX {
            self.late.push(Lateness { begin_us: due_us, us });
        } else {
            self.late_unnoted += 1;
        }
    }
}

/// Field 41 of `/proc/self/stat` is the scheduling policy; 1 is SCHED_FIFO (proc(5), sched(7)).
fn is_fifo() -> Option<bool> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let fields = stat.rsplit_once(')')?.1;
    Some(fields.split_whitespace().nth(41 - 3)? == "1")
}

fn monotonic_us() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.max(0) as u64 * 1_000_000 + now.tv_nsec as u64 / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_is_noted_from_when_it_was_due() {
        let stop = AtomicBool::new(true);
        let mut sighting = watch(200, &stop);
        assert_eq!((sighting.wakings, sighting.scheduling_class), (0, "other"));
        sighting.woke(1_000, 1_000 + LATE_US_MIN - 1);
        sighting.woke(2_000, 5_000);
        assert_eq!((sighting.wakings, &sighting.late[..]), (2, &[Lateness { begin_us: 2_000, us: 3_000 }][..]));
    }

    #[test]
    fn the_list_is_bounded_and_says_so() {
        let mut sighting = watch(200, &AtomicBool::new(true));
        (0..=NOTED_MAX as u64).for_each(|n| sighting.woke(n, n + LATE_US_MIN));
        assert_eq!((sighting.late.len(), sighting.late_unnoted), (NOTED_MAX, 1));
    }
}
