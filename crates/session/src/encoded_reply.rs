//! A reply that was made apart from its connection's output, and what is left of one while it is sent.

use std::collections::VecDeque;

use base::{BlockRange, Blocks};
use wire::{LeftOut, Protocol, Reply};

/// Whole replies, encoded. The bytes of long strings in them may still lie in blocks: they are sent piece by piece.
#[derive(Clone, Debug, Default)]
pub struct EncodedReply {
    /// All but the bytes of long strings.
    pub bytes: Vec<u8>,
    /// The long strings' bytes, in order.
    pub long: Vec<LeftOut>,
}

impl EncodedReply {
    /// An encoder at the end of it.
    pub fn encoder(&mut self, protocol: Protocol) -> Reply<'_> {
        Reply::with_long(&mut self.bytes, protocol, &mut self.long)
    }

    /// Takes back everything after `len` bytes, those of long strings not counted.
    pub fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
        self.long.retain(|left| left.at < len);
    }

    /// The long values that it refers to.
    pub fn into_blocks(self) -> impl Iterator<Item = Blocks> {
        self.long.into_iter().map(LeftOut::into_blocks)
    }
}

impl From<Vec<u8>> for EncodedReply {
    fn from(bytes: Vec<u8>) -> EncodedReply {
        EncodedReply { bytes, long: Vec::new() }
    }
}

/// What is to be sent of an [`EncodedReply`].
///
/// ```text
///   bytes │ long value │ behind │ long value │ behind
/// ```
#[derive(Debug, Default)]
pub(crate) struct Unsent {
    /// What comes next.
    pub(crate) bytes: Vec<u8>,
    /// Then: long values, and what is behind each of them.
    pub(crate) long: VecDeque<(BlockRange, Vec<u8>)>,
}

impl Unsent {
    /// Bytes on the wire.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() + self.long.iter().map(|(range, behind)| range.len() + behind.len()).sum::<usize>()
    }

    /// Of them, those of long values.
    pub(crate) fn long_len(&self) -> usize {
        self.long.iter().map(|(range, _)| range.len()).sum()
    }

    /// The long values that it refers to.
    pub(crate) fn into_blocks(self) -> impl Iterator<Item = Blocks> {
        self.long.into_iter().map(|(range, _)| range.into_blocks())
    }
}

impl From<EncodedReply> for Unsent {
    fn from(EncodedReply { mut bytes, long }: EncodedReply) -> Unsent {
        let mut parts = VecDeque::with_capacity(long.len());
        for LeftOut { at, range } in long.into_iter().rev() {
            let behind = bytes.split_off(at);
            parts.push_front((range, behind));
        }
        Unsent { bytes, long: parts }
    }
}
