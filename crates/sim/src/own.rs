//! Keys that one client has to itself, checked against a model: strings and lists, parts of them, expiry, removal, transactions.
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
    /// `PERSIST key`.
    Persist {
        /// Which.
        key: String,
    },
    /// `DEL key`.
    Remove {
        /// Which.
        key: String,
    },
    /// `GET key`, or `GETDEL key`.
    Get {
        /// Which.
        key: String,
        /// Whether the key is gone afterwards.
        takes: bool,
    },
    /// `GETRANGE key first last`.
    GetPart {
        /// Which.
        key: String,
        /// Of its bytes.
        first: usize,
        /// The last one that belongs to it.
        last: usize,
    },
    /// `RPUSH key value …`, or `LPUSH`.
    Push {
        /// Which.
        key: String,
        /// Unique.
        values: Vec<String>,
        /// Whether they come before the others.
        front: bool,
    },
    /// `LPOP key`, or `RPOP`.
    Pop {
        /// Which.
        key: String,
        /// Whether it is the first.
        front: bool,
    },
    /// `LSET key index value`.
    SetElement {
        /// Which.
        key: String,
        /// From the front.
        index: usize,
        /// Unique.
        value: String,
    },
    /// `LTRIM key first -1`.
    Trim {
        /// Which.
        key: String,
        /// The first element that stays.
        first: usize,
    },
    /// `LRANGE key 0 -1`.
    Range {
        /// Which.
        key: String,
    },
    /// `MULTI`, any of these but the last two, `EXEC`.
    Together {
        /// On keys of one set.
        actions: Vec<OwnAction>,
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
    /// Its requests; the last one's reply decides.
    pub fn requests(&self) -> Vec<Vec<Vec<u8>>> {
        match self {
            OwnAction::Together { actions } => {
                let inner = actions.iter().map(OwnAction::request).collect();
                [vec![vec![b"MULTI".to_vec()]], inner, vec![vec![b"EXEC".to_vec()]]].concat()
            }
            _ => vec![self.request()],
        }
    }

    fn request(&self) -> Vec<Vec<u8>> {
        let words = |words: &[&str]| words.iter().map(|word| word.as_bytes().to_vec()).collect();
        let number = |number: usize| number.to_string();
        match self {
            OwnAction::Set { key, value, life_ms: None } => words(&["SET", key, value]),
            OwnAction::Set { key, value, life_ms: Some(life_ms) } => {
                words(&["SET", key, value, "PX", &life_ms.to_string()])
            }
            OwnAction::Append { key, value } => words(&["APPEND", key, value]),
            OwnAction::Overwrite { key, offset, value } => words(&["SETRANGE", key, &number(*offset), value]),
            OwnAction::Give { key, target, renames: true } => words(&["RENAME", key, target]),
            OwnAction::Give { key, target, renames: false } => words(&["COPY", key, target, "REPLACE"]),
            OwnAction::SetAll { pairs } => {
                let pairs = pairs.iter().flat_map(|(key, value)| [key.as_str(), value]);
                words(&std::iter::once("MSET").chain(pairs).collect::<Vec<_>>())
            }
            OwnAction::GetAll { keys } => words(&[&["MGET"], &strs(keys)[..]].concat()),
            OwnAction::Expire { key, life_ms } => words(&["PEXPIRE", key, &life_ms.to_string()]),
            OwnAction::Persist { key } => words(&["PERSIST", key]),
            OwnAction::Remove { key } => words(&["DEL", key]),
            OwnAction::Get { key, takes } => words(&[if *takes { "GETDEL" } else { "GET" }, key]),
            OwnAction::GetPart { key, first, last } => words(&["GETRANGE", key, &number(*first), &number(*last)]),
            OwnAction::Push { key, values, front } => {
                words(&[&[if *front { "LPUSH" } else { "RPUSH" }, key.as_str()], &strs(values)[..]].concat())
            }
            OwnAction::Pop { key, front } => words(&[if *front { "LPOP" } else { "RPOP" }, key]),
            OwnAction::SetElement { key, index, value } => words(&["LSET", key, &number(*index), value]),
            OwnAction::Trim { key, first } => words(&["LTRIM", key, &number(*first), "-1"]),
            OwnAction::Range { key } => words(&["LRANGE", key, "0", "-1"]),
            OwnAction::Flush => words(&["FLUSHDB"]),
            OwnAction::Select { database } => words(&["SELECT", &database.to_string()]),
            OwnAction::Together { .. } => unreachable!("a transaction is no request of another one"),
        }
    }

    /// Whether a reply can belong to it: any that is no error, and errors that tell of the keys.
    pub fn fits(&self, reply: &Value) -> bool {
        const OF_KEYS: [&str; 3] = ["WRONGTYPE ", "ERR no such key", "ERR index out of range"];
        match (self, reply) {
            (OwnAction::Together { actions }, Value::Array(items)) => {
                items.len() == actions.len() && actions.iter().zip(items).all(|(action, item)| action.fits(item))
            }
            (OwnAction::Together { .. }, _) => false,
            (_, Value::Error(text)) => OF_KEYS.iter().any(|start| text.starts_with(start.as_bytes())),
            _ => true,
        }
    }

    /// The keys it touches, of one set; none for all.
    pub fn keys(&self) -> Vec<&str> {
        match self {
            OwnAction::Set { key, .. }
            | OwnAction::Append { key, .. }
            | OwnAction::Overwrite { key, .. }
            | OwnAction::Expire { key, .. }
            | OwnAction::Persist { key }
            | OwnAction::Remove { key }
            | OwnAction::Get { key, .. }
            | OwnAction::GetPart { key, .. }
            | OwnAction::Push { key, .. }
            | OwnAction::Pop { key, .. }
            | OwnAction::SetElement { key, .. }
            | OwnAction::Trim { key, .. }
            | OwnAction::Range { key } => vec![key],
            OwnAction::Give { key, target, .. } => vec![key, target],
            OwnAction::SetAll { pairs } => pairs.iter().map(|(key, _)| key.as_str()).collect(),
            OwnAction::GetAll { keys } => strs(keys),
            OwnAction::Together { actions } => actions.iter().flat_map(OwnAction::keys).collect(),
            OwnAction::Flush | OwnAction::Select { .. } => Vec::new(),
        }
    }

    /// The first key it touches; `None` for all.
    pub fn key(&self) -> Option<&str> {
        self.keys().first().copied()
    }

    /// A random one on keys of a set; `value` is unique.
    pub fn random(keys: Vec<String>, value: &str, rng: &mut Rng) -> OwnAction {
        if !rng.chance(1, 8) {
            return OwnAction::one(keys, value.to_owned(), rng);
        }
        let count = 2 + rng.below(3);
        OwnAction::Together {
            actions: (0..count).map(|number| OwnAction::one(keys.clone(), format!("{number}:{value}"), rng)).collect(),
        }
    }

    fn one(mut keys: Vec<String>, value: String, rng: &mut Rng) -> OwnAction {
        if rng.chance(1, 4) {
            keys.rotate_left(1);
        }
        if rng.chance(1, 4) {
            return OwnAction::of_list(keys.swap_remove(0), value, rng);
        }
        let (key, target) = (keys[0].clone(), keys[1 + rng.below(keys.len() as u64 - 1) as usize].clone());
        let place = rng.below(2 * value.len() as u64) as usize;
        match rng.below(34) {
            0..6 => OwnAction::Set { key, value, life_ms: None },
            6..9 => OwnAction::Set { key, value, life_ms: Some(1 + rng.below(400)) },
            9..11 => OwnAction::Expire { key, life_ms: 1 + rng.below(400) },
            11 => OwnAction::Persist { key },
            12..14 => OwnAction::Remove { key },
            14..17 => OwnAction::Append { key, value },
            17 => OwnAction::Overwrite { key, offset: place, value },
            18..21 => OwnAction::Give { key, target, renames: rng.chance(1, 2) },
            21..23 => OwnAction::SetAll { pairs: keys.into_iter().map(|key| (key, value.clone())).collect() },
            23..25 => OwnAction::GetAll { keys },
            25 => OwnAction::GetPart { key, first: place, last: place + rng.below(value.len() as u64) as usize },
            _ => OwnAction::Get { key, takes: rng.chance(1, 16) },
        }
    }

    fn of_list(key: String, value: String, rng: &mut Rng) -> OwnAction {
        match rng.below(18) {
            0..7 => {
                let values = (0..1 + rng.below(3)).map(|number| format!("{number}.{value}")).collect();
                OwnAction::Push { key, values, front: rng.chance(1, 2) }
            }
            7..10 => OwnAction::Pop { key, front: rng.chance(1, 2) },
            10..12 => OwnAction::SetElement { key, index: rng.below(3) as usize, value },
            12..14 => OwnAction::Trim { key, first: rng.below(3) as usize },
            _ => OwnAction::Range { key },
        }
    }
}

fn strs(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
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

/// What the keys of a set have in common.
pub fn name_of_set(key: &str) -> &str {
    let name = key.trim_start_matches(['{', '~']);
    name.split('}').next().unwrap_or(name)
}
