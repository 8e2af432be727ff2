//! What a lane counts of its requests on their way: enqueued, sent, first reply, done.

use std::ops::AddAssign;

/// Since it was made; plain numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneCounts {
    /// Requests that were handed to it, those that were handed over again included.
    pub requests: u64,
    /// Those that left, and their bytes.
    pub requests_sent: u64,
    /// See [`LaneCounts::requests_sent`].
    pub bytes_sent: u64,
    /// Writes in which they left.
    pub batches_sent: u64,
    /// Replies that came.
    pub replies: u64,
    /// Batches of which all replies came.
    pub batches_done: u64,
    /// From when each of these left until its first reply, microseconds, added up.
    pub first_reply_us: u64,
    /// From when each of these left until its last reply, microseconds, added up.
    pub done_us: u64,
    /// Connections that were opened.
    pub connections: u64,
}

impl AddAssign for LaneCounts {
    fn add_assign(&mut self, other: LaneCounts) {
        let LaneCounts {
            requests,
            requests_sent,
            bytes_sent,
            batches_sent,
            replies,
            batches_done,
            first_reply_us,
            done_us,
            connections,
        } = other;
        self.requests += requests;
        self.requests_sent += requests_sent;
        self.bytes_sent += bytes_sent;
        self.batches_sent += batches_sent;
        self.replies += replies;
        self.batches_done += batches_done;
        self.first_reply_us += first_reply_us;
        self.done_us += done_us;
        self.connections += connections;
    }
}
