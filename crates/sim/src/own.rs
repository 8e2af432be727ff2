//! Keys that one client has to itself, checked against a model: expiry, removal, emptying a database.
//!
//! Requests of one connection on one key happen in their order, so at any moment the key is in the state of the last
//! acknowledged request or of one of those still without a reply.

use base::rng::Rng;
use wire::reply_parse::Value;

/// What a client does with a key of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnAction {
    /// `SET key value`, with `PX` if the life is limited.
    Set {
        /// Which.
        key: String,
        /// Unique.
        value: String,
        /// Life, milliseconds.
        life_ms: Option<u64>,
    },
    /// `APPEND key value`.
    Append {
        /// Which.
        key: String,
        /// Unique.
        value: String,
    },
    /// `SETRANGE key offset value`.
    Overwrite {
        /// Which.
        key: String,
        /// First byte.
        offset: usize,
        /// Unique.
        value: String,
    },
    /// `RENAME key target`, or `COPY key target REPLACE`.
    Give {
        /// Which.
        key: String,
        /// To which: the other one of its [pair](pair_of).
        target: String,
        /// Whether the key is gone afterwards.
        renames: bool,
    },
    /// `PEXPIRE key life`.
    Expire {
        /// Which.
        key: String,
        /// Life from now, milliseconds.
        life_ms: u64,
    },
    /// `DEL key`.
    Remove {
        /// Which.
        key: String,
    },
    /// `GET key`.
    Get {
        /// Which.
        key: String,
    },
    /// `FLUSHDB` of a database that nobody else uses.
    Flush,
    /// `SELECT` of that database, at the start of a connection.
    Select {
        /// Its number.
        database: u8,
    },
}

impl OwnAction {
    /// Its one request.
    pub fn request(&self) -> Vec<Vec<u8>> {
        let words: Vec<String> = match self {
            OwnAction::Set { key, value, life_ms: None } => vec!["SET".into(), key.clone(), value.clone()],
            OwnAction::Set { key, value, life_ms: Some(life_ms) } => {
                vec!["SET".into(), key.clone(), value.clone(), "PX".into(), life_ms.to_string()]
            }
            OwnAction::Append { key, value } => vec!["APPEND".into(), key.clone(), value.clone()],
            OwnAction::Overwrite { key, offset, value } => {
                vec!["SETRANGE".into(), key.clone(), offset.to_string(), value.clone()]
            }
            OwnAction::Give { key, target, renames: true } => vec!["RENAME".into(), key.clone(), target.clone()],
            OwnAction::Give { key, target, renames: false } => {
                vec!["COPY".into(), key.clone(), target.clone(), "REPLACE".into()]
            }
            OwnAction::Expire { key, life_ms } => vec!["PEXPIRE".into(), key.clone(), life_ms.to_string()],
            OwnAction::Remove { key } => vec!["DEL".into(), key.clone()],
            OwnAction::Get { key } => vec!["GET".into(), key.clone()],
            OwnAction::Flush => vec!["FLUSHDB".into()],
            OwnAction::Select { database } => vec!["SELECT".into(), database.to_string()],
        };
        words.into_iter().map(String::into_bytes).collect()
    }

    /// Whether a reply can belong to it.
    pub fn fits(&self, reply: &Value) -> bool {
        match self {
            OwnAction::Set { .. } | OwnAction::Flush | OwnAction::Select { .. } => {
                *reply == Value::Simple(b"OK".to_vec())
            }
            OwnAction::Append { .. } | OwnAction::Overwrite { .. } => matches!(reply, Value::Integer(1..)),
            OwnAction::Give { renames: true, .. } => match reply {
                Value::Error(text) => text.starts_with(b"ERR no such key"),
                reply => *reply == Value::Simple(b"OK".to_vec()),
            },
            OwnAction::Give { renames: false, .. } | OwnAction::Expire { .. } | OwnAction::Remove { .. } => {
                matches!(reply, Value::Integer(0 | 1))
            }
            OwnAction::Get { .. } => matches!(reply, Value::Bulk(_) | Value::Null),
        }
    }

    /// The key it touches; `None` for all.
    pub fn key(&self) -> Option<&str> {
        match self {
            OwnAction::Set { key, .. }
            | OwnAction::Append { key, .. }
            | OwnAction::Overwrite { key, .. }
            | OwnAction::Give { key, .. }
            | OwnAction::Expire { key, .. }
            | OwnAction::Remove { key }
            | OwnAction::Get { key } => Some(key),
            OwnAction::Flush | OwnAction::Select { .. } => None,
        }
    }

    /// A random one on a key of the pair of number `number`; `value` is unique.
    pub fn random(name: &str, number: usize, value: String, rng: &mut Rng) -> OwnAction {
        let (key, target) = pair_of(name, number, rng.chance(1, 4));
        match rng.below(26) {
            0..6 => OwnAction::Set { key, value, life_ms: None },
            6..9 => OwnAction::Set { key, value, life_ms: Some(1 + rng.below(400)) },
            9..11 => OwnAction::Expire { key, life_ms: 1 + rng.below(400) },
            11..13 => OwnAction::Remove { key },
            13..15 => OwnAction::Append { key, value },
            15 => OwnAction::Overwrite { key, offset: rng.below(2 * value.len() as u64) as usize, value },
            16..18 => OwnAction::Give { key, target, renames: rng.chance(1, 2) },
            _ => OwnAction::Get { key },
        }
    }
}

/// Two keys of one slot; `number` is what both names end with.
fn pair_of(name: &str, number: usize, turned: bool) -> (String, String) {
    let (one, other) = (format!("{name}.{number}"), format!("{{{name}.{number}}}.{number}"));
    if turned { (other, one) } else { (one, other) }
}
