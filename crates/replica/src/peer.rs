//! One connection to an instance of another node: bytes in both directions.

use base::{ConnectionId, Effect};
use wire::frame::{Frame, ParsedFrame};

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

pub(crate) struct Peer {
    pub(crate) id: ConnectionId,
    pub(crate) side: Side,
    input: Vec<u8>,
    /// What of `input` was taken.
    taken: usize,
    output: Vec<u8>,
    is_sending: bool,
    is_closing: bool,
}

impl Peer {
    pub(crate) fn new(id: ConnectionId, side: Side) -> Peer {
        Peer { id, side, input: Vec::new(), taken: 0, output: Vec::new(), is_sending: false, is_closing: false }
    }

    pub(crate) fn receive(&mut self, bytes: &[u8]) {
        self.input.drain(..std::mem::take(&mut self.taken));
        if !self.is_closing {
            self.input.extend_from_slice(bytes);
        }
    }

    /// The next frame that is here whole.
    pub(crate) fn frame(&self) -> ParsedFrame<'_> {
        match self.is_closing {
            true => ParsedFrame::Incomplete,
            false => Frame::parse(&self.input[self.taken..]),
        }
    }

    /// The next frame, of so many bytes, is done with.
    pub(crate) fn skip(&mut self, bytes: usize) {
        self.taken += bytes;
    }

    pub(crate) fn send(&mut self, frame: &Frame<'_>) {
        frame.encode(&mut self.output);
    }

    /// Sends a frame as bytes, if there is room for it; false: later.
    pub(crate) fn offer(&mut self, frame: &[u8]) -> bool {
        let has_room = self.output.len() < OUTPUT_BYTES && !self.is_closing;
        if has_room {
            self.output.extend_from_slice(frame);
        }
        has_room
    }

    pub(crate) fn on_sent(&mut self) {
        self.is_sending = false;
    }

    /// Nothing that comes is looked at any more.
    pub(crate) fn close(&mut self) {
        self.is_closing = true;
    }

    pub(crate) fn flush(&mut self, effects: &mut Vec<Effect>) {
        if !self.is_sending && !self.output.is_empty() {
            self.is_sending = true;
            effects.push(Effect::Send { connection: self.id, buffer: std::mem::take(&mut self.output) });
        }
    }
}
