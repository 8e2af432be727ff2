//! A seat: a connection to the upstream, or the wish for one, with those who want something of it.

use crate::identity::Identity;
use base::ConnectionId;
use base::limits::HURRY_US_MAX;
use client::{Lane, Qos};

/// What the owner of a lane keeps of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owed {
    /// A caller's request.
    Caller {
        /// Who asked.
        caller: ConnectionId,
        /// Its number among the caller's.
        number: u64,
        /// Twice does no harm.
        is_read: bool,
        /// When.
        asked_us: u64,
    },
    /// The proxy's own; its reply is of no interest.
    Nobody,
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
    /// All callers' of its identity that are in such a hurry.
    Shared(Hurry),
    /// This caller's alone.
    Own(ConnectionId),
    /// Nobody's at the moment: as after its greeting.
    Idle,
}

/// A seat.
pub(crate) struct Seat {
    pub lane: Lane<Owed>,
    pub identity: Identity,
    pub whose: Whose,
    /// Callers that wait until it is open, down, or has room.
    pub waiting: Vec<ConnectionId>,
    /// The error with which its greeting was refused, until those that waited for it have heard it.
    pub refusal: Option<Vec<u8>>,
    /// It was told a caller's name.
    pub is_named: bool,
    /// Somebody's state may be left on it: it is nobody else's afterwards.
    pub is_spoiled: bool,
    /// Its connection is being closed.
    pub is_closing: bool,
    /// Something was pushed or opened since the last round of sends.
    pub is_dirty: bool,
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
}
