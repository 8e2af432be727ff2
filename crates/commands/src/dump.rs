//! DUMP and RESTORE: values on their way between stores ([`types::dump`]).

use storage::Value;
use types::dump::{DumpError, Dumped, dump_list, dump_string, restore as read_dump};
use types::{Change, Expiry, Kind};
use wire::{Arguments, ErrorReply, error};

use crate::arguments::{integer, is};
use crate::failure::{DONE, Executed, Failure};
use crate::unit::{Unit, argument};
use crate::values::COLD;

const NEGATIVE_TTL: ErrorReply = ErrorReply::new("ERR", "Invalid TTL value, must be >= 0");
const NEGATIVE_IDLETIME: ErrorReply = ErrorReply::new("ERR", "Invalid IDLETIME value, must be >= 0");
const BAD_FREQUENCY: ErrorReply = ErrorReply::new("ERR", "Invalid FREQ value, must be >= 0 and <= 255");
const BAD_FOOTER: ErrorReply = ErrorReply::new("ERR", "DUMP payload version or checksum are wrong");
const BAD_VALUE: ErrorReply = ErrorReply::new("ERR", "Bad data format");
const BUSY: ErrorReply = ErrorReply::new("BUSYKEY", "Target key name already exists.");

/// DUMP key.
pub(crate) fn dump(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let key = unit.first_key(arguments, 1);
    let payload = unit.store.read(&key, unit.now_ms).map(|record| match record.value {
        Value::String { text, .. } => dump_string(text),
        Value::List(list) => dump_list(list),
        Value::Cold => unreachable!("{COLD}"),
    });
    match payload {
        Some(payload) => unit.reply.bulk(&payload),
        None => unit.reply.null(),
    }
    DONE
}

/// What RESTORE says behind the payload. How recently and often a key was used is checked and not kept: it is used now.
#[derive(Default)]
struct Options {
    replaces: bool,
    is_absolute: bool,
}

fn options(arguments: Arguments<'_>) -> Result<Options, Failure> {
    let (mut options, mut index) = (Options::default(), 4);
    let (mut has_idletime, mut has_frequency) = (false, false);
    while let Some(option) = arguments.get(index) {
        match arguments.get(index + 1) {
            _ if is(option, "REPLACE") => options.replaces = true,
            _ if is(option, "ABSTTL") => options.is_absolute = true,
            Some(seconds) if is(option, "IDLETIME") && !has_frequency => {
                if integer(seconds)? < 0 {
                    return Err(NEGATIVE_IDLETIME.into());
                }
                (has_idletime, index) = (true, index + 1);
            }
            Some(frequency) if is(option, "FREQ") && !has_idletime => {
                if !(0..=255).contains(&integer(frequency)?) {
                    return Err(BAD_FREQUENCY.into());
                }
                (has_frequency, index) = (true, index + 1);
            }
            _ => return Err(error::SYNTAX.into()),
        }
        index += 1;
    }
    Ok(options)
}

/// RESTORE key ttl payload [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency].
pub(crate) fn restore(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let options = options(arguments)?;
    let key = unit.first_key(arguments, 1);
    let is_there = unit.store.read(&key, unit.now_ms).is_some();
    if is_there && !options.replaces {
        return Err(BUSY.into());
    }
    let ttl_ms = integer(argument(arguments, 2))?;
    if ttl_ms < 0 {
        return Err(NEGATIVE_TTL.into());
    }
    let value = read_dump(argument(arguments, 3)).map_err(|problem| match problem {
        DumpError::Footer => BAD_FOOTER,
        DumpError::Value => BAD_VALUE,
    })?;
    // As Redis has it: what is too far away for its clock is over.
    let at_ms = if options.is_absolute { ttl_ms } else { ttl_ms.wrapping_add(unit.now_ms as i64) };
    let at_ms = u64::try_from(at_ms).unwrap_or(0);
    let expiry = if ttl_ms == 0 { Expiry::Clear } else { Expiry::At(at_ms) };
    if ttl_ms != 0 && at_ms <= unit.now_ms {
        if is_there {
            unit.store.apply(&key, &Change::Remove)?;
        }
    } else {
        let (kind, bytes) = match &value {
            Dumped::String(bytes) => (Kind::String, bytes),
            Dumped::List(encoding) => (Kind::List, encoding),
        };
        unit.store.apply(&key, &Change::Put { kind, value: bytes, expiry })?;
    }
    unit.reply.ok();
    DONE
}
