//! A batch on its way out, and what became of it.

/// Encoded requests to be sent in one write, and what their owner needs to match the replies.
#[derive(Debug)]
pub struct Batch<T> {
    /// RESP requests one after the other.
    pub bytes: Vec<u8>,
    /// One per request, in the order of the bytes.
    pub items: Vec<T>,
    /// To be handed back with the last reply.
    pub ticket: BatchTicket,
}

/// Who asked for a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The relaxed bucket's own time: the policy is told of it and of its answer.
    Pace,
    /// An urgent request; what is relaxed may have come along. No policy learns from it.
    Urgent,
}

/// What the batcher has to know again when the last reply of a batch is there.
#[derive(Clone, Copy, Debug)]
pub struct BatchTicket {
    /// Resets of the batcher before the batch was sent.
    pub(super) generation: u64,
    pub(super) cause: Cause,
    /// Whether nothing was in flight when it was sent: only then is its latency that of one batch.
    pub(super) was_alone: bool,
    /// Whether a request in it has a deadline that could be met.
    pub(super) has_deadline: bool,
    /// Latency that was expected, the reserve included, microseconds.
    pub(super) expected_us: u64,
    /// When it was taken, microseconds.
    pub sent_us: u64,
    /// Requests in it.
    pub count: usize,
    /// Length on the wire, bytes.
    pub bytes: usize,
}

/// How a batch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchOutcome {
    /// The last reply came.
    Answered,
    /// It did not come in time; nobody waits for it any more.
    TimedOut,
    /// The connection failed, or could not be had.
    Failed,
    /// Replies named another destination.
    Rerouted,
}

/// The end of a batch, for [`Batcher::answered`](super::Batcher::answered).
#[derive(Clone, Copy, Debug)]
pub struct BatchAnswer {
    /// Of the batch.
    pub ticket: BatchTicket,
    /// What became of it. Only a latency that was [`Answered`](BatchOutcome::Answered) is learned from.
    pub outcome: BatchOutcome,
}

/// A latency to learn from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    /// From the write to the last reply, microseconds.
    pub latency_us: u64,
    /// Requests in the batch.
    pub count: usize,
    /// Its length, bytes.
    pub bytes: usize,
}
