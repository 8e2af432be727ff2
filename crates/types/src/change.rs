//! The vocabulary of writes: what a command decided, ready to be performed on memory, appended to the log and replayed.
//!
//! A change is deterministic: it names results (`Put` of the incremented number), never conditions. It has no reply and
//! cannot fail once it was planned against the value it changes.
//!
//! ```text
//!  body on disk, after the record header and the key      (integers little-endian, v = LEB128 varint)
//!  Put         kind u8 · expiry · canonical encoding of the value
//!  Remove      –
//!  Append      bytes
//!  Overwrite   offset v · bytes
//!  Expire      unix milliseconds u64
//!  Persist     –
//!  ListPush    end u8 · { length v · bytes }*
//!  ListPop     end u8 · count v
//!  ListSet     index v · bytes
//!  ListInsert  index v · bytes
//!  ListRemove  count zigzag v · bytes
//!  ListTrim    start v · length v
//!  expiry      0 = keep | 1 = clear | 2 · unix milliseconds u64
//! ```

use base::Blocks;

use crate::Kind;

/// Which end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum End {
    /// Index 0, Redis's LEFT.
    Head = 0,
    /// The last index, Redis's RIGHT.
    Tail = 1,
}

/// What a [`Change::Put`] does with the key's expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// As it was (KEEPTTL, INCR, …); none on a new key.
    Keep,
    /// None.
    Clear,
    /// Absolute Unix milliseconds.
    At(u64),
}

/// One write to one key. Borrowed: nothing is copied between the request and its two homes, memory and log.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change<'a> {
    /// Set the whole value from its canonical encoding, whatever the key held.
    Put {
        /// Type of the new value.
        kind: Kind,
        /// Canonical encoding; for a string, its bytes.
        value: &'a [u8],
        /// What becomes of the expiry.
        expiry: Expiry,
    },
    /// Set a string that is longer than a block, whatever the key held. Replay knows it as a [`Change::Put`].
    PutBlocks {
        /// The whole value; memory shares the blocks.
        blocks: &'a Blocks,
        /// The number under which the log has the bytes already; `None` when they are logged with the change.
        staged: Option<u64>,
        /// What becomes of the expiry.
        expiry: Expiry,
    },
    /// Remove the key, whatever it held.
    Remove,
    /// Append to a string that exists.
    Append {
        /// What.
        bytes: &'a [u8],
    },
    /// Overwrite part of a string that exists, growing it with zeros up to `offset` and past its end as needed.
    Overwrite {
        /// First byte.
        offset: u64,
        /// What.
        bytes: &'a [u8],
    },
    /// As [`Change::Overwrite`], with bytes that are longer than a block. Replay knows it as that.
    OverwriteBlocks {
        /// First byte.
        offset: u64,
        /// What, behind its first `skip` bytes; memory shares whole blocks where they lie as they will in the value.
        blocks: &'a Blocks,
        /// Bytes at the front of `blocks` that do not count.
        skip: usize,
        /// The number under which the log has what counts already; `None` when that is logged with the change.
        staged: Option<u64>,
    },
    /// Set the expiry of a key that exists.
    Expire {
        /// Absolute Unix milliseconds.
        at_ms: u64,
    },
    /// Clear the expiry of a key that exists.
    Persist,
    /// Push elements one after the other at one end of a list that exists.
    ListPush {
        /// Which end; at the head the last of `elements` becomes index 0.
        end: End,
        /// In the order pushed.
        elements: &'a [&'a [u8]],
    },
    /// Pop up to `count` elements; the key goes when the list is empty.
    ListPop {
        /// Which end.
        end: End,
        /// How many; at most the list's length.
        count: u64,
    },
    /// Replace the element at `index`.
    ListSet {
        /// From the head, below the length.
        index: u64,
        /// The new element.
        element: &'a [u8],
    },
    /// Insert so that the element has `index` afterwards.
    ListInsert {
        /// From the head, at most the length.
        index: u64,
        /// The new element.
        element: &'a [u8],
    },
    /// Remove equal elements as LREM does; the key goes when the list is empty.
    ListRemove {
        /// > 0: the first `count` from the head; < 0: from the tail; 0: all.
        count: i64,
        /// Elements equal to it go.
        element: &'a [u8],
    },
    /// Keep `length` elements from `start`; the key goes when none are left.
    ListTrim {
        /// First index kept.
        start: u64,
        /// How many are kept.
        length: u64,
    },
}

/// Why bytes are not a change; every case is damage or a newer format, never a caller's mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeError {
    /// The bytes end inside a field.
    Truncated,
    /// A field has a value this version does not know.
    Unknown,
}

/// What the log's reference to staged bytes takes: their number and how many they are.
const STAGED_BYTES: usize = 16;

/// The number of a change's case on disk; must never change.
mod tag {
    pub const PUT: u8 = 1;
    pub const REMOVE: u8 = 2;
    pub const APPEND: u8 = 3;
    pub const OVERWRITE: u8 = 4;
    pub const EXPIRE: u8 = 5;
    pub const PERSIST: u8 = 6;
    pub const LIST_PUSH: u8 = 7;
    pub const LIST_POP: u8 = 8;
    pub const LIST_SET: u8 = 9;
    pub const LIST_INSERT: u8 = 10;
    pub const LIST_REMOVE: u8 = 11;
    pub const LIST_TRIM: u8 = 12;
}

impl<'a> Change<'a> {
    /// A whole string value with no expiry afterwards.
    pub fn put_string(value: &'a [u8], expiry: Expiry) -> Change<'a> {
        Change::Put { kind: Kind::String, value, expiry }
    }

    /// Whether it sets the whole value, whatever the key held.
    pub fn is_put(&self) -> bool {
        matches!(self, Change::Put { .. } | Change::PutBlocks { .. })
    }

    /// Whether the key has an expiry afterwards that it may not have had before.
    #[inline]
    pub fn sets_expiry(&self) -> bool {
        matches!(
            self,
            Change::Put { expiry: Expiry::At(_), .. }
                | Change::PutBlocks { expiry: Expiry::At(_), .. }
                | Change::Expire { .. }
        )
    }

    /// The number of this case on disk.
    pub fn tag(&self) -> u8 {
        match self {
            Change::Put { .. } | Change::PutBlocks { .. } => tag::PUT,
            Change::Remove => tag::REMOVE,
            Change::Append { .. } => tag::APPEND,
            Change::Overwrite { .. } | Change::OverwriteBlocks { .. } => tag::OVERWRITE,
            Change::Expire { .. } => tag::EXPIRE,
            Change::Persist => tag::PERSIST,
            Change::ListPush { .. } => tag::LIST_PUSH,
            Change::ListPop { .. } => tag::LIST_POP,
            Change::ListSet { .. } => tag::LIST_SET,
            Change::ListInsert { .. } => tag::LIST_INSERT,
            Change::ListRemove { .. } => tag::LIST_REMOVE,
            Change::ListTrim { .. } => tag::LIST_TRIM,
        }
    }

    /// Bytes of values that the body carries; 0 for a change that only names what goes.
    #[inline]
    pub fn payload_bytes(&self) -> usize {
        match *self {
            Change::Put { value: bytes, .. }
            | Change::Append { bytes }
            | Change::Overwrite { bytes, .. }
            | Change::ListSet { element: bytes, .. }
            | Change::ListInsert { element: bytes, .. }
            | Change::ListRemove { element: bytes, .. } => bytes.len(),
            Change::ListPush { elements, .. } => elements.iter().map(|element| element.len()).sum(),
            Change::PutBlocks { blocks, staged: None, .. } => blocks.len(),
            Change::OverwriteBlocks { blocks, skip, staged: None, .. } => blocks.len() - skip,
            Change::PutBlocks { .. } | Change::OverwriteBlocks { .. } => STAGED_BYTES,
            Change::Remove
            | Change::Expire { .. }
            | Change::Persist
            | Change::ListPop { .. }
            | Change::ListTrim { .. } => 0,
        }
    }

    /// Append the body to `out`, without the long bytes at its end, which are returned: the log may have to cut them
    /// into pieces. Bytes that lie in blocks are not returned: what follows the head is the log's business.
    pub fn encode_head(&self, out: &mut Vec<u8>) -> &'a [u8] {
        match *self {
            Change::Put { kind, value, expiry } => {
                out.extend_from_slice(put_head(&mut [0; PUT_HEAD_BYTES_MAX], kind, expiry));
                value
            }
            Change::PutBlocks { expiry, .. } => {
                out.extend_from_slice(put_head(&mut [0; PUT_HEAD_BYTES_MAX], Kind::String, expiry));
                &[]
            }
            Change::Remove | Change::Persist => &[],
            Change::Append { bytes } => bytes,
            Change::Overwrite { offset, bytes } => {
                put_varint(out, offset);
                bytes
            }
            Change::OverwriteBlocks { offset, .. } => {
                put_varint(out, offset);
                &[]
            }
            Change::Expire { at_ms } => {
                out.extend_from_slice(&at_ms.to_le_bytes());
                &[]
            }
            Change::ListPush { end, elements } => {
                out.push(end as u8);
                for element in elements {
                    put_varint(out, element.len() as u64);
                    out.extend_from_slice(element);
                }
                &[]
            }
            Change::ListPop { end, count } => {
                out.push(end as u8);
                put_varint(out, count);
                &[]
            }
            Change::ListSet { index, element } | Change::ListInsert { index, element } => {
                put_varint(out, index);
                element
            }
            Change::ListRemove { count, element } => {
                put_varint(out, zigzag(count));
                element
            }
            Change::ListTrim { start, length } => {
                put_varint(out, start);
                put_varint(out, length);
                &[]
            }
        }
    }

    /// The change whose case is `tag` and whose body is `body`. `elements` is scratch for [`Change::ListPush`].
    pub fn decode(tag: u8, body: &'a [u8], elements: &'a mut Vec<&'a [u8]>) -> Result<Change<'a>, ChangeError> {
        let mut rest = body;
        let change = match tag {
            tag::PUT => {
                let kind = Kind::from_u8(take_u8(&mut rest)?).ok_or(ChangeError::Unknown)?;
                let expiry = match take_u8(&mut rest)? {
                    0 => Expiry::Keep,
                    1 => Expiry::Clear,
                    2 => Expiry::At(take_u64(&mut rest)?),
                    _ => return Err(ChangeError::Unknown),
                };
                Change::Put { kind, value: rest, expiry }
            }
            tag::REMOVE => Change::Remove,
            tag::APPEND => Change::Append { bytes: rest },
            tag::OVERWRITE => Change::Overwrite { offset: take_varint(&mut rest)?, bytes: rest },
            tag::EXPIRE => Change::Expire { at_ms: take_u64(&mut rest)? },
            tag::PERSIST => Change::Persist,
            tag::LIST_PUSH => {
                let end = take_end(&mut rest)?;
                elements.clear();
                while !rest.is_empty() {
                    let length = take_varint(&mut rest)?;
                    elements.push(take_bytes(&mut rest, length)?);
                }
                Change::ListPush { end, elements }
            }
            tag::LIST_POP => Change::ListPop { end: take_end(&mut rest)?, count: take_varint(&mut rest)? },
            tag::LIST_SET => Change::ListSet { index: take_varint(&mut rest)?, element: rest },
            tag::LIST_INSERT => Change::ListInsert { index: take_varint(&mut rest)?, element: rest },
            tag::LIST_REMOVE => Change::ListRemove { count: unzigzag(take_varint(&mut rest)?), element: rest },
            tag::LIST_TRIM => Change::ListTrim { start: take_varint(&mut rest)?, length: take_varint(&mut rest)? },
            _ => return Err(ChangeError::Unknown),
        };
        Ok(change)
    }
}

/// Bytes that precede the value of a [`Change::Put`], at most.
pub const PUT_HEAD_BYTES_MAX: usize = 10;

/// What precedes the value of a [`Change::Put`]: kind and expiry, in `room`.
#[inline]
pub fn put_head(room: &mut [u8; PUT_HEAD_BYTES_MAX], kind: Kind, expiry: Expiry) -> &[u8] {
    room[0] = kind as u8;
    match expiry {
        Expiry::Keep => room[1] = 0,
        Expiry::Clear => room[1] = 1,
        Expiry::At(at_ms) => {
            room[1] = 2;
            room[2..].copy_from_slice(&at_ms.to_le_bytes());
            return room;
        }
    }
    &room[..2]
}

/// Append `value` as LEB128.
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Read a LEB128 number and advance.
pub fn take_varint(rest: &mut &[u8]) -> Result<u64, ChangeError> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = take_u8(rest)?;
        value |= u64::from(byte & 0x7F).checked_shl(shift).ok_or(ChangeError::Unknown)?;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(ChangeError::Unknown)
}

/// Read `length` bytes and advance.
pub fn take_bytes<'a>(rest: &mut &'a [u8], length: u64) -> Result<&'a [u8], ChangeError> {
    let length = usize::try_from(length).map_err(|_| ChangeError::Truncated)?;
    let (head, tail) = rest.split_at_checked(length).ok_or(ChangeError::Truncated)?;
    *rest = tail;
    Ok(head)
}

fn take_u8(rest: &mut &[u8]) -> Result<u8, ChangeError> {
    let (&first, tail) = rest.split_first().ok_or(ChangeError::Truncated)?;
    *rest = tail;
    Ok(first)
}

fn take_u64(rest: &mut &[u8]) -> Result<u64, ChangeError> {
    let (head, tail) = rest.split_first_chunk::<8>().ok_or(ChangeError::Truncated)?;
    *rest = tail;
    Ok(u64::from_le_bytes(*head))
}

fn take_end(rest: &mut &[u8]) -> Result<End, ChangeError> {
    match take_u8(rest)? {
        0 => Ok(End::Head),
        1 => Ok(End::Tail),
        _ => Err(ChangeError::Unknown),
    }
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(change: Change<'_>) {
        let mut body = Vec::new();
        let tail = change.encode_head(&mut body);
        body.extend_from_slice(tail);
        let mut scratch = Vec::new();
        assert_eq!(Change::decode(change.tag(), &body, &mut scratch), Ok(change));
    }

    #[test]
    fn every_case_survives_the_disk() {
        let elements: [&[u8]; 3] = [b"a", b"", &[7; 300]];
        for change in [
            Change::put_string(b"value", Expiry::Keep),
            Change::Put { kind: Kind::List, value: b"\x01a", expiry: Expiry::At(u64::MAX) },
            Change::Remove,
            Change::Append { bytes: b"more" },
            Change::Overwrite { offset: 1 << 40, bytes: b"x" },
            Change::Expire { at_ms: 1 },
            Change::Persist,
            Change::ListPush { end: End::Head, elements: &elements },
            Change::ListPop { end: End::Tail, count: u64::MAX },
            Change::ListSet { index: 127, element: b"" },
            Change::ListInsert { index: 128, element: b"e" },
            Change::ListRemove { count: i64::MIN, element: b"e" },
            Change::ListTrim { start: 3, length: 1 << 33 },
        ] {
            round_trip(change);
        }
    }

    #[test]
    fn damage_is_an_error_not_a_panic() {
        let mut scratch = Vec::new();
        assert_eq!(Change::decode(tag::PUT, &[], &mut scratch), Err(ChangeError::Truncated));
        let mut scratch = Vec::new();
        assert_eq!(Change::decode(99, b"x", &mut scratch), Err(ChangeError::Unknown));
        let mut scratch = Vec::new();
        assert_eq!(Change::decode(tag::LIST_PUSH, &[0, 200, 1, b'x'], &mut scratch), Err(ChangeError::Truncated));
        let mut scratch = Vec::new();
        assert_eq!(Change::decode(tag::OVERWRITE, &[0xFF; 12], &mut scratch), Err(ChangeError::Unknown));
    }
}
