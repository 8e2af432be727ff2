//! Reading strings: GET, GETSET, GETDEL, GETEX, MGET, STRLEN.

use base::Text;
use storage::{Key, Value};
use types::{Change, Expiry};
use wire::{Arguments, error};

use super::lifetime::Lifetime;
use crate::ahead::{KeysAhead, Use};
use crate::failure::{DONE, Executed};
use crate::unit::Unit;
use crate::values::{COLD, string};

/// GET key.
#[inline]
pub(crate) fn get(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let key = unit.first_key(arguments, 1);
    match string(unit.store, &key, unit.now_ms)? {
        Some(value) => unit.reply.text(value),
        None => unit.reply.null(),
    }
    DONE
}

/// GETSET key value.
pub(crate) fn getset(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    get(arguments, unit)?;
    let key = unit.first_key(arguments, 1);
    let put = unit.put_argument(arguments, 2, Expiry::Clear);
    unit.store.apply(&key, &put)?;
    DONE
}

/// GETDEL key.
pub(crate) fn getdel(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let key = unit.first_key(arguments, 1);
    let Some(value) = string(unit.store, &key, unit.now_ms)? else {
        unit.reply.null();
        return DONE;
    };
    unit.reply.text(value);
    unit.store.apply(&key, &Change::Remove)?;
    DONE
}

/// GETEX key [EX s | PX ms | EXAT s | PXAT ms | PERSIST].
pub(crate) fn getex(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let (mut lifetime, mut index) = (Lifetime::default(), 2);
    while index < arguments.len() {
        let taken = lifetime.take_option(arguments, &mut index)? || lifetime.take_persist(arguments, &mut index)?;
        if !taken || lifetime.is_kept() {
            return Err(error::SYNTAX.into());
        }
    }
    let (key, now_ms) = (unit.first_key(arguments, 1), unit.now_ms);
    let Some(value) = string(unit.store, &key, now_ms)? else {
        unit.reply.null();
        return DONE;
    };
    let deadline_ms = lifetime.deadline_ms(now_ms, "getex")?;
    unit.reply.text(value);
    let persists =
        lifetime.is_persisted() && unit.store.read(&key, now_ms).is_some_and(|record| record.expire_at_ms.is_some());
    if let Some(at_ms) = deadline_ms {
        let over = lifetime.is_absolute() && at_ms <= now_ms;
        unit.store.apply(&key, &if over { Change::Remove } else { Change::Expire { at_ms } })?;
    } else if persists {
        unit.store.apply(&key, &Change::Persist)?;
    }
    DONE
}

/// MGET key [key …]; what is no string is null.
pub(crate) fn mget(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    unit.reply.array(arguments.len() - 1);
    let mut keys = KeysAhead::all(arguments, Use::Read);
    while let Some((_, key)) = keys.next(unit) {
        text_or_null(&key, unit);
    }
    DONE
}

/// What MGET says of a key.
pub(crate) fn text_or_null(key: &Key<'_>, unit: &mut Unit<'_>) {
    match unit.store.read(key, unit.now_ms).map(|record| record.value) {
        Some(Value::String { text, .. }) => unit.reply.text(text),
        Some(Value::Cold) => unreachable!("{COLD}"),
        Some(Value::List(_)) | None => unit.reply.null(),
    }
}

/// STRLEN key.
pub(crate) fn strlen(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let key = unit.first_key(arguments, 1);
    let len = string(unit.store, &key, unit.now_ms)?.map_or(0, Text::len);
    unit.reply.integer(len as i64);
    DONE
}
