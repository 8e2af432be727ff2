//! Single bits: SETBIT, GETBIT; and what all writers of bits share.

use base::Text;
use base::limits::VALUE_BYTES_MAX;
use storage::{Form, Key};
use types::bits::{get_bit, with_bit};
use types::{Change, Expiry};
use wire::{Arguments, error, number};

use crate::arguments::integer_or;
use crate::failure::{DONE, Executed, Failure};
use crate::unit::{Unit, argument};
use crate::values::string;

/// The offset of a bit: below the longest value.
pub(super) fn bit_offset(text: &[u8]) -> Result<u64, Failure> {
    checked_offset(number::parse_integer(text))
}

/// `offset` if no value ends before it.
pub(super) fn checked_offset(offset: Option<i64>) -> Result<u64, Failure> {
    let offset = offset.and_then(|offset| u64::try_from(offset).ok());
    offset.filter(|offset| offset / 8 < VALUE_BYTES_MAX as u64).ok_or(error::BIT_OFFSET.into())
}

/// SETBIT key offset value: the bit that was there.
pub(crate) fn setbit(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let offset = bit_offset(argument(arguments, 2))?;
    let on = match integer_or(argument(arguments, 3), error::BIT_VALUE)? {
        0 => false,
        1 => true,
        _ => return Err(error::BIT_VALUE.into()),
    };
    let key = unit.first_key(arguments, 1);
    let present = string(unit.store, &key, unit.now_ms)?;
    let byte = byte_at(present.unwrap_or_default(), offset);
    let was_on = byte.is_some_and(|byte| get_bit(&[byte], offset % 8));
    // A bit that is there and as it should be is no write: watchers do not see it.
    if was_on != on || byte.is_none() {
        let exists = present.is_some();
        let byte = with_bit(byte.unwrap_or(0), offset, on);
        overwrite(unit, &key, exists, offset / 8, &[byte])?;
    } else {
        unit.store.set_form(&key, Form::Raw);
    }
    unit.reply.integer(i64::from(was_on));
    DONE
}

/// The byte that has the bit at `offset`, if the string is that long.
fn byte_at(text: Text<'_>, offset: u64) -> Option<u8> {
    let index = usize::try_from(offset / 8).ok()?;
    text.part(index..index + 1).first().copied()
}

/// Write `bytes` at `offset` of a string that may not exist yet.
pub(super) fn overwrite(
    unit: &mut Unit<'_>,
    key: &Key<'_>,
    exists: bool,
    offset: u64,
    bytes: &[u8],
) -> Result<(), Failure> {
    if exists {
        unit.store.apply(key, &Change::Overwrite { offset, bytes })?;
        return Ok(());
    }
    unit.store.apply(key, &Change::put_string(&[], Expiry::Clear))?;
    if let Err(full) = unit.store.apply(key, &Change::Overwrite { offset, bytes }) {
        unit.store.apply(key, &Change::Remove)?;
        return Err(full.into());
    }
    Ok(())
}

/// GETBIT key offset.
pub(crate) fn getbit(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let offset = bit_offset(argument(arguments, 2))?;
    let key = unit.first_key(arguments, 1);
    let on = string(unit.store, &key, unit.now_ms)?.and_then(|text| byte_at(text, offset));
    let on = on.is_some_and(|byte| get_bit(&[byte], offset % 8));
    unit.reply.integer(i64::from(on));
    DONE
}
