//! The model of keys that one client has to itself, with at most one request under way for each.
//!
//! After an acknowledged request the key is in one state; a request without a reply because the node died leaves two.
//! Expiry needs no state: a value whose time may have come may be there or not.

use std::collections::BTreeMap;

use wire::reply_parse::Value;

use crate::checker::bytes_of;
use crate::history::{Action, Answer, Operation};
use crate::own::{OwnAction, is_of};

/// A value and the virtual times between which it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stored {
    value: String,
    /// Earliest and latest moment of expiry.
    expires_us: Option<(u64, u64)>,
}

/// Milliseconds are cut off where the clock is read, and added where an expiry is set.
const ROUNDING_US: u64 = 2_000;

/// Check the operations on own keys of a span in which nothing acknowledged may be lost. `evicts`: memory is limited, and
/// a key with an expiry may go at any time; like one whose time was over, it does not come back.
///
/// # Errors
/// Words about the first violation.
pub fn check(operations: &[Operation], evicts: bool) -> Result<(), String> {
    let mut keys: BTreeMap<&str, Vec<Option<Stored>>> = BTreeMap::new();
    for operation in operations {
        let Action::Own(own) = &operation.action else { continue };
        if *own == OwnAction::Flush {
            flush(&mut keys, operation);
        }
        if let OwnAction::SetAll { pairs } = own {
            for (key, value) in pairs {
                let set = OwnAction::Set { key: key.clone(), value: value.clone(), life_ms: None };
                step(&mut keys, key, &set, operation, &operation.answer, evicts)?;
            }
            continue;
        }
        if let (OwnAction::GetAll { keys: read }, Answer::Reply(Value::Array(items))) = (own, &operation.answer) {
            for (key, item) in read.iter().zip(items) {
                let get = OwnAction::Get { key: key.clone() };
                step(&mut keys, key, &get, operation, &Answer::Reply(item.clone()), evicts)?;
            }
            continue;
        }
        let Some(key) = own.key() else { continue };
        if let OwnAction::Give { target, renames, .. } = own {
            give(&mut keys, (key, target, *renames), operation, evicts).map_err(|words| format!("{key}: {words}"))?;
            continue;
        }
        step(&mut keys, key, own, operation, &operation.answer, evicts)?;
    }
    Ok(())
}

/// What the states of one key become.
fn step<'a>(
    keys: &mut BTreeMap<&'a str, Vec<Option<Stored>>>,
    key: &'a str,
    own: &OwnAction,
    operation: &Operation,
    answer: &Answer,
    evicts: bool,
) -> Result<(), String> {
    // What an earlier span left is not known until the first write.
    let before = keys.get(key).cloned();
    let after = match (own, answer) {
        (_, Answer::Refused(_)) => before,
        (OwnAction::Get { .. }, Answer::Reply(reply)) => match before {
            Some(states) => {
                Some(read(states, bytes_of(reply), operation, evicts).map_err(|words| format!("{key}: {words}"))?)
            }
            None => None,
        },
        (OwnAction::Get { .. }, Answer::None) => before,
        (_, Answer::Reply(reply)) => {
            let after = apply(own, before, operation, evicts);
            fitting(own, after, reply).map_err(|words| format!("{key}: {words}"))?
        }
        // It may have happened or not.
        (_, Answer::None) => match (before.clone(), apply(own, before, operation, evicts)) {
            (Some(mut states), Some(others)) => {
                states.extend(others);
                Some(states)
            }
            _ => None,
        },
    };
    set(keys, key, after);
    Ok(())
}

/// All keys of the client are gone, or may be.
fn flush(keys: &mut BTreeMap<&str, Vec<Option<Stored>>>, operation: &Operation) {
    for (_, states) in keys.iter_mut().filter(|(key, _)| is_of(key, operation.client)) {
        match operation.answer {
            Answer::Reply(_) => *states = vec![None],
            Answer::None => states.push(None),
            Answer::Refused(_) => {}
        }
    }
}

fn life(operation: &Operation, life_ms: u64) -> Option<(u64, u64)> {
    let latest_us = if operation.returned_us == u64::MAX { u64::MAX / 2 } else { operation.returned_us };
    let life_us = life_ms * 1000;
    Some(((operation.invoked_us + life_us).saturating_sub(ROUNDING_US), latest_us + life_us + ROUNDING_US))
}

impl Stored {
    /// Whether it may have been there for an operation.
    fn may_be_there(&self, operation: &Operation) -> bool {
        self.expires_us.is_none_or(|(_, latest)| operation.invoked_us <= latest)
    }

    /// Whether it may have been gone.
    fn may_be_gone(&self, operation: &Operation, evicts: bool) -> bool {
        self.expires_us.is_some_and(|(earliest, _)| evicts || earliest <= operation.returned_us)
    }
}

/// A value goes to another key, or may.
fn give<'a>(
    keys: &mut BTreeMap<&'a str, Vec<Option<Stored>>>,
    (key, target, renames): (&'a str, &'a str, bool),
    operation: &Operation,
    evicts: bool,
) -> Result<(), String> {
    let source = keys.get(key).cloned();
    let given = source.as_ref().map(|states| {
        let there = |state: &&Option<Stored>| state.as_ref().is_some_and(|stored| stored.may_be_there(operation));
        states.iter().filter(there).cloned().collect::<Vec<_>>()
    });
    match &operation.answer {
        Answer::Refused(_) => {}
        Answer::Reply(Value::Error(_) | Value::Integer(0)) => {
            let gone =
                |state: &Option<Stored>| state.as_ref().is_none_or(|stored| stored.may_be_gone(operation, evicts));
            if source.as_ref().is_some_and(|states| !states.iter().any(gone)) {
                return Err(format!("was said to be gone at {}, possible: {source:?}", operation.invoked_us));
            }
            keys.insert(key, vec![None]);
        }
        Answer::Reply(_) => {
            if given.as_ref().is_some_and(Vec::is_empty) {
                return Err(format!("was given away at {}, and not there: {source:?}", operation.invoked_us));
            }
            set(keys, target, given.clone());
            set(keys, key, if renames { Some(vec![None]) } else { given });
        }
        Answer::None => {
            let before = keys.get(target).cloned();
            set(keys, target, before.zip(given).map(|(states, given)| [states, given].concat()));
            if renames {
                set(keys, key, source.map(|states| [states, vec![None]].concat()));
            }
        }
    }
    Ok(())
}

fn set<'a>(keys: &mut BTreeMap<&'a str, Vec<Option<Stored>>>, key: &'a str, states: Option<Vec<Option<Stored>>>) {
    match states {
        Some(states) => drop(keys.insert(key, states)),
        None => drop(keys.remove(key)),
    }
}

/// The states that the length allows which was answered.
fn fitting(
    own: &OwnAction,
    after: Option<Vec<Option<Stored>>>,
    reply: &Value,
) -> Result<Option<Vec<Option<Stored>>>, String> {
    let (OwnAction::Append { .. } | OwnAction::Overwrite { .. }, Value::Integer(len)) = (own, reply) else {
        return Ok(after);
    };
    let Some(states) = after else { return Ok(None) };
    let fits = |state: &&Option<Stored>| state.as_ref().is_some_and(|stored| stored.value.len() as i64 == *len);
    let fitting: Vec<Option<Stored>> = states.iter().filter(fits).cloned().collect();
    match fitting.is_empty() {
        true => Err(format!("has {len} bytes, possible: {:?}", states)),
        false => Ok(Some(fitting)),
    }
}

/// What a string is with `value` at `offset`.
fn overwritten(old: &str, offset: usize, value: &str) -> String {
    let mut bytes = old.as_bytes().to_vec();
    bytes.resize(bytes.len().max(offset + value.len()), 0);
    bytes[offset..offset + value.len()].copy_from_slice(value.as_bytes());
    String::from_utf8(bytes).expect("values are ASCII")
}

/// The states after what changes a part of a string.
fn change(
    states: Vec<Option<Stored>>,
    operation: &Operation,
    evicts: bool,
    change: impl Fn(&str) -> String,
) -> Vec<Option<Stored>> {
    let mut after = Vec::new();
    for state in states {
        let may_be_gone = state.as_ref().is_none_or(|stored| stored.may_be_gone(operation, evicts));
        if let Some(stored) = state.filter(|stored| stored.may_be_there(operation)) {
            after.push(Some(Stored { value: change(&stored.value), ..stored }));
        }
        if may_be_gone {
            after.push(Some(Stored { value: change(""), expires_us: None }));
        }
    }
    after
}

/// The states after a write; `None` when they are not known.
fn apply(
    own: &OwnAction,
    before: Option<Vec<Option<Stored>>>,
    operation: &Operation,
    evicts: bool,
) -> Option<Vec<Option<Stored>>> {
    match own {
        OwnAction::Append { value, .. } => {
            before.map(|states| change(states, operation, evicts, |old| format!("{old}{value}")))
        }
        OwnAction::Overwrite { offset, value, .. } => {
            before.map(|states| change(states, operation, evicts, |old| overwritten(old, *offset, value)))
        }
        OwnAction::Set { value, life_ms, .. } => {
            let expires_us = life_ms.and_then(|life_ms| life(operation, life_ms));
            Some(vec![Some(Stored { value: value.clone(), expires_us })])
        }
        OwnAction::Remove { .. } => Some(vec![None]),
        OwnAction::Expire { life_ms, .. } => {
            let expire = |state: Option<Stored>| {
                // It may have gone before it was given more time.
                let may_be_gone = state.as_ref().and_then(|stored| stored.expires_us).map(|(earliest, _)| earliest);
                let goes_us = life(operation, *life_ms);
                let earliest_us = goes_us.map(|(earliest, _)| earliest.min(may_be_gone.unwrap_or(u64::MAX)));
                state.map(|stored| Stored { expires_us: earliest_us.zip(goes_us.map(|(_, latest)| latest)), ..stored })
            };
            before.map(|states| states.into_iter().map(expire).collect())
        }
        // The first two are steps of others.
        OwnAction::SetAll { .. } | OwnAction::GetAll { .. } | OwnAction::Give { .. } => before,
        OwnAction::Get { .. } | OwnAction::Flush | OwnAction::Select { .. } => before,
    }
}

/// The states that a read leaves possible.
fn read(
    states: Vec<Option<Stored>>,
    found: &[u8],
    operation: &Operation,
    evicts: bool,
) -> Result<Vec<Option<Stored>>, String> {
    let fits = |state: &Option<Stored>| match state {
        None => found.is_empty(),
        Some(stored) if found.is_empty() => stored.may_be_gone(operation, evicts),
        Some(stored) => stored.value.as_bytes() == found && stored.may_be_there(operation),
    };
    let possible: Vec<Option<Stored>> = states.iter().filter(|state| fits(state)).cloned().collect();
    match possible.is_empty() {
        true => {
            let (began_us, ended_us) = (operation.invoked_us, operation.returned_us);
            Err(format!("{} was read at {began_us}..{ended_us}, possible: {states:?}", found.escape_ascii()))
        }
        // What was found to be gone does not come back.
        false if found.is_empty() => Ok(vec![None]),
        false => Ok(possible),
    }
}
