//! What a cluster client does, once and by hand: one connection at a time, MOVED followed, another node asked when one is gone.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use crate::load::control::{Reply, ask};

/// How long a connection may take, and a reply: less than most clients wait, and more than a failover of ours takes.
const PATIENCE: Duration = Duration::from_secs(2);

/// How one try ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Try {
    /// It was answered.
    Answered(Reply),
    /// Another node serves the key.
    Moved,
    /// It was not done: nobody accepted the connection, or the answer is an error. Its first word.
    Refused(String),
    /// Nobody knows whether it was done: the connection broke behind the request, or the reply did not come.
    Unanswered(String),
}

/// One client of nodes on the loopback address.
#[derive(Debug)]
pub struct Client {
    ports: Vec<u16>,
    port: u16,
    connection: Option<TcpStream>,
    /// Tries that ended as errors, by what the error says first.
    pub errors: BTreeMap<String, u64>,
}

impl Client {
    /// Knows that nodes listen on `ports`, of which it asks the one at `start` first.
    ///
    /// # Panics
    /// Without ports.
    pub fn new(ports: Vec<u16>, start: usize) -> Client {
        let port = ports[start % ports.len()];
        Client { ports, port, connection: None, errors: BTreeMap::new() }
    }

    /// The port that is asked next, or answered last.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Sends `words` once to where the key was served last; after anything but an answer the next try goes somewhere else.
    pub fn attempt(&mut self, words: &[&str]) -> Try {
        if self.connection.is_none() {
            match connect(self.port) {
                Ok(stream) => self.connection = Some(stream),
                Err(error) => return self.fails(Try::Refused(in_a_word(&error))),
            }
        }
        let stream = self.connection.as_mut().expect("it was just made");
        match ask(stream, words) {
            Ok(Reply::Error(text)) => match moved_to(&text) {
                Some(port) => {
                    (self.port, self.connection) = (port, None);
                    Try::Moved
                }
                None => self.fails(Try::Refused(text.split(' ').next().unwrap_or_default().to_owned())),
            },
            Ok(reply) => Try::Answered(reply),
            Err(_) => self.fails(Try::Unanswered("no answer".to_owned())),
        }
    }

    /// Notes the error, and turns to the next node.
    fn fails(&mut self, outcome: Try) -> Try {
        if let Try::Refused(word) | Try::Unanswered(word) = &outcome {
            *self.errors.entry(word.clone()).or_default() += 1;
        }
        let index = self.ports.iter().position(|port| *port == self.port).unwrap_or_default();
        (self.port, self.connection) = (self.ports[(index + 1) % self.ports.len()], None);
        outcome
    }
}

/// A connection to `port` on the loopback address.
///
/// # Errors
/// When none is accepted.
pub fn connect(port: u16) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), PATIENCE)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

fn in_a_word(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        kind => kind.to_string(),
    }
}

/// `MOVED slot host:port` -> the port; everybody is on this machine.
fn moved_to(text: &str) -> Option<u16> {
    text.strip_prefix("MOVED ")?.rsplit_once(':')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;

    use super::*;

    /// A server that answers the requests of one connection with `replies`, one each, and closes it.
    fn server(replies: &'static [&'static str]) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            for reply in replies {
                // `*1 $4 PING`.
                (0..3).for_each(|_| drop(lines.next().unwrap().unwrap()));
                (&stream).write_all(reply.as_bytes()).unwrap();
            }
        });
        port
    }

    #[test]
    fn answers_redirects_refusals_and_silence_are_told_apart() {
        let second = server(&["+PONG\r\n"]);
        let first = server(&["+PONG\r\n", "-CLUSTERDOWN nobody\r\n"]);
        // Nobody listens on the last one.
        let mut client = Client::new(vec![first, second, 1], 0);
        assert_eq!(client.attempt(&["PING"]), Try::Answered(Reply::Text("PONG".into())));
        assert_eq!(client.attempt(&["PING"]), Try::Refused("CLUSTERDOWN".into()));
        assert_eq!(client.port(), second);
        assert_eq!(client.attempt(&["PING"]), Try::Answered(Reply::Text("PONG".into())));
        // It has closed the connection, or does so.
        assert_eq!(client.attempt(&["PING"]), Try::Unanswered("no answer".into()));
        assert_eq!((client.port(), client.attempt(&["PING"])), (1, Try::Refused("connection refused".into())));
        assert_eq!(client.errors.values().sum::<u64>(), 3);
    }

    #[test]
    fn a_redirect_is_no_error_and_the_next_try_goes_there() {
        assert_eq!(moved_to("MOVED 12 127.0.0.1:7001"), Some(7001));
        assert_eq!(moved_to("MOVED 12 :7001"), Some(7001));
        assert_eq!(moved_to("ERR MOVED"), None);
        let port = server(&["-MOVED 7 127.0.0.1:9\r\n"]);
        let mut client = Client::new(vec![port], 0);
        assert_eq!((client.attempt(&["PING"]), client.port()), (Try::Moved, 9));
        assert!(client.errors.is_empty());
    }
}
