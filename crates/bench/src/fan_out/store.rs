//! A cluster of instances that do nothing but answer: one thread, a port for each, each reply a while after its request. The value of a
//! key begins with the key, so that who mixes replies up is seen.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::event::epoll::EventFlags;
use rustix::fd::OwnedFd;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use super::route::Route;
use super::sockets::{Heard, Outbox, Poller, READ_BYTES, hear};
use super::strange;
use crate::resp::{Parsed, first_request};

const TIMER: u64 = u64::MAX;
/// Instances are told from connections by their numbers.
const CONNECTION: u64 = 1 << 32;
/// What is due so soon is answered at once: a timer costs as much.
const SLACK: Duration = Duration::from_micros(10);

/// What it answers, and when.
#[derive(Clone, Debug)]
pub struct Canned {
    /// Where.
    pub route: Route,
    /// Length of each value; may be changed at any time.
    pub value_bytes: Arc<AtomicUsize>,
    /// From a request to its reply.
    pub delay: Duration,
}

struct Connection {
    socket: TcpStream,
    instance: usize,
    input: Vec<u8>,
    out: Outbox,
}

/// What a connection sent, and when it is to be answered.
struct Later {
    due: Instant,
    connection: u64,
    bytes: Vec<u8>,
}

struct Store {
    canned: Canned,
    poller: Poller,
    listeners: Vec<TcpListener>,
    connections: HashMap<u64, Connection>,
    next_number: u64,
    timer: OwnedFd,
    later: VecDeque<Later>,
}

/// Serves until the process ends; `on_ready` is called when it can be connected to.
///
/// # Errors
/// What the system refuses, or what of a client is not understood.
pub fn serve(canned: Canned, on_ready: impl FnOnce()) -> io::Result<Infallible> {
    let poller = Poller::new()?;
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
    poller.add(&timer, TIMER, EventFlags::IN)?;
    let mut listeners = Vec::new();
    for instance in 0..canned.route.instances {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, canned.route.port(instance)))?;
        poller.add(&listener, instance as u64, EventFlags::IN)?;
        listeners.push(listener);
    }
    on_ready();
    let (connections, later) = (HashMap::new(), VecDeque::new());
    Store { canned, poller, listeners, connections, next_number: CONNECTION, timer, later }.work()
}

impl Store {
    fn work(mut self) -> io::Result<Infallible> {
        let (mut events, mut buffer) = (Vec::new(), vec![0; READ_BYTES]);
        loop {
            self.poller.wait(&mut events)?;
            for event in &events {
                match event.data.u64() {
                    TIMER => self.answer_due()?,
                    instance if instance < CONNECTION => self.accept(instance as usize)?,
                    number => self.turn(number, event.flags, &mut buffer)?,
                }
            }
        }
    }

    fn accept(&mut self, instance: usize) -> io::Result<()> {
        let (socket, _) = self.listeners[instance].accept()?;
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        self.poller.add(&socket, self.next_number, EventFlags::IN)?;
        let connection = Connection { socket, instance, input: Vec::new(), out: Outbox::default() };
        self.connections.insert(self.next_number, connection);
        self.next_number += 1;
        Ok(())
    }

    fn turn(&mut self, number: u64, flags: EventFlags, buffer: &mut [u8]) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(&number) else { return Ok(()) };
        if flags.contains(EventFlags::OUT) {
            flush(&self.poller, number, connection)?;
        }
        let mut bytes = Vec::new();
        if matches!(hear(&connection.socket, &mut bytes, buffer), Heard::Ended) {
            self.connections.remove(&number);
        } else if !bytes.is_empty() {
            let is_first = self.later.is_empty();
            self.later.push_back(Later { due: Instant::now() + self.canned.delay, connection: number, bytes });
            if is_first {
                self.wake_in(self.canned.delay)?;
            }
        }
        Ok(())
    }

    fn wake_in(&self, delay: Duration) -> io::Result<()> {
        let zero = Timespec::default();
        // A timer of zero would be none.
        let it_value = Timespec { tv_sec: 0, tv_nsec: delay.subsec_nanos().max(1).into() };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &Itimerspec { it_interval: zero, it_value })?;
        Ok(())
    }

    fn answer_due(&mut self) -> io::Result<()> {
        // Whoever is early finds nothing to read, and nothing due.
        rustix::io::read(&self.timer, &mut [0u8; 8]).ok();
        let now = Instant::now();
        while let Some(later) = self.later.pop_front_if(|later| later.due <= now + SLACK) {
            let Some(connection) = self.connections.get_mut(&later.connection) else { continue };
            connection.input.extend_from_slice(&later.bytes);
            answer(connection, &self.canned)?;
            flush(&self.poller, later.connection, connection)?;
        }
        match self.later.front() {
            Some(next) => self.wake_in(next.due.saturating_duration_since(now)),
            None => Ok(()),
        }
    }
}

/// Writes what the connection takes, and looks for room for the rest.
fn flush(poller: &Poller, number: u64, connection: &mut Connection) -> io::Result<()> {
    let Connection { socket, out, .. } = connection;
    // Whoever is gone shows as one that ended.
    out.flush(&*socket).ok();
    if out.is_waiting == out.is_empty() {
        out.is_waiting = !out.is_empty();
        let room = if out.is_waiting { EventFlags::OUT } else { EventFlags::empty() };
        poller.change(&*socket, number, EventFlags::IN | room)?;
    }
    Ok(())
}

/// Answers every request that is whole.
fn answer(connection: &mut Connection, canned: &Canned) -> io::Result<()> {
    let Connection { input, out, instance, .. } = connection;
    let (mut at, out) = (0, out.end());
    loop {
        let (words, bytes) = match first_request(&input[at..]) {
            Parsed::Request { words, bytes } => (words, bytes),
            Parsed::Incomplete => break,
            Parsed::Malformed => return Err(strange("this is no request")),
        };
        let word = |index: usize| words.get(index).map_or(&b""[..], |(begin, end)| &input[at + begin..at + end]);
        match (word(0).to_ascii_uppercase().as_slice(), word(1)) {
            (b"GET", key) => get(key, *instance, canned, out),
            (b"CLUSTER", _) => {
                let text = nodes(canned.route, *instance);
                out.extend_from_slice(format!("${}\r\n{text}\r\n", text.len()).as_bytes());
            }
            _ => out.extend_from_slice(b"-ERR this store knows GET and CLUSTER NODES\r\n"),
        }
        at += bytes;
    }
    input.drain(..at);
    Ok(())
}

fn get(key: &[u8], instance: usize, canned: &Canned, out: &mut Vec<u8>) {
    let holder = canned.route.of(key);
    if holder != instance {
        let slot = placement::slot_of(key).number();
        out.extend_from_slice(format!("-MOVED {slot} 127.0.0.1:{}\r\n", canned.route.port(holder)).as_bytes());
        return;
    }
    let bytes = canned.value_bytes.load(Ordering::Relaxed).max(key.len());
    out.extend_from_slice(format!("${bytes}\r\n").as_bytes());
    out.extend_from_slice(key);
    out.resize(out.len() + bytes - key.len(), b'x');
    out.extend_from_slice(b"\r\n");
}

/// What CLUSTER NODES answers.
fn nodes(route: Route, asked: usize) -> String {
    let line = |instance: usize| {
        let (flags, (first, end)) = (if instance == asked { "myself,master" } else { "master" }, route.slots(instance));
        let port = route.port(instance);
        format!("{instance:040x} 127.0.0.1:{port}@{port} {flags} - 0 0 1 connected {first}-{}\n", end - 1)
    };
    (0..route.instances).map(line).collect()
}
