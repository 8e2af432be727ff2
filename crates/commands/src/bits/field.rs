//! Numbers of any width inside strings: BITFIELD, BITFIELD_RO.

use base::Text;
use base::limits::VALUE_BYTES_MAX;
use storage::{Form, Key};
use types::Change;
use types::bits::{WINDOW_BYTES, get_field, with_field};
use wire::{Arguments, ErrorReply, error, number};

use super::single::{checked_offset, overwrite};
use crate::arguments::{integer, is};
use crate::failure::{DONE, Executed, Failure};
use crate::unit::{Unit, argument};
use crate::values::string;

const ONLY_GET: ErrorReply = ErrorReply::new("ERR", "BITFIELD_RO only supports the GET subcommand");

/// What happens to a number that its field cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Overflow {
    Wrap,
    Saturate,
    Fail,
}

/// What is done to a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Get,
    Set(i64),
    Add(i64),
}

/// Where a number is and what its bits mean.
#[derive(Clone, Copy, Debug)]
struct Field {
    signed: bool,
    width: u32,
    offset: u64,
}

#[derive(Clone, Copy, Debug)]
struct Operation {
    field: Field,
    action: Action,
    overflow: Overflow,
}

impl Field {
    /// `i1`…`i64` or `u1`…`u63`, and an offset in bits, or in fields after `#`.
    fn parse(kind: &[u8], place: &[u8]) -> Result<Field, Failure> {
        let (signed, most) = match kind.first() {
            Some(b'i') => (true, 64),
            Some(b'u') => (false, 63),
            _ => return Err(error::BITFIELD_TYPE.into()),
        };
        let width = number::parse_integer(&kind[1..]).filter(|width| (1..=most).contains(width));
        let width = width.ok_or(error::BITFIELD_TYPE)?;
        let offset = match place.strip_prefix(b"#") {
            Some(fields) => number::parse_integer(fields).and_then(|fields| fields.checked_mul(width)),
            None => number::parse_integer(place),
        };
        Ok(Field { signed, width: width as u32, offset: checked_offset(offset)? })
    }

    fn last_bit(self) -> u64 {
        self.offset + u64::from(self.width) - 1
    }

    /// The smallest and the largest number it holds.
    fn bounds(self) -> (i128, i128) {
        match self.signed {
            true => (-(1 << (self.width - 1)), (1 << (self.width - 1)) - 1),
            false => (0, (1 << self.width) - 1),
        }
    }

    /// The number that these bits, of any width, are.
    fn number(self, bits: u64) -> i128 {
        let unsigned = i128::from(bits & u64::MAX >> (64 - self.width));
        let (least, most) = self.bounds();
        if unsigned > most { unsigned + 2 * least } else { unsigned }
    }

    /// A number as SET takes it: without a sign, a negative one is a very large one. With a sign, Redis's own check
    /// overflows near the smallest integer and takes the number for a very large one as well.
    fn operand(self, value: i64) -> i128 {
        let (_, most) = self.bounds();
        let check_overflows = self.width < 64 && most - i128::from(value) > i128::from(i64::MAX);
        if self.signed && !check_overflows { i128::from(value) } else { i128::from(value as u64) }
    }

    /// What of `wanted` fits; `None` when it is to fail.
    fn fit(self, wanted: i128, overflow: Overflow) -> Option<i128> {
        let (least, most) = self.bounds();
        match overflow {
            _ if (least..=most).contains(&wanted) => Some(wanted),
            Overflow::Wrap => Some(self.number(wanted as u64)),
            Overflow::Saturate => Some(wanted.clamp(least, most)),
            Overflow::Fail => None,
        }
    }
}

/// The operations from argument 2 on.
fn parse(arguments: Arguments<'_>) -> Result<Vec<Operation>, Failure> {
    let (mut operations, mut overflow, mut index) = (Vec::new(), Overflow::Wrap, 2);
    while let Some(word) = arguments.get(index) {
        let following = arguments.len() - index - 1;
        if is(word, "OVERFLOW") && following >= 1 {
            overflow = parse_overflow(argument(arguments, index + 1))?;
            index += 2;
            continue;
        }
        let (needed, action): (usize, fn(i64) -> Action) = match () {
            () if is(word, "GET") => (2, |_| Action::Get),
            () if is(word, "SET") => (3, Action::Set),
            () if is(word, "INCRBY") => (3, Action::Add),
            () => return Err(error::SYNTAX.into()),
        };
        if following < needed {
            return Err(error::SYNTAX.into());
        }
        let field = Field::parse(argument(arguments, index + 1), argument(arguments, index + 2))?;
        let operand = if needed == 3 { integer(argument(arguments, index + 3))? } else { 0 };
        operations.push(Operation { field, action: action(operand), overflow });
        index += 1 + needed;
    }
    Ok(operations)
}

fn parse_overflow(text: &[u8]) -> Result<Overflow, Failure> {
    match () {
        () if is(text, "WRAP") => Ok(Overflow::Wrap),
        () if is(text, "SAT") => Ok(Overflow::Saturate),
        () if is(text, "FAIL") => Ok(Overflow::Fail),
        () => Err(error::BITFIELD_OVERFLOW.into()),
    }
}

/// BITFIELD key [GET type offset | [OVERFLOW WRAP | SAT | FAIL] SET type offset value | INCRBY type offset n] …
pub(crate) fn bitfield(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    run(arguments, unit, parse(arguments)?)
}

/// BITFIELD_RO key [GET type offset] …
pub(crate) fn bitfield_ro(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let operations = parse(arguments)?;
    if operations.iter().any(|operation| operation.action != Action::Get) {
        return Err(ONLY_GET.into());
    }
    run(arguments, unit, operations)
}

fn run(arguments: Arguments<'_>, unit: &mut Unit<'_>, operations: Vec<Operation>) -> Executed {
    let key = unit.first_key(arguments, 1);
    let writes = operations.iter().filter(|operation| operation.action != Action::Get);
    let last_written = writes.map(|operation| operation.field.last_bit() / 8).max();
    let present_len = string(unit.store, &key, unit.now_ms)?.map(Text::len);
    if let Some(last_byte) = last_written {
        if last_byte >= VALUE_BYTES_MAX as u64 {
            return Err(error::BIT_OFFSET.into());
        }
        // Room for every write first: the only thing that can be refused.
        if present_len.is_none_or(|len| len as u64 <= last_byte) {
            overwrite(unit, &key, present_len.is_some(), last_byte, &[0])?;
        } else {
            unit.store.set_form(&key, Form::Raw);
        }
    }
    unit.reply.array(operations.len());
    for operation in operations {
        match perform(unit, &key, operation)? {
            Some(number) => unit.reply.integer(number as i64),
            None => unit.reply.null(),
        }
    }
    DONE
}

/// What one operation answers; `None` when it failed by overflow.
fn perform(unit: &mut Unit<'_>, key: &Key<'_>, operation: Operation) -> Result<Option<i128>, Failure> {
    let Operation { field, action, overflow } = operation;
    let text = string(unit.store, key, unit.now_ms)?.unwrap_or_default();
    // The field's bytes and no others; the offset counts within them.
    let first = (field.offset / 8) as usize;
    let (bytes, offset) = (text.part(first..first + WINDOW_BYTES), field.offset % 8);
    let present = field.number(get_field(&bytes, offset, field.width));
    let wanted = match action {
        Action::Get => return Ok(Some(present)),
        Action::Set(value) => field.operand(value),
        Action::Add(increment) => present + i128::from(increment),
    };
    let Some(number) = field.fit(wanted, overflow) else { return Ok(None) };
    // A number that is as it should be is no write: watchers do not see it.
    if number != present {
        let (window, touched) = with_field(&bytes, offset, field.width, number as u64);
        unit.store.apply(key, &Change::Overwrite { offset: field.offset / 8, bytes: &window[..touched] })?;
    }
    Ok(Some(if matches!(action, Action::Set(_)) { present } else { number }))
}
