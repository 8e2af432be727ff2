//! A client that never waits: it hands its socket what that takes, and counts what comes back.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};

use wire::ReplyScan;

use crate::reply::show;

/// What the kernel keeps at least for a connection that is made narrow.
const SEND_BUFFER_BYTES: usize = 16 << 10;

/// One connection.
pub(super) struct Caller {
    stream: TcpStream,
    unsent: Vec<u8>,
    received: Vec<u8>,
    scan: ReplyScan,
    /// Requests so far.
    pub(super) asked: u64,
    /// Replies so far.
    pub(super) answered: u64,
    /// Those of them that are errors, and the first of these.
    pub(super) errors: u64,
    pub(super) error: Option<String>,
}

impl Caller {
    /// Connects to `host:port`.
    ///
    /// # Errors
    /// Those of the socket.
    pub(super) fn open(address: &str) -> io::Result<Caller> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Caller {
            stream,
            unsent: Vec::new(),
            received: Vec::new(),
            scan: ReplyScan::default(),
            asked: 0,
            answered: 0,
            errors: 0,
            error: None,
        })
    }

    /// The kernel keeps little of what it sends, so that it is soon noticed when the other end takes no more.
    ///
    /// # Errors
    /// Those of the socket.
    pub(super) fn narrow(&self) -> io::Result<()> {
        Ok(rustix::net::sockopt::set_socket_send_buffer_size(&self.stream, SEND_BUFFER_BYTES)?)
    }

    /// Asks `count` times the same.
    pub(super) fn ask(&mut self, request: &[u8], count: u64) {
        (0..count).for_each(|_| self.unsent.extend_from_slice(request));
        self.asked += count;
    }

    /// Requests without a reply.
    pub(super) fn owed(&self) -> u64 {
        self.asked - self.answered
    }

    /// Bytes that the socket has not taken.
    pub(super) fn unsent_bytes(&self) -> usize {
        self.unsent.len()
    }

    /// Hands over what the socket takes; how many bytes that were.
    ///
    /// # Errors
    /// Those of the socket.
    pub(super) fn push(&mut self) -> io::Result<usize> {
        let mut sent = 0;
        while sent < self.unsent.len() {
            match self.stream.write(&self.unsent[sent..]) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.unsent.drain(..sent);
        Ok(sent)
    }

    /// Takes what has come, one piece of at most `bytes_max`, and shows each reply that is whole; whether there was a piece.
    ///
    /// # Errors
    /// Those of the socket, its end, and what is no reply.
    pub(super) fn pull(&mut self, bytes_max: usize, mut heard: impl FnMut(&[u8])) -> io::Result<bool> {
        let before = self.received.len();
        self.received.resize(before + bytes_max, 0);
        let result = self.stream.read(&mut self.received[before..]);
        self.received.truncate(before + *result.as_ref().unwrap_or(&0));
        match result {
            Ok(0) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "a connection was closed")),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        }
        let mut start = 0;
        let malformed = |_| io::Error::new(io::ErrorKind::InvalidData, "what came is no reply");
        while let Some(length) = self.scan.advance(&self.received[start..]).map_err(malformed)? {
            let reply = &self.received[start..start + length];
            if reply[0] == b'-' {
                self.errors += 1;
                self.error.get_or_insert_with(|| show(reply));
            }
            self.answered += 1;
            heard(reply);
            start += length;
        }
        self.received.drain(..start);
        Ok(true)
    }
}

impl AsFd for Caller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
