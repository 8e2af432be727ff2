//! Units over several keys happen wholly or not at all, for readers and for recovery.

use std::collections::{BTreeMap, BTreeSet};

use wire::reply_parse::Value;

use super::append::tokens;
use super::{Base, bytes_of};
use crate::history::{Action, Answer, Operation};

fn units(operations: &[Operation]) -> BTreeMap<&[u8], &[String]> {
    operations
        .iter()
        .filter_map(|operation| match &operation.action {
            Action::Unit { keys, token } => Some((token.as_bytes(), &keys[..])),
            _ => None,
        })
        .collect()
}

/// A unit that reads sees every other unit wholly or not at all.
///
/// # Errors
/// Words about the first violation.
pub fn check_reads(operations: &[Operation]) -> Result<(), String> {
    let units = units(operations);
    for operation in operations {
        let (Action::UnitRead { keys }, Answer::Reply(Value::Array(values))) = (&operation.action, &operation.answer)
        else {
            continue;
        };
        let values = keys.iter().map(String::as_str).zip(values.iter().map(bytes_of));
        check_values(&units, &values.collect())?;
    }
    Ok(())
}

/// After recovery every unit is there wholly or not at all.
///
/// # Errors
/// Words about the first violation.
pub fn check_base(operations: &[Operation], base: &Base) -> Result<(), String> {
    let values = base.tokens.iter().map(|(key, value)| (key.as_str(), &value[..])).collect();
    check_values(&units(operations), &values)
}

fn check_values(units: &BTreeMap<&[u8], &[String]>, values: &BTreeMap<&str, &[u8]>) -> Result<(), String> {
    let present: BTreeMap<&str, BTreeSet<&[u8]>> =
        values.iter().map(|(key, value)| (*key, tokens(value).collect())).collect();
    for (token, keys) in units {
        let seen: Vec<bool> =
            keys.iter().filter_map(|key| present.get(key.as_str())).map(|tokens| tokens.contains(token)).collect();
        if seen.iter().any(|there| *there) && !seen.iter().all(|there| *there) {
            return Err(format!("unit {} is in part of {keys:?} only", token.escape_ascii()));
        }
    }
    Ok(())
}
