//! SIGINT, SIGTERM and SIGHUP: the first asks the node to stop cleanly, a second SIGINT ends the process at once. To a node that
//! serves TLS, or a proxy with a file, and was not started at a terminal SIGHUP says, as to other servers, that its files have changed.
//! To a proxy SIGUSR2 says that its binary has.

use std::io::IsTerminal;
use std::sync::{Arc, OnceLock};

use io::StreetHandle;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR2};
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
pub fn on_request(told: impl FnMut(StopRequest) + Send + 'static) -> std::io::Result<()> {
    listen(|| false, None, told)
}

/// What signals mean that are no request to stop.
#[derive(Default)]
pub struct Meanings {
    /// Of SIGHUP, unless the process was started at a terminal, which hung up then.
    pub read_again: Option<Box<dyn FnMut() + Send>>,
    /// Of SIGUSR2, which ends the process where it means nothing.
    pub upgrade: Option<Box<dyn FnMut() + Send>>,
}

/// As [`on_request`], with these meanings of other signals.
///
/// # Errors
/// As [`on_request`].
pub fn on_request_or(meanings: Meanings, told: impl FnMut(StopRequest) + Send + 'static) -> std::io::Result<()> {
    let is_at_terminal = std::io::stdin().is_terminal();
    let Meanings { mut read_again, upgrade } = meanings;
    let hung_up = move || {
        let read_again = read_again.as_mut().filter(|_| !is_at_terminal);
        read_again.map(|read_again| read_again()).is_some()
    };
    listen(hung_up, upgrade, told)
}

/// As [`on_request`]; `hung_up` says of a SIGHUP whether it meant something else.
fn listen(
    mut hung_up: impl FnMut() -> bool + Send + 'static,
    mut upgrade: Option<Box<dyn FnMut() + Send>>,
    mut told: impl FnMut(StopRequest) + Send + 'static,
) -> std::io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP].into_iter().chain(upgrade.is_some().then_some(SIGUSR2)))?;
    let listen = move || {
        let mut asked = false;
        for signal in signals.forever() {
            if signal == SIGUSR2 {
                upgrade.iter_mut().filter(|_| !asked).for_each(|upgrade| upgrade());
                continue;
            }
            if !asked && signal == SIGHUP && hung_up() {
                continue;
            }
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
    node: Arc<OnceLock<Attached>>,
}

/// Reads files again; whether there are any.
type ReadAgain = Box<dyn Fn() -> Result<bool, String> + Send + Sync>;

struct Attached {
    handle: StreetHandle,
    read_again: ReadAgain,
}

impl StopSignals {
    /// Begins to listen; `say` tells the operator.
    ///
    /// # Errors
    /// When the operating system refuses the handlers or the thread.
    pub fn listen(say: fn(&str)) -> std::io::Result<StopSignals> {
        let stop = StopSignals { node: Arc::new(OnceLock::new()) };
        // Later it can no longer be told: the terminal is gone when it hangs up.
        let is_at_terminal = std::io::stdin().is_terminal();
        let (node, reading) = (Arc::clone(&stop.node), Arc::clone(&stop.node));
        let hung_up = move || {
            let read = reading.get().filter(|_| !is_at_terminal).map_or(Ok(false), |node| (node.read_again)());
            match read {
                Ok(false) => return false,
                Ok(true) => say("SIGHUP: certificate and key were read again, for clients that come from now on"),
                Err(problem) => say(&format!("SIGHUP: {problem}; what was read before is kept")),
            }
            true
        };
        let told = move |request| match (node.get(), request) {
            (None, _) => {
                say("stopped before it served; nothing was changed");
                std::process::exit(0);
            }
            (Some(node), StopRequest::Clean) => node.handle.request_shutdown(),
            (Some(_), StopRequest::Forced) => {
                say("forced to stop before the log was sealed; the next start recovers as after a crash");
                std::process::exit(FORCED_EXIT_CODE);
            }
        };
        listen(hung_up, None, told)?;
        Ok(stop)
    }

    /// From now on signals stop this node, and SIGHUP calls `read_again`, which says whether there was anything to read.
    pub fn attach(&self, handle: StreetHandle, read_again: impl Fn() -> Result<bool, String> + Send + Sync + 'static) {
        let attached = Attached { handle, read_again: Box::new(read_again) };
        assert!(self.node.set(attached).is_ok(), "one process runs one node");
    }
}
