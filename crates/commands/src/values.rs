//! Typed looks at a key: its string or its list, or WRONGTYPE.

use base::Text;
use storage::{Key, Store, Value};
use types::List;
use wire::error;

use crate::failure::Failure;

/// Why no command that looks at values ever sees one that is not in memory.
pub(crate) const COLD: &str = "the shard has cold values read before a command runs that needs them";

/// The bytes of a string; `None` when the key does not exist.
#[inline]
pub(crate) fn string<'s>(store: &'s mut Store, key: &Key<'_>, now_ms: u64) -> Result<Option<Text<'s>>, Failure> {
    match store.read(key, now_ms) {
        None => Ok(None),
        Some(record) => match record.value {
            Value::String { text, .. } => Ok(Some(text)),
            Value::List(_) => Err(error::WRONG_TYPE.into()),
            Value::Cold => unreachable!("{COLD}"),
        },
    }
}

/// A list; `None` when the key does not exist.
pub(crate) fn list<'s>(store: &'s mut Store, key: &Key<'_>, now_ms: u64) -> Result<Option<&'s List>, Failure> {
    match store.read(key, now_ms) {
        None => Ok(None),
        Some(record) => match record.value {
            Value::List(list) => Ok(Some(list)),
            Value::String { .. } | Value::Cold => Err(error::WRONG_TYPE.into()),
        },
    }
}
