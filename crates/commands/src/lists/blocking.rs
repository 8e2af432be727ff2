//! Pops that wait for an element: BLPOP, BRPOP, BLMOVE, BRPOPLPUSH, BLMPOP.

use types::End;
use wire::Arguments;

use super::ends::pop_one;
use super::several::ManyPop;
use super::transfer::transfer;
use crate::arguments::{end, timeout_seconds};
use crate::failure::{DONE, Executed};
use crate::unit::{Block, Outcome, Reason, Unit, argument};
use crate::values::list;

/// BLPOP key [key …] timeout.
pub(crate) fn blpop(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    pop_or_block(arguments, unit, End::Head)
}

/// BRPOP key [key …] timeout.
pub(crate) fn brpop(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    pop_or_block(arguments, unit, End::Tail)
}

fn pop_or_block(arguments: Arguments<'_>, unit: &mut Unit<'_>, from: End) -> Executed {
    let last = arguments.len() - 1;
    let deadline_ms = timeout_seconds(argument(arguments, last), unit.now_ms)?;
    let names = Arguments::new(arguments.base(), &arguments.spans()[1..last]);
    for name in names {
        let key = unit.key(name);
        if list(unit.store, &key, unit.now_ms)?.is_some() {
            unit.reply.array(2);
            unit.reply.bulk(name);
            pop_one(unit, &key, from)?;
            return DONE;
        }
    }
    if !unit.may_block {
        unit.reply.null_array();
        return DONE;
    }
    Ok(wait_for(names, deadline_ms))
}

/// BLMOVE source destination LEFT | RIGHT LEFT | RIGHT timeout.
pub(crate) fn blmove(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let (from, to) = (end(argument(arguments, 3))?, end(argument(arguments, 4))?);
    let deadline_ms = timeout_seconds(argument(arguments, 5), unit.now_ms)?;
    transfer_or_block(arguments, unit, from, to, deadline_ms)
}

/// BRPOPLPUSH source destination timeout.
pub(crate) fn brpoplpush(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let deadline_ms = timeout_seconds(argument(arguments, 3), unit.now_ms)?;
    transfer_or_block(arguments, unit, End::Tail, End::Head, deadline_ms)
}

fn transfer_or_block(
    arguments: Arguments<'_>,
    unit: &mut Unit<'_>,
    from: End,
    to: End,
    deadline_ms: Option<u64>,
) -> Executed {
    if transfer(arguments, unit, from, to)? {
        return DONE;
    }
    if !unit.may_block {
        unit.reply.null();
        return DONE;
    }
    Ok(wait_for(Arguments::new(arguments.base(), &arguments.spans()[1..2]), deadline_ms))
}

/// BLMPOP timeout numkeys key [key …] LEFT | RIGHT [COUNT count].
pub(crate) fn blmpop(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let pop = ManyPop::parse(arguments, 2)?;
    let deadline_ms = timeout_seconds(argument(arguments, 1), unit.now_ms)?;
    if pop.run(unit)? {
        return DONE;
    }
    if !unit.may_block {
        unit.reply.null_array();
        return DONE;
    }
    Ok(wait_for(pop.keys, deadline_ms))
}

fn wait_for(keys: Arguments<'_>, deadline_ms: Option<u64>) -> Outcome {
    let keys = keys.iter().map(<[u8]>::to_vec).collect();
    Outcome::Block(Block { keys, deadline_ms, reason: Reason::Element })
}
