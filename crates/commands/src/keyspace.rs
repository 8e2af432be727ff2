//! Keys of any type: DEL, UNLINK, EXISTS, TOUCH, TYPE, RENAME, RENAMENX, COPY, MOVE.

use base::{Blocks, Text};
use storage::{Form, Key, Record, Value};
use types::{Change, Expiry, Kind};
use wire::{Arguments, ErrorReply, Reply, error};

use crate::ahead::{KeysAhead, Use};
use crate::arguments::{database, is};
use crate::failure::{DONE, Executed, Failure};
use crate::long::ToStage;
use crate::unit::{Outcome, Unit, argument};
use crate::values::COLD;

const COPY_IN_CLUSTER: ErrorReply =
    ErrorReply::new("ERR", "Copying to another database is not allowed in cluster mode");

/// DEL key [key …]; UNLINK is the same, because nothing here is slow to free.
pub(crate) fn del(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let mut removed = 0;
    let mut keys = KeysAhead::all(arguments, Use::Write);
    while let Some((_, key)) = keys.next(unit) {
        if unit.store.read(&key, unit.now_ms).is_some() {
            unit.store.apply(&key, &Change::Remove)?;
            removed += 1;
        }
    }
    unit.reply.integer(removed);
    DONE
}

/// EXISTS key [key …] and TOUCH: how many of them exist, repeated ones counted again.
pub(crate) fn exists(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let mut count = 0;
    let mut keys = KeysAhead::all(arguments, Use::Read);
    while let Some((_, key)) = keys.next(unit) {
        count += i64::from(unit.store.read(&key, unit.now_ms).is_some());
    }
    unit.reply.integer(count);
    DONE
}

/// TYPE key.
pub(crate) fn type_command(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let key = unit.first_key(arguments, 1);
    let name = unit.store.read(&key, unit.now_ms).map_or("none", |record| record.value.kind().name());
    unit.reply.simple(name);
    DONE
}

/// RENAME key newkey.
pub(crate) fn rename(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    rename_unless(arguments, unit, false, |reply, _| reply.ok())
}

/// RENAMENX key newkey.
pub(crate) fn renamenx(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    rename_unless(arguments, unit, true, |reply, renamed| reply.integer(i64::from(renamed)))
}

fn rename_unless(
    arguments: Arguments<'_>,
    unit: &mut Unit<'_>,
    only_absent: bool,
    answer: fn(&mut Reply<'_>, bool),
) -> Executed {
    let (source, target) = (unit.key(argument(arguments, 1)), unit.key(argument(arguments, 2)));
    let content = unit.store.read(&source, unit.now_ms).map(Content::of).ok_or(error::NO_SUCH_KEY)?;
    let is_same = source.bytes == target.bytes;
    let is_taken = only_absent && (is_same || unit.store.read(&target, unit.now_ms).is_some());
    if !is_same && !is_taken {
        if let Some(first) = content.to_stage(&target, unit) {
            return Ok(Outcome::Stage(first));
        }
        content.put(&target, unit)?;
        unit.store.apply(&source, &Change::Remove)?;
    }
    answer(&mut unit.reply, !is_taken);
    DONE
}

/// COPY source destination [DB destination-db] [REPLACE].
pub(crate) fn copy(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let (mut target_database, mut replaces, mut index) = (unit.database, false, 3);
    while let Some(option) = arguments.get(index) {
        match arguments.get(index + 1) {
            _ if is(option, "REPLACE") => replaces = true,
            Some(number) if is(option, "DB") => {
                target_database = database(number)?;
                index += 1;
            }
            _ => return Err(error::SYNTAX.into()),
        }
        index += 1;
    }
    if !unit.several_databases && target_database != unit.database {
        return Err(COPY_IN_CLUSTER.into());
    }
    let source = unit.key(argument(arguments, 1));
    let target = unit.key(argument(arguments, 2));
    let target = unit.key_in(&target, target_database);
    if source.bytes == target.bytes && source.database == target.database {
        return Err(error::SAME_OBJECT.into());
    }
    let content = unit.store.read(&source, unit.now_ms).map(Content::of);
    let free = replaces || unit.store.read(&target, unit.now_ms).is_none();
    let copied = content.filter(|_| free);
    if let Some(content) = &copied {
        if let Some(first) = content.to_stage(&target, unit) {
            return Ok(Outcome::Stage(first));
        }
        content.put(&target, unit)?;
    }
    unit.reply.integer(i64::from(copied.is_some()));
    DONE
}

/// MOVE key db.
pub(crate) fn move_command(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    if !unit.several_databases {
        return Err(error::MOVE_IN_CLUSTER.into());
    }
    let target_database = database(argument(arguments, 2))?;
    if target_database == unit.database {
        return Err(error::SAME_OBJECT.into());
    }
    let source = unit.first_key(arguments, 1);
    let target = unit.key_in(&source, target_database);
    let content = unit.store.read(&source, unit.now_ms).map(Content::of);
    let free = unit.store.read(&target, unit.now_ms).is_none();
    let moved = content.filter(|_| free);
    if let Some(content) = &moved {
        if let Some(first) = content.to_stage(&target, unit) {
            return Ok(Outcome::Stage(first));
        }
        content.put(&target, unit)?;
        unit.store.apply(&source, &Change::Remove)?;
    }
    unit.reply.integer(i64::from(moved.is_some()));
    DONE
}

/// A value on its way from one key to another.
struct Content {
    value: Carried,
    form: Form,
    expiry: Expiry,
}

/// What is copied, and what is shared.
enum Carried {
    Encoding(Kind, Vec<u8>),
    Blocks(Blocks),
}

impl Content {
    fn of(record: Record<'_>) -> Content {
        let (value, form) = match record.value {
            Value::String { text: Text::Short(bytes), form } => (Carried::Encoding(Kind::String, bytes.to_vec()), form),
            Value::String { text: Text::Long(blocks), form } => (Carried::Blocks(blocks.clone()), form),
            Value::List(list) => {
                let mut encoding = Vec::new();
                list.encode(&mut encoding);
                (Carried::Encoding(Kind::List, encoding), Form::Written)
            }
            Value::Cold => unreachable!("{COLD}"),
        };
        let expiry = record.expire_at_ms.map_or(Expiry::Clear, Expiry::At);
        Content { value, form, expiry }
    }

    /// What the log should have before the target has this.
    fn to_stage(&self, target: &Key<'_>, unit: &Unit<'_>) -> Option<ToStage> {
        match &self.value {
            Carried::Blocks(blocks) if unit.may.stage && unit.stage_of(blocks).is_none() => {
                Some(ToStage { blocks: blocks.clone(), slot: target.slot })
            }
            _ => None,
        }
    }

    fn put(&self, target: &Key<'_>, unit: &mut Unit<'_>) -> Result<(), Failure> {
        let Content { ref value, form, expiry } = *self;
        let change = match value {
            Carried::Encoding(kind, encoding) => Change::Put { kind: *kind, value: encoding, expiry },
            Carried::Blocks(blocks) => Change::PutBlocks { blocks, staged: unit.stage_of(blocks), expiry },
        };
        unit.store.apply(target, &change)?;
        if form != Form::Written {
            unit.store.set_form(target, form);
        }
        Ok(())
    }
}
