//! Pops from the first of several lists that has elements: LMPOP, and the part that BLMPOP shares.

use types::End;
use wire::{Arguments, ErrorReply, error};

use super::ends::pop_many;
use crate::arguments::{at_least, end, is};
use crate::failure::{DONE, Executed, Failure};
use crate::unit::{Unit, argument};
use crate::values::list;

const NUMKEYS: ErrorReply = ErrorReply::new("ERR", "numkeys should be greater than 0");
const COUNT: ErrorReply = ErrorReply::new("ERR", "count should be greater than 0");

/// What LMPOP and BLMPOP are asked for.
pub(super) struct ManyPop<'a> {
    /// Names of the lists.
    pub(super) keys: Arguments<'a>,
    from: End,
    count: u64,
}

impl<'a> ManyPop<'a> {
    /// `numkeys key [key …] LEFT | RIGHT [COUNT count]`, beginning at argument `first`.
    pub(super) fn parse(arguments: Arguments<'a>, first: usize) -> Result<ManyPop<'a>, Failure> {
        let key_count = at_least(argument(arguments, first), 1, NUMKEYS)?;
        let key_count =
            usize::try_from(key_count).ok().filter(|count| *count < arguments.len()).ok_or(error::SYNTAX)?;
        let mut index = first + 1 + key_count;
        let from = end(arguments.get(index).ok_or(error::SYNTAX)?)?;
        index += 1;
        let mut count = None;
        while let Some(option) = arguments.get(index) {
            let value = arguments.get(index + 1).filter(|_| count.is_none() && is(option, "COUNT"));
            count = Some(at_least(value.ok_or(error::SYNTAX)?, 1, COUNT)?);
            index += 2;
        }
        let spans = &arguments.spans()[first + 1..first + 1 + key_count];
        let keys = Arguments::new(arguments.base(), spans);
        Ok(ManyPop { keys, from, count: count.unwrap_or(1) })
    }

    /// Pop from the list of this name, which exists, and reply its name and the elements.
    pub(super) fn run_on(&self, unit: &mut Unit<'_>, name: &[u8]) -> Result<(), Failure> {
        let key = unit.key(name);
        unit.reply.array(2);
        unit.reply.bulk(name);
        pop_many(unit, &key, self.from, self.count)
    }
}

/// LMPOP numkeys key [key …] LEFT | RIGHT [COUNT count].
pub(crate) fn lmpop(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let pop = ManyPop::parse(arguments, 1)?;
    for name in pop.keys {
        let key = unit.key(name);
        if list(unit.store, &key, unit.now_ms)?.is_some() {
            pop.run_on(unit, name)?;
            return DONE;
        }
    }
    unit.reply.null_array();
    DONE
}
