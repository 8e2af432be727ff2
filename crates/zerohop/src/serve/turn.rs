//! What a handler may do while it is called.

use super::ask::Ask;

/// A handler's turn with one request: it asks the store, writes the answer, or ends the connection.
pub struct Turn<'a> {
    /// Asks of earlier rounds.
    asked: usize,
    asks: &'a mut Vec<Ask>,
    answer: &'a mut Vec<u8>,
    closes: bool,
}

impl<'a> Turn<'a> {
    /// A turn after so many asks. What is asked and written is appended.
    pub(super) fn new(asked: usize, asks: &'a mut Vec<Ask>, answer: &'a mut Vec<u8>) -> Turn<'a> {
        Turn { asked, asks, answer, closes: false }
    }

    /// Asks the store; the number by which [`Handler::reply`](super::Handler::reply) tells of it: 0, 1, 2, … within one request.
    pub fn ask(&mut self, ask: Ask) -> usize {
        self.asks.push(ask);
        self.asked + self.asks.len() - 1
    }

    /// The answer so far; it leaves when the request is over, behind the answers to those before it.
    pub fn answer(&mut self) -> &mut Vec<u8> {
        self.answer
    }

    /// The connection is closed behind this answer; what its client sent behind this request is not read.
    pub fn close(&mut self) {
        self.closes = true;
    }

    pub(super) fn closes(&self) -> bool {
        self.closes
    }
}
