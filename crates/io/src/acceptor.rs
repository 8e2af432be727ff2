//! Taking new connections from the listeners of one core, the same way on both backends.
//!
//! Listeners are watched edge-triggered: an edge marks a listener ready, and it stays ready until accept finds nobody.
//! So neither a burst (a bounded number is taken per tick) nor a lack of file descriptors makes the core spin.

use crate::connection_table::ConnectionTable;
use crate::event_list::EventList;
use crate::listener::{BACKLOG, Listener};
use base::ids::ConnectionId;
use base::street::Event;
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::net::{SendFlags, SocketAddrAny, SocketFlags, acceptfrom_with, getsockname, send};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Connections taken from one listener per tick, so that a burst of clients does not hold up those already served:
/// about 0.4 ms.
const ACCEPTS_PER_TICK_MAX: usize = 16;
/// Redis's words.
const REFUSAL: &[u8] = b"-ERR max number of clients reached\r\n";

struct Watched {
    listener: Listener,
    ready: bool,
}

/// The listeners of one core.
pub(crate) struct Acceptor {
    listeners: Vec<Watched>,
    flags: SocketFlags,
    /// Given up for a moment when descriptors run out, so that the client can be told instead of being left waiting.
    spare: Option<OwnedFd>,
    /// Out of descriptors: accept again only after a while.
    starved: bool,
    refused: Arc<AtomicU64>,
}

impl Acceptor {
    /// `flags` for accepted sockets: epoll wants them non-blocking, io_uring does not.
    pub fn new(listeners: Vec<Listener>, flags: SocketFlags, refused: Arc<AtomicU64>) -> Acceptor {
        let listeners = listeners.into_iter().map(|listener| Watched { listener, ready: true }).collect();
        Acceptor { listeners, flags: flags | SocketFlags::CLOEXEC, spare: any_descriptor(), starved: false, refused }
    }

    /// The sockets to watch, in the order that [`Acceptor::mark_ready`] counts.
    pub fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.listeners.iter().map(|watched| watched.listener.socket.as_fd())
    }

    /// Somebody may be waiting there.
    pub fn mark_ready(&mut self, listener: usize) {
        // News of one that was given up may still be on its way.
        if let Some(watched) = self.listeners.get_mut(listener) {
            watched.ready = true;
        }
    }

    /// Whether connections wait that were not taken because enough was taken in this tick.
    pub fn has_more(&self) -> bool {
        !self.starved && self.listeners.iter().any(|watched| watched.ready)
    }

    /// Whether to look again after a while although nothing will wake us.
    pub fn is_starved(&self) -> bool {
        self.starved
    }

    /// Takes what waits, up to the bound; `admit` registers each connection with its backend.
    pub fn accept(
        &mut self,
        table: &mut ConnectionTable,
        events: &mut EventList,
        mut admit: impl FnMut(&mut ConnectionTable, ConnectionId) -> bool,
    ) {
        self.accept_up_to(ACCEPTS_PER_TICK_MAX, table, events, &mut admit);
    }

    /// Takes all that wait, which are no more than a listener lets wait, and gives the listeners up.
    pub fn stop(
        &mut self,
        table: &mut ConnectionTable,
        events: &mut EventList,
        mut admit: impl FnMut(&mut ConnectionTable, ConnectionId) -> bool,
    ) {
        self.listeners.iter_mut().for_each(|watched| watched.ready = true);
        self.accept_up_to(BACKLOG as usize + 1, table, events, &mut admit);
        (self.listeners, self.starved) = (Vec::new(), false);
    }

    fn accept_up_to(
        &mut self,
        count_max: usize,
        table: &mut ConnectionTable,
        events: &mut EventList,
        admit: &mut impl FnMut(&mut ConnectionTable, ConnectionId) -> bool,
    ) {
        self.starved = false;
        for index in 0..self.listeners.len() {
            for _ in 0..count_max {
                if !self.listeners[index].ready || self.starved {
                    break;
                }
                let Some((socket, peer)) = self.accept_one(index) else { continue };
                if table.is_full() {
                    self.refuse(&socket);
                    continue;
                }
                let listener = &self.listeners[index].listener;
                let (peer, local) = addresses(listener, &socket, peer);
                let connection = table.insert(socket);
                if admit(table, connection) {
                    events.push(Event::Accepted {
                        connection,
                        door: listener.door,
                        entrance: listener.entrance,
                        peer,
                        local,
                    });
                } else {
                    drop(table.release(connection));
                }
            }
        }
    }

    fn accept_one(&mut self, index: usize) -> Option<(OwnedFd, Option<SocketAddrAny>)> {
        let watched = &mut self.listeners[index];
        match acceptfrom_with(&watched.listener.socket, self.flags) {
            Ok(accepted) => return Some(accepted),
            Err(Errno::AGAIN) => watched.ready = false,
            Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => self.refuse_without_descriptor(index),
            // The client gave up while it waited, or the network reports an old fault: the next one is fine.
            Err(_) => {}
        }
        None
    }

    fn refuse_without_descriptor(&mut self, index: usize) {
        if self.spare.take().is_some()
            && let Ok((socket, _)) = acceptfrom_with(&self.listeners[index].listener.socket, self.flags)
        {
            self.refuse(&socket);
        } else {
            self.starved = true;
        }
        self.spare = any_descriptor();
    }

    fn refuse(&mut self, socket: &OwnedFd) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        // Best effort: the client sees the words, or a closed connection.
        send(socket, REFUSAL, SendFlags::NOSIGNAL | SendFlags::DONTWAIT).ok();
    }
}

fn any_descriptor() -> Option<OwnedFd> {
    eventfd(0, EventfdFlags::CLOEXEC).ok()
}

fn addresses(listener: &Listener, socket: &OwnedFd, peer: Option<SocketAddrAny>) -> (String, String) {
    if let Some(path) = &listener.path {
        return (path.clone(), path.clone());
    }
    let printed = |address: Option<SocketAddrAny>| {
        address.and_then(|address| SocketAddr::try_from(address).ok()).map_or(String::from("?:0"), |a| a.to_string())
    };
    (printed(peer), printed(getsockname(socket).ok()))
}
