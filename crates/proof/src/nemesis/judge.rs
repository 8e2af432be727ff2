//! Is the history of each key one that a single copy of it could have given? (`docs/internals/nemesis.md`)
//!
//! The results say in which order a key's operations took effect, so nothing has to be searched:
//!
//! ```text
//!   counter  INCR told v: place 2v-1       GET told v: place 2v
//!   tokens   L: the longest value known    a, b, c,      APPEND of its i-th token (from 0): place 2i+1
//!                                                        GET of n tokens: place 2n       a comparison that failed: behind its old value
//! ```
//!
//! In real time places never go back: nobody begins below what has returned. That one rule finds what is lost (the last read is below
//! it), what is read too late, and what comes twice or in another order. Keys that are nothing but set are `register`'s.

mod register;

use std::collections::{BTreeMap, HashMap, HashSet};

use super::history::{Answer, Operation, What};

/// An operation among those of its key: it took effect at a place from `low` to `high`, between two moments.
struct Placed<'a> {
    low: u64,
    high: u64,
    operation: &'a Operation,
}

/// What is wrong with each key's history, the first finding of each key.
pub(crate) fn judge(history: &[Operation]) -> Vec<String> {
    by_key(history)
        .into_iter()
        .filter_map(|(key, of_key)| judge_key(&of_key).err().map(|e| format!("{key}: {e}")))
        .collect()
}

/// The operations of each key.
pub(crate) fn by_key(history: &[Operation]) -> BTreeMap<&str, Vec<&Operation>> {
    let mut keys: BTreeMap<&str, Vec<&Operation>> = BTreeMap::new();
    for operation in history {
        keys.entry(&operation.key).or_default().push(operation);
    }
    keys
}

fn judge_key(of_key: &[&Operation]) -> Result<(), String> {
    if of_key.iter().any(|one| matches!(one.what, What::Put { .. })) {
        return register::judge(of_key);
    }
    let is_counter = of_key.iter().any(|one| matches!(one.what, What::Increment | What::Count));
    in_order(if is_counter { counter(of_key)? } else { tokens(of_key)? })
}

fn told(operation: &Operation) -> String {
    let Operation { client, what, answer, begun_us, ended_us, node, .. } = operation;
    format!("{} by client {client} at node {node}, {begun_us}..{ended_us} us: {}", short(what), short(answer))
}

fn short(what: &impl std::fmt::Debug) -> String {
    let text = format!("{what:?}");
    match text.char_indices().nth(160) {
        Some((_, _)) => {
            let letters: Vec<char> = text.chars().collect();
            let (head, tail) = (&letters[..40], &letters[letters.len() - 100..]);
            format!("{}…{}", head.iter().collect::<String>(), tail.iter().collect::<String>())
        }
        None => text,
    }
}

/// Real time: nobody begins below what has returned.
fn in_order(mut placed: Vec<Placed<'_>>) -> Result<(), String> {
    let mut returned: Vec<usize> = (0..placed.len()).collect();
    placed.sort_by_key(|one| one.operation.begun_us);
    returned.sort_by_key(|index| placed[*index].operation.returned_us());
    let (mut returned, mut highest) = (returned.into_iter().peekable(), None::<usize>);
    for one in &placed {
        while let Some(index) =
            returned.next_if(|index| placed[*index].operation.returned_us() < one.operation.begun_us)
        {
            if highest.is_none_or(|highest| placed[index].low > placed[highest].low) {
                highest = Some(index);
            }
        }
        if let Some(before) = highest.map(|index| &placed[index]).filter(|before| before.low > one.high) {
            return Err(format!(
                "lost or read too late: {} had returned before {}",
                told(before.operation),
                told(one.operation)
            ));
        }
    }
    Ok(())
}

fn counter<'a>(of_key: &[&'a Operation]) -> Result<Vec<Placed<'a>>, String> {
    let (mut placed, mut seen) = (Vec::new(), HashMap::new());
    let mut increments = 0;
    for operation in of_key.iter().copied() {
        let is_increment = operation.what == What::Increment;
        increments += u64::from(is_increment && !matches!(operation.answer, Answer::Refused(_)));
        let Answer::Number(value) = operation.answer else { continue };
        let place = 2 * value - u64::from(is_increment && value > 0);
        if is_increment && let Some(other) = seen.insert(value, operation) {
            return Err(format!("two increments made it {value}: {}; {}", told(other), told(operation)));
        }
        placed.push(Placed { low: place, high: place, operation });
    }
    if let Some(most) = placed.iter().max_by_key(|one| one.low).filter(|most| most.low.div_ceil(2) > increments) {
        return Err(format!("{increments} increments may have been done, and it was more: {}", told(most.operation)));
    }
    Ok(placed)
}

fn split(value: &str) -> impl Iterator<Item = &str> {
    value.split_inclusive(',')
}

/// The longest value that anybody knows to have been there.
fn longest(of_key: &[&Operation]) -> String {
    let known = |operation: &&Operation| match (&operation.what, &operation.answer) {
        (What::Read, Answer::Value(value)) => Some(value.clone()),
        (What::Swap { old, token }, Answer::Swapped) => Some(format!("{old}{token}")),
        _ => None,
    };
    of_key.iter().filter_map(known).max_by_key(String::len).unwrap_or_default()
}

fn tokens<'a>(of_key: &[&'a Operation]) -> Result<Vec<Placed<'a>>, String> {
    let longest = longest(of_key);
    let sent: HashSet<&str> = of_key.iter().filter_map(|operation| token(operation)).collect();
    let (mut ends, mut length) = (HashMap::new(), 0);
    for (index, token) in split(&longest).enumerate() {
        length += token.len();
        if !sent.contains(token) {
            return Err(format!("it holds `{token}`, which nobody sent: {}", short(&longest)));
        }
        if ends.insert(token.to_owned(), (index as u64, length)).is_some() {
            return Err(format!("`{token}` is in it twice: {}", short(&longest)));
        }
    }
    let mut placed = Vec::new();
    for operation in of_key {
        if let Some((low, high)) = places(operation, &longest, &ends)? {
            placed.push(Placed { low, high, operation });
        }
    }
    Ok(placed)
}

fn token(operation: &Operation) -> Option<&str> {
    match &operation.what {
        What::Append { token } | What::Swap { token, .. } => Some(token),
        _ => None,
    }
}

/// Where an operation took effect; nothing if it says nothing.
fn places(
    operation: &Operation,
    longest: &str,
    ends: &HashMap<String, (u64, usize)>,
) -> Result<Option<(u64, u64)>, String> {
    let within = |value: &str| match longest.starts_with(value) && (value.is_empty() || value.ends_with(',')) {
        true => Ok(2 * split(value).count() as u64),
        false => Err(format!("not how {} began: {}", short(&longest), told(operation))),
    };
    match (&operation.what, &operation.answer) {
        (What::Read, Answer::Value(value)) => within(value).map(|place| Some((place, place))),
        (What::Swap { old, .. }, Answer::Differs) => within(old).map(|place| Some((place + 1, u64::MAX))),
        (What::Append { token } | What::Swap { token, .. }, answer) => {
            let Some((index, end)) = ends.get(token) else {
                // Acknowledged, and behind everything that anybody saw: the last read says whether it is lost.
                return Ok(operation.is_ok().then_some((u64::MAX, u64::MAX)));
            };
            let is_as_told = match (&operation.what, answer) {
                (_, Answer::Refused(_)) => return Err(format!("it was refused, and done: {}", told(operation))),
                (What::Append { .. }, Answer::Number(length)) => *length == *end as u64,
                (What::Swap { old, .. }, _) => *old == longest[..*end - token.len()],
                _ => true,
            };
            match is_as_told {
                true => Ok(Some((2 * index + 1, 2 * index + 1))),
                false => Err(format!("done on another value than it says: {}", told(operation))),
            }
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests;
