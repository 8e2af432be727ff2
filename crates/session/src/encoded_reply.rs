//! A reply that was made apart from its connection's output.

use base::BlockRange;

/// One whole reply, encoded. The bytes of a long string at its end may still lie in blocks: they are sent piece by piece,
/// and the line end follows them.
#[derive(Clone, Debug, Default)]
pub struct EncodedReply {
    /// All of it, or what precedes the long string's bytes.
    pub bytes: Vec<u8>,
    /// The long string's bytes.
    pub long: Option<BlockRange>,
}

impl EncodedReply {
    /// Bytes on the wire.
    pub fn len(&self) -> usize {
        self.bytes.len() + self.long.as_ref().map_or(0, |long| long.len() + LINE_END.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl From<Vec<u8>> for EncodedReply {
    fn from(bytes: Vec<u8>) -> EncodedReply {
        EncodedReply { bytes, long: None }
    }
}

/// What follows a string's bytes.
pub(crate) const LINE_END: &[u8] = b"\r\n";
