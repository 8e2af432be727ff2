//! A blocking client connection that keeps replies as raw bytes: what an oracle comparison needs and a client hides.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use crate::reply;

/// Longest wait for one reply before the server counts as hung.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes asked of the socket at once.
const READ_BYTES: usize = 64 << 10;

/// One connection to one server.
pub struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
    consumed: usize,
}

impl Connection {
    /// Connects to `host:port` with Nagle's algorithm off.
    ///
    /// # Errors
    /// Those of connecting.
    pub fn open(address: &str) -> io::Result<Connection> {
        Connection::open_with(address, CONNECT_TIMEOUT, REPLY_TIMEOUT)
    }

    /// The same, with a patience of one's own for connecting and for each reply.
    ///
    /// # Errors
    /// As [`Connection::open`].
    pub fn open_within(address: &str, patience: Duration) -> io::Result<Connection> {
        Connection::open_with(address, patience, patience)
    }

    fn open_with(address: &str, for_connecting: Duration, for_replies: Duration) -> io::Result<Connection> {
        let address = address
            .to_socket_addrs()?
            .next()
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("{address} names no address")))?;
        let stream = TcpStream::connect_timeout(&address, for_connecting)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(for_replies))?;
        stream.set_write_timeout(Some(for_replies))?;
        Ok(Connection { stream, received: Vec::new(), consumed: 0 })
    }

    /// Writes raw bytes and returns once the kernel has them.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// The next reply, raw.
    ///
    /// # Errors
    /// `UnexpectedEof` when the server closed, `InvalidData` when the bytes are no reply, `WouldBlock` or `TimedOut`
    /// when none came.
    pub fn read_reply(&mut self) -> io::Result<Vec<u8>> {
        loop {
            let pending = &self.received[self.consumed..];
            let length = reply::frame_length(pending)
                .map_err(|malformed| io::Error::new(io::ErrorKind::InvalidData, malformed.to_string()))?;
            if let Some(length) = length {
                let raw = pending[..length].to_vec();
                self.consumed += length;
                return Ok(raw);
            }
            self.fill()?;
        }
    }

    /// Sends one command and returns its raw reply.
    ///
    /// # Errors
    /// As [`Connection::read_reply`].
    pub fn call(&mut self, arguments: &[&[u8]]) -> io::Result<Vec<u8>> {
        self.write_words(arguments)?;
        self.read_reply()
    }

    /// Sends one command.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn write_words(&mut self, arguments: &[&[u8]]) -> io::Result<()> {
        let mut request = Vec::new();
        encode(arguments, &mut request);
        self.write(&request)
    }

    /// As [`Connection::call`], with the words of `line` as arguments.
    ///
    /// # Errors
    /// As [`Connection::read_reply`].
    pub fn call_line(&mut self, line: &str) -> io::Result<Vec<u8>> {
        let words: Vec<&[u8]> = line.split_ascii_whitespace().map(str::as_bytes).collect();
        self.call(&words)
    }

    /// Everything the server still sends until it closes.
    ///
    /// # Errors
    /// When the server neither closes nor sends for the reply timeout.
    pub fn read_until_closed(&mut self) -> io::Result<Vec<u8>> {
        let mut all = self.received.split_off(self.consumed);
        match self.stream.read_to_end(&mut all) {
            Err(error) if error.kind() != io::ErrorKind::ConnectionReset => Err(error),
            _ => Ok(all),
        }
    }

    /// The socket underneath, for tests that misuse it.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    fn fill(&mut self) -> io::Result<()> {
        self.received.drain(..self.consumed);
        self.consumed = 0;
        let before = self.received.len();
        // A long reply is scanned again from its start after each read, so reads grow with what is pending.
        self.received.resize(before + READ_BYTES.max(before), 0);
        let result = self.stream.read(&mut self.received[before..]);
        self.received.truncate(before + *result.as_ref().unwrap_or(&0));
        match result {
            Ok(0) => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection")),
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Appends `arguments` to `output` as a multibulk request.
pub fn encode<A: AsRef<[u8]>>(arguments: &[A], output: &mut Vec<u8>) {
    output.extend_from_slice(format!("*{}\r\n", arguments.len()).as_bytes());
    for argument in arguments {
        let argument = argument.as_ref();
        output.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        output.extend_from_slice(argument);
        output.extend_from_slice(b"\r\n");
    }
}
