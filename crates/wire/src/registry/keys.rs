//! Where a command's keys are, in the form of Redis 7's key specifications, and the one function that follows them.

use super::flags::KeyFlags;
use super::id::CommandId;
use super::spec::CommandSpec;
use crate::request::Arguments;

/// Where a specification begins to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// At this argument.
    Index(i16),
}

impl Begin {
    /// The argument's index.
    pub const fn index(self) -> i16 {
        let Begin::Index(index) = self;
        index
    }
}

/// Which arguments from there on are keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Find {
    /// Every `step`-th one up to `last`, which counts from the beginning, or when negative from the end of all.
    Range {
        /// See above; 0 is just the one.
        last: i16,
        /// Distance between keys.
        step: i16,
        /// Divides what remains when `last` is -1; unused so far.
        limit: i16,
    },
    /// An argument says how many.
    Number {
        /// Where the number is, counted from the beginning.
        number: i16,
        /// Where the first key is, counted from the beginning.
        first: i16,
        /// Distance between keys.
        step: i16,
    },
}

/// One group of keys of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeySpec {
    /// Where to begin.
    pub begin: Begin,
    /// How to go on.
    pub find: Find,
    /// What is done with them.
    pub flags: KeyFlags,
}

impl KeySpec {
    /// The one key at `index`.
    pub(super) const fn one(index: i16, flags: KeyFlags) -> KeySpec {
        KeySpec::range(index, 0, 1, flags)
    }

    /// From `index` to `last`.
    pub(super) const fn range(index: i16, last: i16, step: i16, flags: KeyFlags) -> KeySpec {
        KeySpec { begin: Begin::Index(index), find: Find::Range { last, step, limit: 0 }, flags }
    }

    /// `numkeys` at `index`, the keys behind it.
    pub(super) const fn counted(index: i16, step: i16, flags: KeyFlags) -> KeySpec {
        KeySpec { begin: Begin::Index(index), find: Find::Number { number: 0, first: 1, step }, flags }
    }
}

/// A key of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyPosition {
    /// Index of the argument.
    pub index: usize,
    /// What is done with it.
    pub flags: KeyFlags,
}

/// The number of keys is no number, not positive, or more than there are arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyPositionsError;

/// Appends the positions of all keys of a request, in the order of the specifications. The number of arguments must
/// fit the command's arity.
///
/// # Errors
/// [`KeyPositionsError`] when the request contradicts itself; executing it gives the command's own error.
pub fn key_positions(
    spec: &CommandSpec,
    arguments: Arguments<'_>,
    positions: &mut Vec<KeyPosition>,
) -> Result<(), KeyPositionsError> {
    let count = arguments.len();
    for keys in spec.keys {
        let begin = keys.begin.index() as usize;
        let (first, last, step) = match keys.find {
            Find::Range { last, step, .. } if last >= 0 => (begin, begin + last as usize, step as usize),
            Find::Range { last, step, .. } => {
                let from_end = usize::from(last.unsigned_abs());
                (begin, count.checked_sub(from_end).ok_or(KeyPositionsError)?, step as usize)
            }
            Find::Number { number, first, step } => {
                let text = arguments.get(begin + number as usize).ok_or(KeyPositionsError)?;
                // Redis finds the keys of "007", too, and one of 4294967297, and then refuses the number when the command runs.
                let keys = crate::number::leading_integer(text).ok_or(KeyPositionsError)?;
                let keys = usize::try_from(keys).ok().filter(|&keys| keys > 0).ok_or(KeyPositionsError)?;
                let (first, step) = (begin + first as usize, step as usize);
                if keys > count {
                    return Err(KeyPositionsError);
                }
                (first, first + (keys - 1) * step, step)
            }
        };
        if last >= count {
            return Err(KeyPositionsError);
        }
        positions.extend((first..=last).step_by(step).map(|index| KeyPosition { index, flags: keys.flags }));
    }
    Ok(())
}

/// What a request does with a key for which its specification gives `flags`: of SET and BITFIELD other arguments change
/// that. The number of arguments fits the command's arity.
pub fn real_flags(spec: &CommandSpec, arguments: Arguments<'_>, flags: KeyFlags) -> KeyFlags {
    if !flags.contains(KeyFlags::VARIABLE_FLAGS) {
        return flags;
    }
    let changes = KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE);
    match spec.id {
        CommandId::Set if !arguments.from(3).iter().any(|option| option.eq_ignore_ascii_case(b"get")) => {
            KeyFlags::OW.union(KeyFlags::UPDATE)
        }
        CommandId::Bitfield if only_gets(arguments.from(2)) => KeyFlags::RO.union(KeyFlags::ACCESS),
        _ => changes,
    }
}

/// Whether BITFIELD's operations only read.
fn only_gets(mut operations: Arguments<'_>) -> bool {
    while let Some(word) = operations.get(0) {
        let taken = match word.to_ascii_lowercase().as_slice() {
            b"get" if operations.len() > 2 => 3,
            b"overflow" if operations.len() > 1 => 2,
            _ => return false,
        };
        operations = operations.from(taken);
    }
    true
}
