//! The backend that works everywhere: level-triggered epoll, one receive and one send per ready connection and tick.
//!
//! ```text
//!   epoll_wait ──► ready connections ──► recv each once ──► slab [conn 7 | conn 2 | conn 9 | free ...]
//!                                                          packed at 64-byte steps: few pages for many small requests
//! ```
//!
//! A receive shorter than its room has drained the socket and one that filled it is reported again by the next
//! epoll_wait, so no receive is ever made only to learn that there is nothing. A send is tried at once; only its rest
//! waits for `EPOLLOUT`.

use crate::acceptor::Acceptor;
use crate::batch_size::{Taken, work_of};
use crate::clock::monotonic_us;
use crate::connection_table::{Connection, ConnectionTable};
use crate::doorbell::Doorbell;
use crate::driver::{Collected, Driver, ENDS_PER_TICK_MAX};
use crate::event_list::EventList;
use crate::gap_watch::Sleep;
use crate::receive_slab::ReceiveSlab;
use crate::run_read::RunRead;
use base::ids::ConnectionId;
use base::limits::RECEIVE_BUFFERS;
use base::street::{Event, LayerRoom, Span};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

/// Received bytes begin at multiples of a cache line.
const RECEIVE_ALIGNMENT: usize = 64;
/// Epoll data that is no connection: connection indexes stay far below.
const TOKEN_DOORBELL: u64 = u64::MAX;
const TOKEN_LISTENERS: u64 = u64::MAX - 1;

pub(crate) struct Epoll {
    epoll: OwnedFd,
    ready: Box<[MaybeUninit<epoll::Event>]>,
    table: ConnectionTable,
    acceptor: Acceptor,
    slab: ReceiveSlab,
    slab_used: usize,
    sends_under_way: usize,
    /// Clients that were seen to have left in this collect.
    ends: usize,
    /// What was received in it.
    work: usize,
}

impl Epoll {
    pub fn new(acceptor: Acceptor, connections_max: usize, doorbell: &Doorbell) -> io::Result<Epoll> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let edge = EventFlags::IN | EventFlags::ET;
        epoll::add(&epoll, doorbell.eventfd(), EventData::new_u64(TOKEN_DOORBELL), edge)?;
        for (index, socket) in acceptor.sockets().enumerate() {
            // Exclusive: of several cores that share a socket, a connection wakes one.
            let data = EventData::new_u64(TOKEN_LISTENERS - index as u64);
            epoll::add(&epoll, socket, data, edge | EventFlags::EXCLUSIVE)?;
        }
        Ok(Epoll {
            epoll,
            // No more ready connections per tick than the slab has room for.
            ready: Box::new_uninit_slice(RECEIVE_BUFFERS),
            table: ConnectionTable::new(connections_max),
            acceptor,
            slab: ReceiveSlab::new()?,
            slab_used: 0,
            sends_under_way: 0,
            ends: 0,
            work: 0,
        })
    }

    fn connection_ready(&mut self, id: ConnectionId, flags: EventFlags, events: &mut EventList) {
        let dead = EventFlags::ERR | EventFlags::HUP;
        let Some(connection) = self.table.open(id) else { return };
        if connection.sending.is_some() && flags.intersects(EventFlags::OUT | dead) {
            self.continue_send(id, events);
        }
        let Some(connection) = self.table.open(id) else { return };
        if connection.wants_receive() {
            if flags.intersects(EventFlags::IN | dead) {
                self.receive(id, events);
            }
        } else if flags.intersects(dead) && connection.sending.is_none() {
            if connection.peer_closed {
                self.broke(id, events);
            } else {
                // Paused and dead: what it sent before may still be wanted. Watch it again when that is asked for.
                self.unwatch(id);
            }
        }
    }

    #[inline]
    fn receive(&mut self, id: ConnectionId, events: &mut EventList) {
        let Some(connection) = self.table.open(id) else { return };
        let start = self.slab_used;
        match recv(connection.socket(), self.slab.room_mut(start), RecvFlags::empty()) {
            Ok((0, _)) => {
                connection.peer_closed = true;
                self.ends += 1;
                events.push(Event::PeerClosed { connection: id });
                self.watch(id, events);
            }
            Ok((count, _)) => {
                self.work += work_of(count);
                self.slab_used = (start + count).next_multiple_of(RECEIVE_ALIGNMENT);
                events.push(Event::Received { connection: id, span: Span { start: start as u32, len: count as u32 } });
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.broke(id, events),
        }
    }

    fn continue_send(&mut self, id: ConnectionId, events: &mut EventList) {
        let Some(connection) = self.table.open(id) else { return };
        let Some(buffer) = &connection.sending else { return };
        match send(connection.socket(), &buffer[connection.sent_bytes..], SendFlags::NOSIGNAL) {
            Ok(count) => {
                connection.sent_bytes += count;
                if connection.sent_bytes == buffer.len() {
                    self.sent(id, events);
                }
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.broke(id, events),
        }
    }

    /// A send that had to wait is complete.
    fn sent(&mut self, id: ConnectionId, events: &mut EventList) {
        let Some(connection) = self.table.open(id) else { return };
        let buffer = connection.sending.take().expect("a send that completes was under way");
        self.sends_under_way -= 1;
        events.push(Event::SendDone { connection: id, buffer });
        if connection.closes_after_send {
            self.broke(id, events);
        } else {
            self.watch(id, events);
        }
    }

    /// The connection is over, by fault or by wish.
    fn broke(&mut self, id: ConnectionId, events: &mut EventList) {
        let Some(connection) = self.table.open(id) else { return };
        self.sends_under_way -= usize::from(connection.sending.is_some());
        // Closing the only descriptor of a socket also ends its registration.
        drop(self.table.release(id));
        events.push(Event::Closed { connection: id });
    }

    /// Brings the registration in line with what is wanted now.
    fn watch(&mut self, id: ConnectionId, events: &mut EventList) {
        let Some(connection) = self.table.open(id) else { return };
        let wanted = wanted_interest(connection);
        let data = EventData::new_u64(id.as_u64());
        let result = match connection.interest {
            Some(interest) if interest == wanted => return,
            Some(_) => epoll::modify(&self.epoll, connection.socket(), data, wanted),
            None => epoll::add(&self.epoll, connection.socket(), data, wanted),
        };
        connection.interest = Some(wanted);
        if result.is_err() {
            self.broke(id, events);
        }
    }

    fn unwatch(&mut self, id: ConnectionId) {
        let Some(connection) = self.table.open(id) else { return };
        if connection.interest.take().is_some() {
            epoll::delete(&self.epoll, connection.socket()).expect("a registered socket can be removed");
        }
    }
}

fn wanted_interest(connection: &Connection) -> EventFlags {
    let mut wanted = EventFlags::empty();
    if connection.wants_receive() {
        wanted |= EventFlags::IN;
    }
    if connection.sending.is_some() {
        wanted |= EventFlags::OUT;
    }
    wanted
}

/// Tells of what a new connection brings; whether that is possible.
fn watch_new(epoll: &OwnedFd, table: &mut ConnectionTable, id: ConnectionId) -> bool {
    let Some(connection) = table.open(id) else { return false };
    connection.interest = Some(EventFlags::IN);
    epoll::add(epoll, connection.socket(), EventData::new_u64(id.as_u64()), EventFlags::IN).is_ok()
}

impl Driver for Epoll {
    fn collect(&mut self, timeout_us: Option<u64>, at_most: Taken, events: &mut EventList) -> io::Result<Collected> {
        // Rounded up to epoll_wait's milliseconds: waking before the deadline would mean waking twice.
        let timeout = timeout_us.map(|us| {
            let ms = us.div_ceil(1000);
            rustix::time::Timespec { tv_sec: (ms / 1000) as i64, tv_nsec: (ms % 1000) as i64 * 1_000_000 }
        });
        let from_us = (timeout_us != Some(0)).then(monotonic_us);
        let mut room = std::mem::take(&mut self.ready);
        let count = at_most.connections.min(room.len());
        let (ready, _) = match epoll::wait(&self.epoll, &mut room[..count], timeout.as_ref()) {
            Err(Errno::INTR) => Default::default(),
            result => result?,
        };
        (self.ends, self.work) = (0, 0);
        let sleep = from_us.map(|from_us| Sleep { from_us, until_us: monotonic_us() });
        for event in &*ready {
            match event.data.u64() {
                TOKEN_DOORBELL => {}
                token if TOKEN_LISTENERS - token < u64::from(u16::MAX) => {
                    self.acceptor.mark_ready((TOKEN_LISTENERS - token) as usize);
                }
                token if self.ends < ENDS_PER_TICK_MAX => {
                    let id = ConnectionId { index: token as u32, generation: (token >> 32) as u32 };
                    self.connection_ready(id, event.flags, events);
                }
                // It is ready in the next tick, too.
                _ => {}
            }
        }
        let taken = Taken { connections: ready.len(), work: self.work.max(ready.len()) };
        self.ready = room;
        if self.acceptor.has_more() || self.acceptor.is_starved() {
            let epoll = &self.epoll;
            self.acceptor.accept(&mut self.table, events, |table, id| watch_new(epoll, table, id));
        }
        Ok(Collected { sleep, taken })
    }

    fn received(&self) -> &[u8] {
        self.slab.bytes()
    }

    fn received_and_room(&mut self) -> (&[u8], LayerRoom<'_>) {
        self.slab.bytes_and_room()
    }

    fn release_received(&mut self) {
        self.slab_used = 0;
    }

    #[inline]
    fn send(&mut self, id: ConnectionId, buffer: Vec<u8>, quiet: bool, events: &mut EventList) {
        let Some(connection) = self.table.open(id) else { return };
        assert!(connection.sending.is_none() && !buffer.is_empty(), "one send at a time, and of something");
        let sent_bytes = match send(connection.socket(), &buffer, SendFlags::NOSIGNAL) {
            Ok(count) if count == buffer.len() => {
                return events.push_completion(Event::SendDone { connection: id, buffer }, quiet);
            }
            Ok(count) => count,
            Err(Errno::AGAIN | Errno::INTR) => 0,
            Err(_) => return self.broke(id, events),
        };
        connection.sent_bytes = sent_bytes;
        connection.sending = Some(buffer);
        self.sends_under_way += 1;
        self.watch(id, events);
    }

    fn admit(&mut self, socket: OwnedFd) -> Option<ConnectionId> {
        if self.table.is_full() || ioctl_fionbio(&socket, true).is_err() {
            return None;
        }
        let id = self.table.insert(socket);
        let is_watched = watch_new(&self.epoll, &mut self.table, id);
        if !is_watched {
            drop(self.table.release(id));
        }
        is_watched.then_some(id)
    }

    fn still(&mut self, id: ConnectionId, events: &mut EventList) {
        self.pause_receive(id, events);
        if self.table.open(id).is_some() {
            events.push(Event::Stilled { connection: id });
        }
    }

    fn idle_socket(&mut self, id: ConnectionId) -> Option<BorrowedFd<'_>> {
        self.table.open(id).filter(|connection| connection.sending.is_none()).map(|connection| connection.socket())
    }

    fn forget(&mut self, id: ConnectionId) {
        // The other process has the same socket open, so closing it here would not end the registration.
        self.unwatch(id);
        drop(self.table.release(id));
    }

    fn stop_listening(&mut self, events: &mut EventList) {
        // Before the last look: whoever comes later wakes the process that has them, too.
        for socket in self.acceptor.sockets() {
            epoll::delete(&self.epoll, socket).expect("a registered socket can be removed");
        }
        let epoll = &self.epoll;
        self.acceptor.stop(&mut self.table, events, |table, id| watch_new(epoll, table, id));
    }

    fn has_room(&self) -> bool {
        !self.table.is_full()
    }

    fn close(&mut self, id: ConnectionId, events: &mut EventList) {
        let Some(connection) = self.table.open(id) else { return };
        if connection.sending.is_some() {
            connection.close_after_send();
            self.watch(id, events);
        } else {
            self.broke(id, events);
        }
    }

    fn pause_receive(&mut self, id: ConnectionId, events: &mut EventList) {
        if let Some(connection) = self.table.open(id) {
            connection.receive_paused = true;
            self.watch(id, events);
        }
    }

    fn resume_receive(&mut self, id: ConnectionId, events: &mut EventList) {
        if let Some(connection) = self.table.open(id) {
            connection.receive_paused = connection.closes_after_send;
            self.watch(id, events);
        }
    }

    fn reads_runs(&self) -> bool {
        false
    }

    fn read_run(&mut self, _read: RunRead) {
        unreachable!("threads read beside epoll")
    }

    fn ended_read(&mut self) -> Option<(RunRead, Result<usize, Errno>)> {
        None
    }

    fn has_more(&self) -> bool {
        self.acceptor.has_more()
    }

    fn wants_retry(&self) -> bool {
        self.acceptor.is_starved()
    }

    fn sends_under_way(&self) -> usize {
        self.sends_under_way
    }
}
