//! Whether a change fits the value it would change: what a command's planning guarantees, replay has to ask.

use base::Version;
use base::limits::VALUE_BYTES_MAX;
use types::{Change, Kind, List};

use super::{Found, SlotGroup, Value};
use crate::key::Key;

impl SlotGroup {
    /// Whether a change under `version` may come now; if not, why.
    pub(crate) fn check_version(&self, key: &Key<'_>, version: Version) -> Result<(), String> {
        let last = self.last_version(key.slot);
        if version > last {
            return Ok(());
        }
        Err(format!("version {} of slot {} comes after {}", version.0, key.slot.number(), last.0))
    }

    /// Whether [`SlotGroup::apply`] may perform `change` of the key that was found so; if not, what is wrong with it.
    pub(crate) fn check_fit(&self, found: Option<Found>, change: &Change<'_>) -> Result<(), String> {
        if let Change::Put { kind: Kind::String, value, .. } = change
            && value.len() <= VALUE_BYTES_MAX
        {
            return Ok(());
        }
        let value = found.map(|found| self.record(found).value);
        let fits = match (*change, value) {
            (Change::Put { kind: Kind::List, value, .. }, _) => List::decode(value).is_ok_and(|list| !list.is_empty()),
            (Change::Remove, _) => true,
            (Change::Expire { .. } | Change::Persist, value) => value.is_some(),
            (Change::PutBlocks { blocks, .. }, _) => blocks.len() <= VALUE_BYTES_MAX,
            (Change::Append { bytes: added }, Some(Value::String { text, .. })) => {
                text.len() + added.len() <= VALUE_BYTES_MAX
            }
            (Change::Overwrite { offset, bytes }, Some(Value::String { .. })) => ends_in_value(offset, bytes.len()),
            (Change::OverwriteBlocks { offset, blocks, skip, .. }, Some(Value::String { .. })) => {
                ends_in_value(offset, blocks.len() - skip)
            }
            (Change::ListPush { .. } | Change::ListRemove { .. } | Change::ListTrim { .. }, Some(Value::List(_))) => {
                true
            }
            (Change::ListPop { count, .. }, Some(Value::List(list))) => count <= list.len() as u64,
            (Change::ListSet { index, .. }, Some(Value::List(list))) => index < list.len() as u64,
            (Change::ListInsert { index, .. }, Some(Value::List(list))) => index <= list.len() as u64,
            _ => false,
        };
        if fits {
            return Ok(());
        }
        let holds = value.map_or("nothing", |value| match value {
            Value::String { .. } => "a string",
            Value::List(_) => "a list",
            Value::Cold => "a string on the disk",
        });
        Err(format!("a change (tag {}) does not fit what its key holds ({holds})", change.tag()))
    }
}

/// Whether a value may be as long as what ends there.
fn ends_in_value(offset: u64, len: usize) -> bool {
    offset.checked_add(len as u64).is_some_and(|end| end <= VALUE_BYTES_MAX as u64)
}
