//! What a request asks of its batch.

/// How long a request may wait for others (Li, ZHT/Q, 2015: a quality of service per request).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Qos {
    /// Sent at once: it waits for nobody, and sets nobody's pace.
    Single,
    /// When the policy of the destination says so.
    #[default]
    Batch,
    /// The reply is wanted within `us` microseconds of the push. What cannot be had (less than the estimated latency) means
    /// "send at once"; while answers come later than they should it means "as well as possible".
    Within {
        /// From push to reply, microseconds.
        us: u64,
    },
}
