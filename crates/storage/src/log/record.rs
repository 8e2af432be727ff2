//! The records of a group: the bytes in front of each, and how they lie one behind the other.
//!
//! ```text
//! short   bytes v · tag u8 · flags u8 · slot u16 · version v · [database u8] · key bytes v · [origin] · key · body · [crc32c]
//!         2         1        1          2          1 to 3                      1               of most records: 8 to 10 bytes
//! fixed   0 bytes u32 · 4 tag u8 · 5 flags u8 · 6 slot u16 · 8 version u48 · 14 database u8 · 15 zero u8 · 16 key bytes u16
//!         18 [origin] · key · body · [crc32c]
//! ```
//!
//! v = LEB128 varint; `bytes` counts in short heads what follows it, in fixed ones the whole record. What a disk holds twice,
//! in runs and in log, is mostly records of about 150 bytes: each byte of their heads is one in 75 of the directory.

use base::Version;
use base::planted::{Bug, is_planted};
use types::change::take_varint;

use super::format::{u16_at, u32_at, u64_at};

/// Flag: pieces before this record are the beginning of its body.
pub const FLAG_PIECES: u8 = 1;
/// Flag: 16 bytes of origin (client id, operation sequence) follow the head. Reserved; decoders skip it.
pub const FLAG_ORIGIN: u8 = 2;
/// Flag: the bytes at the end of the body were logged before, as blocks; it ends with stage u64 · bytes u64.
pub const FLAG_STAGED: u8 = 4;
/// Flag, in runs: the last four bytes of the record are the CRC-32C of all before them, because it may be read alone.
pub const FLAG_SEALED: u8 = 8;
/// Flag: a copy of a key as it was on another node. Its version may be older than the slot's last one, and the key may be
/// there already, as new or newer.
pub const FLAG_COPIED: u8 = 16;
/// Flag of short heads: the key is of another database than 0, whose number follows.
pub const FLAG_DATABASE: u8 = 32;

/// Bytes of the checksum of a sealed record.
pub const RECORD_CHECKSUM_BYTES: usize = 4;
/// Bytes of an origin.
const ORIGIN_BYTES: usize = 16;
/// Most bytes of a head: a length below 2^35, a version below 2^48, a key shorter than 2^16.
pub const RECORD_HEAD_BYTES_MAX: usize = 5 + 1 + 1 + 2 + 7 + 1 + 3;
/// Bytes of a fixed head.
const FIXED_HEAD_BYTES: usize = 18;
/// Fewest bytes of a record of either form: a short head of a record without key and body.
pub const RECORD_BYTES_MIN: usize = 1 + 1 + 1 + 2 + 1 + 1;

/// What is in front of records; the group says which.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecordForm {
    /// Until format 6.
    Fixed,
    /// Since format 7: what is written.
    #[default]
    Short,
}

impl RecordForm {
    /// Bytes of a record without key and body.
    const fn record_bytes_min(self) -> usize {
        match self {
            RecordForm::Fixed => FIXED_HEAD_BYTES,
            RecordForm::Short => RECORD_BYTES_MIN,
        }
    }
}

/// What a record's head says, but for its length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordHead {
    pub(crate) tag: u8,
    pub(crate) flags: u8,
    pub(crate) slot: u16,
    pub(crate) version: Version,
    pub(crate) database: u8,
    pub(crate) key_bytes: usize,
}

impl RecordHead {
    /// The bytes of a short head in front of `following` others: the key, the body and what is behind it.
    #[inline]
    pub(crate) fn encode<'a>(&self, following: usize, room: &'a mut [u8; RECORD_HEAD_BYTES_MAX]) -> &'a [u8] {
        let (has_database, mut at) = (self.database != 0, 0);
        put_varint(room, &mut at, (self.behind_length() + following) as u64);
        room[at] = self.tag;
        room[at + 1] = self.flags | if has_database { FLAG_DATABASE } else { 0 };
        room[at + 2..at + 4].copy_from_slice(&self.slot.to_le_bytes());
        at += 4;
        put_varint(room, &mut at, self.version.0);
        if has_database {
            room[at] = self.database;
            at += 1;
        }
        put_varint(room, &mut at, self.key_bytes as u64);
        &room[..at]
    }

    /// Bytes of the whole record with so many behind its head.
    pub(crate) fn record_bytes(&self, form: RecordForm, following: usize) -> usize {
        match form {
            RecordForm::Fixed => FIXED_HEAD_BYTES + following,
            RecordForm::Short => {
                let bytes = self.behind_length() + following;
                varint_bytes(bytes as u64) + bytes
            }
        }
    }

    /// Bytes of the head behind its length.
    #[inline]
    fn behind_length(&self) -> usize {
        4 + varint_bytes(self.version.0) + usize::from(self.database != 0) + varint_bytes(self.key_bytes as u64)
    }
}

#[inline]
fn put_varint(room: &mut [u8; RECORD_HEAD_BYTES_MAX], at: &mut usize, mut value: u64) {
    while value >= 0x80 {
        room[*at] = value as u8 | 0x80;
        (*at, value) = (*at + 1, value >> 7);
    }
    room[*at] = value as u8;
    *at += 1;
}

#[inline]
fn varint_bytes(value: u64) -> usize {
    ((value | 1).ilog2() / 7 + 1) as usize
}

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

const NO_HEAD: &str = "a record is shorter than its head";
const UNKNOWN_FLAGS: &str = "a record has flags that this version does not know; use the version that wrote it";

impl<'a> RawRecord<'a> {
    /// The head of a record and the bytes behind it.
    fn head(record: &'a [u8], form: RecordForm) -> Result<(RecordHead, &'a [u8]), &'static str> {
        match form {
            RecordForm::Fixed => {
                let (head, rest) = record.split_first_chunk::<FIXED_HEAD_BYTES>().ok_or(NO_HEAD)?;
                let versioned = u64_at(head, 8);
                let (tag, slot, key_bytes) = (head[4], u16_at(head, 6), u16_at(head, 16).into());
                let (version, database) = (Version(versioned & Version::MAX.0), (versioned >> 48) as u8);
                if head[5] & FLAG_DATABASE != 0 || head[15] != 0 {
                    return Err(UNKNOWN_FLAGS);
                }
                Ok((RecordHead { tag, flags: head[5], slot, version, database, key_bytes }, rest))
            }
            RecordForm::Short => {
                let mut rest = record;
                take_varint(&mut rest).map_err(|_| NO_HEAD)?;
                let (&[tag, flags, low, high], behind) = rest.split_first_chunk().ok_or(NO_HEAD)?;
                rest = behind;
                let version = Version(take_varint(&mut rest).map_err(|_| NO_HEAD)?);
                let mut database = 0;
                if flags & FLAG_DATABASE != 0 {
                    (database, rest) = rest.split_first().map(|(number, behind)| (*number, behind)).ok_or(NO_HEAD)?;
                }
                let key_bytes = take_varint(&mut rest).map_err(|_| NO_HEAD)?;
                let key_bytes = usize::try_from(key_bytes).unwrap_or(usize::MAX);
                if version > Version::MAX {
                    return Err("a record's version is above all that there are");
                }
                let flags = flags & !FLAG_DATABASE;
                Ok((
                    RecordHead { tag, flags, slot: u16::from_le_bytes([low, high]), version, database, key_bytes },
                    rest,
                ))
            }
        }
    }

    fn parse(at: usize, record: &'a [u8], form: RecordForm) -> Result<RawRecord<'a>, &'static str> {
        let (head, mut rest) = RawRecord::head(record, form)?;
        let flags = head.flags;
        if flags & !(FLAG_PIECES | FLAG_STAGED | FLAG_ORIGIN | FLAG_SEALED | FLAG_COPIED) != 0 {
            return Err(UNKNOWN_FLAGS);
        }
        if flags & FLAG_SEALED != 0 {
            let whole = rest.len().checked_sub(RECORD_CHECKSUM_BYTES);
            rest = &rest[..whole.ok_or("a record is shorter than its header and its checksum")?];
        }
        if flags & FLAG_ORIGIN != 0 {
            rest = rest.get(ORIGIN_BYTES..).unwrap_or_default();
        }
        let Some((key, body)) = rest.split_at_checked(head.key_bytes) else {
            return Err("a record's key is longer than the record");
        };
        Ok(RawRecord {
            tag: head.tag,
            has_pieces: flags & FLAG_PIECES != 0,
            is_staged: flags & FLAG_STAGED != 0,
            is_sealed: flags & FLAG_SEALED != 0,
            is_copied: flags & FLAG_COPIED != 0,
            at,
            bytes: record.len(),
            slot: head.slot,
            version: head.version,
            database: head.database,
            key,
            body,
        })
    }
}

/// Where the flags of a record with a short head are: behind its length and its tag.
pub(crate) fn flags_at(record: &[u8]) -> usize {
    record.iter().take_while(|byte| **byte & 0x80 != 0).count() + 2
}

/// How long the record is that these bytes begin with, if they say so.
fn length(bytes: &[u8], form: RecordForm) -> Option<usize> {
    match form {
        RecordForm::Fixed => bytes.first_chunk::<4>().map(|bytes| u32_at(bytes, 0) as usize),
        RecordForm::Short => {
            let mut rest = bytes;
            let behind = usize::try_from(take_varint(&mut rest).ok()?).ok()?;
            (bytes.len() - rest.len()).checked_add(behind)
        }
    }
}

/// A record that was read alone, if it is whole and bears the checksum of what it says.
pub(crate) fn open_record(bytes: &[u8], form: RecordForm) -> Option<RawRecord<'_>> {
    let (head, _) = RawRecord::head(bytes, form).ok()?;
    if length(bytes, form) != Some(bytes.len()) || head.flags != FLAG_SEALED {
        return None;
    }
    let (content, checksum) = bytes.split_last_chunk::<RECORD_CHECKSUM_BYTES>()?;
    let is_intact = base::checksum::crc32c(content) == u32::from_le_bytes(*checksum);
    if !is_intact && !is_planted(Bug::M28ColdChecksumIgnored) {
        return None;
    }
    RawRecord::parse(0, bytes, form).ok()
}

/// The records of a group with their offsets in the file from the group's start. The first error ends them.
#[derive(Clone)]
pub(crate) struct Records<'a> {
    rest: &'a [u8],
    offset: usize,
    form: RecordForm,
}

impl<'a> Records<'a> {
    /// `records` is what follows the group's header.
    pub(crate) fn new(records: &'a [u8], form: RecordForm) -> Records<'a> {
        Records { rest: records, offset: super::format::GROUP_HEADER_BYTES, form }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = (usize, Result<RawRecord<'a>, &'static str>);

    fn next(&mut self) -> Option<Self::Item> {
        let offset = self.offset;
        if self.rest.is_empty() {
            return None;
        }
        let length = length(self.rest, self.form).filter(|bytes| *bytes >= self.form.record_bytes_min());
        let Some((record, rest)) = length.and_then(|bytes| self.rest.split_at_checked(bytes)) else {
            self.rest = &[];
            return Some((offset, Err("a record's length is impossible inside an intact group")));
        };
        (self.rest, self.offset) = (rest, offset + record.len());
        Some((offset, RawRecord::parse(offset, record, self.form)))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use base::{Database, Slot};
    use proptest::prelude::*;
    use types::{Change, Expiry};

    use super::*;
    use crate::key::Key;
    use crate::log::buffer::LogBuffer;

    /// Small ones and large ones, as lengths and versions are.
    fn number(bits: u32) -> impl Strategy<Value = u64> {
        (0..=bits, any::<u64>()).prop_map(|(bits, number)| number & ((1 << bits) - 1))
    }

    proptest! {
        #[test]
        fn a_short_record_says_what_it_was_told(
            version in number(48), slot in 0..16384u16, database in 0..16u8, name in number(12), value in number(16), is_copied: bool
        ) {
            let (name, value) = (vec![7; name as usize], vec![8; value as usize]);
            let key = Key { bytes: &name, database: Database(database), slot: Slot::wrapping(slot), hash: 0 };
            let change = Change::put_string(&value, Expiry::Clear);
            let mut log = LogBuffer::default();
            match is_copied {
                true => log.append_copied(&key, Version(version), &change),
                false => log.append(&key, Version(version), &change),
            }
            log.append_seal();
            let mut records = Records::new(log.record_slice(), RecordForm::Short).map(|(_, record)| record.unwrap());
            let record = records.next().unwrap();
            prop_assert_eq!((record.slot, record.version, record.database), (slot, Version(version), database));
            prop_assert_eq!((record.key, record.is_copied), (&name[..], is_copied));
            let mut elements = Vec::new();
            prop_assert_eq!(Change::decode(record.tag, record.body, &mut elements), Ok(change));
            prop_assert_eq!(records.next().map(|record| (record.tag, record.key.len())), Some((super::super::format::tag::SEAL, 0)));
            prop_assert!(records.next().is_none());
        }

        #[test]
        fn a_sealed_record_is_as_long_as_it_is_said_to_be_and_opens_only_unharmed(
            version in number(48), database in 0..16u8, name in number(9), value in number(8), harm in any::<(usize, u8)>()
        ) {
            let (name, value) = (vec![7; name as usize], vec![8; value as usize]);
            let (slot, database, version) = (Slot::wrapping(9), Database(database), Version(version));
            let mut log = LogBuffer::default();
            log.append_sealed(&Key { bytes: &name, database, slot, hash: 0 }, version, 1, &[&[1, 1], &value]);
            let (mut record, key_bytes) = (log.record_slice().to_vec(), name.len());
            let head = RecordHead { tag: 1, flags: FLAG_SEALED, slot: 9, version, database: database.0, key_bytes };
            prop_assert_eq!(head.record_bytes(RecordForm::Short, key_bytes + 2 + value.len() + 4), record.len());
            let opened = open_record(&record, RecordForm::Short).unwrap();
            prop_assert_eq!((opened.version, opened.database, opened.key), (version, database.0, &name[..]));
            prop_assert!(open_record(&record, RecordForm::Fixed).is_none());
            prop_assert!(open_record(&record[..record.len() - 1], RecordForm::Short).is_none());
            let at = harm.0 % record.len();
            record[at] ^= harm.1;
            prop_assert_eq!(open_record(&record, RecordForm::Short).is_some(), harm.1 == 0);
        }
    }
}
