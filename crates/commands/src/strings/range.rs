//! Parts of strings: APPEND, GETRANGE, SUBSTR, SETRANGE.

use base::limits::VALUE_BYTES_MAX;
use base::{Text, Version};
use storage::{Key, NotApplied};
use types::{Change, Expiry};
use wire::{Arguments, error};

use crate::arguments::{integer, window};
use crate::failure::{DONE, Executed, Failure};
use crate::long::Written;
use crate::unit::{Unit, argument};
use crate::values::string;

/// APPEND key value.
pub(crate) fn append(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let (key, written) = (unit.first_key(arguments, 1), unit.written(arguments, 2));
    let present_len = string(unit.store, &key, unit.now_ms)?.map(Text::len);
    let len = checked_len(present_len.unwrap_or(0) as u64, written.len())?;
    match (present_len, written) {
        (None, Written::Bytes(bytes)) => unit.store.apply(&key, &Change::put_string(bytes, Expiry::Clear))?,
        (Some(_), Written::Bytes(bytes)) => unit.store.apply(&key, &Change::Append { bytes })?,
        (present_len, Written::Blocks(_)) => {
            let offset = present_len.unwrap_or(0) as u64;
            write_at(&key, (present_len, offset), written, unit)?
        }
    };
    unit.reply.integer(len as i64);
    DONE
}

/// GETRANGE key start end, and SUBSTR, its old name.
pub(crate) fn getrange(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let (start, end) = (integer(argument(arguments, 2))?, integer(argument(arguments, 3))?);
    let key = unit.first_key(arguments, 1);
    let value = string(unit.store, &key, unit.now_ms)?.unwrap_or_default();
    // Before the beginning is the beginning, at both ends: `GETRANGE k 0 -100` is one byte.
    let len = value.len() as i64;
    let end = if end < 0 && !(start < 0 && start > end) { end.saturating_add(len).max(0) } else { end };
    let (first, count) = window(start, end, value.len());
    unit.reply.text_part(value, first..first + count);
    DONE
}

/// SETRANGE key offset value.
pub(crate) fn setrange(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let offset = integer(argument(arguments, 2))?;
    let offset = u64::try_from(offset).map_err(|_| error::OFFSET_OUT_OF_RANGE)?;
    let (key, written) = (unit.first_key(arguments, 1), unit.written(arguments, 3));
    let present_len = string(unit.store, &key, unit.now_ms)?.map(Text::len);
    if written.len() == 0 {
        unit.reply.integer(present_len.unwrap_or(0) as i64);
        return DONE;
    }
    let end = checked_len(offset, written.len())?;
    write_at(&key, (present_len, offset), written, unit)?;
    unit.reply.integer(end.max(present_len.unwrap_or(0)) as i64);
    DONE
}

/// Writes into a string, of which there may be none.
fn write_at(
    key: &Key<'_>,
    (present_len, offset): (Option<usize>, u64),
    written: Written<'_>,
    unit: &mut Unit<'_>,
) -> Result<Version, NotApplied> {
    if present_len.is_none() {
        unit.store.apply(key, &Change::put_string(&[], Expiry::Clear))?;
    }
    unit.store.apply(key, &written.at(offset))
}

/// The sum, unless no value may be that long.
fn checked_len(offset: u64, len: usize) -> Result<usize, Failure> {
    let sum = usize::try_from(offset).ok().and_then(|offset| offset.checked_add(len));
    sum.filter(|sum| *sum <= VALUE_BYTES_MAX).ok_or(error::STRING_TOO_LONG.into())
}
