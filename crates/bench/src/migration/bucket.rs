//! A token bucket: bounds how much an end serves far below what its CPU could. Who takes a token is told until when to wait, so
//! those who come are served in their order, and who oversleeps takes nothing from the next.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What an idle bucket saves up, nanoseconds of its rate: enough for who oversleeps, and nothing beside a migration.
const BURST_NS: f64 = 5e6;

/// See the module.
#[derive(Debug)]
pub struct Bucket {
    begun: Instant,
    owed: Mutex<Owed>,
}

#[derive(Debug)]
struct Owed {
    ns_per_token: f64,
    /// When the next token is there, nanoseconds.
    next_ns: f64,
}

impl Owed {
    /// Takes `ns` of service at `now_ns`; when it begins.
    fn reserve(&mut self, now_ns: f64, ns: f64) -> f64 {
        let at_ns = self.next_ns.max(now_ns - BURST_NS);
        self.next_ns = at_ns + ns;
        at_ns
    }
}

impl Bucket {
    /// One that gives so many tokens a second.
    pub fn new(per_second: f64) -> Bucket {
        let owed = Owed { ns_per_token: 1e9 / per_second, next_ns: 0.0 };
        Bucket { begun: Instant::now(), owed: Mutex::new(owed) }
    }

    /// Gives so many from now on; what was owed before is forgotten.
    pub fn set_rate(&self, per_second: f64) {
        let now_ns = self.now_ns();
        *self.owed() = Owed { ns_per_token: 1e9 / per_second, next_ns: now_ns };
    }

    /// Waits for a token.
    pub fn take(&self) {
        let now_ns = self.now_ns();
        let mut owed = self.owed();
        let ns = owed.ns_per_token;
        let at_ns = owed.reserve(now_ns, ns);
        drop(owed);
        if at_ns > now_ns {
            std::thread::sleep(Duration::from_nanos((at_ns - now_ns) as u64));
        }
    }

    /// Takes tokens without waiting: those who come later wait for them.
    pub fn spend(&self, tokens: f64) {
        let now_ns = self.now_ns();
        let mut owed = self.owed();
        let ns = owed.ns_per_token * tokens;
        owed.reserve(now_ns, ns);
    }

    /// Nobody was served for so long.
    pub fn block(&self, time: Duration) {
        let now_ns = self.now_ns();
        self.owed().reserve(now_ns, time.as_nanos() as f64);
    }

    fn now_ns(&self) -> f64 {
        self.begun.elapsed().as_nanos() as f64
    }

    fn owed(&self) -> std::sync::MutexGuard<'_, Owed> {
        // Two numbers are whole whoever panicked.
        self.owed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_bucket_gives_its_rate_and_an_idle_one_saves_little() {
        let mut owed = Owed { ns_per_token: 1e6, next_ns: 0.0 };
        // A thousand a second: those who come at once are served one a millisecond.
        let at: Vec<f64> = (0..4).map(|_| owed.reserve(0.0, 1e6)).collect();
        assert_eq!(at, [0.0, 1e6, 2e6, 3e6]);
        // After a second of nobody there is as much as the burst, and no more.
        let now_ns = 1e9;
        let waiting = (0..10).map(|_| owed.reserve(now_ns, 1e6)).filter(|at| *at > now_ns).count();
        assert_eq!(waiting, 4, "five are saved up, and one is there");
        assert_eq!(owed.reserve(now_ns, 7e6), now_ns + 5e6, "who spends takes what is next");
        assert_eq!(owed.reserve(now_ns, 1e6), now_ns + 12e6);
    }
}
