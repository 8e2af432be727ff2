//! Counting and finding bits: BITCOUNT, BITPOS.

use std::ops::RangeInclusive;

use types::bits::{count, position};
use wire::{Arguments, error};

use crate::arguments::{integer, is};
use crate::failure::{DONE, Executed, Failure};
use crate::unit::{Unit, argument};
use crate::values::string;

/// What the indexes of a range count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IndexUnit {
    Byte,
    Bit,
}

impl IndexUnit {
    /// BYTE or BIT, if given.
    fn parse(text: Option<&[u8]>) -> Result<IndexUnit, Failure> {
        match text {
            None => Ok(IndexUnit::Byte),
            Some(text) if is(text, "BYTE") => Ok(IndexUnit::Byte),
            Some(text) if is(text, "BIT") => Ok(IndexUnit::Bit),
            Some(_) => Err(error::SYNTAX.into()),
        }
    }

    /// The bits from `start` to `end`, both of which may count from the end of a string of `len` bytes.
    fn bits(self, start: i64, end: i64, len: usize) -> Option<RangeInclusive<u64>> {
        let (bits_each, total) = match self {
            IndexUnit::Byte => (8, len as i64),
            IndexUnit::Bit => (1, len as i64 * 8),
        };
        let from_end = |index: i64| if index < 0 { index.saturating_add(total).max(0) } else { index };
        let (start, end) = (from_end(start), from_end(end).min(total - 1));
        (start <= end).then(|| start as u64 * bits_each..=end as u64 * bits_each + bits_each - 1)
    }
}

/// BITCOUNT key [start end [BYTE | BIT]].
pub(crate) fn bitcount(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let key = unit.first_key(arguments, 1);
    let Some(text) = string(unit.store, &key, unit.now_ms)? else {
        unit.reply.integer(0);
        return DONE;
    };
    let range = match arguments.len() {
        2 => IndexUnit::Byte.bits(0, -1, text.len()),
        4 | 5 => {
            let (start, end) = (integer(argument(arguments, 2))?, integer(argument(arguments, 3))?);
            if start < 0 && end < 0 && start > end {
                None
            } else {
                IndexUnit::parse(arguments.get(4))?.bits(start, end, text.len())
            }
        }
        _ => return Err(error::SYNTAX.into()),
    };
    unit.reply.integer(range.map_or(0, |range| count(text, range)) as i64);
    DONE
}

/// BITPOS key bit [start [end [BYTE | BIT]]].
pub(crate) fn bitpos(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let wanted = match integer(argument(arguments, 2))? {
        0 => false,
        1 => true,
        _ => return Err(error::BIT_ARGUMENT.into()),
    };
    let key = unit.first_key(arguments, 1);
    let Some(text) = string(unit.store, &key, unit.now_ms)? else {
        unit.reply.integer(if wanted { -1 } else { 0 });
        return DONE;
    };
    if arguments.len() > 6 {
        return Err(error::SYNTAX.into());
    }
    let start = arguments.get(3).map(integer).transpose()?.unwrap_or(0);
    let index_unit = IndexUnit::parse(arguments.get(5))?;
    let end = arguments.get(4).map(integer).transpose()?;
    let found = match index_unit.bits(start, end.unwrap_or(-1), text.len()) {
        None => None,
        // Without an end the string goes on with zeros for ever.
        Some(range) if !wanted && end.is_none() => {
            let behind = range.end() + 1;
            Some(position(text, wanted, range).unwrap_or(behind))
        }
        Some(range) => position(text, wanted, range),
    };
    unit.reply.integer(found.map_or(-1, |offset| offset as i64));
    DONE
}
