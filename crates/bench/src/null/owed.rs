//! What a null server owes one connection.

use super::NullPlan;

/// Replies that one send can hand over.
const REPLIES_PER_SEND: usize = 512;

/// The reply, repeated, so that any number of replies is one contiguous send.
#[derive(Debug)]
pub struct Replies {
    bytes: Vec<u8>,
    one_bytes: usize,
    request_bytes: usize,
}

impl Replies {
    /// The replies of `plan`.
    pub fn new(plan: &NullPlan) -> Replies {
        let one = plan.reply.bytes();
        Replies { bytes: one.repeat(REPLIES_PER_SEND + 1), one_bytes: one.len(), request_bytes: plan.request_bytes }
    }
}

/// The account of one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owed {
    /// Bytes of the request that has not arrived whole.
    partial_bytes: usize,
    /// Reply bytes not yet sent.
    reply_bytes: usize,
    /// Where in a reply the next byte to send lies.
    position: usize,
}

impl Owed {
    /// Notes the arrival of `bytes`.
    pub fn received(&mut self, bytes: usize, replies: &Replies) {
        let arrived = self.partial_bytes + bytes;
        self.reply_bytes += arrived / replies.request_bytes * replies.one_bytes;
        self.partial_bytes = arrived % replies.request_bytes;
    }

    /// The next bytes to send; empty when nothing is owed.
    pub fn next<'a>(&self, replies: &'a Replies) -> &'a [u8] {
        let bytes = self.reply_bytes.min(REPLIES_PER_SEND * replies.one_bytes);
        &replies.bytes[self.position..self.position + bytes]
    }

    /// Notes that `bytes` of [`Owed::next`] were sent.
    pub fn sent(&mut self, bytes: usize, replies: &Replies) {
        self.reply_bytes -= bytes;
        self.position = (self.position + bytes) % replies.one_bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Backend, FixedReply};
    use super::*;

    #[test]
    fn bytes_in_any_pieces_owe_whole_replies_and_any_sends_pay_them() {
        let plan = NullPlan {
            backend: Backend::Epoll,
            port: 0,
            request_bytes: 35,
            reply: FixedReply::Set,
            log: None,
            long: None,
        };
        let replies = Replies::new(&plan);
        let mut owed = Owed::default();
        for piece in [1, 33, 1, 70, 34, 1] {
            owed.received(piece, &replies);
        }
        let mut paid = Vec::new();
        while !owed.next(&replies).is_empty() {
            let piece = owed.next(&replies);
            let taken = piece.len().min(3);
            paid.extend_from_slice(&piece[..taken]);
            owed.sent(taken, &replies);
        }
        assert_eq!(paid, b"+OK\r\n".repeat(4));
        assert_eq!(owed, Owed::default());
    }
}
