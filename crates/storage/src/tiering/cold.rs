//! What has to be read to have a cold value, and whether what was read is it.

use base::{Database, Slot, SlotGroupId, Version};
use types::{Change, Expiry, Kind};

use crate::log::record::{FLAG_SEALED, RECORD_CHECKSUM_BYTES, RawRecord, RecordForm, RecordHead, open_record};
use crate::record::Header;

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
    /// What is in front of it.
    pub form: RecordForm,
}

/// What was read is not the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotIt;

/// Bytes of the run's record of a string.
pub(crate) fn run_record_bytes(form: RecordForm, header: &Header) -> usize {
    let (database, version, key_bytes) = (header.database.0, header.version, header.key_len.into());
    let head = RecordHead { tag: 0, flags: FLAG_SEALED, slot: 0, version, database, key_bytes };
    let put_head = if header.expire_at_ms.is_some() { 10 } else { 2 };
    head.record_bytes(form, key_bytes + put_head + header.value_len as usize + RECORD_CHECKSUM_BYTES)
}

/// The value in a run's record, if the record is intact and that of this key and version.
pub(crate) fn value_of<'a>(
    (record, form): (&'a [u8], RecordForm),
    (key, database, slot): (&[u8], Database, Slot),
    (version, expire_at_ms): (Version, Option<u64>),
) -> Result<&'a [u8], NotIt> {
    let opened = open_record(record, form).ok_or(NotIt)?;
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

/// The record that these bytes are, if it is that of a key of `slot` that had this version then: there is one such key.
pub(crate) fn record_of((record, form): (&[u8], RecordForm), slot: Slot, version: Version) -> Option<RawRecord<'_>> {
    open_record(record, form).filter(|opened| opened.slot == slot.number() && opened.version == version)
}
