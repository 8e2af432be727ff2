//! One connection to an instance of another node: which link it belongs to, and its frames.

use base::{ConnectionId, InstanceName, Slot};
use storage::Marks;
use wire::frame::{Frame, MarkBytes};
use wire::line::Line;

use crate::compare::encode;

/// Bytes that are handed over for sending at once, about: what is behind them stays with the link, which may need it again.
const OUTPUT_BYTES: usize = 1 << 20;

/// Marks that go in one frame: 48 KiB of them.
const MARKS_PER_FRAME: usize = 2048;

/// Which end of a link it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// It came in and said nothing yet but who it is, perhaps.
    Unknown,
    /// The link's number among those that follow.
    Follow(usize),
    /// The link's number among those that lead.
    Lead(usize),
}

impl Side {
    /// Whether frames of this connection change what is stored.
    pub(crate) fn changes_store(self) -> bool {
        matches!(self, Side::Follow(_))
    }
}

pub(crate) struct Peer {
    pub(crate) side: Side,
    /// Who connected, and has proved it.
    pub(crate) from: Option<InstanceName>,
    pub(crate) line: Line,
}

impl Peer {
    pub(crate) fn new(line: Line, side: Side) -> Peer {
        Peer { side, from: None, line }
    }

    #[inline]
    pub(crate) fn id(&self) -> ConnectionId {
        self.line.id()
    }

    pub(crate) fn send(&mut self, frame: &Frame<'_>) {
        self.line.send(|out| frame.encode(out));
    }

    /// Says what this end has of a slot.
    pub(crate) fn answer(&mut self, slot: Slot, answer: &Marks) {
        let marks: Vec<MarkBytes> = answer.keys.iter().map(encode).collect();
        let mut rest = &marks[..];
        loop {
            let (part, behind) = rest.split_at(rest.len().min(MARKS_PER_FRAME));
            self.send(&Frame::Marks { slot, is_end: behind.is_empty(), last: answer.last.0, marks: part });
            rest = behind;
            if rest.is_empty() {
                return;
            }
        }
    }

    /// Sends a frame as bytes, if there is room for it; false: later.
    pub(crate) fn offer(&mut self, frame: &[u8]) -> bool {
        let has_room = self.line.waiting_bytes() < OUTPUT_BYTES && !self.line.is_closing();
        if has_room {
            self.line.send(|out| out.extend_from_slice(frame));
        }
        has_room
    }
}
