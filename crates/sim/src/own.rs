//! Keys that one client has to itself, checked against a model: expiry, removal, emptying a database.
//!
//! Requests of one connection on one key happen in their order, so at any moment the key is in the state of the last
//! acknowledged request or of one of those still without a reply.

use base::Door;
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
        /// To which: another one of its [set](set_of).
        target: String,
        /// Whether the key is gone afterwards.
        renames: bool,
    },
    /// `MSET key value …`.
    SetAll {
        /// Keys of one set, and their values.
        pairs: Vec<(String, String)>,
    },
    /// `MGET key …`.
    GetAll {
        /// Of one set.
        keys: Vec<String>,
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
            OwnAction::SetAll { pairs } => {
                let pairs = pairs.iter().flat_map(|(key, value)| [key.clone(), value.clone()]);
                std::iter::once("MSET".into()).chain(pairs).collect()
            }
            OwnAction::GetAll { keys } => std::iter::once("MGET".into()).chain(keys.iter().cloned()).collect(),
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
            OwnAction::Set { .. } | OwnAction::SetAll { .. } | OwnAction::Flush | OwnAction::Select { .. } => {
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
            OwnAction::GetAll { keys } => match reply {
                Value::Array(items) => {
                    items.len() == keys.len() && items.iter().all(|item| matches!(item, Value::Bulk(_) | Value::Null))
                }
                _ => false,
            },
        }
    }

    /// The first key it touches; `None` for all.
    pub fn key(&self) -> Option<&str> {
        match self {
            OwnAction::Set { key, .. }
            | OwnAction::Append { key, .. }
            | OwnAction::Overwrite { key, .. }
            | OwnAction::Give { key, .. }
            | OwnAction::Expire { key, .. }
            | OwnAction::Remove { key }
            | OwnAction::Get { key } => Some(key),
            OwnAction::SetAll { pairs } => pairs.first().map(|(key, _)| key.as_str()),
            OwnAction::GetAll { keys } => keys.first().map(String::as_str),
            OwnAction::Flush | OwnAction::Select { .. } => None,
        }
    }

    /// A random one on keys of a set; `value` is unique.
    pub fn random(mut keys: Vec<String>, value: String, rng: &mut Rng) -> OwnAction {
        if rng.chance(1, 4) {
            keys.rotate_left(1);
        }
        let (key, target) = (keys[0].clone(), keys[1 + rng.below(keys.len() as u64 - 1) as usize].clone());
        match rng.below(30) {
            0..6 => OwnAction::Set { key, value, life_ms: None },
            6..9 => OwnAction::Set { key, value, life_ms: Some(1 + rng.below(400)) },
            9..11 => OwnAction::Expire { key, life_ms: 1 + rng.below(400) },
            11..13 => OwnAction::Remove { key },
            13..15 => OwnAction::Append { key, value },
            15 => OwnAction::Overwrite { key, offset: rng.below(2 * value.len() as u64) as usize, value },
            16..18 => OwnAction::Give { key, target, renames: rng.chance(1, 2) },
            18..20 => OwnAction::SetAll { pairs: keys.into_iter().map(|key| (key, value.clone())).collect() },
            20..22 => OwnAction::GetAll { keys },
            _ => OwnAction::Get { key },
        }
    }
}

/// Keys of which one request at a time is under way: two of one slot, and one of another where a client may name several.
/// `number` is what all names end with.
pub fn set_of(name: &str, number: usize, door: Door) -> Vec<String> {
    let mut keys = vec![format!("{name}.{number}"), format!("{{{name}.{number}}}.{number}")];
    if door == Door::Standalone {
        keys.push(format!("~{name}.{number}"));
    }
    keys
}

/// Whether a key is one of a client's.
pub fn is_of(key: &str, client: usize) -> bool {
    key.trim_start_matches(['{', '~']).starts_with(&format!("o{client}."))
}
