//! Sockets that do not block, and how threads sleep and wake each other.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;

use super::gather::{Gather, value_bytes};
use super::route::append_get;
use super::strange;

/// What is read at a time: more than a socket has at most loads, so that few reads find nothing.
pub const READ_BYTES: usize = 256 << 10;
const EVENTS_MAX: usize = 256;

/// Bytes on their way out.
#[derive(Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    sent: usize,
    /// Whether epoll was asked to tell of room.
    pub is_waiting: bool,
}

impl Outbox {
    /// Where more of them go.
    pub fn end(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Writes what the socket takes.
    pub fn flush(&mut self, socket: impl AsFd) -> Result<(), Errno> {
        while self.sent < self.bytes.len() {
            match rustix::io::write(&socket, &self.bytes[self.sent..]) {
                Ok(bytes) => self.sent += bytes,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        self.bytes.clear();
        self.sent = 0;
        Ok(())
    }

    /// Writes everything, and waits for room.
    pub fn flush_whole(&mut self, socket: impl AsFd) -> Result<(), Errno> {
        loop {
            self.flush(&socket)?;
            if self.is_empty() {
                return Ok(());
            }
            rustix::event::poll(&mut [PollFd::new(&socket, PollFlags::OUT)], None)?;
        }
    }
}

/// What a socket had.
pub enum Heard {
    /// So many bytes more, none if there were none yet.
    Bytes,
    /// Nobody speaks there any more.
    Ended,
}

/// Reads what is there to the end of `input`. A short read says that there is no more: what comes later, epoll tells.
pub fn hear(mut socket: &TcpStream, input: &mut Vec<u8>, buffer: &mut [u8]) -> Heard {
    loop {
        match socket.read(buffer) {
            Ok(0) => return Heard::Ended,
            Ok(bytes) => {
                input.extend_from_slice(&buffer[..bytes]);
                if bytes < buffer.len() {
                    return Heard::Bytes;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Heard::Bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Heard::Ended,
        }
    }
}

/// Who asks.
pub struct Client {
    /// What epoll calls it.
    pub number: u64,
    /// Does not block.
    pub socket: TcpStream,
    /// What it sent and no request has taken.
    pub input: Mutex<Vec<u8>>,
    /// What it has not taken yet.
    pub out: Mutex<Outbox>,
}

impl Client {
    /// Whoever connected.
    pub fn new(number: u64, socket: TcpStream) -> io::Result<Arc<Client>> {
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        Ok(Arc::new(Client { number, socket, input: Mutex::default(), out: Mutex::default() }))
    }
}

/// A connection to an instance, on which the requests of all clients follow each other.
pub struct StoreConnection {
    /// Does not block.
    pub socket: TcpStream,
    /// What is asked there.
    pub out: Outbox,
    input: Vec<u8>,
    waiting: VecDeque<(Arc<Gather>, usize)>,
}

impl StoreConnection {
    /// Nothing is asked there yet.
    pub fn new(socket: TcpStream) -> io::Result<StoreConnection> {
        socket.set_nonblocking(true)?;
        Ok(StoreConnection { socket, out: Outbox::default(), input: Vec::new(), waiting: VecDeque::new() })
    }

    /// Asks for the key in this place; it leaves with the next flush.
    pub fn ask(&mut self, gather: Arc<Gather>, place: usize) {
        append_get(gather.key(place), self.out.end());
        self.waiting.push_back((gather, place));
    }

    /// Reads what is there; `answered` has the answers that are whole with it.
    pub fn hear(&mut self, buffer: &mut [u8], mut answered: impl FnMut(&Arc<Client>, Vec<u8>)) -> io::Result<()> {
        if matches!(hear(&self.socket, &mut self.input, buffer), Heard::Ended) {
            return Err(strange("an instance is gone"));
        }
        let mut at = 0;
        while at < self.input.len() {
            let whole = value_bytes(&self.input[at..]).map_err(|_| strange("an instance answers with no value"))?;
            let Some(bytes) = whole else { break };
            let (gather, place) = self.waiting.pop_front().ok_or_else(|| strange("nobody asked for this"))?;
            if let Some(answer) = gather.fill(place, &self.input[at..at + bytes]) {
                answered(&gather.client, answer);
            }
            at += bytes;
        }
        self.input.drain(..at);
        Ok(())
    }
}

/// What a thread sleeps on.
pub struct Poller(OwnedFd);

impl Poller {
    /// Of nothing.
    pub fn new() -> io::Result<Poller> {
        Ok(Poller(epoll::create(CreateFlags::CLOEXEC)?))
    }

    /// Tells of `source` as `number`.
    pub fn add(&self, source: impl AsFd, number: u64, flags: EventFlags) -> Result<(), Errno> {
        epoll::add(&self.0, source, EventData::new_u64(number), flags)
    }

    /// From now on it tells this of `source`.
    pub fn change(&self, source: impl AsFd, number: u64, flags: EventFlags) -> Result<(), Errno> {
        epoll::modify(&self.0, source, EventData::new_u64(number), flags)
    }

    /// Sleeps until something is ready.
    pub fn wait(&self, events: &mut Vec<epoll::Event>) -> io::Result<()> {
        events.clear();
        events.reserve(EVENTS_MAX);
        match epoll::wait(&self.0, rustix::buffer::spare_capacity(events), None) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// What other threads hand to one that polls. It is woken when it sleeps, or is about to.
pub struct Queue<T> {
    items: Mutex<Vec<T>>,
    bell: OwnedFd,
    has_rung: AtomicBool,
}

impl<T> Queue<T> {
    /// Empty; its bell rings in `poller` as `number`.
    pub fn new(poller: &Poller, number: u64) -> io::Result<Queue<T>> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        poller.add(&bell, number, EventFlags::IN)?;
        Ok(Queue { items: Mutex::default(), bell, has_rung: AtomicBool::new(false) })
    }

    /// Hands over all of these with one ring at most.
    pub fn hand(&self, items: &mut Vec<T>) -> io::Result<()> {
        if items.is_empty() {
            return Ok(());
        }
        self.items.lock().expect("no thread panics while it holds the lock").append(items);
        if !self.has_rung.swap(true, Ordering::AcqRel) {
            rustix::io::write(&self.bell, &1u64.to_ne_bytes())?;
        }
        Ok(())
    }

    /// Whoever hears the bell takes all that is there.
    pub fn take(&self, taken: &mut Vec<T>) {
        // It rang, or another take was faster: both leave nothing to read.
        rustix::io::read(&self.bell, &mut [0u8; 8]).ok();
        self.has_rung.store(false, Ordering::Release);
        std::mem::swap(&mut *self.items.lock().expect("no thread panics while it holds the lock"), taken);
    }
}
