//! The null server on epoll: one read and one write per connection with bytes.

use std::convert::Infallible;
use std::net::TcpListener;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::SocketFlags;

use super::owed::{Owed, Replies};
use super::{NullPlan, Turns};

const LISTENER: u64 = u64::MAX;
const READ_BYTES: usize = 64 << 10;

struct Connection {
    socket: OwnedFd,
    owed: Owed,
}

/// Serves until the process ends.
pub(super) fn serve(
    listener: &TcpListener,
    plan: &NullPlan,
    turns: &mut Turns,
    on_ready: impl FnOnce(),
) -> std::io::Result<Infallible> {
    let replies = Replies::new(plan);
    let poll = epoll::create(CreateFlags::CLOEXEC)?;
    epoll::add(&poll, listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
    on_ready();
    let mut connections: Vec<Option<Connection>> = Vec::new();
    let mut events = Vec::with_capacity(256);
    let mut buffer = vec![0u8; READ_BYTES];
    loop {
        match epoll::wait(&poll, rustix::buffer::spare_capacity(&mut events), None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in events.drain(..) {
            let data = event.data.u64();
            if data == LISTENER {
                accept(listener, &poll, &mut connections)?;
                continue;
            }
            let slot = &mut connections[data as usize];
            let Some(connection) = slot else { continue };
            match answer(connection, &poll, data, &replies, &mut buffer)? {
                Some(received) => turns.received += received as u64,
                None => *slot = None,
            }
        }
        // Behind the sends, where a store would do it before: it costs the same.
        turns.end()?;
    }
}

fn accept(listener: &TcpListener, poll: &OwnedFd, connections: &mut Vec<Option<Connection>>) -> Result<(), Errno> {
    let socket = rustix::net::accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)?;
    rustix::net::sockopt::set_tcp_nodelay(&socket, true)?;
    let index = connections.iter().position(Option::is_none).unwrap_or(connections.len());
    epoll::add(poll, &socket, EventData::new_u64(index as u64), EventFlags::IN)?;
    let connection = Some(Connection { socket, owed: Owed::default() });
    match connections.get_mut(index) {
        Some(slot) => *slot = connection,
        None => connections.push(connection),
    }
    Ok(())
}

/// One read, whose bytes are returned, and one write; `None` when the connection is over.
fn answer(
    connection: &mut Connection,
    poll: &OwnedFd,
    data: u64,
    replies: &Replies,
    buffer: &mut [u8],
) -> Result<Option<usize>, Errno> {
    let mut received = 0;
    let blocked_before = !connection.owed.next(replies).is_empty();
    match rustix::io::read(&connection.socket, buffer) {
        Ok(0) => return Ok(None),
        Ok(bytes) => received = bytes,
        Err(Errno::AGAIN | Errno::INTR) => {}
        Err(_) => return Ok(None),
    }
    connection.owed.received(received, replies);
    loop {
        let next = connection.owed.next(replies);
        if next.is_empty() {
            break;
        }
        match rustix::io::write(&connection.socket, next) {
            Ok(bytes) => connection.owed.sent(bytes, replies),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => break,
            Err(_) => return Ok(None),
        }
    }
    let blocked = !connection.owed.next(replies).is_empty();
    if blocked != blocked_before {
        let interest = if blocked { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
        epoll::modify(poll, &connection.socket, EventData::new_u64(data), interest)?;
    }
    Ok(Some(received))
}
