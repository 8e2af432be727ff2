//! Pops that wait for an element: BLPOP, BRPOP, BLMOVE, BRPOPLPUSH, BLMPOP.
//!
//! Run for the first time, a key of another type is an error. Run again because a key changed, it is as good as absent:
//! the command goes on waiting for a list.

use types::End;
use wire::registry::CommandId;
use wire::{Arguments, error};

use super::ends::pop_one;
use super::several::ManyPop;
use super::transfer::transfer;
use crate::arguments::{end, timeout_seconds};
use crate::failure::{DONE, Executed, Failure};
use crate::unit::{Block, Outcome, Reason, Unit, argument};
use crate::values::list;

/// BLPOP key [key …] timeout.
pub(crate) fn blpop(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    pop_or_block(arguments, unit, End::Head, Run::First)
}

/// BRPOP key [key …] timeout.
pub(crate) fn brpop(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    pop_or_block(arguments, unit, End::Tail, Run::First)
}

/// BLMOVE source destination LEFT | RIGHT LEFT | RIGHT timeout.
pub(crate) fn blmove(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    move_or_block(arguments, unit, Run::First)
}

/// BRPOPLPUSH source destination timeout.
pub(crate) fn brpoplpush(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    rotate_or_block(arguments, unit, Run::First)
}

/// BLMPOP timeout numkeys key [key …] LEFT | RIGHT [COUNT count].
pub(crate) fn blmpop(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    pop_many_or_block(arguments, unit, Run::First)
}

/// One of the commands of this file after it blocked and a key changed, which is `only` if that is given; `None` for any
/// other command.
pub(crate) fn resume(
    id: CommandId,
    arguments: Arguments<'_>,
    only: Option<&[u8]>,
    unit: &mut Unit<'_>,
) -> Option<Executed> {
    let run = only.map_or(Run::Again, Run::On);
    Some(match id {
        CommandId::Blpop => pop_or_block(arguments, unit, End::Head, run),
        CommandId::Brpop => pop_or_block(arguments, unit, End::Tail, run),
        CommandId::Blmove => move_or_block(arguments, unit, run),
        CommandId::Brpoplpush => rotate_or_block(arguments, unit, run),
        CommandId::Blmpop => pop_many_or_block(arguments, unit, run),
        _ => return None,
    })
}

/// Whether a command runs because it came or because a key it waits for changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Run<'a> {
    First,
    Again,
    /// Again, for this key only.
    On(&'a [u8]),
}

/// Whether there is a list under this name to take from.
fn has_elements(unit: &mut Unit<'_>, name: &[u8], run: Run<'_>) -> Result<bool, Failure> {
    if matches!(run, Run::On(only) if only != name) {
        return Ok(false);
    }
    let key = unit.key(name);
    match list(unit.store, &key, unit.now_ms) {
        Ok(list) => Ok(list.is_some()),
        Err(Failure::Error(error::WRONG_TYPE)) if run != Run::First => Ok(false),
        Err(failure) => Err(failure),
    }
}

fn pop_or_block(arguments: Arguments<'_>, unit: &mut Unit<'_>, from: End, run: Run<'_>) -> Executed {
    let last = arguments.len() - 1;
    let deadline_ms = timeout_seconds(argument(arguments, last), unit.now_ms)?;
    let names = Arguments::new(arguments.base(), &arguments.spans()[1..last]);
    for name in names {
        if has_elements(unit, name, run)? {
            let key = unit.key(name);
            unit.reply.array(2);
            unit.reply.bulk(name);
            pop_one(unit, &key, from)?;
            return DONE;
        }
    }
    if !unit.may.block {
        unit.reply.null_array();
        return DONE;
    }
    Ok(wait_for(names, deadline_ms))
}

fn move_or_block(arguments: Arguments<'_>, unit: &mut Unit<'_>, run: Run<'_>) -> Executed {
    let (from, to) = (end(argument(arguments, 3))?, end(argument(arguments, 4))?);
    let deadline_ms = timeout_seconds(argument(arguments, 5), unit.now_ms)?;
    transfer_or_block(arguments, unit, (from, to), deadline_ms, run)
}

fn rotate_or_block(arguments: Arguments<'_>, unit: &mut Unit<'_>, run: Run<'_>) -> Executed {
    let deadline_ms = timeout_seconds(argument(arguments, 3), unit.now_ms)?;
    transfer_or_block(arguments, unit, (End::Tail, End::Head), deadline_ms, run)
}

fn transfer_or_block(
    arguments: Arguments<'_>,
    unit: &mut Unit<'_>,
    (from, to): (End, End),
    deadline_ms: Option<u64>,
    run: Run<'_>,
) -> Executed {
    if has_elements(unit, argument(arguments, 1), run)? && transfer(arguments, unit, from, to)? {
        return DONE;
    }
    if !unit.may.block {
        unit.reply.null();
        return DONE;
    }
    Ok(wait_for(Arguments::new(arguments.base(), &arguments.spans()[1..2]), deadline_ms))
}

fn pop_many_or_block(arguments: Arguments<'_>, unit: &mut Unit<'_>, run: Run<'_>) -> Executed {
    let pop = ManyPop::parse(arguments, 2)?;
    let deadline_ms = timeout_seconds(argument(arguments, 1), unit.now_ms)?;
    for name in pop.keys {
        if has_elements(unit, name, run)? {
            pop.run_on(unit, name)?;
            return DONE;
        }
    }
    if !unit.may.block {
        unit.reply.null_array();
        return DONE;
    }
    Ok(wait_for(pop.keys, deadline_ms))
}

fn wait_for(keys: Arguments<'_>, deadline_ms: Option<u64>) -> Outcome {
    let keys = keys.iter().map(<[u8]>::to_vec).collect();
    Outcome::Block(Block { keys, deadline_ms, reason: Reason::Element })
}
