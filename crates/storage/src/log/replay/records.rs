//! The records of a group, as they lie in it.

use base::Version;
use base::planted::{Bug, is_planted};

use crate::log::format::{
    FLAG_COPIED, FLAG_ORIGIN, FLAG_PIECES, FLAG_SEALED, FLAG_STAGED, RECORD_CHECKSUM_BYTES, RECORD_HEADER_BYTES,
    u16_at, u32_at, u64_at,
};

/// Bytes of an origin: client id, operation sequence.
const ORIGIN_BYTES: usize = 16;

/// A record whose fields were cut apart and not interpreted yet.
pub(crate) struct RawRecord<'a> {
    pub(crate) tag: u8,
    /// Pieces before this record are the beginning of its body.
    pub(crate) has_pieces: bool,
    /// The end of its body names bytes that came before, as blocks.
    pub(crate) is_staged: bool,
    /// It may be read alone.
    pub(crate) is_sealed: bool,
    /// Its change may be known already.
    pub(crate) is_copied: bool,
    /// Its offset from the group's start.
    pub(crate) at: usize,
    /// Its length.
    pub(crate) bytes: usize,
    pub(crate) slot: u16,
    pub(crate) version: Version,
    pub(crate) database: u8,
    pub(crate) key: &'a [u8],
    pub(crate) body: &'a [u8],
}

impl<'a> RawRecord<'a> {
    fn parse(at: usize, record: &'a [u8]) -> Result<RawRecord<'a>, &'static str> {
        let (tag, flags) = (record[4], record[5]);
        if flags & !(FLAG_PIECES | FLAG_STAGED | FLAG_ORIGIN | FLAG_SEALED | FLAG_COPIED) != 0 || record[15] != 0 {
            return Err("a record has flags that this version does not know; use the version that wrote it");
        }
        let origin_bytes = if flags & FLAG_ORIGIN != 0 { ORIGIN_BYTES } else { 0 };
        let checksum_bytes = if flags & FLAG_SEALED != 0 { RECORD_CHECKSUM_BYTES } else { 0 };
        let whole = record.len().checked_sub(checksum_bytes).filter(|bytes| *bytes >= RECORD_HEADER_BYTES);
        let record = &record[..whole.ok_or("a record is shorter than its header and its checksum")?];
        let after_header = record.get(RECORD_HEADER_BYTES + origin_bytes..).unwrap_or_default();
        let key_len = usize::from(u16_at(record, 16));
        let Some((key, body)) = after_header.split_at_checked(key_len) else {
            return Err("a record's key is longer than the record");
        };
        let versioned = u64_at(record, 8);
        Ok(RawRecord {
            tag,
            has_pieces: flags & FLAG_PIECES != 0,
            is_staged: flags & FLAG_STAGED != 0,
            is_sealed: flags & FLAG_SEALED != 0,
            is_copied: flags & FLAG_COPIED != 0,
            at,
            bytes: u32_at(record, 0) as usize,
            slot: u16_at(record, 6),
            version: Version(versioned & Version::MAX.0),
            database: (versioned >> 48) as u8,
            key,
            body,
        })
    }
}

/// A record that was read alone, if it is whole and bears the checksum of what it says.
pub(crate) fn open_record(bytes: &[u8]) -> Option<RawRecord<'_>> {
    let is_whole = bytes.len() >= RECORD_HEADER_BYTES && u32_at(bytes, 0) as usize == bytes.len();
    if !is_whole || bytes[5] != FLAG_SEALED {
        return None;
    }
    let (content, checksum) = bytes.split_last_chunk::<RECORD_CHECKSUM_BYTES>()?;
    let is_intact = base::checksum::crc32c(content) == u32::from_le_bytes(*checksum);
    if !is_intact && !is_planted(Bug::M28ColdChecksumIgnored) {
        return None;
    }
    RawRecord::parse(0, bytes).ok()
}

/// The records of a group with their offsets in the file from the group's start. The first error ends them.
#[derive(Clone)]
pub(crate) struct Records<'a> {
    rest: &'a [u8],
    offset: usize,
}

impl<'a> Records<'a> {
    /// `records` is what follows the group's header.
    pub(crate) fn new(records: &'a [u8]) -> Records<'a> {
        Records { rest: records, offset: crate::log::format::GROUP_HEADER_BYTES }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = (usize, Result<RawRecord<'a>, &'static str>);

    fn next(&mut self) -> Option<Self::Item> {
        let offset = self.offset;
        if self.rest.is_empty() {
            return None;
        }
        let bytes = self.rest.first_chunk::<4>().map_or(0, |bytes| u32_at(bytes, 0) as usize);
        let split = self.rest.split_at_checked(bytes).filter(|_| bytes >= RECORD_HEADER_BYTES);
        let Some((record, rest)) = split else {
            self.rest = &[];
            return Some((offset, Err("a record's length is impossible inside an intact group")));
        };
        (self.rest, self.offset) = (rest, offset + bytes);
        Some((offset, RawRecord::parse(offset, record)))
    }
}
