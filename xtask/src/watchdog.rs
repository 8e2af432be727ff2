//! A run of suites ends, whatever a suite does: one that takes three times its budget is failed and closes the run.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

/// Times its budget that a suite may take before it is given up: slow machines pass, hanging suites do not.
const PATIENCE: u32 = 3;

/// Watches one suite until it is dropped.
pub struct Watchdog {
    _until_dropped: Sender<()>,
}

impl Watchdog {
    /// Calls `give_up` once if the watchdog lives longer than three times `budget`.
    pub fn new(budget: Duration, give_up: impl FnOnce() + Send + 'static) -> Watchdog {
        let (sender, dropped) = mpsc::channel::<()>();
        std::thread::spawn(move || {
            if dropped.recv_timeout(budget * PATIENCE) == Err(RecvTimeoutError::Timeout) {
                give_up();
            }
        });
        Watchdog { _until_dropped: sender }
    }
}

#[cfg(test)]
mod tests {
    use super::Watchdog;
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
}
