//! One connection between nodes as two buffers: what came and is not read yet, and what is to be sent.

use base::{ConnectionId, Effect};

/// See the module.
pub struct Pipe {
    id: ConnectionId,
    input: Vec<u8>,
    /// What of `input` was read.
    read: usize,
    output: Vec<u8>,
    is_sending: bool,
    is_closing: bool,
}

impl Pipe {
    /// Of a connection that was just made.
    pub fn new(id: ConnectionId) -> Pipe {
        Pipe { id, input: Vec::new(), read: 0, output: Vec::new(), is_sending: false, is_closing: false }
    }

    /// Which connection it is.
    #[inline]
    pub fn id(&self) -> ConnectionId {
        self.id
    }

    /// Bytes came.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.input.drain(..std::mem::take(&mut self.read));
        if !self.is_closing {
            self.input.extend_from_slice(bytes);
        }
    }

    /// What came and is not read yet; nothing once it closes.
    pub fn unread(&self) -> &[u8] {
        if self.is_closing { &[] } else { &self.input[self.read..] }
    }

    /// The same, for who reads them in place.
    pub fn unread_mut(&mut self) -> &mut [u8] {
        if self.is_closing { &mut [] } else { &mut self.input[self.read..] }
    }

    /// So many bytes more were read.
    pub fn skip(&mut self, bytes: usize) {
        self.read += bytes;
    }

    /// Where what is to be sent is appended.
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// Bytes that wait for the street to take what it sends now.
    pub fn waiting_bytes(&self) -> usize {
        self.output.len()
    }

    /// The street took what it was given.
    pub fn on_sent(&mut self) {
        self.is_sending = false;
    }

    /// Nothing that comes is looked at any more.
    pub fn close(&mut self) {
        self.is_closing = true;
    }

    /// Whether it was told to close.
    pub fn is_closing(&self) -> bool {
        self.is_closing
    }

    /// Gives the street what is to be sent, unless it still sends.
    pub fn flush(&mut self, effects: &mut Vec<Effect>) {
        if !self.is_sending && !self.output.is_empty() {
            self.is_sending = true;
            effects.push(Effect::Send { connection: self.id, buffer: std::mem::take(&mut self.output) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_send_is_under_way_and_what_closes_is_read_no_more() {
        let mut pipe = Pipe::new(ConnectionId { index: 1, generation: 2 });
        let mut effects = Vec::new();
        pipe.output().extend_from_slice(b"one");
        pipe.flush(&mut effects);
        pipe.output().extend_from_slice(b"two");
        pipe.flush(&mut effects);
        assert!(matches!(&effects[..], [Effect::Send { buffer, .. }] if buffer == b"one"));
        pipe.on_sent();
        pipe.flush(&mut effects);
        assert!(matches!(&effects[..], [_, Effect::Send { buffer, .. }] if buffer == b"two"));
        pipe.receive(b"abc");
        pipe.skip(1);
        pipe.receive(b"d");
        assert_eq!(pipe.unread(), b"bcd");
        pipe.close();
        pipe.receive(b"e");
        assert!(pipe.unread().is_empty() && pipe.is_closing());
    }
}
