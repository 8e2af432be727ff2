//! What a crash was allowed to lose: nothing acknowledged earlier than the window, and only from the end.

use std::collections::BTreeSet;

use super::append::{Fate, What, tokens};
use super::{Base, token_entries};
use crate::history::{Action, Answer, Operation};

/// A crash that may lose something.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// What was acknowledged up to this virtual time survives; `None` when nothing is promised.
    pub safe_until_us: Option<u64>,
}

/// Compare what was found after the crash with the history before it.
///
/// # Errors
/// Words about the first violation.
pub fn check(operations: &[Operation], base: &Base, found: &Base, loss: Loss) -> Result<(), String> {
    check_tokens(operations, base, found, loss)?;
    let safe = |operation: &&Operation| loss.safe_until_us.is_some_and(|until| operation.returned_us <= until);
    for (key, &value) in &found.counters {
        let increments =
            |operation: &&Operation| matches!(&operation.action, Action::Increment { key: of } if of == key);
        let all = operations.iter().filter(increments);
        let possible = all.clone().filter(|operation| !matches!(operation.answer, Answer::Refused(_))).count() as u64;
        let certain = all.filter(safe).filter(|operation| matches!(operation.answer, Answer::Reply(_))).count() as u64;
        let start = base.counters.get(key).copied().unwrap_or(0);
        if value > start + possible {
            return Err(format!("{key}: {value} after the crash, {start} before and {possible} increments"));
        }
        // The base itself was on the disk before the span began only if something is promised at all.
        if loss.safe_until_us.is_some() && value < certain {
            return Err(format!("{key}: {value} after the crash, though {certain} increments were safe"));
        }
    }
    super::unit::check_base(operations, found)
}

fn check_tokens(operations: &[Operation], base: &Base, found: &Base, loss: Loss) -> Result<(), String> {
    let times: std::collections::HashMap<u64, u64> =
        operations.iter().map(|operation| (operation.returned, operation.returned_us)).collect();
    let entries_of = token_entries(operations);
    for (key, value) in &found.tokens {
        let present: BTreeSet<&[u8]> = tokens(value).collect();
        if present.len() != tokens(value).count() {
            return Err(format!("{key}: a token is there twice after the crash"));
        }
        let before = base.tokens.get(key).map_or(&b""[..], |value| value);
        let mut known: BTreeSet<&[u8]> = tokens(before).collect();
        for entry in entries_of.get(key.as_str()).map_or(&[][..], |entries| entries) {
            match entry.what {
                What::Append { token, fate, .. } => {
                    if fate != Fate::Failed {
                        known.insert(token);
                    }
                    let safe = loss
                        .safe_until_us
                        .is_some_and(|until| times.get(&entry.returned).is_some_and(|at| *at <= until));
                    if fate == Fate::Ok && safe && !present.contains(token) {
                        return Err(format!("{key}: {} was acknowledged and is lost", token.escape_ascii()));
                    }
                }
                What::Read { value: read } if !(value.starts_with(read) || read.starts_with(value)) => {
                    return Err(format!("{key}: {} was read, {} found", read.escape_ascii(), value.escape_ascii()));
                }
                What::Read { .. } | What::Differs { .. } => {}
            }
        }
        if let Some(stranger) = present.iter().find(|token| !known.contains(*token)) {
            return Err(format!("{key}: {} appeared after the crash", stranger.escape_ascii()));
        }
    }
    Ok(())
}
