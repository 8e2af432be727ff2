//! DUMP and RESTORE: one value as Redis serializes it, so that programs which copy keys between stores can copy them to and
//! from here.
//!
//! ```text
//!  type      0 string · 1 list of strings · 10 ziplist · 14 quicklist of ziplists · 18 quicklist of listpacks
//!  value     lengths and strings as in an RDB file, strings perhaps as integers or compressed with LZF
//!  version   of the format, u16, little-endian
//!  checksum  CRC-64 of Jones of everything before, u64, little-endian
//! ```
//!
//! Written are types 0 and 1, which every Redis since 2.6 reads; read is what Redis and Valkey have ever written for the types that
//! exist here. Layouts: `rdb.c`, `listpack.c` and `ziplist.c` describe themselves; no code is theirs.

mod compressed;
mod packed;
mod strings;

use base::Text;
use base::checksum::crc64_redis;
use base::limits::VALUE_BYTES_MAX;

use crate::change::put_varint;
use crate::list::List;
use strings::Reader;

/// The version that is written: the oldest one with a checksum of 8 bytes that readers still know.
const VERSION: u16 = 6;
/// The newest versions of Redis and of Valkey whose strings and lists are known to be the same.
const VERSION_MAX: u16 = 11;
const VERSION_VALKEY: u16 = 80;
/// Version and checksum.
const FOOTER_BYTES: usize = 10;

const STRING: u8 = 0;
const LIST: u8 = 1;
const LIST_ZIPLIST: u8 = 10;
const LIST_QUICKLIST: u8 = 14;
const LIST_QUICKLIST_2: u8 = 18;

/// A value that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dumped {
    /// Its bytes.
    String(Vec<u8>),
    /// Its elements in canonical encoding; never none.
    List(Vec<u8>),
}

/// Why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DumpError {
    /// It is no dump, is damaged, or is of a version that is not known.
    Footer,
    /// What it says is not a value that exists here.
    Value,
}

/// The payload of a string.
pub fn dump_string(text: Text<'_>) -> Vec<u8> {
    let mut payload = Vec::with_capacity(text.len() + 32);
    payload.push(STRING);
    strings::put_length(text.len(), &mut payload);
    text.pieces(0..text.len()).for_each(|piece| payload.extend_from_slice(piece));
    finish(payload)
}

/// The payload of a list.
pub fn dump_list(list: &List) -> Vec<u8> {
    let mut payload = vec![LIST];
    strings::put_length(list.len(), &mut payload);
    for element in list.iter_from(0) {
        strings::put_length(element.len(), &mut payload);
        payload.extend_from_slice(element);
    }
    finish(payload)
}

fn finish(mut payload: Vec<u8>) -> Vec<u8> {
    payload.extend_from_slice(&VERSION.to_le_bytes());
    let checksum = crc64_redis(&payload);
    payload.extend_from_slice(&checksum.to_le_bytes());
    payload
}

/// The value of a payload.
///
/// # Errors
/// See [`DumpError`]. Whatever the bytes are, no more than [`VALUE_BYTES_MAX`] are made of them.
pub fn restore(payload: &[u8]) -> Result<Dumped, DumpError> {
    let body = without_footer(payload).ok_or(DumpError::Footer)?;
    let (kind, rest) = body.split_first().ok_or(DumpError::Value)?;
    let mut reader = Reader::new(rest);
    let value = match *kind {
        STRING => reader.string(VALUE_BYTES_MAX).map(|bytes| Dumped::String(bytes.into_owned())),
        kind => elements(kind, &mut reader).map(Dumped::List),
    };
    value.filter(|value| reader.is_empty() && *value != Dumped::List(Vec::new())).ok_or(DumpError::Value)
}

fn without_footer(payload: &[u8]) -> Option<&[u8]> {
    let (body, footer) = payload.split_at_checked(payload.len().checked_sub(FOOTER_BYTES)?)?;
    let version = u16::from_le_bytes([footer[0], footer[1]]);
    let checksum = u64::from_le_bytes(footer[2..].try_into().ok()?);
    // No checksum, 0, is for RDB files: a payload always has one.
    let is_sound = checksum == crc64_redis(&payload[..payload.len() - 8]);
    (is_sound && (version <= VERSION_MAX || version == VERSION_VALKEY)).then_some(body)
}

/// A list in canonical encoding.
fn elements(kind: u8, reader: &mut Reader<'_>) -> Option<Vec<u8>> {
    let mut encoding = Vec::new();
    if kind == LIST_ZIPLIST {
        let bytes = reader.string(VALUE_BYTES_MAX)?;
        return packed::ziplist(&bytes, &mut encoding).map(|()| encoding);
    }
    for _ in 0..reader.length()? {
        let left = VALUE_BYTES_MAX.checked_sub(encoding.len())?;
        match kind {
            LIST => put_element(&reader.string(left)?, &mut encoding),
            LIST_QUICKLIST => packed::ziplist(&reader.string(left)?, &mut encoding)?,
            LIST_QUICKLIST_2 => match reader.length()? {
                1 => put_element(&reader.string(left)?, &mut encoding),
                2 => packed::listpack(&reader.string(left)?, &mut encoding)?,
                _ => return None,
            },
            _ => return None,
        }
    }
    Some(encoding)
}

fn put_element(element: &[u8], encoding: &mut Vec<u8>) {
    put_varint(encoding, element.len() as u64);
    encoding.extend_from_slice(element);
}

#[cfg(test)]
mod tests;
