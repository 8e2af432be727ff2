//! Somebody whose values are long, on a port of their own: what the kernel takes for their bytes, and nothing else.
//!
//! ```text
//!   *3 … value … ──► counted, logged ──► +OK          *2 … ──► as many bytes from memory that is always the same
//! ```
//!
//! A turn takes and gives a piece of each such connection, so that others wait for no more than that.

use std::time::Duration;

/// Bytes of a long connection that one receive takes and one send gives.
pub const PIECE_BYTES: usize = 64 << 10;

/// What may come at once after a rest.
const BURST_BYTES: f64 = 1e6;

/// Who sets and gets values of one length under one key.
#[derive(Clone, Copy, Debug)]
pub struct LongPlan {
    /// Port on the loopback address.
    pub port: u16,
    /// Length of the value, bytes.
    pub value_bytes: usize,
    /// Length of its key, bytes.
    pub key_bytes: usize,
    /// Received at most, bytes a second: as fast as a store takes them, whose disk sets the pace.
    pub bytes_per_second_max: f64,
}

impl LongPlan {
    fn set_bytes(&self) -> usize {
        let (key, value) = (bulk_bytes(self.key_bytes), bulk_bytes(self.value_bytes));
        "*3\r\n$3\r\nSET\r\n".len() + key + value
    }

    fn get_bytes(&self) -> usize {
        "*2\r\n$3\r\nGET\r\n".len() + bulk_bytes(self.key_bytes)
    }
}

/// How far those with long values are allowed to send.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    bytes_per_second_max: f64,
    allowed_bytes: f64,
    at: Duration,
}

impl Pace {
    /// Of `plan`, from `at` on.
    pub fn new(plan: &LongPlan, at: Duration) -> Pace {
        Pace { bytes_per_second_max: plan.bytes_per_second_max, allowed_bytes: BURST_BYTES, at }
    }

    /// So many bytes came until `at`.
    pub fn took(&mut self, bytes: u64, at: Duration) {
        let since = at.saturating_sub(self.at).as_secs_f64();
        self.allowed_bytes = (self.allowed_bytes + since * self.bytes_per_second_max).min(BURST_BYTES) - bytes as f64;
        self.at = at;
    }

    /// Whether no more may come for now.
    pub fn is_used_up(&self) -> bool {
        self.allowed_bytes <= 0.0
    }
}

fn bulk_bytes(length: usize) -> usize {
    format!("${length}\r\n\r\n").len() + length
}

/// What any of these connections can be sent.
#[derive(Debug)]
pub struct LongReplies {
    plan: LongPlan,
    header: Vec<u8>,
    filler: Vec<u8>,
}

impl LongReplies {
    /// For values of `plan`.
    pub fn new(plan: LongPlan) -> LongReplies {
        let header = format!("${}\r\n", plan.value_bytes).into_bytes();
        LongReplies { plan, header, filler: vec![b'x'; PIECE_BYTES] }
    }

    fn value_reply_bytes(&self) -> usize {
        self.header.len() + self.plan.value_bytes + 2
    }
}

/// The account of one of these connections, which waits for each reply before it asks again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LongOwed {
    /// Bytes of the request that has not arrived whole.
    partial_bytes: usize,
    is_set: bool,
    reply: Reply,
    /// Bytes of the reply that are sent.
    sent_bytes: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Reply {
    #[default]
    Nothing,
    Done,
    Value,
}

impl LongOwed {
    /// Notes what arrived: the first bytes of a request say which it is.
    pub fn received(&mut self, mut bytes: &[u8], replies: &LongReplies) {
        while !bytes.is_empty() {
            if self.partial_bytes <= 1
                && let Some(kind) = bytes.get(1 - self.partial_bytes)
            {
                self.is_set = *kind == b'3';
            }
            let whole = if self.is_set { replies.plan.set_bytes() } else { replies.plan.get_bytes() };
            let taken = bytes.len().min(whole - self.partial_bytes);
            self.partial_bytes += taken;
            bytes = &bytes[taken..];
            if self.partial_bytes == whole {
                (self.partial_bytes, self.sent_bytes) = (0, 0);
                self.reply = if self.is_set { Reply::Done } else { Reply::Value };
            }
        }
    }

    /// The next bytes to send; empty when nothing is owed.
    pub fn next<'a>(&self, replies: &'a LongReplies) -> &'a [u8] {
        let sent = self.sent_bytes;
        match self.reply {
            Reply::Nothing => &[],
            Reply::Done => &b"+OK\r\n"[sent..],
            Reply::Value => {
                let rest = replies.value_reply_bytes() - sent;
                match sent.checked_sub(replies.header.len()) {
                    None => &replies.header[sent..],
                    Some(_) if rest <= 2 => &b"\r\n"[2 - rest..],
                    Some(_) => &replies.filler[..PIECE_BYTES.min(rest - 2)],
                }
            }
        }
    }

    /// Notes that `bytes` of [`LongOwed::next`] were sent.
    pub fn sent(&mut self, bytes: usize, replies: &LongReplies) {
        self.sent_bytes += bytes;
        if self.next(replies).is_empty() {
            self.reply = Reply::Nothing;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is sent for `requests` that arrive and are paid in pieces.
    fn paid_for(plan: LongPlan, requests: &[&[u8]], piece: usize) -> Vec<u8> {
        let replies = LongReplies::new(plan);
        let (mut owed, mut paid) = (LongOwed::default(), Vec::new());
        for request in requests {
            for part in request.chunks(piece) {
                assert!(owed.next(&replies).is_empty(), "nothing is owed before the request is whole");
                owed.received(part, &replies);
            }
            while !owed.next(&replies).is_empty() {
                let next = owed.next(&replies);
                let taken = next.len().min(piece);
                paid.extend_from_slice(&next[..taken]);
                owed.sent(taken, &replies);
            }
        }
        paid
    }

    #[test]
    fn no_more_is_taken_than_the_pace_allows_whatever_the_turns_are() {
        let plan = LongPlan { port: 0, value_bytes: 1, key_bytes: 1, bytes_per_second_max: 1e8 };
        for turn in [Duration::from_micros(20), Duration::from_millis(3)] {
            let (mut pace, mut at, mut taken) = (Pace::new(&plan, Duration::ZERO), Duration::ZERO, 0);
            while at < Duration::from_secs(2) {
                at += turn;
                let bytes = if pace.is_used_up() { 0 } else { PIECE_BYTES as u64 };
                taken += bytes;
                pace.took(bytes, at);
            }
            let most = 2.0 * 1e8 + BURST_BYTES + PIECE_BYTES as f64;
            assert!(taken as f64 <= most, "{taken} bytes in turns of {turn:?}");
            // What its turns let it take at all, of that.
            let least = most.min(2.0 / turn.as_secs_f64() * PIECE_BYTES as f64) * 0.9;
            assert!(taken as f64 >= least, "{taken} bytes in turns of {turn:?}");
        }
    }

    #[test]
    fn whole_requests_in_any_pieces_are_paid_in_any_pieces() {
        let value = vec![b'x'; PIECE_BYTES + 5];
        let plan = LongPlan { port: 0, value_bytes: value.len(), key_bytes: 4, bytes_per_second_max: f64::MAX };
        let set =
            [format!("*3\r\n$3\r\nSET\r\n$4\r\nlv:1\r\n${}\r\n", value.len()).as_bytes(), &value, b"\r\n"].concat();
        let get = b"*2\r\n$3\r\nGET\r\n$4\r\nlv:1\r\n";
        let reply = [format!("${}\r\n", value.len()).as_bytes(), &value, b"\r\n"].concat();
        for piece in [1, 2, 3, 1000, usize::MAX] {
            let paid = paid_for(plan, &[&set, get, get, &set], piece);
            assert_eq!(paid, [b"+OK\r\n".as_slice(), &reply, &reply, b"+OK\r\n"].concat(), "in pieces of {piece}");
        }
    }
}
