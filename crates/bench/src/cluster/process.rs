//! Processes of a store: their own group, so that Ctrl-C is for us; and gone when we are.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};

/// How long one may take to end after it was asked to.
const END_WITHIN: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Starts it. If the thread that calls this ends, and with it the process, it gets `farewell`.
///
/// # Errors
/// Why there is no process, for people.
pub fn start(command: &mut Command, farewell: Signal) -> Result<Child, String> {
    let prepare = move || set_parent_process_death_signal(Some(farewell)).map_err(Into::into);
    // SAFETY: between fork and exec it makes one system call, and allocates nothing.
    let prepared = unsafe { command.process_group(0).pre_exec(prepare) };
    prepared.spawn().map_err(|error| format!("cannot start {}: {error}", command.get_program().display()))
}

/// Whether process `process_id` runs and has `word` in its command line: a number alone may be somebody else's by now.
pub fn runs_with(process_id: u32, word: &str) -> bool {
    let line = std::fs::read(format!("/proc/{process_id}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).any(|part| part == word.as_bytes())
}

/// Kills a process that is no child of ours, and waits for its end.
///
/// # Errors
/// When it does not run, or does not end.
pub fn kill_stranger(process_id: u32, word: &str) -> Result<(), String> {
    let gone = || format!("process {process_id} does not run any more");
    let pid = i32::try_from(process_id).ok().and_then(Pid::from_raw).ok_or_else(gone)?;
    if !runs_with(process_id, word) {
        return Err(gone());
    }
    kill_process(pid, Signal::KILL).map_err(|error| format!("cannot kill process {process_id}: {error}"))?;
    let until = Instant::now() + END_WITHIN;
    while runs_with(process_id, word) {
        if Instant::now() > until {
            return Err(format!("process {process_id} outlives SIGKILL"));
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

/// Kills a child of ours and waits for its end; one that has ended is as good.
pub fn kill(child: &mut Child) {
    // Both fail only where there is nothing left to do.
    child.kill().and_then(|()| child.wait()).ok();
}

/// Asks a child of ours to end, and kills it if it does not.
pub fn end(child: &mut Child) {
    kill_process(Pid::from_child(child), Signal::TERM).ok();
    let until = Instant::now() + END_WITHIN;
    while Instant::now() < until && matches!(child.try_wait(), Ok(None)) {
        std::thread::sleep(LOOK_EVERY);
    }
    kill(child);
}
