//! Parts of a list: LRANGE, LTRIM.

use types::Change;
use wire::Arguments;

use crate::arguments::{integer, window};
use crate::failure::{DONE, Executed};
use crate::unit::{Unit, argument};
use crate::values::list;

/// LRANGE key start stop.
pub(crate) fn lrange(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let (start, stop) = (integer(argument(arguments, 2))?, integer(argument(arguments, 3))?);
    let key = unit.first_key(arguments, 1);
    let Some(list) = list(unit.store, &key, unit.now_ms)? else {
        unit.reply.array(0);
        return DONE;
    };
    let (first, count) = window(start, stop, list.len());
    unit.reply.array(count);
    list.iter_from(first).take(count).for_each(|element| unit.reply.bulk(element));
    DONE
}

/// LTRIM key start stop.
pub(crate) fn ltrim(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let (start, stop) = (integer(argument(arguments, 2))?, integer(argument(arguments, 3))?);
    let key = unit.first_key(arguments, 1);
    if let Some(list) = list(unit.store, &key, unit.now_ms)? {
        let (first, count) = window(start, stop, list.len());
        unit.store.apply(&key, &Change::ListTrim { start: first as u64, length: count as u64 })?;
    }
    unit.reply.ok();
    DONE
}
