//! One connection of a generator thread: bytes out, requests in flight, replies counted.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::plan::Dialect;
use super::route::SlotSet;
use super::scan::Scanner;

/// Bytes of one system call at most: a kernel that does not preempt itself takes milliseconds for hundreds of megabytes, in which
/// no other generator of that CPU runs.
const WRITE_BYTES_MAX: usize = 64 << 10;

/// Requests that started together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Started {
    /// When they started (closed loop) or should have started (open loop), nanoseconds of the run's clock.
    pub at_ns: u64,
    /// How many.
    pub requests: u32,
}

/// What became of a connection's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flushed {
    /// Everything was handed to the kernel.
    All,
    /// The socket is full; ask to be told when it is not.
    Blocked,
}

/// One connection.
#[derive(Debug)]
pub struct Connection {
    /// The socket, non-blocking.
    pub socket: OwnedFd,
    /// Finds the ends of its replies.
    pub scanner: Scanner,
    /// Slots its server owns; `None` when all.
    pub slots: Option<SlotSet>,
    /// Key of a read-modify-write whose write is due here.
    pub follow_up: Option<u64>,
    /// Requests rendered and not yet handed to the kernel.
    pub output: Vec<u8>,
    /// Whether the socket was full at the last flush.
    pub blocked: bool,
    /// Open loop: the connection waits in the queue of those with room.
    pub queued: bool,
    sent: usize,
    in_flight: VecDeque<Started>,
    outstanding: usize,
}

impl Connection {
    /// A connection on `socket`, which is non-blocking and has said hello.
    pub fn new(socket: OwnedFd, dialect: Dialect, slots: Option<SlotSet>) -> Connection {
        Connection {
            socket,
            scanner: Scanner::new(dialect),
            slots,
            follow_up: None,
            output: Vec::new(),
            blocked: false,
            queued: false,
            sent: 0,
            in_flight: VecDeque::new(),
            outstanding: 0,
        }
    }

    /// Requests without a reply.
    pub fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// Notes that `requests` were rendered and started at `at_ns`.
    pub fn started(&mut self, at_ns: u64, requests: u32) {
        self.outstanding += requests as usize;
        match self.in_flight.back_mut() {
            Some(last) if last.at_ns == at_ns => last.requests += requests,
            _ => self.in_flight.push_back(Started { at_ns, requests }),
        }
    }

    /// Takes the oldest of `replies` requests in flight, as many as started together; `None` when the server sent more
    /// replies than there were requests.
    pub fn ended(&mut self, replies: u64) -> Option<Started> {
        let oldest = self.in_flight.front_mut()?;
        let requests = u64::from(oldest.requests).min(replies) as u32;
        let ended = Started { at_ns: oldest.at_ns, requests };
        oldest.requests -= requests;
        if oldest.requests == 0 {
            self.in_flight.pop_front();
        }
        self.outstanding -= requests as usize;
        Some(ended)
    }

    /// Hands rendered requests to the kernel.
    pub fn flush(&mut self) -> Result<Flushed, Errno> {
        while self.sent < self.output.len() {
            let end = self.output.len().min(self.sent + WRITE_BYTES_MAX);
            match rustix::io::write(&self.socket, &self.output[self.sent..end]) {
                Ok(bytes) => self.sent += bytes,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(Flushed::Blocked),
                Err(error) => return Err(error),
            }
        }
        self.output.clear();
        self.sent = 0;
        Ok(Flushed::All)
    }
}
