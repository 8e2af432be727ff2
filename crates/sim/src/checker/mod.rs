//! Judges of a history. They know what clients saw and nothing of the code under test.
//!
//! A *span* is a stretch of the history over which nothing acknowledged may be lost. It ends at a crash that may lose
//! something (a power cut in `interval`, any end in `memory`); what was found after it is the next span's base.

pub mod append;
pub mod blocked;
pub mod counter;
pub mod list;
pub mod loss;
pub mod unit;

use std::collections::BTreeMap;

use wire::reply_parse::Value;

use crate::history::{Action, Answer, Operation};
use append::{Entry, Fate, What};

/// What the keys held at the beginning of a span.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Base {
    /// Token keys.
    pub tokens: BTreeMap<String, Vec<u8>>,
    /// Counters.
    pub counters: BTreeMap<String, u64>,
    /// Lists.
    pub lists: BTreeMap<String, Vec<Vec<u8>>>,
}

impl Base {
    /// What reads of all keys found.
    pub fn of(audit: &[Operation]) -> Base {
        let mut base = Base::default();
        for operation in audit {
            let Answer::Reply(reply) = &operation.answer else { continue };
            match &operation.action {
                Action::Get { key } => {
                    base.tokens.insert(key.clone(), bytes_of(reply).to_vec());
                }
                Action::Count { key } => {
                    base.counters.insert(key.clone(), number_of(reply));
                }
                Action::Range { key } => {
                    base.lists.insert(key.clone(), items_of(reply));
                }
                _ => {}
            }
        }
        base
    }
}

/// Bytes of a bulk; an absent key is empty.
pub fn bytes_of(reply: &Value) -> &[u8] {
    match reply {
        Value::Bulk(bytes) => bytes,
        _ => b"",
    }
}

/// A counter's value; an absent key is 0, and nonsense is no value that any counter reaches.
pub fn number_of(reply: &Value) -> u64 {
    match reply {
        Value::Integer(number) => u64::try_from(*number).unwrap_or(u64::MAX),
        Value::Bulk(bytes) => std::str::from_utf8(bytes).ok().and_then(|text| text.parse().ok()).unwrap_or(u64::MAX),
        _ => 0,
    }
}

/// Elements of an array of bulks.
pub fn items_of(reply: &Value) -> Vec<Vec<u8>> {
    match reply {
        Value::Array(items) => items.iter().map(|item| bytes_of(item).to_vec()).collect(),
        _ => Vec::new(),
    }
}

/// Whether an operation happened, as far as its answer says.
pub fn fate_of(answer: &Answer) -> Fate {
    match answer {
        Answer::None => Fate::Unknown,
        Answer::Refused(_) => Fate::Failed,
        Answer::Reply(_) => Fate::Ok,
    }
}

fn append<'a>(operation: &Operation, token: &'a str, expected: Option<&'a [u8]>, length: Option<u64>) -> Entry<'a> {
    let fate = fate_of(&operation.answer);
    let returned = if fate == Fate::Unknown { u64::MAX } else { operation.returned };
    Entry {
        invoked: operation.invoked,
        returned,
        what: What::Append { token: token.as_bytes(), fate, expected, length },
    }
}

fn read<'a>(operation: &Operation, value: &'a Value) -> Entry<'a> {
    Entry { invoked: operation.invoked, returned: operation.returned, what: What::Read { value: bytes_of(value) } }
}

/// The operations on token keys, key by key.
pub fn token_entries(operations: &[Operation]) -> BTreeMap<&str, Vec<Entry<'_>>> {
    let mut keys: BTreeMap<&str, Vec<Entry<'_>>> = BTreeMap::new();
    let mut add = |key, entry| keys.entry(key).or_default().push(entry);
    for operation in operations {
        let reply = match &operation.answer {
            Answer::Reply(reply) => Some(reply),
            _ => None,
        };
        match (&operation.action, reply) {
            (Action::Append { key, token }, reply) => add(key, append(operation, token, None, reply.map(number_of))),
            (Action::Unit { keys, token }, reply) => {
                for (number, key) in keys.iter().enumerate() {
                    let length = match reply {
                        Some(Value::Array(items)) => items.get(number).map(number_of),
                        _ => None,
                    };
                    add(key, append(operation, token, None, length));
                }
            }
            (Action::Compare { feigned: true, .. }, Some(Value::Null)) => {}
            (Action::Compare { key, old, .. }, Some(Value::Null)) => {
                let what = What::Differs { from: old };
                add(key, Entry { invoked: operation.invoked, returned: operation.returned, what });
            }
            (Action::Compare { key, old, token, .. }, _) => add(key, append(operation, token, Some(old), None)),
            (Action::Get { key }, Some(value)) => add(key, read(operation, value)),
            (Action::UnitRead { keys }, Some(Value::Array(items))) => {
                keys.iter().zip(items).for_each(|(key, value)| add(key, read(operation, value)));
            }
            _ => {}
        }
    }
    keys
}

/// Judge a span in which nothing acknowledged may be lost.
///
/// # Errors
/// Words about the first violation.
pub fn check_span(operations: &[Operation], base: &Base) -> Result<(), String> {
    for (key, entries) in token_entries(operations) {
        let base = base.tokens.get(key).map_or(&b""[..], |value| value);
        append::check(base, &entries).map_err(|violation| format!("{key}: {violation}"))?;
    }
    counter::check(operations, base)?;
    list::check(operations, base)?;
    unit::check_reads(operations)
}
