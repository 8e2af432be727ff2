//! Expiry: EXPIRE, PEXPIRE, EXPIREAT, PEXPIREAT, TTL, PTTL, EXPIRETIME, PEXPIRETIME, PERSIST.

use types::Change;
use wire::{Arguments, ErrorReply};

use crate::arguments::{integer, is};
use crate::failure::{DONE, Executed, Failure};
use crate::strings::lifetime::TimeUnit;
use crate::unit::{Unit, argument};

const NX_WITH_OTHERS: ErrorReply =
    ErrorReply::new("ERR", "NX and XX, GT or LT options at the same time are not compatible");
const GT_WITH_LT: ErrorReply = ErrorReply::new("ERR", "GT and LT options at the same time are not compatible");

/// EXPIRE key seconds [NX | XX | GT | LT].
pub(crate) fn expire(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    set_expiry(arguments, unit, TimeUnit::Seconds, "expire")
}

/// PEXPIRE key milliseconds [NX | XX | GT | LT].
pub(crate) fn pexpire(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    set_expiry(arguments, unit, TimeUnit::Milliseconds, "pexpire")
}

/// EXPIREAT key unix-seconds [NX | XX | GT | LT].
pub(crate) fn expireat(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    set_expiry(arguments, unit, TimeUnit::UnixSeconds, "expireat")
}

/// PEXPIREAT key unix-milliseconds [NX | XX | GT | LT].
pub(crate) fn pexpireat(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    set_expiry(arguments, unit, TimeUnit::UnixMilliseconds, "pexpireat")
}

/// On which present expiry a new one is set.
#[derive(Clone, Copy, Debug, Default)]
struct When {
    nx: bool,
    xx: bool,
    gt: bool,
    lt: bool,
}

impl When {
    fn parse(arguments: Arguments<'_>) -> Result<Result<When, Vec<u8>>, Failure> {
        let mut when = When::default();
        for option in arguments.from(3) {
            match () {
                () if is(option, "NX") => when.nx = true,
                () if is(option, "XX") => when.xx = true,
                () if is(option, "GT") => when.gt = true,
                () if is(option, "LT") => when.lt = true,
                () => return Ok(Err([b"Unsupported option ", wire::error::c_string(option, option.len())].concat())),
            }
        }
        if when.nx && (when.xx || when.gt || when.lt) {
            return Err(NX_WITH_OTHERS.into());
        }
        if when.gt && when.lt {
            return Err(GT_WITH_LT.into());
        }
        Ok(Ok(when))
    }

    /// No expiry counts as one in the infinite future.
    fn allows(self, present_ms: Option<u64>, at_ms: i64) -> bool {
        let later = present_ms.is_some_and(|present_ms| i128::from(at_ms) > i128::from(present_ms));
        let earlier = present_ms.is_none_or(|present_ms| i128::from(at_ms) < i128::from(present_ms));
        !(self.nx && present_ms.is_some()
            || self.xx && present_ms.is_none()
            || self.gt && !later
            || self.lt && !earlier)
    }
}

fn set_expiry(arguments: Arguments<'_>, unit: &mut Unit<'_>, time: TimeUnit, command: &'static str) -> Executed {
    let when = match When::parse(arguments)? {
        Ok(when) => when,
        Err(text) => {
            unit.reply.error_bytes("ERR", &text);
            return DONE;
        }
    };
    let failure = Failure::ExpireTime(command);
    let value = integer(argument(arguments, 2))?;
    let at_ms = value.checked_mul(time.scale_ms()).ok_or(failure)?;
    let at_ms = at_ms.checked_add(time.base_ms(unit.now_ms)).ok_or(failure)?;
    let key = unit.first_key(arguments, 1);
    let allowed = unit.store.read(&key, unit.now_ms).is_some_and(|record| when.allows(record.expire_at_ms, at_ms));
    if allowed {
        let future = u64::try_from(at_ms).ok().filter(|at_ms| *at_ms > unit.now_ms);
        unit.store.apply(&key, &future.map_or(Change::Remove, |at_ms| Change::Expire { at_ms }))?;
    }
    unit.reply.integer(i64::from(allowed));
    DONE
}

/// TTL key: seconds left, rounded.
pub(crate) fn ttl(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    read_expiry(arguments, unit, |at_ms, now_ms| (at_ms.saturating_sub(now_ms).saturating_add(500)) / 1000)
}

/// PTTL key: milliseconds left.
pub(crate) fn pttl(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    read_expiry(arguments, unit, |at_ms, now_ms| at_ms.saturating_sub(now_ms))
}

/// EXPIRETIME key: Unix seconds, rounded.
pub(crate) fn expiretime(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    read_expiry(arguments, unit, |at_ms, _| at_ms.saturating_add(500) / 1000)
}

/// PEXPIRETIME key: Unix milliseconds.
pub(crate) fn pexpiretime(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    read_expiry(arguments, unit, |at_ms, _| at_ms)
}

/// Reply -2 without the key, -1 without an expiry, or what `show` makes of it.
fn read_expiry(arguments: Arguments<'_>, unit: &mut Unit<'_>, show: fn(u64, u64) -> u64) -> Executed {
    let key = unit.first_key(arguments, 1);
    let answer = match unit.store.read(&key, unit.now_ms).map(|record| record.expire_at_ms) {
        None => -2,
        Some(None) => -1,
        Some(Some(at_ms)) => show(at_ms, unit.now_ms) as i64,
    };
    unit.reply.integer(answer);
    DONE
}

/// PERSIST key.
pub(crate) fn persist(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let key = unit.first_key(arguments, 1);
    let expires = unit.store.read(&key, unit.now_ms).is_some_and(|record| record.expire_at_ms.is_some());
    if expires {
        unit.store.apply(&key, &Change::Persist)?;
    }
    unit.reply.integer(i64::from(expires));
    DONE
}
