//! From a command's id to its handler.

use storage::Lookups;
use wire::Arguments;
use wire::registry::{COMMAND_ID_COUNT, CommandId as Id, CommandSpec};

use crate::failure::Executed;
use crate::unit::{Outcome, Unit};
use crate::{bits, dump, expiry, keyspace, lists, object, own, strings};

/// What executes one command.
type Handler = fn(Arguments<'_>, &mut Unit<'_>) -> Executed;

static HANDLERS: [Option<Handler>; COMMAND_ID_COUNT] = build();

/// Execute a command of the Data family whose arity was checked.
#[inline]
pub fn execute(spec: &'static CommandSpec, arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Outcome {
    let handler = HANDLERS[spec.id as usize].expect("a test proves that every command of the family has a handler");
    let (start, lookups) = (unit.reply.len(), unit.store.lookups());
    finish(spec, handler(arguments, unit), (start, lookups), unit)
}

/// Whether `keyspace_hits` and `keyspace_misses` have what the command looked up: as in Redis, where it answers with it.
#[inline]
fn counts_lookups(spec: &CommandSpec) -> bool {
    !spec.is_write() || matches!(spec.id, Id::Getset | Id::Getdel | Id::Getex)
}

/// Execute a command again that blocked, because one of its keys changed.
pub fn resume(spec: &'static CommandSpec, arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Outcome {
    resume_from(spec, arguments, None, unit)
}

/// [`resume`], but only the key `name` counts as changed: the others are not looked at.
pub fn resume_on(spec: &'static CommandSpec, arguments: Arguments<'_>, name: &[u8], unit: &mut Unit<'_>) -> Outcome {
    resume_from(spec, arguments, Some(name), unit)
}

fn resume_from(
    spec: &'static CommandSpec,
    arguments: Arguments<'_>,
    only: Option<&[u8]>,
    unit: &mut Unit<'_>,
) -> Outcome {
    let (start, lookups) = (unit.reply.len(), unit.store.lookups());
    match lists::blocking::resume(spec.id, arguments, only, unit) {
        Some(executed) => finish(spec, executed, (start, lookups), unit),
        None => execute(spec, arguments, unit),
    }
}

/// The outcome; a failure's reply takes the place of what was written from `start` on.
#[inline]
fn finish(spec: &CommandSpec, executed: Executed, (start, lookups): (usize, Lookups), unit: &mut Unit<'_>) -> Outcome {
    if !counts_lookups(spec) {
        unit.store.set_lookups(lookups);
    }
    match executed {
        Ok(outcome) => outcome,
        Err(failure) => {
            unit.reply.truncate(start);
            failure.write(&mut unit.reply);
            Outcome::Done
        }
    }
}

/// Write the reply of a command that asked to block and whose deadline passed.
pub fn timed_out(spec: &'static CommandSpec, arguments: Arguments<'_>, unit: &mut Unit<'_>) {
    match spec.id {
        Id::ZhWait => own::reply_version(false, arguments, unit),
        _ => unit.reply.null_array(),
    }
}

const fn build() -> [Option<Handler>; COMMAND_ID_COUNT] {
    let mut table = [None; COMMAND_ID_COUNT];
    let mut family = 0;
    while family < FAMILIES.len() {
        let mut index = 0;
        while index < FAMILIES[family].len() {
            let (id, handler) = FAMILIES[family][index];
            table[id as usize] = Some(handler);
            index += 1;
        }
        family += 1;
    }
    table
}

const FAMILIES: [&[(Id, Handler)]; 7] = [&STRINGS, &BITS, &KEYS, &OBJECTS, &EXPIRY, &LISTS, &OWN];

const STRINGS: [(Id, Handler); 26] = [
    (Id::Get, strings::get::get),
    (Id::Getset, strings::get::getset),
    (Id::Getdel, strings::get::getdel),
    (Id::Getex, strings::get::getex),
    (Id::Mget, strings::get::mget),
    (Id::Strlen, strings::get::strlen),
    (Id::Set, strings::set::set),
    (Id::Setnx, strings::set::setnx),
    (Id::Setex, strings::set::setex),
    (Id::Psetex, strings::set::psetex),
    (Id::Mset, strings::set_many::mset),
    (Id::Msetnx, strings::set_many::msetnx),
    (Id::Msetex, strings::set_many::msetex),
    (Id::Incr, strings::counter::incr),
    (Id::Decr, strings::counter::decr),
    (Id::Incrby, strings::counter::incrby),
    (Id::Decrby, strings::counter::decrby),
    (Id::Incrbyfloat, strings::float::incrbyfloat),
    (Id::Lcs, strings::lcs::lcs),
    (Id::Append, strings::range::append),
    (Id::Getrange, strings::range::getrange),
    (Id::Substr, strings::range::getrange),
    (Id::Setrange, strings::range::setrange),
    (Id::Digest, strings::conditional::digest_command),
    (Id::Delifeq, strings::conditional::delifeq),
    (Id::Delex, strings::conditional::delex),
];

const BITS: [(Id, Handler); 7] = [
    (Id::Setbit, bits::single::setbit),
    (Id::Getbit, bits::single::getbit),
    (Id::Bitcount, bits::count::bitcount),
    (Id::Bitpos, bits::count::bitpos),
    (Id::Bitop, bits::combine::bitop),
    (Id::Bitfield, bits::field::bitfield),
    (Id::BitfieldRo, bits::field::bitfield_ro),
];

const OBJECTS: [(Id, Handler); 5] = [
    (Id::ObjectEncoding, object::encoding),
    (Id::ObjectRefcount, object::refcount),
    (Id::ObjectIdletime, object::idletime),
    (Id::ObjectFreq, object::freq),
    (Id::ObjectHelp, object::help),
];

const KEYS: [(Id, Handler); 11] = [
    (Id::Del, keyspace::del),
    (Id::Unlink, keyspace::del),
    (Id::Exists, keyspace::exists),
    (Id::Touch, keyspace::exists),
    (Id::Type, keyspace::type_command),
    (Id::Rename, keyspace::rename),
    (Id::Renamenx, keyspace::renamenx),
    (Id::Copy, keyspace::copy),
    (Id::Move, keyspace::move_command),
    (Id::Dump, dump::dump),
    (Id::Restore, dump::restore),
];

const EXPIRY: [(Id, Handler); 9] = [
    (Id::Expire, expiry::expire),
    (Id::Pexpire, expiry::pexpire),
    (Id::Expireat, expiry::expireat),
    (Id::Pexpireat, expiry::pexpireat),
    (Id::Ttl, expiry::ttl),
    (Id::Pttl, expiry::pttl),
    (Id::Expiretime, expiry::expiretime),
    (Id::Pexpiretime, expiry::pexpiretime),
    (Id::Persist, expiry::persist),
];

const LISTS: [(Id, Handler); 22] = [
    (Id::Lpush, lists::ends::lpush),
    (Id::Rpush, lists::ends::rpush),
    (Id::Lpushx, lists::ends::lpushx),
    (Id::Rpushx, lists::ends::rpushx),
    (Id::Lpop, lists::ends::lpop),
    (Id::Rpop, lists::ends::rpop),
    (Id::Llen, lists::ends::llen),
    (Id::Lrange, lists::windows::lrange),
    (Id::Ltrim, lists::windows::ltrim),
    (Id::Lindex, lists::elements::lindex),
    (Id::Lset, lists::elements::lset),
    (Id::Linsert, lists::elements::linsert),
    (Id::Lrem, lists::elements::lrem),
    (Id::Lpos, lists::position::lpos),
    (Id::Lmove, lists::transfer::lmove),
    (Id::Rpoplpush, lists::transfer::rpoplpush),
    (Id::Lmpop, lists::several::lmpop),
    (Id::Blpop, lists::blocking::blpop),
    (Id::Brpop, lists::blocking::brpop),
    (Id::Blmove, lists::blocking::blmove),
    (Id::Brpoplpush, lists::blocking::brpoplpush),
    (Id::Blmpop, lists::blocking::blmpop),
];

const OWN: [(Id, Handler); 3] = [(Id::ZhGet, own::zh_get), (Id::ZhMget, own::zh_mget), (Id::ZhWait, own::zh_wait)];

#[cfg(test)]
mod tests {
    use super::*;
    use wire::registry::{Family, all};

    #[test]
    fn every_command_of_the_family_has_a_handler_and_no_other() {
        for command in all() {
            let with_handler = std::iter::once(command).filter(|command| command.subcommands.is_empty());
            for spec in with_handler.chain(command.subcommands) {
                let expected = spec.family == Family::Data;
                assert_eq!(HANDLERS[spec.id as usize].is_some(), expected, "{}", spec.full_name);
            }
        }
        let listed: usize = FAMILIES.iter().map(|family| family.len()).sum();
        assert_eq!(HANDLERS.iter().flatten().count(), listed, "a command is listed twice");
    }
}
