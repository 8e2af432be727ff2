//! Lengths and strings as RDB files have them.
//!
//! ```text
//!  00llllll                    6 bits      11000000 i8
//!  01llllll llllllll          14 bits      11000001 i16, little-endian
//!  10000000 + 4 bytes         32 bits      11000010 i32, little-endian
//!  10000001 + 8 bytes         64 bits      11000011 length packed, length, bytes of LZF
//! ```

use std::borrow::Cow;

use super::compressed;

/// Writes a length in the shortest way.
pub(super) fn put_length(length: usize, out: &mut Vec<u8>) {
    match length {
        0..64 => out.push(length as u8),
        64..16384 => out.extend_from_slice(&(length as u16 | 0x4000).to_be_bytes()),
        _ => match u32::try_from(length) {
            Ok(length) => {
                out.push(0x80);
                out.extend_from_slice(&length.to_be_bytes());
            }
            Err(_) => {
                out.push(0x81);
                out.extend_from_slice(&(length as u64).to_be_bytes());
            }
        },
    }
}

/// Reads what was written so, here or elsewhere. `None` is always: it is not that.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(rest: &'a [u8]) -> Reader<'a> {
        Reader { rest }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Bytes that were not read.
    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    pub(super) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(bytes)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    /// A length, which is no encoding of a string.
    pub(super) fn length(&mut self) -> Option<usize> {
        let first = self.byte()?;
        self.length_after(first)
    }

    fn length_after(&mut self, first: u8) -> Option<usize> {
        match first {
            0..0x40 => Some(usize::from(first)),
            0x40..0x80 => Some(usize::from(u16::from_be_bytes([first & 0x3f, self.byte()?]))),
            0x80 => usize::try_from(u32::from_be_bytes(self.array()?)).ok(),
            0x81 => usize::try_from(u64::from_be_bytes(self.array()?)).ok(),
            _ => None,
        }
    }

    /// A string of at most so many bytes.
    pub(super) fn string(&mut self, bytes_max: usize) -> Option<Cow<'a, [u8]>> {
        let number = |number: i64| Some(Cow::Owned(number.to_string().into_bytes()));
        let string = match self.byte()? {
            0xc0 => number(i64::from(i8::from_le_bytes(self.array()?))),
            0xc1 => number(i64::from(i16::from_le_bytes(self.array()?))),
            0xc2 => number(i64::from(i32::from_le_bytes(self.array()?))),
            0xc3 => {
                let (packed_bytes, bytes) = (self.length()?, self.length()?);
                let packed = self.bytes(packed_bytes)?;
                (bytes <= bytes_max).then(|| compressed::unpack(packed, bytes))?.map(Cow::Owned)
            }
            first => {
                let bytes = self.length_after(first)?;
                self.bytes(bytes).map(Cow::Borrowed)
            }
        };
        string.filter(|string| string.len() <= bytes_max)
    }
}
