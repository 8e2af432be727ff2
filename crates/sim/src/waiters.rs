//! Waiters: ZH.WAIT answers when its condition holds, and not before.
//!
//! The condition here is always "not what I read": on keys that only grow it stays true once it is. So a waiter that was
//! told so must have been told the truth, and one that timed out must not have slept through a change.

use std::collections::BTreeMap;

use wire::reply_parse::Value;

use crate::checker::blocked::gave_up_us;
use crate::history::{Action, Answer, Operation};

/// Check the waits of a span. Nothing takes longer than `tolerance_us` here without a reason.
///
/// # Errors
/// Words about the first violation.
pub fn check(operations: &[Operation], tolerance_us: u64) -> Result<(), String> {
    let growth = growth_by_key(operations);
    for operation in operations {
        let (Action::Wait { key, old, timeout_ms }, Answer::Reply(reply)) = (&operation.action, &operation.answer)
        else {
            continue;
        };
        let changes = growth.get(key.as_str()).map_or(&[][..], |changes| changes);
        let fired = matches!(reply, Value::Array(items) if items.first() == Some(&Value::Integer(1)));
        if fired && !changes.iter().any(|change| change.invoked < operation.returned) {
            return Err(format!("{key}: a waiter fired although nobody can have changed the key"));
        }
        let gave_up_us = gave_up_us(operations, operation, *timeout_ms);
        if !fired && operation.returned_us < gave_up_us {
            return Err(format!("{key}: a waiter of {timeout_ms} ms gave up too early"));
        }
        // Read by somebody, well before the waiter gave up, as longer than what it waited for.
        let slept = |change: &&Growth| change.len > old.len() && change.seen_us + tolerance_us < gave_up_us;
        if let Some(change) = changes.iter().find(slept).filter(|_| !fired) {
            return Err(format!("{key}: a waiter slept through a change that was seen at {} us", change.seen_us));
        }
    }
    Ok(())
}

/// Somebody saw, or made, the key at least so long.
struct Growth {
    len: usize,
    invoked: u64,
    seen_us: u64,
}

fn growth_by_key(operations: &[Operation]) -> BTreeMap<&str, Vec<Growth>> {
    let mut growth: BTreeMap<&str, Vec<Growth>> = BTreeMap::new();
    for operation in operations.iter().filter(|operation| !matches!(operation.answer, Answer::Refused(_))) {
        let mut add = |key, len| {
            let seen_us = operation.returned_us;
            growth.entry(key).or_default().push(Growth { len, invoked: operation.invoked, seen_us });
        };
        match (&operation.action, &operation.answer) {
            (Action::Append { key, .. }, Answer::Reply(Value::Integer(len))) => add(key, *len as usize),
            (Action::Get { key }, Answer::Reply(Value::Bulk(bytes))) => add(key, bytes.len()),
            (Action::Append { key, .. } | Action::Compare { key, .. }, _) => add(key, 0),
            (Action::Unit { keys, .. }, _) => keys.iter().for_each(|key| add(key, 0)),
            _ => {}
        }
    }
    growth
}
