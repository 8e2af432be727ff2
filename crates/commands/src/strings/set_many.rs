//! Writing several strings at once: MSET, MSETNX, MSETEX.

use base::Text;
use types::Expiry;
use wire::{Arguments, ErrorReply, error};

use super::conditional::Condition;
use super::lifetime::Lifetime;
use super::set::kept_if_present;
use crate::ahead::{KeysAhead, Use};
use crate::arguments::at_least;
use crate::failure::{DONE, Executed, Failure};
use crate::unit::{Unit, argument};

const NUMKEYS: ErrorReply = ErrorReply::new("ERR", "invalid numkeys value");
const PAIRS: ErrorReply = ErrorReply::new("ERR", "wrong number of key-value pairs");

/// MSET key value [key value …].
pub(crate) fn mset(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    if arguments.len().is_multiple_of(2) {
        return Err(Failure::Arity("mset"));
    }
    put_all(arguments, 1, arguments.len() / 2, Expiry::Clear, unit)?;
    unit.reply.ok();
    DONE
}

/// MSETNX key value [key value …]: all, or none if one of them exists.
pub(crate) fn msetnx(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    if arguments.len().is_multiple_of(2) {
        return Err(Failure::Arity("msetnx"));
    }
    put_if(arguments, 1, arguments.len() / 2, (Condition::Absent, Expiry::Clear), unit)
}

/// MSETEX numkeys key value [key value …] [NX | XX] [EX s | PX ms | EXAT s | PXAT ms | KEEPTTL].
pub(crate) fn msetex(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let count = at_least(argument(arguments, 1), 1, NUMKEYS)?;
    let count = usize::try_from(count).ok().filter(|count| i32::try_from(*count).is_ok()).ok_or(NUMKEYS)?;
    let mut index = 2 + 2 * count;
    if index > arguments.len() {
        return Err(PAIRS.into());
    }
    let (mut condition, mut lifetime) = (Condition::None, Lifetime::default());
    while index < arguments.len() {
        let taken = lifetime.take_option(arguments, &mut index)? || condition.take_existence(arguments, &mut index)?;
        if !taken {
            return Err(error::SYNTAX.into());
        }
    }
    let expiry = lifetime.expiry(unit.now_ms, "msetex")?;
    put_if(arguments, 2, count, (condition, expiry), unit)
}

/// Write `count` pairs from `first` on if every key fulfils the condition; reply 1 or 0.
fn put_if(
    arguments: Arguments<'_>,
    first: usize,
    count: usize,
    (condition, expiry): (Condition<'_>, Expiry),
    unit: &mut Unit<'_>,
) -> Executed {
    let now_ms = unit.now_ms;
    let mut keys = KeysAhead::every(arguments, (first, 2), count, Use::Write);
    let mut all_hold = true;
    while let Some((_, key)) = keys.next(unit).filter(|_| all_hold) {
        let present = unit.store.read(&key, now_ms).map(|_| Text::default());
        all_hold = condition.holds(present);
    }
    if all_hold {
        put_all(arguments, first, count, expiry, unit)?;
    }
    unit.reply.integer(i64::from(all_hold));
    DONE
}

fn put_all(
    arguments: Arguments<'_>,
    first: usize,
    count: usize,
    expiry: Expiry,
    unit: &mut Unit<'_>,
) -> Result<(), Failure> {
    let mut keys = KeysAhead::every(arguments, (first, 2), count, Use::Write);
    while let Some((index, key)) = keys.next(unit) {
        let expiry = kept_if_present(expiry, &key, unit);
        let put = unit.put_argument(arguments, index + 1, expiry);
        unit.store.apply(&key, &put)?;
    }
    Ok(())
}
