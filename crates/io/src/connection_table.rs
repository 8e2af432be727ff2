//! The connections of one core: a dense table of slots, each used again under a new generation.
//!
//! ```text
//!   slots  [ 0: open gen 3 ][ 1: free gen 7 ][ 2: open gen 0 ][ 3: draining gen 1 ]
//!   free   [ 1 ]                                     draining: told Closed, the kernel still holds operations on it
//! ```
//!
//! The table grows with the connections and never beyond its bound, so that an idle node pays for none.

use base::ids::ConnectionId;
use base::limits::RECEIVE_BYTES;
use rustix::net::sockopt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// How long a closing connection's peer may take nothing of its last reply, milliseconds.
const CLOSE_LINGER_MS: u32 = 10_000;

/// Receives in a row that each filled a buffer, behind which a connection is one of long stretches: 384 KiB.
const FULL_RECEIVES_MAX: u8 = 24;

/// What both backends know of a connection.
pub(crate) struct Connection {
    /// The socket; `None` in a free slot.
    socket: Option<OwnedFd>,
    generation: u32,
    /// The machine may name it; false once `Closed` was told.
    pub open: bool,
    /// The machine asked for silence.
    pub receive_paused: bool,
    /// The peer's end of stream was told.
    pub peer_closed: bool,
    /// Close as soon as the send under way is done.
    pub closes_after_send: bool,
    /// The buffer under way. The kernel may read it until the send completes, so it must not move on the heap.
    pub sending: Option<Vec<u8>>,
    /// How much of `sending` the kernel took.
    pub sent_bytes: usize,
    /// epoll: events this socket is registered for. `None`: not registered, because a dead peer would wake us for ever.
    pub interest: Option<rustix::event::epoll::EventFlags>,
    /// io_uring: a multishot receive is armed.
    pub receive_armed: bool,
    /// io_uring: its cancellation is under way.
    pub receive_cancelling: bool,
    /// io_uring: how much of a long stretch came last: one more for each receive that filled its buffer.
    full_receives: u8,
    /// io_uring: it brings long stretches, and is received from into buffers of such.
    pub is_bulk: bool,
    /// io_uring: something was received since the receive was armed.
    has_received: bool,
    /// io_uring: the machine is to be told when that cancellation is done.
    pub tells_stilled: bool,
    /// io_uring: tick in which the send under way was submitted, if its completion may be told late.
    pub quiet_send_tick: Option<std::num::NonZeroU64>,
}

impl Connection {
    fn empty() -> Connection {
        Connection {
            socket: None,
            generation: 0,
            open: false,
            receive_paused: false,
            peer_closed: false,
            closes_after_send: false,
            sending: None,
            sent_bytes: 0,
            interest: None,
            receive_armed: false,
            receive_cancelling: false,
            full_receives: 0,
            is_bulk: false,
            has_received: false,
            tells_stilled: false,
            quiet_send_tick: None,
        }
    }

    /// The socket of a slot in use.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_ref().expect("a slot in use has a socket").as_fd()
    }

    /// From now on only the send under way is awaited, and not for ever: a peer that takes nothing for
    /// [`CLOSE_LINGER_MS`] is cut off by the kernel, which needs no timer of ours. A Unix socket's peer is a process
    /// of this machine and waited for.
    pub fn close_after_send(&mut self) {
        self.closes_after_send = true;
        self.receive_paused = true;
        // Fails on a Unix socket only.
        sockopt::set_tcp_user_timeout(self.socket(), CLOSE_LINGER_MS).ok();
    }

    /// A receive is armed from now on.
    pub fn arm_receive(&mut self) {
        (self.receive_armed, self.receive_cancelling, self.has_received) = (true, false, false);
    }

    /// Of connections for which there was no buffer those go first that had none for longest: long stretches take turns.
    pub fn had_its_turn(&self) -> bool {
        self.is_bulk && self.has_received
    }

    /// So many bytes were received; whether the next ones are to come into buffers of the other kind.
    #[inline]
    pub fn note_received(&mut self, bytes: usize) -> bool {
        self.has_received = true;
        self.full_receives = match (bytes == RECEIVE_BYTES, self.is_bulk) {
            (true, _) => FULL_RECEIVES_MAX.min(self.full_receives + 1),
            (false, true) => self.full_receives - 1,
            (false, false) => 0,
        };
        let is_bulk = self.full_receives == FULL_RECEIVES_MAX || self.is_bulk && self.full_receives > 0;
        std::mem::replace(&mut self.is_bulk, is_bulk) != is_bulk
    }

    /// Whether bytes of the peer are wanted.
    pub fn wants_receive(&self) -> bool {
        self.open && !self.receive_paused && !self.peer_closed
    }
}

/// See the module.
pub(crate) struct ConnectionTable {
    slots: Vec<Connection>,
    free: Vec<u32>,
    connections_max: usize,
}

impl ConnectionTable {
    pub fn new(connections_max: usize) -> ConnectionTable {
        ConnectionTable { slots: Vec::new(), free: Vec::new(), connections_max }
    }

    /// Whether no further connection fits.
    pub fn is_full(&self) -> bool {
        self.in_use() >= self.connections_max
    }

    /// Slots that hold a socket.
    pub fn in_use(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Takes a slot. The caller has asked [`ConnectionTable::is_full`].
    pub fn insert(&mut self, socket: OwnedFd) -> ConnectionId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Connection::empty());
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        let generation = slot.generation;
        *slot = Connection { socket: Some(socket), generation, open: true, ..Connection::empty() };
        ConnectionId { index, generation }
    }

    /// The open connection of that id; `None` for one that is gone.
    #[inline]
    pub fn open(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.slots.get_mut(id.index as usize).filter(|slot| slot.open && slot.generation == id.generation)
    }

    /// The slot of that id while it holds a socket, open or draining.
    #[inline]
    pub fn in_slot(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.slots.get_mut(id.index as usize).filter(|slot| slot.socket.is_some() && slot.generation == id.generation)
    }

    /// Frees the slot for another connection and hands back its socket, to be closed.
    pub fn release(&mut self, id: ConnectionId) -> Option<OwnedFd> {
        let slot = self.in_slot(id)?;
        let socket = slot.socket.take();
        let generation = slot.generation.wrapping_add(1);
        *slot = Connection { generation, ..Connection::empty() };
        self.free.push(id.index);
        socket
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn any_socket() -> OwnedFd {
        rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).unwrap()
    }

    #[test]
    fn an_index_used_again_has_another_generation() {
        let mut table = ConnectionTable::new(2);
        let first = table.insert(any_socket());
        let second = table.insert(any_socket());
        assert!(table.is_full());
        assert!(table.release(first).is_some());
        let third = table.insert(any_socket());
        assert_eq!(third.index, first.index);
        assert_ne!(third.generation, first.generation);
        assert!(table.open(first).is_none(), "a late event of the dead connection must not reach the new one");
        assert!(table.release(first).is_none());
        assert!(table.open(second).is_some() && table.open(third).is_some());
    }
}
