//! The connections of one core, and why some of them do not run right now.

use base::{ConnectionId, CoreId};
use session::{Input, Output, Session};

use crate::company::Company;
use crate::copies::Written;
use crate::fetch::Awaited;
use crate::hop::{Origin, WaitId};

/// Why a connection's requests wait. Its received bytes are kept, in order, until it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stall {
    /// It runs.
    None,
    /// A request that must see all earlier ones answered waits for other cores.
    Gaps,
    /// A unit over several cores runs for it.
    Unit,
    /// A blocking command waits for a key of this core.
    Waiter,
    /// A blocking command waits on the core that has its key.
    ///
    /// Its reply has this ticket.
    RemoteWaiter(CoreId, u64),
    /// A blocking command waits for keys of several cores.
    WideWait(WaitId),
    /// A slot group it needs is lent to another core.
    Parked,
    /// A long value goes to the log, here or on the core that has its key.
    ///
    /// Its reply has this ticket.
    Upload(u64),
    /// A value it needs is on the disk.
    Fetch,
    /// It does not read its replies.
    Output,
    /// WAITAOF waits for the disk.
    Durable,
    /// WAIT or WAITAOF waits for other nodes.
    Copies,
    /// This tick is full: the next one goes on.
    TickFull,
}

impl Stall {
    /// Whether a blocking command waits, for a key or for copies.
    pub fn is_waiter(self) -> bool {
        matches!(self, Stall::Waiter | Stall::RemoteWaiter(..) | Stall::WideWait(_) | Stall::Copies)
    }
}

/// One connection.
pub struct Connection {
    /// The street's name for it.
    pub id: ConnectionId,
    /// Who it is and what it may do.
    pub session: Session,
    /// Bytes of requests that have not run.
    pub input: Input,
    /// The request that stalled it and has to run again; on its way back to `input`.
    pub repeat: Vec<u8>,
    /// Replies that have not left.
    pub output: Output,
    /// Why its requests wait.
    pub stall: Stall,
    /// The values that its next request waited for.
    pub(crate) awaited: Option<Box<Awaited>>,
    /// What it wrote, in a cluster.
    pub(crate) written: Option<Box<Written>>,
    /// The street was told not to read from it.
    pub receive_paused: bool,
    /// It is among those whose requests count with the store's memory.
    pub is_held: bool,
    /// The street was told to close it.
    pub close_asked: bool,
    /// It is closed without the replies it is owed.
    pub abandoned: bool,
    /// It is in the list of connections to flush.
    pub flush_listed: bool,
    /// It is in the list of connections with replies held back.
    pub held_listed: bool,
}

impl Connection {
    /// A connection that just arrived.
    pub fn new(id: ConnectionId, session: Session) -> Connection {
        Connection {
            id,
            session,
            input: Input::default(),
            repeat: Vec::new(),
            output: Output::default(),
            stall: Stall::None,
            awaited: None,
            written: None,
            receive_paused: false,
            is_held: false,
            close_asked: false,
            abandoned: false,
            flush_listed: false,
            held_listed: false,
        }
    }

    /// Where the answer to its request with this ticket goes; `core` has the connection.
    pub(crate) fn origin(&self, core: CoreId, ticket: u64) -> Origin {
        Origin { core, connection: self.id, ticket, port_shift: self.session.port_shift() }
    }
}

/// Connections by the street's index.
#[derive(Default)]
pub struct Connections {
    slots: Vec<Option<Box<Connection>>>,
    count: usize,
    /// Whether more than one of them asks.
    pub(crate) company: Company,
}

impl Connections {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Add one; its index was free.
    pub fn insert(&mut self, connection: Connection) {
        let index = connection.id.index as usize;
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, || None);
        }
        assert!(self.slots[index].is_none(), "the street reuses an index only after Closed");
        self.slots[index] = Some(Box::new(connection));
        self.count += 1;
    }

    /// Remove it, if it is still the one that had this id.
    pub fn remove(&mut self, id: ConnectionId) -> Option<Box<Connection>> {
        self.get_mut(id)?;
        self.count -= 1;
        self.slots[id.index as usize].take()
    }

    /// The connection of this id, if it still exists.
    #[inline]
    pub fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.at(id.index).filter(|connection| connection.id == id)
    }

    /// The connection at an index.
    #[inline]
    pub fn at(&mut self, index: u32) -> Option<&mut Connection> {
        self.slots.get_mut(index as usize)?.as_deref_mut()
    }

    /// All of them, by index.
    pub fn iter(&self) -> impl Iterator<Item = &Connection> {
        self.slots.iter().flatten().map(|connection| &**connection)
    }

    /// All of them, by index.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Connection> {
        self.slots.iter_mut().flatten().map(|connection| &mut **connection)
    }
}
