//! The baseline of claim Z1: a server that gives every request a thread of its own, as the early ZHT did (Li, thesis
//! 2015, section 2.2.4). GET and SET on one map behind one mutex.
//!
//! One thread waits for connections with something to read. It hands each to a new thread, which reads, answers one
//! request and ends; a connection is watched again only when its request is answered, so replies keep their order.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;

use crate::resp::{Parsed, REQUEST_BYTES_MAX, first_request};

const LISTENER: u64 = u64::MAX;
const READ_BYTES: usize = 16 << 10;
/// Generous to the baseline: a default stack of megabytes would cost it more.
const STACK_BYTES: usize = 64 << 10;

type Map = Mutex<HashMap<Vec<u8>, Vec<u8>>>;

struct Connection {
    number: u64,
    stream: TcpStream,
    input: Vec<u8>,
}

struct Shared {
    map: Map,
    poll: OwnedFd,
    /// Connections that no thread is working for.
    resting: Mutex<HashMap<u64, Connection>>,
}

/// Serves on the loopback address until the process ends. `on_ready` hears the port.
pub fn run(port: u16, on_ready: impl FnOnce(u16)) -> io::Result<Infallible> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    let poll = epoll::create(CreateFlags::CLOEXEC)?;
    epoll::add(&poll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
    let shared = Arc::new(Shared { map: Mutex::default(), poll, resting: Mutex::default() });
    on_ready(listener.local_addr()?.port());
    let mut events = Vec::with_capacity(256);
    let mut next_number = 0;
    loop {
        match epoll::wait(&shared.poll, rustix::buffer::spare_capacity(&mut events), None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in events.drain(..) {
            let data = event.data.u64();
            if data != LISTENER {
                start_thread(&shared, take_resting(&shared, data))?;
                continue;
            }
            let (stream, _) = listener.accept()?;
            stream.set_nodelay(true)?;
            let interest = EventFlags::IN | EventFlags::ONESHOT;
            let connection = Connection { number: next_number, stream, input: Vec::new() };
            next_number += 1;
            let mut resting = shared.resting.lock().expect("no thread panics while it holds the lock");
            epoll::add(&shared.poll, &connection.stream, EventData::new_u64(connection.number), interest)?;
            resting.insert(connection.number, connection);
        }
    }
}

fn take_resting(shared: &Shared, number: u64) -> Connection {
    let mut resting = shared.resting.lock().expect("no thread panics while it holds the lock");
    resting.remove(&number).expect("a watched connection rests")
}

fn start_thread(shared: &Arc<Shared>, connection: Connection) -> io::Result<()> {
    let theirs = Arc::clone(shared);
    // Nobody joins it: the thread ends with its request.
    std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || serve_one(&theirs, connection)).map(drop)
}

/// Reads, answers one request, and lets the connection rest or gives its next request a thread. An error ends the
/// connection, which is all a baseline owes.
fn serve_one(shared: &Arc<Shared>, mut connection: Connection) {
    if first_request(&connection.input) == Parsed::Incomplete {
        let mut buffer = [0u8; READ_BYTES];
        match connection.stream.read(&mut buffer) {
            Ok(bytes) if bytes > 0 && connection.input.len() < REQUEST_BYTES_MAX => {
                connection.input.extend_from_slice(&buffer[..bytes]);
            }
            _ => return,
        }
    }
    match first_request(&connection.input) {
        Parsed::Malformed => return,
        Parsed::Incomplete => {}
        Parsed::Request { words, bytes } => {
            let reply = answer(&shared.map, &connection.input, &words);
            if connection.stream.write_all(&reply).is_err() {
                return;
            }
            connection.input.drain(..bytes);
            if first_request(&connection.input) != Parsed::Incomplete {
                if let Err(error) = start_thread(shared, connection) {
                    eprintln!("cannot start a thread: {error}");
                }
                return;
            }
        }
    }
    let mut resting = shared.resting.lock().expect("no thread panics while it holds the lock");
    let data = EventData::new_u64(connection.number);
    if epoll::modify(&shared.poll, &connection.stream, data, EventFlags::IN | EventFlags::ONESHOT).is_ok() {
        resting.insert(connection.number, connection);
    }
}

fn answer(map: &Map, input: &[u8], words: &[(usize, usize)]) -> Vec<u8> {
    let word = |index: usize| words.get(index).map(|(start, end)| &input[*start..*end]);
    let mut map = map.lock().expect("no thread panics while it holds the lock");
    match (word(0), word(1), word(2)) {
        (Some(verb), Some(key), None) if verb.eq_ignore_ascii_case(b"GET") => match map.get(key) {
            Some(value) => [format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat(),
            None => b"$-1\r\n".to_vec(),
        },
        (Some(verb), Some(key), Some(value)) if verb.eq_ignore_ascii_case(b"SET") => {
            map.insert(key.to_vec(), value.to_vec());
            b"+OK\r\n".to_vec()
        }
        _ => b"-ERR this baseline knows GET and SET only\r\n".to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SET: &[u8] = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2\r\nab\r\n";

    #[test]
    fn what_was_set_is_got() {
        let map = Map::default();
        let ask = |text: &[u8]| match first_request(text) {
            Parsed::Request { words, .. } => answer(&map, text, &words),
            other => panic!("{other:?}"),
        };
        let get = b"*2\r\n$3\r\nget\r\n$1\r\nk\r\n";
        assert_eq!(ask(get), b"$-1\r\n");
        assert_eq!(ask(SET), b"+OK\r\n");
        assert_eq!(ask(get), b"$2\r\nab\r\n");
    }
}
