//! One client's connection: requests out, and exactly the replies that are known to belong to them back.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// How long anybody waits for a connection or a reply.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes that are read at once.
const READ_BYTES: usize = 64 << 10;

/// What a connection is made of: a socket, or one with a cipher.
pub trait Line: Read + Write + Send {}

impl<S: Read + Write + Send> Line for S {}

/// How one is made, and to whom, in words.
#[derive(Clone)]
pub struct Way {
    /// In words.
    pub name: String,
    /// Connects; nobody is waited for longer than [`PATIENCE`].
    pub dial: Arc<dyn Fn() -> Result<Box<dyn Line>, String> + Send + Sync>,
}

/// See the module.
pub struct Talk {
    stream: Box<dyn Line>,
    name: String,
    buffer: Vec<u8>,
}

impl Talk {
    /// A connection.
    ///
    /// # Errors
    /// When nobody listens there.
    pub fn dial(address: SocketAddr) -> Result<Talk, String> {
        Talk::by(&Way::to(address))
    }

    /// The same, on that way.
    ///
    /// # Errors
    /// When nobody listens there, or does not agree.
    pub fn by(way: &Way) -> Result<Talk, String> {
        Ok(Talk { stream: (way.dial)()?, name: way.name.clone(), buffer: vec![0; READ_BYTES] })
    }

    /// Sends the requests and waits for these replies.
    ///
    /// # Errors
    /// When something else is answered, or nothing.
    pub fn exchange(&mut self, requests: &[u8], mut replies: &[u8]) -> Result<(), String> {
        let lost = |error: std::io::Error| format!("{} answers no more: {error}", self.name);
        self.stream.write_all(requests).map_err(lost)?;
        while !replies.is_empty() {
            let count = self.stream.read(&mut self.buffer).map_err(lost)?;
            let read = &self.buffer[..count];
            if read.is_empty() || !replies.starts_with(read) {
                let at = read.iter().zip(replies).take_while(|(byte, expected)| byte == expected).count();
                let line = read[at..].split(|byte| *byte == b'\r').next().unwrap_or_default();
                return Err(format!("{} answered {:?}", self.name, String::from_utf8_lossy(line)));
            }
            replies = &replies[count..];
        }
        Ok(())
    }
}

impl Way {
    /// By a socket of its own.
    pub fn to(address: SocketAddr) -> Way {
        Way { name: address.to_string(), dial: Arc::new(move || Ok(Box::new(socket(address)?))) }
    }
}

/// A socket on which nobody is waited for longer than [`PATIENCE`].
///
/// # Errors
/// When nobody listens there.
pub fn socket(address: SocketAddr) -> Result<TcpStream, String> {
    let cannot = |error: std::io::Error| format!("cannot reach {address}: {error}");
    let stream = TcpStream::connect_timeout(&address, PATIENCE).map_err(cannot)?;
    stream.set_nodelay(true).map_err(cannot)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(cannot)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(cannot)?;
    Ok(stream)
}

/// Appends a request.
pub fn encode(words: &[&[u8]], bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    words.iter().for_each(|word| encode_value(word, bytes));
}

/// Appends a value, as requests and replies have it.
pub fn encode_value(value: &[u8], bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(format!("${}\r\n", value.len()).as_bytes());
    bytes.extend_from_slice(value);
    bytes.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn what_is_answered_otherwise_is_told_and_so_is_an_end() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut talk = Talk::dial(address).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        server.write_all(b"+OK\r\n").unwrap();
        server.write_all(b"$2\r\nab\r\n").unwrap();
        talk.exchange(b"x", b"+OK\r\n$2\r\nab\r\n").unwrap();
        server.write_all(b"+OK\r\n-ERR no\r\n").unwrap();
        let told = talk.exchange(b"x", b"+OK\r\n+OK\r\n").unwrap_err();
        assert!(told.ends_with("answered \"-ERR no\""), "{told}");
        drop((server, listener));
        assert!(talk.exchange(b"x", b"+OK\r\n").is_err());
        assert!(Talk::dial(address).is_err());
    }
}
