//! Bytes: little endian, lengths checked before anything is allocated, one way to write each value.

use std::fmt;

use base::limits::{DOMAIN_BYTES_MAX, HOST_BYTES_MAX};

/// Why bytes are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// They end too early.
    Short,
    /// They go on behind the end.
    Long,
    /// They are written in a format of this number, which this program does not know.
    Format(u32),
    /// A part of them means nothing.
    Part(&'static str),
    /// They mean a table that cannot be.
    Broken(crate::invariants::Broken),
}

impl fmt::Display for Damage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::Short => write!(formatter, "the bytes end too early"),
            Damage::Long => write!(formatter, "there are bytes behind the end"),
            Damage::Format(number) => write!(formatter, "format {number} is unknown"),
            Damage::Part(part) => write!(formatter, "{part} means nothing"),
            Damage::Broken(broken) => write!(formatter, "{broken}"),
        }
    }
}

impl std::error::Error for Damage {}

/// Longest text that is written, bytes: above what any text in the table may have, so that a command with one that is too long
/// stays one, and is refused with its reason.
const TEXT_BYTES_MAX: usize = 1024;

const _: () = assert!(TEXT_BYTES_MAX > HOST_BYTES_MAX + 4 && TEXT_BYTES_MAX > DOMAIN_BYTES_MAX + 4);

/// Reads bytes from the front.
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    /// The next `count` bytes.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Damage> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Damage::Short)?;
        self.0 = rest;
        Ok(taken)
    }

    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Damage> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or(Damage::Short)?;
        self.0 = rest;
        Ok(*taken)
    }

    /// The next byte.
    pub fn u8(&mut self) -> Result<u8, Damage> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// The next 2 bytes.
    pub fn u16(&mut self) -> Result<u16, Damage> {
        self.array().map(u16::from_le_bytes)
    }

    /// The next 4 bytes.
    pub fn u32(&mut self) -> Result<u32, Damage> {
        self.array().map(u32::from_le_bytes)
    }

    /// The next 8 bytes.
    pub fn u64(&mut self) -> Result<u64, Damage> {
        self.array().map(u64::from_le_bytes)
    }

    /// 0 or 1.
    pub fn flag(&mut self, part: &'static str) -> Result<bool, Damage> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Damage::Part(part)),
        }
    }

    /// A count of things of at least `bytes` each, at most `max`: never more than what is left can hold.
    pub fn count(&mut self, max: usize, bytes: usize, part: &'static str) -> Result<usize, Damage> {
        let count = usize::from(self.u16()?);
        if count > max {
            return Err(Damage::Part(part));
        }
        if count * bytes > self.0.len() {
            return Err(Damage::Short);
        }
        Ok(count)
    }

    /// Text of at most [`TEXT_BYTES_MAX`] bytes.
    pub fn text(&mut self, part: &'static str) -> Result<String, Damage> {
        let length = usize::from(self.u16()?);
        if length > TEXT_BYTES_MAX {
            return Err(Damage::Part(part));
        }
        let text = std::str::from_utf8(self.bytes(length)?).map_err(|_| Damage::Part(part))?;
        Ok(text.to_owned())
    }

    /// Nothing is left.
    pub fn end(&self) -> Result<(), Damage> {
        if self.0.is_empty() { Ok(()) } else { Err(Damage::Long) }
    }
}

/// Writes bytes at the end.
#[derive(Default)]
pub struct Writer(pub Vec<u8>);

impl Writer {
    /// These bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Writer {
        self.0.extend_from_slice(bytes);
        self
    }

    /// One byte.
    pub fn u8(&mut self, value: u8) -> &mut Writer {
        self.bytes(&[value])
    }

    /// 2 bytes.
    pub fn u16(&mut self, value: u16) -> &mut Writer {
        self.bytes(&value.to_le_bytes())
    }

    /// 4 bytes.
    pub fn u32(&mut self, value: u32) -> &mut Writer {
        self.bytes(&value.to_le_bytes())
    }

    /// 8 bytes.
    pub fn u64(&mut self, value: u64) -> &mut Writer {
        self.bytes(&value.to_le_bytes())
    }

    /// 0 or 1.
    pub fn flag(&mut self, value: bool) -> &mut Writer {
        self.u8(u8::from(value))
    }

    /// A count that its bound in `base::limits` keeps below 65,536.
    pub fn count(&mut self, count: usize) -> &mut Writer {
        self.u16(u16::try_from(count).expect("counts are bounded by the limits page"))
    }

    /// Text; of one that is longer than [`TEXT_BYTES_MAX`] the beginning, which is refused all the same.
    pub fn text(&mut self, text: &str) -> &mut Writer {
        let text = &text[..text.floor_char_boundary(TEXT_BYTES_MAX)];
        self.u16(text.len() as u16).bytes(text.as_bytes())
    }
}
