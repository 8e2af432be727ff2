//! The ends of a list: LPUSH, RPUSH, LPUSHX, RPUSHX, LPOP, RPOP, LLEN.

use storage::{Key, Store};
use types::change::put_varint;
use types::{Change, End, Expiry, Kind, List};
use wire::Arguments;

use crate::arguments::positive;
use crate::failure::{DONE, Executed, Failure};
use crate::unit::{Unit, argument};
use crate::values::list;

/// LPUSH key element [element …].
pub(crate) fn lpush(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    push_arguments(arguments, unit, End::Head, false)
}

/// RPUSH key element [element …].
pub(crate) fn rpush(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    push_arguments(arguments, unit, End::Tail, false)
}

/// LPUSHX key element [element …]: only onto a list that exists.
pub(crate) fn lpushx(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    push_arguments(arguments, unit, End::Head, true)
}

/// RPUSHX key element [element …]: only onto a list that exists.
pub(crate) fn rpushx(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    push_arguments(arguments, unit, End::Tail, true)
}

fn push_arguments(arguments: Arguments<'_>, unit: &mut Unit<'_>, end: End, only_present: bool) -> Executed {
    let key = unit.first_key(arguments, 1);
    let present_len = list(unit.store, &key, unit.now_ms)?.map(List::len);
    if only_present && present_len.is_none() {
        unit.reply.integer(0);
        return DONE;
    }
    let added = arguments.len() - 2;
    match (added, present_len) {
        (1, Some(_)) => {
            let elements = &[argument(arguments, 2)];
            unit.store.apply(&key, &Change::ListPush { end, elements })?;
        }
        _ => {
            let elements: Vec<&[u8]> = arguments.from(2).iter().collect();
            push(unit.store, &key, end, &elements, present_len.is_some())?;
        }
    }
    unit.reply.integer((present_len.unwrap_or(0) + added) as i64);
    DONE
}

/// Push `elements` one after the other; a list that does not exist is made of them.
pub(super) fn push(
    store: &mut Store,
    key: &Key<'_>,
    end: End,
    elements: &[&[u8]],
    exists: bool,
) -> Result<(), Failure> {
    if exists {
        store.apply(key, &Change::ListPush { end, elements })?;
        return Ok(());
    }
    let mut value = Vec::with_capacity(elements.iter().map(|element| element.len() + 2).sum());
    let mut encode = |element: &&[u8]| {
        put_varint(&mut value, element.len() as u64);
        value.extend_from_slice(element);
    };
    match end {
        End::Head => elements.iter().rev().for_each(&mut encode),
        End::Tail => elements.iter().for_each(&mut encode),
    }
    store.apply(key, &Change::Put { kind: Kind::List, value: &value, expiry: Expiry::Clear })?;
    Ok(())
}

/// LPOP key [count].
pub(crate) fn lpop(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    pop_argument(arguments, unit, End::Head, "lpop")
}

/// RPOP key [count].
pub(crate) fn rpop(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    pop_argument(arguments, unit, End::Tail, "rpop")
}

fn pop_argument(arguments: Arguments<'_>, unit: &mut Unit<'_>, end: End, command: &'static str) -> Executed {
    if arguments.len() > 3 {
        return Err(Failure::Arity(command));
    }
    let count = arguments.get(2).map(positive).transpose()?;
    let key = unit.first_key(arguments, 1);
    match (list(unit.store, &key, unit.now_ms)?.is_some(), count) {
        (false, None) => unit.reply.null(),
        (false, Some(_)) => unit.reply.null_array(),
        (true, None) => pop_one(unit, &key, end)?,
        (true, Some(count)) => pop_many(unit, &key, end, count)?,
    }
    DONE
}

/// Reply the element at one end of a list that exists, and pop it.
pub(super) fn pop_one(unit: &mut Unit<'_>, key: &Key<'_>, end: End) -> Result<(), Failure> {
    if let Some(element) = list(unit.store, key, unit.now_ms)?.and_then(|list| at_end(list, end)) {
        unit.reply.bulk(element);
        unit.store.apply(key, &Change::ListPop { end, count: 1 })?;
    }
    Ok(())
}

/// Reply an array of up to `count` elements from one end of a list that exists, and pop them.
pub(super) fn pop_many(unit: &mut Unit<'_>, key: &Key<'_>, end: End, count: u64) -> Result<(), Failure> {
    let Some(list) = list(unit.store, key, unit.now_ms)? else { return Ok(()) };
    let count = usize::try_from(count).unwrap_or(usize::MAX).min(list.len());
    unit.reply.array(count);
    match end {
        End::Head => list.iter_from(0).take(count).for_each(|element| unit.reply.bulk(element)),
        End::Tail => list.iter_backward().take(count).for_each(|element| unit.reply.bulk(element)),
    }
    if count > 0 {
        unit.store.apply(key, &Change::ListPop { end, count: count as u64 })?;
    }
    Ok(())
}

/// The element at one end.
pub(super) fn at_end(list: &List, end: End) -> Option<&[u8]> {
    match end {
        End::Head => list.get(0),
        End::Tail => list.get(list.len().checked_sub(1)?),
    }
}

/// LLEN key.
pub(crate) fn llen(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let key = unit.first_key(arguments, 1);
    let len = list(unit.store, &key, unit.now_ms)?.map_or(0, List::len);
    unit.reply.integer(len as i64);
    DONE
}
