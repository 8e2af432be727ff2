//! A value as it was read: its own, whatever happens to the key afterwards.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base::{Blocks, Text, Version};

/// A string, as it was when it was read. One longer than 64 KiB shares its bytes with the store until either side changes
/// them, so reading it copies nothing.
#[derive(Clone)]
pub struct Value {
    bytes: Bytes,
    version: Version,
    expire_at_ms: Option<u64>,
}

#[derive(Clone)]
enum Bytes {
    Short(Box<[u8]>),
    Long(Blocks),
}

impl Value {
    pub(crate) fn new(text: Text<'_>, version: Version, expire_at_ms: Option<u64>) -> Value {
        let bytes = match text {
            Text::Short(bytes) => Bytes::Short(bytes.into()),
            Text::Long(blocks) => Bytes::Long(blocks.clone()),
        };
        Value { bytes, version, expire_at_ms }
    }

    fn text(&self) -> Text<'_> {
        match &self.bytes {
            Bytes::Short(bytes) => Text::Short(bytes),
            Bytes::Long(blocks) => Text::Long(blocks),
        }
    }

    /// Its length, bytes.
    pub fn len(&self) -> usize {
        self.text().len()
    }

    /// Whether it is the empty string.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its bytes in one piece, copied.
    pub fn to_vec(&self) -> Vec<u8> {
        self.text().whole().into_owned()
    }

    /// Its bytes in one piece; those of a value up to 64 KiB are not copied.
    pub fn into_vec(self) -> Vec<u8> {
        match self.bytes {
            Bytes::Short(bytes) => bytes.into_vec(),
            Bytes::Long(_) => self.to_vec(),
        }
    }

    /// Its bytes in order, in pieces of at most 64 KiB, without a copy.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        self.text().pieces(0..self.len())
    }

    /// The number of the write that made it, within the key's partition.
    pub fn version(&self) -> Version {
        self.version
    }

    /// When the key is removed, to the millisecond; `None`: never.
    pub fn expires_at(&self) -> Option<SystemTime> {
        self.expire_at_ms.map(|at_ms| UNIX_EPOCH + Duration::from_millis(at_ms))
    }
}

impl PartialEq<[u8]> for Value {
    fn eq(&self, other: &[u8]) -> bool {
        is_equal(self.text(), other)
    }
}

impl PartialEq<&[u8]> for Value {
    fn eq(&self, other: &&[u8]) -> bool {
        is_equal(self.text(), other)
    }
}

impl<const N: usize> PartialEq<[u8; N]> for Value {
    fn eq(&self, other: &[u8; N]) -> bool {
        is_equal(self.text(), other)
    }
}

impl<const N: usize> PartialEq<&[u8; N]> for Value {
    fn eq(&self, other: &&[u8; N]) -> bool {
        is_equal(self.text(), *other)
    }
}

impl std::fmt::Debug for Value {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const BYTES_SHOWN: usize = 64;
        let start = self.text().part(0..BYTES_SHOWN);
        let rest = if self.len() > BYTES_SHOWN { "…" } else { "" };
        write!(formatter, "\"{}{rest}\" ({} bytes, version {})", start.escape_ascii(), self.len(), self.version.0)
    }
}

/// Piece by piece, so that nothing is copied.
pub(crate) fn is_equal(text: Text<'_>, mut bytes: &[u8]) -> bool {
    text.len() == bytes.len()
        && text.pieces(0..text.len()).all(|piece| {
            let (now, later) = bytes.split_at(piece.len());
            bytes = later;
            piece == now
        })
}
