//! A client that knows the cluster: a connection to each node, a table of who serves which slot, corrections followed and counted.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use crate::cluster::client::connect;
use crate::load::control::{Reply, ask};

/// Corrections of one request, after which it counts as failed.
const HOPS_MAX: u32 = 5;

/// Corrections that a request met on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hops {
    /// `MOVED`: the slot is somewhere else from now on.
    pub moved: u32,
    /// `ASK`: this request is for somebody else.
    pub asked: u32,
}

/// Bytes that a client sent and received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bytes {
    /// All of them.
    pub all: u64,
    /// Those of them that are there because it did not know who serves a slot: corrections with their requests, and the table.
    pub extra: u64,
}

/// Why a request was not answered as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It was refused: it is not done. The error.
    Refused(String),
    /// Nobody knows whether it was done.
    Unanswered(String),
}

/// See the module.
#[derive(Debug)]
pub struct Client {
    /// Who serves each slot, as far as it knows.
    table: Vec<u16>,
    connections: BTreeMap<u16, TcpStream>,
    /// Since [`Client::take_bytes`].
    bytes: Bytes,
}

/// A connection whose bytes are counted.
struct Counted<'a>(&'a mut TcpStream, &'a mut u64);

impl Read for Counted<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(into).inspect(|count| *self.1 += *count as u64)
    }
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes).inspect(|count| *self.1 += *count as u64)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

impl Client {
    /// Asks the node on `port` for the table.
    ///
    /// # Errors
    /// When it does not tell.
    pub fn new(port: u16) -> Result<Client, String> {
        let table = vec![port; usize::from(base::SLOT_COUNT)];
        let mut client = Client { table, connections: BTreeMap::new(), bytes: Bytes::default() };
        client.learn(port)?;
        Ok(client)
    }

    /// Who serves `slot`, as far as it knows.
    pub fn port_of(&self, slot: u16) -> u16 {
        self.table[usize::from(slot)]
    }

    /// Asks the node on `port` for the whole table.
    ///
    /// # Errors
    /// When it does not tell.
    pub fn learn(&mut self, port: u16) -> Result<(), String> {
        let before = self.bytes.all;
        let reply = self.ask(port, &["CLUSTER", "SLOTS"]);
        self.bytes.extra += self.bytes.all - before;
        let reply = reply?;
        let entries = reply.list().iter().map(entry).collect::<Option<Vec<_>>>();
        let entries = entries.filter(|entries| !entries.is_empty());
        for (first, last, port) in entries.ok_or("a node does not tell who serves which slots")? {
            let slots = self.table.get_mut(usize::from(first)..=usize::from(last));
            slots.ok_or("a node tells of slots that there are not")?.fill(port);
        }
        Ok(())
    }

    /// Sends one request for `slot` to whoever serves it, and follows corrections. After one of them the whole table is asked for, as
    /// clients do.
    pub fn request(&mut self, slot: u16, words: &[&str]) -> (Result<Reply, Trouble>, Hops) {
        let mut hops = Hops::default();
        let result = self.follow(slot, words, &mut hops);
        let port = self.port_of(slot);
        // Who does not tell is asked again after the next correction.
        if hops.moved > 0 && result.is_ok() {
            self.learn(port).ok();
        }
        (result, hops)
    }

    fn follow(&mut self, slot: u16, words: &[&str], hops: &mut Hops) -> Result<Reply, Trouble> {
        let mut once = None;
        while hops.moved + hops.asked <= HOPS_MAX {
            let asked = once.take();
            let port = asked.unwrap_or(self.port_of(slot));
            let before = self.bytes.all;
            let reply = self.ask_once(port, asked.is_some(), words)?;
            let Reply::Error(text) = reply else { return Ok(reply) };
            self.bytes.extra += self.bytes.all - before;
            match redirect(&text) {
                Some(("MOVED", port)) => {
                    hops.moved += 1;
                    self.table[usize::from(slot)] = port;
                }
                Some((_, port)) => {
                    hops.asked += 1;
                    once = Some(port);
                }
                None => return Err(Trouble::Refused(text)),
            }
        }
        Err(Trouble::Refused(format!("corrected {HOPS_MAX} times")))
    }

    fn ask_once(&mut self, port: u16, asking: bool, words: &[&str]) -> Result<Reply, Trouble> {
        self.connection(port).map_err(Trouble::Refused)?;
        let refused =
            |reply: Result<Reply, String>| reply.and_then(|reply| reply.text().map(drop).ok_or(format!("{reply:?}")));
        let before = self.bytes.all;
        if asking && let Err(problem) = refused(self.ask(port, &["ASKING"])) {
            self.connections.remove(&port);
            return Err(Trouble::Refused(problem));
        }
        self.bytes.extra += self.bytes.all - before;
        self.ask(port, words).map_err(|problem| {
            // What comes on it later would be taken for another reply.
            self.connections.remove(&port);
            Trouble::Unanswered(problem)
        })
    }

    /// Sends many requests to one node before it reads the first reply; lines and bulk strings are understood as replies.
    ///
    /// # Errors
    /// When not all are answered.
    pub fn pipeline<'a>(
        &mut self,
        port: u16,
        requests: impl ExactSizeIterator<Item = &'a [String]>,
    ) -> Result<Vec<Reply>, String> {
        let (mut bytes, count) = (Vec::new(), requests.len());
        requests.for_each(|words| encode(words, &mut bytes));
        let mut carried = 0;
        let mut stream = Counted(self.connection(port)?, &mut carried);
        let replies = stream.write_all(&bytes).and_then(|()| {
            let (mut source, mut line) = (BufReader::new(stream), Vec::new());
            (0..count).map(|_| read_short(&mut source, &mut line)).collect()
        });
        self.bytes.all += carried;
        replies.map_err(|error| {
            // What comes on it later would be taken for another reply.
            self.connections.remove(&port);
            format!("the node on port {port}: {error}")
        })
    }

    /// A request of a pipeline, for `slot`, was answered with this error: the correction, if it is one; the request was in vain then.
    pub fn correction(&mut self, slot: u16, words: &[String], error: &str) -> Option<Hops> {
        let (word, port) = redirect(error)?;
        let mut bytes = Vec::new();
        encode(words, &mut bytes);
        self.bytes.extra += (bytes.len() + "-\r\n".len() + error.len()) as u64;
        if word == "MOVED" {
            self.table[usize::from(slot)] = port;
            return Some(Hops { moved: 1, asked: 0 });
        }
        Some(Hops { moved: 0, asked: 1 })
    }

    fn ask(&mut self, port: u16, words: &[&str]) -> Result<Reply, String> {
        let mut bytes = 0;
        let reply = ask(&mut Counted(self.connection(port)?, &mut bytes), words);
        self.bytes.all += bytes;
        reply
    }

    /// What it sent and received since this was asked last, the fill and the end of a load left out.
    pub fn take_bytes(&mut self) -> Bytes {
        std::mem::take(&mut self.bytes)
    }

    fn connection(&mut self, port: u16) -> Result<&mut TcpStream, String> {
        use std::collections::btree_map::Entry;
        match self.connections.entry(port) {
            Entry::Occupied(there) => Ok(there.into_mut()),
            Entry::Vacant(place) => {
                let stream = connect(port).map_err(|error| format!("no connection to port {port}: {error}"))?;
                Ok(place.insert(stream))
            }
        }
    }
}

fn encode(words: &[String], bytes: &mut Vec<u8>) {
    let written = "writing to a Vec cannot fail";
    write!(bytes, "*{}\r\n", words.len()).expect(written);
    words.iter().for_each(|word| write!(bytes, "${}\r\n{word}\r\n", word.len()).expect(written));
}

/// A line or a bulk string; `line` has room for a line.
fn read_short(source: &mut impl BufRead, line: &mut Vec<u8>) -> std::io::Result<Reply> {
    let not_text = |_| std::io::ErrorKind::InvalidData;
    line.clear();
    source.read_until(b'\n', line)?;
    let told = std::str::from_utf8(line).map_err(not_text)?.trim_end();
    if let Some(text) = told.strip_prefix('-') {
        return Ok(Reply::Error(text.to_owned()));
    }
    let Some(length) = told.strip_prefix('$') else {
        let text = told.get(1..).ok_or(std::io::ErrorKind::UnexpectedEof)?;
        return Ok(Reply::Text(text.to_owned()));
    };
    let Ok(length) = length.parse::<usize>() else { return Ok(Reply::Null) };
    let mut bytes = vec![0; length + 2];
    source.read_exact(&mut bytes)?;
    bytes.truncate(length);
    Ok(Reply::Text(String::from_utf8(bytes).map_err(|_| std::io::ErrorKind::InvalidData)?))
}

/// An entry of CLUSTER SLOTS: first slot, last slot, where the primary listens.
pub(super) fn entry(reply: &Reply) -> Option<(u16, u16, u16)> {
    let [first, last, primary, ..] = reply.list() else { return None };
    let number = |reply: &Reply| reply.text()?.parse().ok();
    Some((number(first)?, number(last)?, number(primary.list().get(1)?)?))
}

/// `MOVED slot host:port` or `ASK slot host:port`: its first word, and the port.
fn redirect(text: &str) -> Option<(&str, u16)> {
    let (word, rest) = text.split_once(' ')?;
    let port = rest.rsplit_once(':')?.1.parse().ok()?;
    matches!(word, "MOVED" | "ASK").then_some((word, port))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::net::TcpListener;

    use super::*;

    /// A node that answers requests of one connection in turn, and tells what it was asked.
    fn node(listener: TcpListener, replies: Vec<String>) -> std::thread::JoinHandle<Vec<String>> {
        std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut source = BufReader::new(stream.try_clone().unwrap());
            let mut line = || {
                let mut line = String::new();
                source.read_line(&mut line).unwrap();
                line.trim_end().to_owned()
            };
            let mut request = || {
                let words: usize = line()[1..].parse().unwrap();
                let words: Vec<String> = (0..words).map(|_| (line(), line()).1).collect();
                words.join(" ")
            };
            let answer = |reply: String| {
                let request = request();
                (&stream).write_all(reply.as_bytes()).unwrap();
                request
            };
            replies.into_iter().map(answer).collect()
        })
    }

    fn listener() -> (TcpListener, u16) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        (listener, port)
    }

    fn slots(port: u16) -> String {
        format!("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:{port}\r\n")
    }

    #[test]
    fn a_corrected_request_of_a_pipeline_was_in_vain_and_is_remembered() {
        let (first, here) = listener();
        let moved = "-MOVED 7 127.0.0.1:1\r\n";
        let first = node(first, vec![slots(here), "$1\r\na\r\n".into(), moved.into()]);
        let mut client = Client::new(here).unwrap();
        client.take_bytes();
        let requests = ["k", "l"].map(|key| vec!["GET".to_owned(), key.to_owned()]);
        let replies = client.pipeline(here, requests.iter().map(Vec::as_slice)).unwrap();
        let [Reply::Text(_), Reply::Error(text)] = &replies[..] else { panic!("{replies:?}") };
        assert_eq!(client.correction(7, &requests[1], "ERR no"), None);
        assert_eq!(client.correction(7, &requests[1], text), Some(Hops { moved: 1, asked: 0 }));
        assert_eq!((client.port_of(7), client.port_of(8)), (1, here));
        let extra = 20 + moved.len() as u64;
        assert_eq!(client.take_bytes(), Bytes { all: extra + 20 + 7, extra });
        first.join().unwrap();
    }

    #[test]
    fn a_pipeline_that_broke_leaves_no_connection_with_replies_to_come() {
        let (first, here) = listener();
        let first = node(first, vec![slots(here), "$1\r\na\r\n".into()]);
        let mut client = Client::new(here).unwrap();
        let requests = ["k", "l"].map(|key| vec!["GET".to_owned(), key.to_owned()]);
        assert!(client.pipeline(here, requests.iter().map(Vec::as_slice)).is_err());
        assert!(client.connections.is_empty());
        first.join().unwrap();
    }

    #[test]
    fn corrections_are_followed_counted_and_remembered() {
        let ((first, here), (second, there)) = (listener(), listener());
        let moved = format!("-MOVED 7 127.0.0.1:{there}\r\n");
        let ask = format!("-ASK 9 127.0.0.1:{there}\r\n");
        let asked = ask.len();
        let first = node(first, vec![slots(here), ask, moved]);
        let text = |text: &str| format!("${}\r\n{text}\r\n", text.len());
        let second =
            node(second, vec!["+OK\r\n".into(), text("a"), text("b"), slots(there), text("c"), "-ERR no\r\n".into()]);
        let mut client = Client::new(here).unwrap();
        assert!(client.take_bytes().all > 0, "it asked for the table");
        let a = Ok(Reply::Text("a".into()));
        assert_eq!(client.request(9, &["GET", "k"]), (a, Hops { moved: 0, asked: 1 }));
        assert_eq!(client.port_of(9), here, "it was for that request only");
        // A request of 20 bytes and its correction; ASKING and OK; the request again, and its reply.
        let extra = 20 + asked as u64 + 16 + 5;
        assert_eq!(client.take_bytes(), Bytes { all: extra + 20 + 7, extra });
        let b = Ok(Reply::Text("b".into()));
        assert_eq!(client.request(7, &["GET", "k"]), (b, Hops { moved: 1, asked: 0 }));
        assert_eq!(client.port_of(9), there, "the whole table was asked for");
        assert!(client.take_bytes().extra > 20, "the correction and the table");
        assert_eq!(client.request(9, &["GET", "k"]).1, Hops::default());
        assert_eq!(client.take_bytes(), Bytes { all: 27, extra: 0 });
        let no = Err(Trouble::Refused("ERR no".into()));
        assert_eq!(client.request(9, &["GET", "k"]).0, no);
        assert_eq!(first.join().unwrap(), ["CLUSTER SLOTS", "GET k", "GET k"]);
        assert_eq!(second.join().unwrap()[..4], ["ASKING", "GET k", "GET k", "CLUSTER SLOTS"]);
        assert!(matches!(client.request(9, &["GET", "k"]).0, Err(Trouble::Unanswered(_))), "it has gone");
    }

    #[test]
    fn many_at_once_are_answered_in_order() {
        let (listener, port) = listener();
        let server = node(listener, vec![slots(port), "$1\r\n1\r\n".into(), "$-1\r\n".into(), "-ERR x\r\n".into()]);
        let mut client = Client::new(port).unwrap();
        let requests: Vec<Vec<String>> = ["a", "b", "c"].iter().map(|key| vec!["GET".into(), (*key).into()]).collect();
        let replies = client.pipeline(port, requests.iter().map(Vec::as_slice)).unwrap();
        assert_eq!(replies, [Reply::Text("1".into()), Reply::Null, Reply::Error("ERR x".into())]);
        assert_eq!(server.join().unwrap().len(), 4);
    }
}
