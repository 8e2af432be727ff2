//! What is known about a value besides its content: OBJECT.

use base::Text;
use storage::{Form, Record, Value};
use wire::{Arguments, ErrorReply, number};

use crate::failure::{DONE, Executed};
use crate::unit::Unit;
use crate::values::COLD;

/// Longest string that Redis keeps in one piece with its header, bytes; `embstr` up to it.
const EMBEDDED_BYTES_MAX: usize = 44;
/// Longest text that Redis tries to read as an integer, bytes.
const INTEGER_BYTES_MAX: usize = 20;
/// Integers below it are shared in Redis, and so have the largest reference count there is.
const SHARED_INTEGERS: i64 = 10_000;

const NO_FREQUENCY: ErrorReply = ErrorReply::new(
    "ERR",
    "An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between \
     policies at runtime LRU and LFU data will take some time to adjust.",
);

const HELP: [&str; 15] = [
    "OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "ENCODING <key>",
    "    Return the kind of internal representation used in order to store the value",
    "    associated with a <key>.",
    "FREQ <key>",
    "    Return the access frequency index of the <key>. The returned integer is",
    "    proportional to the logarithm of the recent access frequency of the key.",
    "IDLETIME <key>",
    "    Return the idle time of the <key>, that is the approximated number of",
    "    seconds elapsed since the last access to the key.",
    "REFCOUNT <key>",
    "    Return the number of references of the value associated with the specified",
    "    <key>.",
    "HELP",
    "    Prints this help.",
];

/// The integer that Redis would keep instead of the text.
fn as_integer(text: Text<'_>, form: Form) -> Option<i64> {
    let short = text.short().filter(|bytes| form == Form::Written && bytes.len() <= INTEGER_BYTES_MAX);
    short.and_then(number::parse_integer)
}

/// OBJECT ENCODING key: Redis's name for what it would be there.
pub(crate) fn encoding(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let name = |record: Record<'_>| match record.value {
        Value::String { text, form } if as_integer(text, form).is_some() => "int",
        Value::String { text, form } if form != Form::Raw && text.len() <= EMBEDDED_BYTES_MAX => "embstr",
        Value::String { .. } => "raw",
        Value::List(_) => "quicklist",
        Value::Cold => unreachable!("{COLD}"),
    };
    let key = unit.first_key(arguments, 2);
    match unit.store.read(&key, unit.now_ms).map(name) {
        Some(name) => unit.reply.bulk(name.as_bytes()),
        None => unit.reply.null(),
    }
    DONE
}

/// OBJECT REFCOUNT key.
pub(crate) fn refcount(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let references = |record: Record<'_>| match record.value {
        Value::String { text, form }
            if as_integer(text, form).is_some_and(|value| (0..SHARED_INTEGERS).contains(&value)) =>
        {
            i64::from(i32::MAX)
        }
        _ => 1,
    };
    let key = unit.first_key(arguments, 2);
    match unit.store.read(&key, unit.now_ms).map(references) {
        Some(references) => unit.reply.integer(references),
        None => unit.reply.null(),
    }
    DONE
}

/// OBJECT IDLETIME key: nothing keeps the time of the last access yet, so every key was just used.
pub(crate) fn idletime(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let key = unit.first_key(arguments, 2);
    match unit.store.read(&key, unit.now_ms) {
        Some(_) => unit.reply.integer(0),
        None => unit.reply.null(),
    }
    DONE
}

/// OBJECT FREQ key: what the policy counts, while it counts how often keys are used.
pub(crate) fn freq(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let key = unit.first_key(arguments, 2);
    // As of before this look at it.
    let frequency = unit.store.frequency(&key);
    if unit.store.read(&key, unit.now_ms).is_none() {
        unit.reply.null();
        return DONE;
    }
    match frequency {
        Some(frequency) => unit.reply.integer(i64::from(frequency)),
        None => return Err(NO_FREQUENCY.into()),
    }
    DONE
}

/// OBJECT HELP.
pub(crate) fn help(_: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    unit.reply.array(HELP.len());
    HELP.iter().for_each(|line| unit.reply.simple(line));
    DONE
}
