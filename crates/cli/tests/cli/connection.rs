//! A connection of a client that stays.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use crate::process::PATIENCE;

pub struct Client {
    stream: TcpStream,
    lines: BufReader<TcpStream>,
}

impl Client {
    pub fn new(port: u16) -> Client {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Client { lines: BufReader::new(stream.try_clone().unwrap()), stream }
    }

    /// What an inline request is answered, a bulk string in one piece.
    pub fn ask(&mut self, line: &str) -> String {
        self.tell(format!("{line}\r\n").as_bytes())
    }

    /// The same of a request of any bytes.
    pub fn ask_words(&mut self, words: &[&[u8]]) -> String {
        let mut request = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            request.extend(format!("${}\r\n", word.len()).into_bytes());
            request.extend_from_slice(word);
            request.extend_from_slice(b"\r\n");
        }
        self.tell(&request)
    }

    fn tell(&mut self, request: &[u8]) -> String {
        self.stream.write_all(request).unwrap();
        let mut reply = String::new();
        self.lines.read_line(&mut reply).unwrap();
        if let Some(length) = reply.strip_prefix('$').and_then(|length| length.trim().parse::<usize>().ok()) {
            let mut bytes = vec![0; length + 2];
            self.lines.read_exact(&mut bytes).unwrap();
            reply = String::from_utf8(bytes).unwrap();
        }
        reply
    }
}
