//! Blocked pops: nobody gives up too early, and nobody sleeps while an element lies there for him.

use wire::reply_parse::Value;

use super::Base;
use super::append::Fate;
use super::list::Lists;
use crate::history::{Action, Answer, Operation};

/// Check the blocked pops and moves of a span that ended without an element. Nothing takes longer than `tolerance_us`
/// here without a reason.
///
/// # Errors
/// Words about the first violation.
pub fn check(operations: &[Operation], base: &Base, tolerance_us: u64) -> Result<(), String> {
    let lists = Lists::of(operations, base);
    let at_us: std::collections::BTreeMap<u64, u64> =
        operations.iter().map(|operation| (operation.returned, operation.returned_us)).collect();
    for operation in operations {
        let (keys, timeout_ms) = match &operation.action {
            Action::BlockingPop { keys, timeout_ms } => (&keys[..], *timeout_ms),
            Action::BlockingMove { source, timeout_ms, .. } => (std::slice::from_ref(source), *timeout_ms),
            _ => continue,
        };
        if operation.answer != Answer::Reply(Value::Null) {
            continue;
        }
        let gave_up_us = gave_up_us(operations, operation, timeout_ms);
        if operation.returned_us < gave_up_us {
            return Err(format!("{keys:?}: a client that waits {timeout_ms} ms gave up too early"));
        }
        for key in keys {
            let Some(list) = lists.by_key.get(key.as_str()) else { continue };
            let lies = |item: &[u8]| list.range().is_some_and(|items| items.iter().any(|other| other == item));
            let slept = list.pushes.iter().find(|(item, (fate, _, returned))| {
                let pushed_us = if *returned == 0 { Some(0) } else { at_us.get(returned).copied() };
                let taken = list.pops.iter().find(|pop| pop.0 == **item).map(|pop| pop.1);
                let stayed = taken.map_or_else(|| lies(item), |invoked| invoked > operation.returned);
                let early = pushed_us.is_some_and(|pushed_us| pushed_us.saturating_add(tolerance_us) < gave_up_us);
                *fate == Fate::Ok && early && stayed
            });
            if let Some((item, _)) = slept {
                return Err(format!("{key}: a client gave up on it while {} lay there", item.escape_ascii()));
            }
        }
    }
    Ok(())
}

/// When a wait that brought nothing ended, at the earliest: its answer may have stood in a long queue of replies since.
pub(crate) fn gave_up_us(operations: &[Operation], wait: &Operation, timeout_ms: u64) -> u64 {
    let unblocks = operations.iter().filter(|other| may_have_ended(other, wait));
    let earliest_us = unblocks.map(|other| other.invoked_us.max(wait.invoked_us));
    earliest_us.min().unwrap_or(u64::MAX).min(wait.invoked_us + timeout_ms * 1000)
}

/// Whether `other` is a CLIENT UNBLOCK that may have ended the wait of `operation`.
fn may_have_ended(other: &Operation, operation: &Operation) -> bool {
    matches!(other.action, Action::Unblock { with_error: false, .. })
        && other.invoked < operation.returned
        && other.returned > operation.invoked
        && !matches!(other.answer, Answer::Refused(_))
}
