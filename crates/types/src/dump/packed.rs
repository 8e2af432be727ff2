//! Elements that Redis keeps in one piece of memory and dumps as they lie there: listpacks, and ziplists before them.
//!
//! ```text
//!  listpack   bytes u32 · count u16 · { entry · its length, backwards }* · ff
//!  ziplist    bytes u32 · last u32 · count u16 · { length of the one before, 1 or 5 bytes · entry }* · ff
//! ```

use super::put_element;
use super::strings::Reader;

const END: u8 = 0xff;

/// Adds the elements of a listpack in canonical encoding.
pub(super) fn listpack(bytes: &[u8], encoding: &mut Vec<u8>) -> Option<()> {
    let mut reader = Reader::new(bytes);
    let total = u32::from_le_bytes(reader.array()?);
    reader.bytes(2)?;
    loop {
        let before = reader.left();
        match reader.byte()? {
            END => return is_whole(&reader, total, bytes),
            first => put_element(&of_listpack(first, &mut reader)?, encoding),
        }
        let entry_bytes = before - reader.left();
        reader.bytes(backwards_bytes(entry_bytes))?;
    }
}

fn is_whole(reader: &Reader<'_>, total: u32, bytes: &[u8]) -> Option<()> {
    (reader.is_empty() && usize::try_from(total) == Ok(bytes.len())).then_some(())
}

/// Bytes that an entry's length takes behind it, seven bits in each.
fn backwards_bytes(entry_bytes: usize) -> usize {
    match entry_bytes {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        0x4000..0x20_0000 => 3,
        0x20_0000..0x1000_0000 => 4,
        _ => 5,
    }
}

fn text(number: i64) -> Vec<u8> {
    number.to_string().into_bytes()
}

fn of_listpack(first: u8, reader: &mut Reader<'_>) -> Option<Vec<u8>> {
    match first {
        0..0x80 => Some(text(i64::from(first))),
        0x80..0xc0 => reader.bytes(usize::from(first & 0x3f)).map(<[u8]>::to_vec),
        0xc0..0xe0 => {
            let number = i16::from(first & 0x1f) << 8 | i16::from(reader.byte()?);
            // Thirteen bits with a sign.
            Some(text(i64::from(number << 3 >> 3)))
        }
        0xe0..0xf0 => {
            let bytes = usize::from(first & 0x0f) << 8 | usize::from(reader.byte()?);
            reader.bytes(bytes).map(<[u8]>::to_vec)
        }
        0xf0 => {
            let bytes = u32::from_le_bytes(reader.array()?);
            reader.bytes(usize::try_from(bytes).ok()?).map(<[u8]>::to_vec)
        }
        0xf1 => reader.array().map(|bytes| text(i64::from(i16::from_le_bytes(bytes)))),
        0xf2 => reader.array().map(|bytes| text(i64::from(of_24_bits(bytes)))),
        0xf3 => reader.array().map(|bytes| text(i64::from(i32::from_le_bytes(bytes)))),
        0xf4 => reader.array().map(|bytes| text(i64::from_le_bytes(bytes))),
        _ => None,
    }
}

fn of_24_bits([low, middle, high]: [u8; 3]) -> i32 {
    i32::from_le_bytes([0, low, middle, high]) >> 8
}

/// Adds the elements of a ziplist in canonical encoding.
pub(super) fn ziplist(bytes: &[u8], encoding: &mut Vec<u8>) -> Option<()> {
    let mut reader = Reader::new(bytes);
    let total = u32::from_le_bytes(reader.array()?);
    reader.bytes(6)?;
    loop {
        match reader.byte()? {
            END => return is_whole(&reader, total, bytes),
            0xfe => drop(reader.bytes(4)?),
            _ => {}
        }
        let first = reader.byte()?;
        put_element(&of_ziplist(first, &mut reader)?, encoding);
    }
}

fn of_ziplist(first: u8, reader: &mut Reader<'_>) -> Option<Vec<u8>> {
    let bytes = match first {
        0..0x40 => usize::from(first),
        0x40..0x80 => usize::from(first & 0x3f) << 8 | usize::from(reader.byte()?),
        0x80 => usize::try_from(u32::from_be_bytes(reader.array()?)).ok()?,
        0xc0 => return reader.array().map(|bytes| text(i64::from(i16::from_le_bytes(bytes)))),
        0xd0 => return reader.array().map(|bytes| text(i64::from(i32::from_le_bytes(bytes)))),
        0xe0 => return reader.array().map(|bytes| text(i64::from_le_bytes(bytes))),
        0xf0 => return reader.array().map(|bytes| text(i64::from(of_24_bits(bytes)))),
        0xfe => return reader.array().map(|bytes| text(i64::from(i8::from_le_bytes(bytes)))),
        0xf1..=0xfd => return Some(text(i64::from(first & 0x0f) - 1)),
        _ => return None,
    };
    reader.bytes(bytes).map(<[u8]>::to_vec)
}
