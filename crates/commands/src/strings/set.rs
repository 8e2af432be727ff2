//! Writing one string: SET, SETNX, SETEX, PSETEX.

use base::Text;
use storage::{Key, Value};
use types::Expiry;
use wire::{Arguments, error};

use super::conditional::Condition;
use super::lifetime::{Lifetime, TimeUnit};
use crate::arguments::{integer, is};
use crate::failure::{DONE, Executed, Failure};
use crate::unit::{Unit, argument};
use crate::values::COLD;

/// The options of SET.
#[derive(Clone, Copy, Debug, Default)]
struct Options<'a> {
    condition: Condition<'a>,
    lifetime: Lifetime<'a>,
    gets: bool,
}

impl<'a> Options<'a> {
    fn parse(arguments: Arguments<'a>) -> Result<Options<'a>, Failure> {
        let (mut options, mut index) = (Options::default(), 3);
        while index < arguments.len() {
            let taken = options.lifetime.take_option(arguments, &mut index)?
                || options.condition.take_existence(arguments, &mut index)?
                || options.condition.take_comparison(arguments, &mut index)?;
            if taken {
                continue;
            }
            if !is(argument(arguments, index), "GET") {
                return Err(error::SYNTAX.into());
            }
            options.gets = true;
            index += 1;
        }
        Ok(options)
    }
}

/// SET key value [NX | XX | IFEQ v | IFNE v | IFDEQ digest | IFDNE digest] [GET] [EX s | PX ms | EXAT s | PXAT ms |
/// KEEPTTL].
#[inline]
pub(crate) fn set(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    if arguments.len() > 3 {
        return set_with_options(arguments, unit);
    }
    let key = unit.first_key(arguments, 1);
    let put = unit.put_argument(arguments, 2, Expiry::Clear);
    unit.store.apply(&key, &put)?;
    unit.reply.ok();
    DONE
}

fn set_with_options(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let options = Options::parse(arguments)?;
    let expiry = options.lifetime.expiry(unit.now_ms, "set")?;
    let key = unit.first_key(arguments, 1);
    if (options.gets || !matches!(options.condition, Condition::None)) && !judge(options, arguments, unit)? {
        return DONE;
    }
    let expiry = kept_if_present(expiry, &key, unit);
    let put = unit.put_argument(arguments, 2, expiry);
    unit.store.apply(&key, &put)?;
    if !options.gets {
        unit.reply.ok();
    }
    DONE
}

/// KEEPTTL of an expired value keeps nothing: its expiry must not come back with the new value.
#[inline]
pub(super) fn kept_if_present(expiry: Expiry, key: &Key<'_>, unit: &mut Unit<'_>) -> Expiry {
    match expiry {
        Expiry::Keep if unit.store.read(key, unit.now_ms).is_none() => Expiry::Clear,
        other => other,
    }
}

/// Whether the condition holds. Writes the old value if it is asked for, and the refusal.
fn judge(options: Options<'_>, arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Result<bool, Failure> {
    let key = unit.first_key(arguments, 1);
    let value = match unit.store.read(&key, unit.now_ms).map(|record| record.value) {
        Some(Value::String { text, .. }) => Some(text),
        Some(Value::Cold) if options.gets || options.condition.compares() => unreachable!("{COLD}"),
        Some(Value::List(_)) if options.gets || options.condition.compares() => {
            return Err(error::WRONG_TYPE.into());
        }
        // Only that there is something matters.
        Some(Value::List(_) | Value::Cold) => Some(Text::default()),
        None => None,
    };
    let holds = options.condition.holds(value);
    match value {
        Some(value) if options.gets => unit.reply.text(value),
        _ if options.gets || !holds => unit.reply.null(),
        _ => {}
    }
    Ok(holds)
}

/// SETNX key value.
pub(crate) fn setnx(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let key = unit.first_key(arguments, 1);
    let absent = unit.store.read(&key, unit.now_ms).is_none();
    if absent {
        let put = unit.put_argument(arguments, 2, Expiry::Clear);
        unit.store.apply(&key, &put)?;
    }
    unit.reply.integer(i64::from(absent));
    DONE
}

/// SETEX key seconds value.
pub(crate) fn setex(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    set_for(arguments, unit, TimeUnit::Seconds, "setex")
}

/// PSETEX key milliseconds value.
pub(crate) fn psetex(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    set_for(arguments, unit, TimeUnit::Milliseconds, "psetex")
}

fn set_for(arguments: Arguments<'_>, unit: &mut Unit<'_>, time: TimeUnit, command: &'static str) -> Executed {
    let at_ms = time.deadline_ms(integer(argument(arguments, 2))?, unit.now_ms, command)?;
    let key = unit.first_key(arguments, 1);
    let put = unit.put_argument(arguments, 3, Expiry::At(at_ms));
    unit.store.apply(&key, &put)?;
    unit.reply.ok();
    DONE
}
