//! SIGUSR2: the binary was replaced, and the new one takes over without anybody's connection ending.
//!
//! ```text
//!   SIGUSR2 ─► a thread ─► the same command again, a bridge as its standard input ─► Operator::hand_over ─┬─ ready: this one empties
//!                                                                                                        └─ or not: it is ended
//! ```

use std::env::{args_os, var_os};
use std::process::{Child, Command};
use std::sync::Arc;
use std::thread::Builder;

use ::proxy::upgrade::Inherited;
use io::handover::Bridge;

use super::live::Shared;
use crate::{manager, say};

/// Set for a process whose standard input leads to the one that it takes over from.
const VARIABLE: &str = "ZEROHOP_PROXY_TAKES_OVER";

/// What there is to take over, if this process was started for that.
///
/// # Errors
/// It cannot be taken over, in words.
pub fn inherited() -> Result<Option<Inherited>, String> {
    if var_os(VARIABLE).is_none() {
        return Ok(None);
    }
    let bridge = Bridge::of_standard_input()
        .map_err(|error| format!("{VARIABLE} is set, which only a proxy does whose binary was replaced: {error}"))?;
    Inherited::receive(bridge).map(Some)
}

/// What SIGUSR2 does.
pub fn starter(operator: &Shared) -> Box<dyn FnMut() + Send> {
    let operator = Arc::clone(operator);
    Box::new(move || {
        let operator = Arc::clone(&operator);
        // Not on the thread of the signals: while this goes on, the proxy can be stopped.
        if let Err(error) = Builder::new().name("upgrade".to_owned()).spawn(move || upgrade(&operator)) {
            refused(&error.to_string());
        }
    })
}

fn upgrade(operator: &Shared) {
    match attempt(operator) {
        Err(problem) => refused(&problem),
        Ok(mut child) => {
            // So that it leaves nothing behind should it end before this one.
            child.wait().ok();
        }
    }
}

fn attempt(operator: &Shared) -> Result<Child, String> {
    let mut operator = operator.try_lock().map_err(|_| "it is being changed at the moment: try again")?;
    let (program, child, bridge) = start()?;
    let process = child.id();
    let gone = || {
        manager::tell(&format!("MAINPID={process}"));
        say::line(&format!(
            "SIGUSR2: {program}, process {process}, has taken over; this one ends with its last client"
        ));
    };
    match operator.hand_over(bridge, gone) {
        Ok(()) => Ok(child),
        Err(problem) => Err(format!("{program}: {problem}{}", ended(child))),
    }
}

fn refused(problem: &str) {
    say::line(&format!("SIGUSR2: everything stays as it was: {problem}"));
}

/// Starts what lies now where this program was started from.
fn start() -> Result<(String, Child, Bridge), String> {
    let mut arguments = args_os();
    let program = arguments.next().ok_or("nobody said where this program lies")?;
    let name = program.to_string_lossy().into_owned();
    let (ours, theirs) = Bridge::pair().map_err(|error| error.to_string())?;
    let mut command = Command::new(&program);
    command.args(arguments).env(VARIABLE, "1").stdin(theirs.into_stdio());
    let child = command.spawn().map_err(|error| format!("{name}: {error}"))?;
    Ok((name, child, ours))
}

/// Ends a process that did not take over; how it ended, if it did so itself.
fn ended(mut child: Child) -> String {
    let by_itself = child.try_wait().ok().flatten();
    if by_itself.is_none() {
        // One that ends meanwhile needs no end.
        child.kill().ok();
        child.wait().ok();
    }
    by_itself.map_or_else(String::new, |status| format!(" ({status})"))
}
