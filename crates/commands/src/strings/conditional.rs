//! Compare-and-swap: the conditions of SET and DELEX, and the commands made of them.

use base::Text;
use base::planted::{Bug, is_planted};
use types::Change;
use types::string::{digest, digest_text};
use wire::{Arguments, ErrorReply, error};

use crate::arguments::is;
use crate::failure::{DONE, Executed, Failure};
use crate::unit::{Unit, argument};
use crate::values::string;

const NOT_A_DIGEST: ErrorReply = ErrorReply::new("ERR", "must be exactly 16 hexadecimal characters");

/// What a key must be for a write to happen.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Condition<'a> {
    /// Anything.
    #[default]
    None,
    /// NX: absent.
    Absent,
    /// XX: there.
    Present,
    /// IFEQ: there, and equal to this.
    Equal(&'a [u8]),
    /// IFNE: absent, or different from this.
    NotEqual(&'a [u8]),
    /// IFDEQ: there, with this digest.
    DigestEqual(u64),
    /// IFDNE: absent, or with another digest.
    DigestNotEqual(u64),
}

impl<'a> Condition<'a> {
    /// Take NX or XX at `*index` and move past it. The same one may be given again.
    pub(crate) fn take_existence(&mut self, arguments: Arguments<'a>, index: &mut usize) -> Result<bool, Failure> {
        let Some(option) = arguments.get(*index) else { return Ok(false) };
        match self {
            Condition::None | Condition::Absent if is(option, "NX") => *self = Condition::Absent,
            Condition::None | Condition::Present if is(option, "XX") => *self = Condition::Present,
            _ if is(option, "NX") || is(option, "XX") => return Err(error::SYNTAX.into()),
            _ => return Ok(false),
        }
        *index += 1;
        Ok(true)
    }

    /// Take IFEQ, IFNE, IFDEQ or IFDNE with its operand at `*index` and move past them. Only one condition is allowed.
    pub(crate) fn take_comparison(&mut self, arguments: Arguments<'a>, index: &mut usize) -> Result<bool, Failure> {
        let (option, operand) = (arguments.get(*index).unwrap_or_default(), arguments.get(*index + 1));
        let condition = if is(option, "IFEQ") {
            operand.map(Condition::Equal)
        } else if is(option, "IFNE") {
            operand.map(Condition::NotEqual)
        } else if is(option, "IFDEQ") {
            operand.map(parse_digest).transpose()?.map(Condition::DigestEqual)
        } else if is(option, "IFDNE") {
            operand.map(parse_digest).transpose()?.map(Condition::DigestNotEqual)
        } else {
            return Ok(false);
        };
        match (&self, condition) {
            (Condition::None, Some(condition)) => *self = condition,
            _ => return Err(error::SYNTAX.into()),
        }
        *index += 2;
        Ok(true)
    }

    /// Whether the value matters, and so its type.
    pub(crate) fn compares(&self) -> bool {
        !matches!(self, Condition::None | Condition::Absent | Condition::Present)
    }

    /// Whether a key that holds this string, or is absent, fulfils the condition.
    pub(crate) fn holds(&self, present: Option<Text<'_>>) -> bool {
        match (*self, present) {
            (Condition::None, _) => true,
            (Condition::Absent, present) => present.is_none(),
            (Condition::Present, present) => present.is_some(),
            (Condition::Equal(expected), Some(value)) => equal(expected, value),
            (Condition::DigestEqual(expected), Some(value)) => digest(value) == expected,
            (Condition::NotEqual(expected), Some(value)) => value != *expected,
            (Condition::DigestNotEqual(expected), Some(value)) => digest(value) != expected,
            (Condition::Equal(_) | Condition::DigestEqual(_), None) => false,
            (Condition::NotEqual(_) | Condition::DigestNotEqual(_), None) => true,
        }
    }
}

/// The comparison of a compare-and-swap. The planted bug takes any value of the same length for the remembered one.
fn equal(expected: &[u8], value: Text<'_>) -> bool {
    if is_planted(Bug::M18StaleCompare) {
        return expected.len() == value.len();
    }
    value == *expected
}

fn parse_digest(text: &[u8]) -> Result<u64, Failure> {
    let digits = std::str::from_utf8(text).ok().filter(|text| text.len() == 16 && !text.starts_with('+'));
    digits.and_then(|digits| u64::from_str_radix(digits, 16).ok()).ok_or(NOT_A_DIGEST.into())
}

/// DIGEST key.
pub(crate) fn digest_command(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let key = unit.first_key(arguments, 1);
    match string(unit.store, &key, unit.now_ms)? {
        Some(value) => unit.reply.bulk(&digest_text(digest(value))),
        None => unit.reply.null(),
    }
    DONE
}

/// DELIFEQ key value.
pub(crate) fn delifeq(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    delete_if(arguments, unit, Condition::Equal(argument(arguments, 2)))
}

/// DELEX key [IFEQ v | IFNE v | IFDEQ digest | IFDNE digest].
pub(crate) fn delex(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let mut condition = Condition::None;
    let mut index = 2;
    if arguments.len() != 2 && arguments.len() != 4 {
        return Err(Failure::Arity("delex"));
    }
    if arguments.len() == 4 && !condition.take_comparison(arguments, &mut index)? {
        return Err(error::SYNTAX.into());
    }
    delete_if(arguments, unit, condition)
}

fn delete_if(arguments: Arguments<'_>, unit: &mut Unit<'_>, condition: Condition<'_>) -> Executed {
    let key = unit.first_key(arguments, 1);
    let goes = if condition.compares() {
        string(unit.store, &key, unit.now_ms)?.is_some_and(|value| condition.holds(Some(value)))
    } else {
        unit.store.read(&key, unit.now_ms).is_some()
    };
    if goes {
        unit.store.apply(&key, &Change::Remove)?;
    }
    unit.reply.integer(i64::from(goes));
    DONE
}
