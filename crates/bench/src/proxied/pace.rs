//! When a client that asks at its own pace asks next, and from when its waiting counts.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    due: Instant,
    every: Duration,
}

impl Pace {
    /// That of one of `count` clients that take turns: each asks `every` so often, from now on.
    pub fn of(number: usize, count: usize, every: Duration) -> Pace {
        Pace { due: Instant::now() + every * number as u32 / count as u32, every }
    }

    /// Waits until it is time to ask. What it waits for a reply counts from the time that is given back: now; or when it should have asked,
    /// if it could not because the request before was not answered. Who answers slowly is not asked less for that.
    pub fn wait(&mut self) -> Instant {
        let due = self.due;
        self.due += self.every;
        let wait = due.saturating_duration_since(Instant::now());
        if wait.is_zero() {
            return due;
        }
        sleep(wait);
        // What the system takes to wake this thread is nobody's answer.
        Instant::now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_counts_from_when_it_should_have_asked() {
        let begun = Instant::now();
        let every = Duration::from_millis(5);
        let mut pace = Pace::of(1, 2, 2 * every);
        assert!(pace.wait() >= begun + every, "its turn is in the middle");
        // The one before took three times as long as there was.
        let due = Instant::now() - 3 * every;
        let mut pace = Pace { due, every };
        assert_eq!([pace.wait(), pace.wait()], [due, due + every], "both are late");
        pace.due = Instant::now() + every;
        assert!(pace.wait() >= due + 4 * every, "on time it counts from when it is asked");
    }
}
