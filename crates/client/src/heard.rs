//! What is said on a lane before requests, and what is heard of its node.

/// What a lane says first, so that everything after it means what its callers meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Greeting {
    /// Encoded requests.
    pub requests: Vec<u8>,
    /// How many they are.
    pub count: usize,
    /// So many of the last ones may be answered with an error; any other error refuses the lane.
    pub optional: usize,
}

/// What a lane found in received bytes.
pub enum Heard<'a, T> {
    /// The reply to a request.
    Reply {
        /// What was pushed with it.
        item: T,
        /// Its bytes, unless the street has not given them back.
        request: Option<&'a [u8]>,
        /// The reply's bytes.
        reply: &'a [u8],
    },
    /// The greeting was answered with these replies, and requests flow.
    Greeted(&'a [Vec<u8>]),
    /// The greeting was refused with this error reply. The connection is of no use.
    Refused(&'a [u8]),
    /// A reply to nothing, or bytes that are none. The connection is of no use.
    Nonsense,
}
