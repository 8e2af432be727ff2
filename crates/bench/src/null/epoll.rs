//! The null server on epoll: one read and one write per connection with bytes.

use std::convert::Infallible;
use std::net::TcpListener;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::SocketFlags;
use rustix::time::Timespec;

use super::account::{Account, AllReplies};
use super::{Listeners, NullPlan, Turns};

const LISTENER: u64 = u64::MAX;
const LONG_LISTENER: u64 = u64::MAX - 1;
/// While long values wait for the disk.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
const READ_BYTES: usize = 64 << 10;

struct Connection {
    socket: OwnedFd,
    account: Account,
    interest: EventFlags,
}

/// Serves until the process ends.
pub(super) fn serve(
    listeners: &Listeners,
    plan: &NullPlan,
    turns: &mut Turns,
    on_ready: impl FnOnce(),
) -> std::io::Result<Infallible> {
    let replies = AllReplies::new(plan);
    let poll = epoll::create(CreateFlags::CLOEXEC)?;
    epoll::add(&poll, &listeners.short, EventData::new_u64(LISTENER), EventFlags::IN)?;
    if let Some(long) = &listeners.long {
        epoll::add(&poll, long, EventData::new_u64(LONG_LISTENER), EventFlags::IN)?;
    }
    on_ready();
    let mut connections: Vec<Option<Connection>> = Vec::new();
    let mut events = Vec::with_capacity(256);
    let mut buffer = vec![0u8; READ_BYTES];
    let mut holds_long = false;
    loop {
        let timeout = holds_long.then_some(&LOOK_EVERY);
        match epoll::wait(&poll, rustix::buffer::spare_capacity(&mut events), timeout) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in events.drain(..) {
            let data = event.data.u64();
            match (data, &listeners.long) {
                (LISTENER, _) => accept(&listeners.short, false, &poll, &mut connections)?,
                (LONG_LISTENER, Some(long)) => accept(long, true, &poll, &mut connections)?,
                _ => {
                    let slot = &mut connections[data as usize];
                    let Some(connection) = slot else { continue };
                    match answer(connection, &replies, &mut buffer)? {
                        Some(received) if connection.account.is_long() => turns.received_long += received as u64,
                        Some(received) => turns.received += received as u64,
                        None => *slot = None,
                    }
                    watch(slot.as_mut(), &poll, data, &replies, holds_long)?;
                }
            }
        }
        // Behind the sends, where a store would do it before: it costs the same.
        turns.end()?;
        if std::mem::replace(&mut holds_long, turns.holds_long()) != holds_long {
            for (index, slot) in connections.iter_mut().enumerate() {
                watch(slot.as_mut(), &poll, index as u64, &replies, holds_long)?;
            }
        }
    }
}

/// Waits for what the connection needs next: its bytes, unless it is held, and room for those that it is owed.
fn watch(
    connection: Option<&mut Connection>,
    poll: &OwnedFd,
    data: u64,
    replies: &AllReplies,
    holds_long: bool,
) -> Result<(), Errno> {
    let Some(connection) = connection else { return Ok(()) };
    let mut interest = EventFlags::empty();
    interest.set(EventFlags::IN, !(holds_long && connection.account.is_long()));
    interest.set(EventFlags::OUT, !connection.account.next(replies).is_empty());
    if interest != connection.interest {
        connection.interest = interest;
        epoll::modify(poll, &connection.socket, EventData::new_u64(data), interest)?;
    }
    Ok(())
}

fn accept(
    listener: &TcpListener,
    is_long: bool,
    poll: &OwnedFd,
    connections: &mut Vec<Option<Connection>>,
) -> Result<(), Errno> {
    let socket = rustix::net::accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)?;
    rustix::net::sockopt::set_tcp_nodelay(&socket, true)?;
    let index = connections.iter().position(Option::is_none).unwrap_or(connections.len());
    epoll::add(poll, &socket, EventData::new_u64(index as u64), EventFlags::IN)?;
    let connection = Some(Connection { socket, account: Account::new(is_long), interest: EventFlags::IN });
    match connections.get_mut(index) {
        Some(slot) => *slot = connection,
        None => connections.push(connection),
    }
    Ok(())
}

/// One read, whose bytes are returned, and one write; `None` when the connection is over.
fn answer(connection: &mut Connection, replies: &AllReplies, buffer: &mut [u8]) -> Result<Option<usize>, Errno> {
    let mut received = 0;
    if connection.interest.contains(EventFlags::IN) {
        match rustix::io::read(&connection.socket, &mut *buffer) {
            Ok(0) => return Ok(None),
            Ok(bytes) => received = bytes,
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => return Ok(None),
        }
        connection.account.received(&buffer[..received], replies);
    }
    loop {
        let next = connection.account.next(replies);
        if next.is_empty() {
            break;
        }
        match rustix::io::write(&connection.socket, next) {
            Ok(bytes) => connection.account.sent(bytes, replies),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => break,
            Err(_) => return Ok(None),
        }
        if connection.account.is_long() {
            break;
        }
    }
    Ok(Some(received))
}
