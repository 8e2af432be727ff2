//! Counters with a fraction: INCRBYFLOAT.

use storage::Form;
use types::extended::Extended;
use types::{Change, Expiry};
use wire::{Arguments, error};

use crate::failure::{DONE, Executed};
use crate::unit::{Unit, argument};
use crate::values::string;

/// INCRBYFLOAT key increment.
pub(crate) fn incrbyfloat(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let key = unit.first_key(arguments, 1);
    // An expired value is absent: its expiry must not come back with the new value.
    let (present, expiry) = match string(unit.store, &key, unit.now_ms)? {
        // A number is never long.
        Some(text) => (text.short().and_then(Extended::parse).ok_or(error::NOT_FLOAT)?, Expiry::Keep),
        None => (Extended::ZERO, Expiry::Clear),
    };
    let increment = Extended::parse(argument(arguments, 2)).ok_or(error::NOT_FLOAT)?;
    let sum = present.checked_add(increment).ok_or(error::NAN_OR_INFINITY)?;
    let text = sum.format();
    unit.store.apply(&key, &Change::put_string(text.as_bytes(), expiry))?;
    unit.store.set_form(&key, Form::Computed);
    unit.reply.bulk(text.as_bytes());
    DONE
}
