//! From one list to another: LMOVE, RPOPLPUSH.

use types::{Change, End};
use wire::Arguments;

use super::ends::{at_end, push};
use crate::arguments::end;
use crate::failure::{DONE, Executed, Failure};
use crate::unit::{Unit, argument};
use crate::values::list;

/// LMOVE source destination LEFT | RIGHT LEFT | RIGHT.
pub(crate) fn lmove(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let (from, to) = (end(argument(arguments, 3))?, end(argument(arguments, 4))?);
    if !transfer(arguments, unit, from, to)? {
        unit.reply.null();
    }
    DONE
}

/// RPOPLPUSH source destination.
pub(crate) fn rpoplpush(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    if !transfer(arguments, unit, End::Tail, End::Head)? {
        unit.reply.null();
    }
    DONE
}

/// Move one element from argument 1's end `from` to argument 2's end `to`, and reply it. False, and no reply, when
/// there is no source.
pub(super) fn transfer(arguments: Arguments<'_>, unit: &mut Unit<'_>, from: End, to: End) -> Result<bool, Failure> {
    let (source, target) = (unit.key(argument(arguments, 1)), unit.key(argument(arguments, 2)));
    let Some(found) = list(unit.store, &source, unit.now_ms)? else { return Ok(false) };
    let len = found.len();
    let element = at_end(found, from).expect("a list is never empty").to_vec();
    let target_exists = list(unit.store, &target, unit.now_ms)?.is_some();
    if source.bytes == target.bytes && (len == 1 || from == to) {
        // Nothing moves, yet it is a write: watchers see it, and a lone element must not take its key and expiry along.
        let index = if from == End::Head { 0 } else { len as u64 - 1 };
        unit.store.apply(&source, &Change::ListSet { index, element: &element })?;
    } else {
        push(unit.store, &target, to, &[&element], target_exists)?;
        unit.store.apply(&source, &Change::ListPop { end: from, count: 1 })?;
    }
    unit.reply.bulk(&element);
    Ok(true)
}
