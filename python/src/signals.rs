//! Signals that come while a thread waits without the GIL: their handlers are Python's, and run on the main thread only.

use pyo3::prelude::*;
use std::cell::Cell;

thread_local! {
    /// What a handler raised, until the call that it ended returns.
    static RAISED: Cell<Option<PyErr>> = const { Cell::new(None) };
}

/// Runs the handlers of what came; whether one raised something. Asked by who waits, in between.
pub fn is_interrupted() -> bool {
    // While the interpreter ends, nobody handles anything any more.
    let Some(Err(raised)) = Python::try_attach(|py| py.check_signals()) else { return false };
    RAISED.set(Some(raised));
    true
}

/// What was raised on this thread.
pub fn take_raised() -> Option<PyErr> {
    RAISED.take()
}
