//! A run of suites ends, whatever a suite does: one that takes three times its budget, and no less than 25 minutes, is failed
//! and closes the run. It is for suites that hang: slow machines have taken more than three times 240 s for what was well.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

/// Times its budget that a suite may take before it is given up.
const PATIENCE: u32 = 3;
/// What every suite may take. A run whose last suite hangs ends in less than the 90 minutes that CI gives it.
const PATIENCE_MIN: Duration = Duration::from_secs(25 * 60);

/// How long a suite with this budget may take: slow machines pass, hanging suites do not.
pub fn patience(budget: Duration) -> Duration {
    (budget * PATIENCE).max(PATIENCE_MIN)
}

/// Watches one suite until it is dropped.
pub struct Watchdog {
    _until_dropped: Sender<()>,
}

impl Watchdog {
    /// Calls `give_up` once if the watchdog lives longer than `patience`.
    pub fn new(patience: Duration, give_up: impl FnOnce() + Send + 'static) -> Watchdog {
        let (sender, dropped) = mpsc::channel::<()>();
        std::thread::spawn(move || {
            if dropped.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                give_up();
            }
        });
        Watchdog { _until_dropped: sender }
    }
}

#[cfg(test)]
mod tests {
    use super::{Watchdog, patience};
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn it_gives_up_on_what_lasts_and_only_on_that() {
        let (gave_up, heard) = mpsc::channel();
        let watchdog = Watchdog::new(Duration::ZERO, move || gave_up.send("hanging").expect("the test listens"));
        assert_eq!(heard.recv(), Ok("hanging"));
        drop(watchdog);

        let (gave_up, heard) = mpsc::channel();
        drop(Watchdog::new(Duration::from_secs(3600), move || gave_up.send("quick").expect("the test listens")));
        assert!(heard.recv().is_err(), "a suite that ended was given up");
    }

    #[test]
    fn short_budgets_do_not_make_it_impatient() {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        assert_eq!([minutes(4), minutes(10)].map(patience), [minutes(25), minutes(30)]);
    }
}
