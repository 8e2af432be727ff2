//! Counters: INCR, DECR, INCRBY, DECRBY.

use types::string::Decimal;
use types::{Change, Expiry};
use wire::{Arguments, error};

use crate::arguments::integer;
use crate::failure::{DONE, Executed};
use crate::unit::{Unit, argument};
use crate::values::string;

/// INCR key.
pub(crate) fn incr(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    add(arguments, unit, 1)
}

/// DECR key.
pub(crate) fn decr(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    add(arguments, unit, -1)
}

/// INCRBY key increment.
pub(crate) fn incrby(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let increment = integer(argument(arguments, 2))?;
    add(arguments, unit, increment)
}

/// DECRBY key decrement.
pub(crate) fn decrby(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let decrement = integer(argument(arguments, 2))?;
    let increment = decrement.checked_neg().ok_or(error::DECREMENT_OVERFLOW)?;
    add(arguments, unit, increment)
}

fn add(arguments: Arguments<'_>, unit: &mut Unit<'_>, increment: i64) -> Executed {
    let key = unit.first_key(arguments, 1);
    // An expired value is absent: its expiry must not come back with the new value.
    let (present, expiry) = match string(unit.store, &key, unit.now_ms)? {
        // A number is never long.
        Some(text) => (integer(text.short().unwrap_or_default())?, Expiry::Keep),
        None => (0, Expiry::Clear),
    };
    let value = present.checked_add(increment).ok_or(error::OVERFLOW)?;
    unit.store.apply(&key, &Change::put_string(Decimal::new(value).as_bytes(), expiry))?;
    unit.reply.integer(value);
    DONE
}
