//! The model of keys that one client has to itself, with at most one request under way for each.
//!
//! After an acknowledged request the key is in one state; a request without a reply because the node died leaves two.
//! Expiry needs no state: a value whose time may have come may be there or not.

use std::collections::BTreeMap;

use crate::checker::bytes_of;
use crate::history::{Action, Answer, Operation};
use crate::own::OwnAction;

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
        let Some(key) = own.key() else { continue };
        // What an earlier span left is not known until the first write.
        let before = keys.get(key).cloned();
        let after = match (own, &operation.answer) {
            (_, Answer::Refused(_)) => before,
            (OwnAction::Get { .. }, Answer::Reply(reply)) => match before {
                Some(states) => {
                    Some(read(states, bytes_of(reply), operation, evicts).map_err(|words| format!("{key}: {words}"))?)
                }
                None => None,
            },
            (OwnAction::Get { .. }, Answer::None) => before,
            (_, Answer::Reply(_)) => apply(own, before, operation),
            // It may have happened or not.
            (_, Answer::None) => match (before.clone(), apply(own, before, operation)) {
                (Some(mut states), Some(others)) => {
                    states.extend(others);
                    Some(states)
                }
                _ => None,
            },
        };
        match after {
            Some(states) => keys.insert(key, states),
            None => keys.remove(key),
        };
    }
    Ok(())
}

/// All keys of the client are gone, or may be.
fn flush(keys: &mut BTreeMap<&str, Vec<Option<Stored>>>, operation: &Operation) {
    let prefix = format!("o{}.", operation.client);
    for (_, states) in keys.iter_mut().filter(|(key, _)| key.starts_with(&prefix)) {
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

/// The states after a write; `None` when they are not known.
fn apply(own: &OwnAction, before: Option<Vec<Option<Stored>>>, operation: &Operation) -> Option<Vec<Option<Stored>>> {
    match own {
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
    let (began_us, ended_us) = (operation.invoked_us, operation.returned_us);
    let fits = |state: &Option<Stored>| match state {
        None => found.is_empty(),
        Some(Stored { expires_us, .. }) if found.is_empty() => {
            expires_us.is_some_and(|(earliest, _)| evicts || earliest <= ended_us)
        }
        Some(Stored { value, expires_us }) => {
            value.as_bytes() == found && expires_us.is_none_or(|(_, latest)| began_us <= latest)
        }
    };
    let possible: Vec<Option<Stored>> = states.iter().filter(|state| fits(state)).cloned().collect();
    match possible.is_empty() {
        true => Err(format!("{} was read at {began_us}..{ended_us}, possible: {states:?}", found.escape_ascii())),
        // What was found to be gone does not come back.
        false if found.is_empty() => Ok(vec![None]),
        false => Ok(possible),
    }
}
