//! A proxy that does nothing: it counts the bytes of requests of one length, asks every server behind for its share of the keys with bytes
//! that are always the same, and answers with such, in order, once all have answered. What that costs is what the kernel
//! costs a proxy that asks each server once and gathers in one write.
//!
//! ```text
//!  caller ── bytes of a request ──► asked in order ──┬─► server 0 ── bytes of its answers ──┐
//!                                                    ├─► server 1 ──────────────────────────┤ the least of them is answered
//!                                                    └─► server 2 ──────────────────────────┘
//!  a turn: all that epoll tells is read, then one write for each server, then one for each caller
//! ```

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;

use super::FixedReply;

const LISTENER: u64 = u64::MAX;
const READ_BYTES: usize = 256 << 10;

/// A null fan-out before it starts.
#[derive(Clone, Debug)]
pub struct FanOutPlan {
    /// Port on the loopback address; 0 lets the kernel choose.
    pub port: u16,
    /// Keys of a request, shared out evenly.
    pub keys: usize,
    /// Ports of the servers.
    pub servers: Vec<u16>,
}

impl FanOutPlan {
    /// What each server is asked for.
    fn parts(&self) -> impl Iterator<Item = FixedReply> {
        let count = self.servers.len();
        (0..count).map(move |place| FixedReply::GetMany((self.keys + place) / count))
    }
}

struct Behind {
    socket: TcpStream,
    request: Vec<u8>,
    reply_bytes: u64,
    received: u64,
}

struct Caller {
    socket: TcpStream,
    received: usize,
    /// Replies to be sent in this turn.
    due: usize,
}

struct FanOut {
    request_bytes: usize,
    reply: Vec<u8>,
    behind: Vec<Behind>,
    callers: Vec<Option<Caller>>,
    /// Who asked, the oldest first.
    asked: VecDeque<usize>,
    /// Requests of this turn.
    new: usize,
    answered: u64,
    buffer: Vec<u8>,
}

/// Serves until the process ends. `on_ready` hears the port once connections are accepted.
///
/// # Errors
/// What the system said of a socket.
pub fn fan_out(plan: &FanOutPlan, on_ready: impl FnOnce(u16)) -> io::Result<Infallible> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, plan.port))?;
    let poll = epoll::create(CreateFlags::CLOEXEC)?;
    epoll::add(&poll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
    let mut servers = FanOut::connect(plan)?;
    for (place, behind) in servers.behind.iter().enumerate() {
        epoll::add(&poll, &behind.socket, EventData::new_u64(place as u64), EventFlags::IN)?;
    }
    on_ready(listener.local_addr()?.port());
    let mut events = Vec::with_capacity(256);
    loop {
        match epoll::wait(&poll, rustix::buffer::spare_capacity(&mut events), None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in events.drain(..) {
            match event.data.u64() {
                LISTENER => servers.accept(&listener, &poll)?,
                place => servers.receive(place as usize)?,
            }
        }
        servers.end_turn()?;
    }
}

impl FanOut {
    fn connect(plan: &FanOutPlan) -> io::Result<FanOut> {
        let behind = |(port, part): (&u16, FixedReply)| -> io::Result<Behind> {
            let socket = TcpStream::connect((Ipv4Addr::LOCALHOST, *port))?;
            socket.set_nodelay(true)?;
            let (request, reply_bytes) = (vec![b'k'; part.default_request_bytes()], part.bytes().len() as u64);
            Ok(Behind { socket, request, reply_bytes, received: 0 })
        };
        let whole = FixedReply::GetMany(plan.keys);
        Ok(FanOut {
            request_bytes: whole.default_request_bytes(),
            reply: whole.bytes(),
            behind: plan.servers.iter().zip(plan.parts()).map(behind).collect::<io::Result<_>>()?,
            callers: Vec::new(),
            asked: VecDeque::new(),
            new: 0,
            answered: 0,
            buffer: vec![0; READ_BYTES],
        })
    }

    fn accept(&mut self, listener: &TcpListener, poll: &OwnedFd) -> io::Result<()> {
        let socket = listener.accept()?.0;
        socket.set_nodelay(true)?;
        let place = (self.behind.len() + self.callers.len()) as u64;
        epoll::add(poll, &socket, EventData::new_u64(place), EventFlags::IN)?;
        self.callers.push(Some(Caller { socket, received: 0, due: 0 }));
        Ok(())
    }

    /// One read; level-triggered, so what is left is told again.
    fn receive(&mut self, place: usize) -> io::Result<()> {
        if let Some(behind) = self.behind.get_mut(place) {
            let bytes = behind.socket.read(&mut self.buffer)?;
            behind.received += bytes as u64;
            return if bytes == 0 { Err(io::Error::other("a server is gone")) } else { Ok(()) };
        }
        let number = place - self.behind.len();
        let Some(caller) = &mut self.callers[number] else { return Ok(()) };
        let bytes = caller.socket.read(&mut self.buffer).unwrap_or(0);
        if bytes == 0 {
            self.callers[number] = None;
            return Ok(());
        }
        caller.received += bytes;
        while caller.received >= self.request_bytes {
            caller.received -= self.request_bytes;
            self.asked.push_back(number);
            self.new += 1;
        }
        Ok(())
    }

    fn end_turn(&mut self) -> io::Result<()> {
        let new = std::mem::take(&mut self.new);
        for behind in self.behind.iter_mut().filter(|_| new > 0) {
            behind.socket.write_all(&behind.request.repeat(new))?;
        }
        let whole = self.behind.iter().map(|behind| behind.received / behind.reply_bytes).min().unwrap_or(0);
        let count = (whole - self.answered) as usize;
        self.answered = whole;
        let due: Vec<usize> = self.asked.drain(..count).collect();
        for number in &due {
            if let Some(caller) = &mut self.callers[*number] {
                caller.due += 1;
            }
        }
        for number in due {
            let Some(caller) = self.callers[number].as_mut().filter(|caller| caller.due > 0) else { continue };
            let replies = self.reply.repeat(std::mem::take(&mut caller.due));
            if caller.socket.write_all(&replies).is_err() {
                self.callers[number] = None;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::{Backend, NullPlan};
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn every_request_is_answered_once_by_what_all_servers_answered() {
        let (told, ports) = channel();
        let servers = (0..3).map(|place| {
            let told = told.clone();
            let reply = FixedReply::GetMany((50 + place) / 3);
            let request_bytes = reply.default_request_bytes();
            let plan = NullPlan { backend: Backend::Epoll, port: 0, request_bytes, reply, log: None, long: None };
            std::thread::spawn(move || super::super::run(&plan, |port| told.send(port).unwrap()));
            ports.recv().unwrap()
        });
        let plan = FanOutPlan { port: 0, keys: 50, servers: servers.collect() };
        std::thread::spawn(move || fan_out(&plan, |port| told.send(port).unwrap()));
        let port = ports.recv().unwrap();
        let whole = FixedReply::GetMany(50);
        let mut callers: Vec<TcpStream> =
            (0..4).map(|_| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap()).collect();
        for round in 1..4 {
            for caller in &mut callers {
                caller.write_all(&vec![b'k'; whole.default_request_bytes()].repeat(round)).unwrap();
            }
            for caller in &mut callers {
                let mut reply = vec![0; round * whole.bytes().len()];
                caller.read_exact(&mut reply).unwrap();
                assert!(reply == whole.bytes().repeat(round));
                caller.set_nonblocking(true).unwrap();
                assert_eq!(caller.read(&mut [0]).unwrap_err().kind(), io::ErrorKind::WouldBlock, "nothing more");
                caller.set_nonblocking(false).unwrap();
            }
        }
    }
}
