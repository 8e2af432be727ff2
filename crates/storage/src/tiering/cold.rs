//! What has to be read to have a cold value, and whether what was read is it.

use base::{Database, Slot, SlotGroupId, Version};
use types::{Change, Expiry, Kind};

use crate::key::Key;
use crate::log::format::{RECORD_CHECKSUM_BYTES, RECORD_HEADER_BYTES};
use crate::log::replay::open_record;

/// A cold value: whose it is, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColdValue {
    /// Its group.
    pub group: SlotGroupId,
    /// Where its key is in the group's index; with the version it names this value and no other.
    pub position: u32,
    /// The key's version.
    pub version: Version,
    /// The run's file.
    pub file: String,
    /// Of the record in it.
    pub offset: u64,
    /// Of the record.
    pub bytes: usize,
}

/// What was read is not the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotIt;

/// Bytes of a run's record of a string with this key, value and expiry.
pub(crate) fn run_record_bytes(key_len: usize, value_len: usize, expire_at_ms: Option<u64>) -> usize {
    let head = if expire_at_ms.is_some() { 10 } else { 2 };
    RECORD_HEADER_BYTES + key_len + head + value_len + RECORD_CHECKSUM_BYTES
}

/// The value in a run's record, if the record is intact and that of this key and version.
pub(crate) fn value_of<'a>(
    record: &'a [u8],
    (key, database, slot): (&[u8], Database, Slot),
    (version, expire_at_ms): (Version, Option<u64>),
) -> Result<&'a [u8], NotIt> {
    let opened = open_record(record).ok_or(NotIt)?;
    let is_of_key = opened.key == key && opened.database == database.0 && opened.slot == slot.number();
    if !is_of_key || opened.version != version {
        return Err(NotIt);
    }
    let expected = expire_at_ms.map_or(Expiry::Clear, Expiry::At);
    let value_bytes = match Change::decode(opened.tag, opened.body, &mut Vec::new()) {
        Ok(Change::Put { kind: Kind::String, value, expiry }) if expiry == expected => value.len(),
        _ => return Err(NotIt),
    };
    Ok(&opened.body[opened.body.len() - value_bytes..])
}

/// Whether these bytes are the run's record of a key of `slot` that had this version then: there is one such key.
pub(crate) fn is_record_of(record: &[u8], slot: Slot, version: Version) -> bool {
    open_record(record).is_some_and(|opened| opened.slot == slot.number() && opened.version == version)
}

impl ColdValue {
    /// Whether it is that of this key.
    pub fn is_of(&self, key: &Key<'_>) -> bool {
        self.group == key.group() && self.position == key.position()
    }
}
