//! SIGINT, SIGTERM and SIGHUP: the first asks the node to stop cleanly, a second SIGINT ends the process at once.

use std::sync::{Arc, OnceLock};

use io::StreetHandle;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Exit code after a second Ctrl-C: what shells show for a program that SIGINT ended.
pub const FORCED_EXIT_CODE: i32 = 130;

/// What somebody wants who sends signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopRequest {
    /// A clean stop.
    Clean,
    /// An end at once: SIGINT while a clean stop is under way.
    Forced,
}

/// Tells `told` of every request, on a thread of its own, until the process ends.
///
/// # Errors
/// When the operating system refuses the handlers or the thread.
pub fn on_request(mut told: impl FnMut(StopRequest) + Send + 'static) -> std::io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let listen = move || {
        let mut asked = false;
        for signal in signals.forever() {
            match (asked, signal) {
                (false, _) => told(StopRequest::Clean),
                (true, SIGINT) => told(StopRequest::Forced),
                (true, _) => {}
            }
            asked = true;
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(listen)?;
    Ok(())
}

/// Listens for signals from before the node starts until the process ends.
#[derive(Clone)]
pub struct StopSignals {
    node: Arc<OnceLock<StreetHandle>>,
}

impl StopSignals {
    /// Begins to listen; `say` tells the operator.
    ///
    /// # Errors
    /// When the operating system refuses the handlers or the thread.
    pub fn listen(say: fn(&str)) -> std::io::Result<StopSignals> {
        let stop = StopSignals { node: Arc::new(OnceLock::new()) };
        let node = Arc::clone(&stop.node);
        on_request(move |request| match (node.get(), request) {
            (None, _) => {
                say("stopped before it served; nothing was changed");
                std::process::exit(0);
            }
            (Some(handle), StopRequest::Clean) => handle.request_shutdown(),
            (Some(_), StopRequest::Forced) => {
                say("forced to stop before the log was sealed; the next start recovers as after a crash");
                std::process::exit(FORCED_EXIT_CODE);
            }
        })?;
        Ok(stop)
    }

    /// From now on signals stop this node.
    pub fn attach(&self, node: StreetHandle) {
        assert!(self.node.set(node).is_ok(), "one process runs one node");
    }
}
