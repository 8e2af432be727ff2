//! Whether io_uring works here: most containers forbid it, and older kernels lack parts of it. Found out by doing.

use super::buffers::{Buffers, Group};
use super::ring::{Completion, Ring};
use crate::backend::TaskWork;
use io_uring::{opcode, types};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socketpair};
use std::collections::VecDeque;
use std::io;
use std::os::fd::AsRawFd;

/// How long the kernel may take to answer, microseconds.
const ANSWER_US: u64 = 1_000_000;

/// Sets up a ring with the flags we run with, does nothing with it once, and receives once by multishot into a
/// provided buffer.
///
/// # Errors
/// Which step failed and how, for an operator.
pub(crate) fn probe() -> Result<(), String> {
    let mut ring = Ring::new(TaskWork::default()).map_err(|error| {
        let hint = match error.kind() {
            io::ErrorKind::PermissionDenied => " (forbidden by a seccomp profile or by kernel.io_uring_disabled)",
            io::ErrorKind::InvalidInput => " (kernel older than 6.1)",
            io::ErrorKind::Unsupported => " (kernel without io_uring)",
            _ => "",
        };
        format!("io_uring_setup: {error}{hint}")
    })?;
    // SAFETY: a NOP points to nothing.
    let pushed = unsafe { ring.push(&opcode::Nop::new().build()) };
    let completion = pushed.and_then(|()| answer(&mut ring)).map_err(|error| format!("NOP: {error}"))?;
    completion.outcome().map_err(|error| format!("NOP: {error}"))?;
    let buffers = Buffers::new(&ring).map_err(|error| format!("ring of provided buffers: {error}"))?;
    let outcome = receive_once(&mut ring);
    // The ring first: afterwards the kernel knows the buffers no more.
    drop(ring);
    drop(buffers);
    outcome.map_err(|error| format!("multishot receive: {error}"))
}

fn receive_once(ring: &mut Ring) -> io::Result<()> {
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    send(&theirs, b"x", SendFlags::NOSIGNAL)?;
    let entry = opcode::RecvMulti::new(types::Fd(ours.as_raw_fd()), Group::Common as u16).build();
    // SAFETY: the entry points to no memory; the provided buffers outlive the ring.
    unsafe { ring.push(&entry)? };
    let completion = answer(ring)?;
    if completion.outcome()? != 1 || completion.buffer().is_none() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "one byte was sent and not received"));
    }
    // The end of the stream ends the receive, so that nothing is in flight when the ring goes.
    drop(theirs);
    if completion.more() {
        answer(ring)?;
    }
    Ok(())
}

fn answer(ring: &mut Ring) -> io::Result<Completion> {
    ring.enter(1, Some(ANSWER_US))?;
    let mut completions = VecDeque::new();
    ring.read_completions(&mut completions);
    completions.pop_front().ok_or_else(|| io::Error::new(io::ErrorKind::TimedOut, "no answer"))
}
