//! Many callers of one thread: what happens at which of them is seen in one order, and the crowd is never busier than one core.

use std::io;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::caller::Caller;

/// After so long without anything happening somebody is forgotten: no machine is as slow.
const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until one of them can be read or takes more.
///
/// # Errors
/// When nothing happens for a long time.
pub(super) fn wait<'a>(callers: impl IntoIterator<Item = &'a Caller>) -> io::Result<()> {
    let mut owing = 0;
    let mut descriptors: Vec<PollFd<'_>> = callers
        .into_iter()
        .map(|caller| {
            owing += caller.owed();
            let more = if caller.unsent_bytes() > 0 { PollFlags::OUT } else { PollFlags::empty() };
            PollFd::new(caller, PollFlags::IN | more)
        })
        .collect();
    let patience = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
    match poll(&mut descriptors, Some(&patience))? {
        0 => Err(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("nobody heard anything for {PATIENCE:?}, and {owing} replies are owed"),
        )),
        _ => Ok(()),
    }
}

/// Each of them hears everything that it is owed.
///
/// # Errors
/// When that does not come, or a socket fails.
pub(super) fn hear_all(callers: &mut [Caller], mut heard: impl FnMut(&[u8])) -> io::Result<()> {
    while callers.iter().any(|caller| caller.owed() > 0) {
        wait(callers.iter().filter(|caller| caller.owed() > 0))?;
        for caller in callers.iter_mut().filter(|caller| caller.owed() > 0) {
            caller.push()?;
            while caller.pull(64 << 10, &mut heard)? {}
        }
    }
    Ok(())
}

/// The error that one of them was told first, if any was.
pub(super) fn error_of<'a>(callers: impl IntoIterator<Item = &'a Caller>) -> Option<String> {
    let first = callers.into_iter().find(|caller| caller.errors > 0)?;
    Some(format!("{} errors, the first {}", first.errors, first.error.as_deref().unwrap_or_default()))
}
