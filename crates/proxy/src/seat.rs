//! A seat: a connection to a node of the upstream, or the wish for one, with those who want something of it.

use crate::classes::ClassNumber;
use crate::identity::Identity;
use crate::line::Line;
use base::ConnectionId;
use base::limits::HURRY_US_MAX;
use client::cluster::NodeNumber;
use client::{Lane, Qos};

/// What the owner of a lane keeps of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owed {
    /// Whose reply it is.
    pub to: OwedTo,
    /// Twice does no harm.
    pub is_read: bool,
    /// It belongs to what its caller held on that connection when it was sent: it means something else on any other.
    pub is_bound: bool,
    /// Corrections that it followed.
    pub redirects: u8,
    /// It is behind `ASKING`: a node sent it there, whoever has its slot by the table.
    pub is_asking: bool,
    /// When it was asked.
    pub asked_us: u64,
}

/// Whose a reply is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwedTo {
    /// A caller's, to its request of that number.
    Caller { caller: ConnectionId, number: u64 },
    /// A part of one.
    Part { gather: u32, part: u32 },
    /// That of all who wait for the commit of what was sent.
    Collapsed { place: u32 },
    /// The proxy's, which said `MULTI` for a caller that was told it is done.
    Begun { caller: ConnectionId },
    /// The proxy's: who is where.
    Table,
    /// The proxy's, which has a silent node reported.
    Report,
    /// The proxy's, which said for whom the connection is.
    Label,
    /// The proxy's, and of no interest.
    Nobody,
}

impl Owed {
    /// The proxy's own.
    pub const NOBODY: Owed =
        Owed { to: OwedTo::Nobody, is_read: false, is_bound: false, redirects: 0, is_asking: false, asked_us: 0 };

    /// For the batcher, which keeps the order of requests with the same number.
    pub fn caller_number(&self) -> u64 {
        match self.to {
            OwedTo::Caller { caller, .. } | OwedTo::Begun { caller } => caller.as_u64(),
            OwedTo::Part { .. } | OwedTo::Collapsed { .. } => 0,
            OwedTo::Table | OwedTo::Report | OwedTo::Label | OwedTo::Nobody => 0,
        }
    }
}

/// Which of the lanes to one store a request takes: one that is in a hurry does not stand behind a long batch of others in the same
/// connection, which the store would read in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Hurry {
    /// None.
    Relaxed,
    /// Its reply is wanted at once, or within [`HURRY_US_MAX`].
    Urgent,
}

impl Hurry {
    /// That of a class.
    #[inline]
    pub fn of(qos: Qos) -> Hurry {
        match qos {
            Qos::Single => Hurry::Urgent,
            Qos::Within { us } if us <= HURRY_US_MAX => Hurry::Urgent,
            Qos::Within { .. } | Qos::Batch => Hurry::Relaxed,
        }
    }
}

/// Whose a seat is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// The callers' of this group.
    Shared(usize),
    /// This caller's alone.
    Own(ConnectionId),
    /// Nobody's at the moment: as after its greeting.
    Idle,
    /// The proxy's, for a report.
    Aside,
}

/// A seat.
pub(crate) struct Seat {
    pub lane: Lane<Owed>,
    pub node: NodeNumber,
    pub identity: Identity,
    pub whose: Whose,
    /// Callers that wait until it is open, down, or has room.
    pub line: Line,
    /// The class that asked something of it last.
    pub class: ClassNumber,
    /// The error with which its greeting was refused, until those that waited for it have heard it.
    pub refusal: Option<Vec<u8>>,
    /// Why the last dial failed, if it did.
    pub unreachable: Option<String>,
    /// It was told a caller's name.
    pub is_named: bool,
    /// For whom it said that it is, and when it may say it again.
    pub label: Vec<u8>,
    pub label_due_us: u64,
    /// Somebody's state may be left on it: it is nobody else's afterwards.
    pub is_spoiled: bool,
    /// Its connection is being closed.
    pub is_closing: bool,
    /// Something was pushed or opened since the last round of sends.
    pub is_dirty: bool,
    /// Its lane wants to be looked at when time has passed.
    pub has_timer: bool,
    /// When something was last sent or heard.
    pub used_us: u64,
}

impl Seat {
    /// What it was called is of a connection that is no more.
    pub fn forget_label(&mut self) {
        (self.label, self.label_due_us) = (Vec::new(), 0);
    }

    /// Whether its connection can be closed and nobody would notice: open, and nothing waits or is on its way.
    pub fn is_at_rest(&self) -> bool {
        let is_in_use = matches!(self.whose, Whose::Own(_)) || !self.line.is_empty() || self.is_closing;
        !is_in_use && self.lane.is_open() && !self.lane.is_sending() && self.lane.owed() == 0
    }
}

/// What the numbers of connections stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Nothing that is known.
    None,
    /// A client.
    Caller,
    /// The seat of this number.
    Seat(usize),
    /// An upstream connection whose bytes are this caller's, unread.
    Relay(ConnectionId),
    /// An upstream connection that is being closed, and whose seat is gone.
    Leaving,
}
