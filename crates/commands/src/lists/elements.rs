//! Single elements of a list: LINDEX, LSET, LINSERT, LREM.

use types::Change;
use wire::{Arguments, error};

use crate::arguments::{integer, is};
use crate::failure::{DONE, Executed};
use crate::unit::{Unit, argument};
use crate::values::list;

/// The index from the head of one that may count from the tail; `None` when it is before the head.
fn from_head(index: i64, len: usize) -> Option<usize> {
    let index = if index < 0 { index.checked_add(len as i64)? } else { index };
    usize::try_from(index).ok()
}

/// LINDEX key index.
pub(crate) fn lindex(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let key = unit.first_key(arguments, 1);
    let Some(list) = list(unit.store, &key, unit.now_ms)? else {
        unit.reply.null();
        return DONE;
    };
    let index = integer(argument(arguments, 2))?;
    match from_head(index, list.len()).and_then(|index| list.get(index)) {
        Some(element) => unit.reply.bulk(element),
        None => unit.reply.null(),
    }
    DONE
}

/// LSET key index element.
pub(crate) fn lset(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let key = unit.first_key(arguments, 1);
    let len = list(unit.store, &key, unit.now_ms)?.ok_or(error::NO_SUCH_KEY)?.len();
    let index = integer(argument(arguments, 2))?;
    let index = from_head(index, len).filter(|index| *index < len).ok_or(error::INDEX_OUT_OF_RANGE)?;
    unit.store.apply(&key, &Change::ListSet { index: index as u64, element: argument(arguments, 3) })?;
    unit.reply.ok();
    DONE
}

/// LINSERT key BEFORE | AFTER pivot element.
pub(crate) fn linsert(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let place = argument(arguments, 2);
    let after = is(place, "AFTER");
    if !after && !is(place, "BEFORE") {
        return Err(error::SYNTAX.into());
    }
    let key = unit.first_key(arguments, 1);
    let Some(list) = list(unit.store, &key, unit.now_ms)? else {
        unit.reply.integer(0);
        return DONE;
    };
    let (len, pivot) = (list.len(), argument(arguments, 3));
    let Some(index) = list.iter_from(0).position(|element| element == pivot) else {
        unit.reply.integer(-1);
        return DONE;
    };
    let index = (index + usize::from(after)) as u64;
    unit.store.apply(&key, &Change::ListInsert { index, element: argument(arguments, 4) })?;
    unit.reply.integer(len as i64 + 1);
    DONE
}

/// LREM key count element.
pub(crate) fn lrem(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let (count, element) = (integer(argument(arguments, 2))?, argument(arguments, 3));
    let key = unit.first_key(arguments, 1);
    let equal = list(unit.store, &key, unit.now_ms)?
        .map_or(0, |list| list.iter_from(0).filter(|candidate| *candidate == element).count());
    if equal > 0 {
        unit.store.apply(&key, &Change::ListRemove { count, element })?;
    }
    let most = if count == 0 { u64::MAX } else { count.unsigned_abs() };
    unit.reply.integer((equal as u64).min(most) as i64);
    DONE
}
