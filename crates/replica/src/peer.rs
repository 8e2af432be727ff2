//! One connection to an instance of another node: which link it belongs to, and its frames.

use base::ConnectionId;
use wire::frame::{Frame, ParsedFrame};
use wire::pipe::Pipe;

/// Bytes that are handed over for sending at once, about: what is behind them stays with the link, which may need it again.
const OUTPUT_BYTES: usize = 1 << 20;

/// Which end of a link it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// It came in and said nothing yet.
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
    pub(crate) pipe: Pipe,
}

impl Peer {
    pub(crate) fn new(id: ConnectionId, side: Side) -> Peer {
        Peer { side, pipe: Pipe::new(id) }
    }

    #[inline]
    pub(crate) fn id(&self) -> ConnectionId {
        self.pipe.id()
    }

    /// The next frame that is here whole.
    pub(crate) fn frame(&self) -> ParsedFrame<'_> {
        Frame::parse(self.pipe.unread())
    }

    pub(crate) fn send(&mut self, frame: &Frame<'_>) {
        frame.encode(self.pipe.output());
    }

    /// Sends a frame as bytes, if there is room for it; false: later.
    pub(crate) fn offer(&mut self, frame: &[u8]) -> bool {
        let has_room = self.pipe.waiting_bytes() < OUTPUT_BYTES && !self.pipe.is_closing();
        if has_room {
            self.pipe.output().extend_from_slice(frame);
        }
        has_room
    }
}
