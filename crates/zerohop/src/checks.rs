//! What is checked before anything is done.

use base::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use base::{Database, Text, Version};
use storage::{Key, Store, Value as Stored};

use crate::{Error, Value};

/// The keyspace that this library shows.
pub(crate) const DATABASE: Database = Database(0);

/// A key's name that is not too long.
pub(crate) fn check_key(name: &[u8]) -> Result<(), Error> {
    match name.len() <= KEY_BYTES_MAX {
        true => Ok(()),
        false => Err(Error::KeyTooLong { bytes: name.len() }),
    }
}

/// The length that a value has, or would have, bytes.
pub(crate) fn check_value(name: &[u8], bytes: u64) -> Result<(), Error> {
    match bytes <= VALUE_BYTES_MAX as u64 {
        true => Ok(()),
        false => Err(Error::ValueTooLong { key: name.to_vec(), bytes }),
    }
}

/// A key with what is computed from it.
#[inline]
pub(crate) fn key_of<'a>(store: &Store, name: &'a [u8]) -> Key<'a> {
    store.key(name, DATABASE, placement::slot_of(name))
}

/// The string that a key holds.
pub(crate) struct Present<'a> {
    pub text: Text<'a>,
    pub version: Version,
    pub expire_at_ms: Option<u64>,
}

impl Present<'_> {
    pub(crate) fn to_value(&self) -> Value {
        Value::new(self.text, self.version, self.expire_at_ms)
    }
}

/// Reads a string, whose bytes are in memory ([`crate::store::Shared::with_value`]).
#[inline]
pub(crate) fn read<'a>(store: &'a mut Store, key: &Key<'_>, now_ms: u64) -> Result<Option<Present<'a>>, Error> {
    let Some(record) = store.read(key, now_ms) else { return Ok(None) };
    match record.value {
        Stored::String { text, .. } => {
            Ok(Some(Present { text, version: record.version, expire_at_ms: record.expire_at_ms }))
        }
        Stored::Cold => unreachable!("who needs a value has it brought into memory first"),
        other => Err(Error::WrongType { key: key.bytes.to_vec(), holds: other.kind().name() }),
    }
}
