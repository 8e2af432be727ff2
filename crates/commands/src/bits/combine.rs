//! Strings combined bit by bit: BITOP.

use storage::Form;
use types::{Change, Expiry};
use wire::{Arguments, error};

use crate::arguments::is;
use crate::failure::{DONE, Executed};
use crate::unit::{Unit, argument};
use crate::values::string;

/// BITOP AND | OR | XOR | NOT destination key [key …]: the length of the result.
pub(crate) fn bitop(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let word = argument(arguments, 1);
    let operation: fn(u8, u8) -> u8 = match () {
        () if is(word, "AND") => |a, b| a & b,
        () if is(word, "OR") => |a, b| a | b,
        () if is(word, "XOR") => |a, b| a ^ b,
        () if is(word, "NOT") => |a, _| !a,
        () => return Err(error::SYNTAX.into()),
    };
    let negates = is(word, "NOT");
    if negates && arguments.len() != 4 {
        return Err(error::BITOP_NOT.into());
    }
    let mut result: Vec<u8> = Vec::new();
    for (number, name) in arguments.from(3).iter().enumerate() {
        let key = unit.key(name);
        let bytes = string(unit.store, &key, unit.now_ms)?.unwrap_or_default().whole();
        if number == 0 {
            result.extend_from_slice(&bytes);
            continue;
        }
        result.resize(result.len().max(bytes.len()), 0);
        for (index, byte) in result.iter_mut().enumerate() {
            // A shorter string goes on with zeros.
            *byte = operation(*byte, bytes.get(index).copied().unwrap_or(0));
        }
    }
    if negates {
        result.iter_mut().for_each(|byte| *byte = operation(*byte, 0));
    }
    let target = unit.key(argument(arguments, 2));
    if !result.is_empty() {
        unit.store.apply(&target, &Change::put_string(&result, Expiry::Clear))?;
        unit.store.set_form(&target, Form::Raw);
    } else if unit.store.read(&target, unit.now_ms).is_some() {
        unit.store.apply(&target, &Change::Remove)?;
    }
    unit.reply.integer(result.len() as i64);
    DONE
}
