//! Zerohop's own: ZH.GET, ZH.MGET and ZH.WAIT.

use base::Version;
use wire::{Arguments, ErrorReply, error};

use crate::ahead::{KeysAhead, Use};
use crate::arguments::{at_least, is, timeout_milliseconds};
use crate::failure::{DONE, Executed, Failure};
use crate::strings::get::text_or_null;
use crate::unit::{Block, Outcome, Reason, Refused, Unit, argument};
use crate::values::string;

const NOT_A_VERSION: ErrorReply = ErrorReply::new("ERR", "version is not an integer or out of range");

/// ZH.GET key: the string and the version of its last write.
pub(crate) fn zh_get(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let key = unit.first_key(arguments, 1);
    let version = unit.store.version(&key, unit.now_ms);
    match string(unit.store, &key, unit.now_ms)? {
        Some(value) => {
            unit.reply.array(2);
            unit.reply.text(value);
            unit.reply.integer(version.0 as i64);
        }
        None => unit.reply.null_array(),
    }
    DONE
}

/// ZH.MGET key [key …]: what MGET says of each, or the error where another instance of the cluster has to be asked.
pub(crate) fn zh_mget(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    unit.reply.array(arguments.len() - 1);
    let mut refused = unit.refused.iter().peekable();
    let mut keys = KeysAhead::all(arguments, Use::Read);
    while let Some((index, key)) = keys.next(unit) {
        match refused.next_if(|refused| refused.argument == index) {
            Some(Refused { error, .. }) => unit.reply.raw(error),
            None => text_or_null(&key, unit),
        }
    }
    DONE
}

/// What ZH.WAIT waits for.
#[derive(Clone, Copy, Debug)]
enum Wanted<'a> {
    Equal(&'a [u8]),
    NotEqual(&'a [u8]),
    Exists,
    Absent,
    Version(Version),
}

impl<'a> Wanted<'a> {
    /// The condition from argument 2 on, and the index behind it.
    fn parse(arguments: Arguments<'a>) -> Result<(Wanted<'a>, usize), Failure> {
        let (word, operand) = (argument(arguments, 2), arguments.get(3).ok_or(error::SYNTAX));
        Ok(match () {
            () if is(word, "EQ") => (Wanted::Equal(operand?), 4),
            () if is(word, "NE") => (Wanted::NotEqual(operand?), 4),
            () if is(word, "EXISTS") => (Wanted::Exists, 3),
            () if is(word, "ABSENT") => (Wanted::Absent, 3),
            () if is(word, "VERSION") => (Wanted::Version(Version(at_least(operand?, 0, NOT_A_VERSION)?)), 4),
            () => return Err(error::SYNTAX.into()),
        })
    }

    fn holds(self, arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Result<bool, Failure> {
        let (key, now_ms) = (unit.first_key(arguments, 1), unit.now_ms);
        Ok(match self {
            Wanted::Equal(value) => string(unit.store, &key, now_ms)?.is_some_and(|text| text == *value),
            Wanted::NotEqual(value) => string(unit.store, &key, now_ms)?.is_none_or(|text| text != *value),
            Wanted::Exists => unit.store.read(&key, now_ms).is_some(),
            Wanted::Absent => unit.store.read(&key, now_ms).is_none(),
            Wanted::Version(version) => unit.store.version(&key, now_ms) >= version,
        })
    }
}

/// ZH.WAIT key EQ value | NE value | EXISTS | ABSENT | VERSION version timeout-ms: 1 and the key's version as soon as
/// the condition holds, 0 and its version when the time is over first.
pub(crate) fn zh_wait(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let (wanted, index) = Wanted::parse(arguments)?;
    if arguments.len() != index + 1 {
        return Err(error::SYNTAX.into());
    }
    let deadline_ms = timeout_milliseconds(argument(arguments, index), unit.now_ms)?;
    if wanted.holds(arguments, unit)? {
        reply_version(true, arguments, unit);
        return DONE;
    }
    if !unit.may.block {
        reply_version(false, arguments, unit);
        return DONE;
    }
    let keys = vec![argument(arguments, 1).to_vec()];
    Ok(Outcome::Block(Block { keys, deadline_ms, reason: Reason::Condition }))
}

/// The end of a ZH.WAIT: whether the condition holds, and the key's version.
pub(crate) fn reply_version(holds: bool, arguments: Arguments<'_>, unit: &mut Unit<'_>) {
    let key = unit.first_key(arguments, 1);
    let version = unit.store.version(&key, unit.now_ms);
    unit.reply.array(2);
    unit.reply.integer(i64::from(holds));
    unit.reply.integer(version.0 as i64);
}
