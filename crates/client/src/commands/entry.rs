//! What a node says of its commands.

use super::reach::{Reach, Told};
use super::{Facts, FirstKey, Known};
use wire::reply_parse::Value;

/// One entry of the answer to `COMMAND`: name, arity, flags, first key, last key, step, categories, tips, key specifications,
/// subcommands.
pub(super) struct Entry<'a> {
    pub name: Vec<u8>,
    arity: i32,
    flags: Vec<&'a [u8]>,
    first_key: i64,
    last_key: i64,
    step: i64,
    categories: &'a [Value],
    key_specs: &'a [Value],
    pub subcommands: &'a [Value],
}

impl<'a> Entry<'a> {
    /// What one element says; `None` if it says something else.
    pub fn read(value: &'a Value) -> Option<Entry<'a>> {
        let Value::Array(fields) = value else { return None };
        let flags = fields.get(2).map_or(&[][..], items);
        Some(Entry {
            name: text(fields.first()?)?.to_ascii_lowercase(),
            arity: integer(fields.get(1)?).and_then(|arity| i32::try_from(arity).ok())?,
            flags: flags.iter().filter_map(text).collect(),
            first_key: match fields.get(3)? {
                Value::Integer(first) => *first,
                _ => return None,
            },
            last_key: fields.get(4).and_then(integer).unwrap_or_default(),
            step: fields.get(5).and_then(integer).unwrap_or_default(),
            categories: fields.get(6).map_or(&[][..], items),
            key_specs: fields.get(8).map_or(&[][..], items),
            subcommands: fields.get(9).map_or(&[][..], items),
        })
    }

    /// What it touches.
    pub fn reach(&self) -> Reach {
        Reach::of(&Told {
            name: &self.name,
            arity: self.arity,
            is_movable: self.flags.contains(&b"movablekeys".as_slice()),
            keys: (self.first_key, self.last_key, self.step),
            categories: &self.categories.iter().filter_map(text).collect::<Vec<_>>(),
            key_specs: self.key_specs,
        })
    }

    /// What that means.
    pub fn known(&self) -> Known {
        let has = |flag: &[u8]| self.flags.contains(&flag);
        let first_key = match self.first_key {
            first if first > 0 => FirstKey::At(first as usize),
            _ if has(b"movablekeys") => self.key_specs.iter().find_map(first_of_spec).unwrap_or(FirstKey::None),
            _ => FirstKey::None,
        };
        Known::of(&Facts {
            name: &String::from_utf8_lossy(&self.name),
            first_key,
            arity: self.arity,
            is_blocking: has(b"blocking"),
            is_pubsub: has(b"pubsub"),
            is_read: has(b"readonly"),
            has_subcommands: !self.subcommands.is_empty(),
        })
    }
}

/// Where the first key of a specification is: `begin_search` by index or by word, `find_keys` by range or by a number.
fn first_of_spec(spec: &Value) -> Option<FirstKey> {
    let (begin, find) = (field(spec, b"begin_search")?, field(spec, b"find_keys")?);
    let inside = field(begin, b"spec")?;
    match text(field(begin, b"type")?)? {
        b"index" => {
            let index = usize::try_from(integer(field(inside, b"index")?)?).ok()?;
            match text(field(find, b"type")?)? {
                b"keynum" => Some(FirstKey::Counted(index)),
                _ => Some(FirstKey::At(index)),
            }
        }
        b"keyword" => {
            let from = usize::try_from(integer(field(inside, b"startfrom")?)?).ok()?;
            // The words that Redis and Valkey have; one that is not known gives no key.
            let word = text(field(inside, b"keyword")?)?.to_ascii_lowercase();
            let known =
                [b"streams".as_slice(), b"keys", b"store", b"storedist"].into_iter().find(|&known| known == word)?;
            Some(FirstKey::Behind(known, from))
        }
        _ => None,
    }
}

pub(super) fn items(value: &Value) -> &[Value] {
    match value {
        Value::Array(items) | Value::Set(items) => items,
        _ => &[],
    }
}

pub(super) fn text(value: &Value) -> Option<&[u8]> {
    match value {
        Value::Simple(text) | Value::Bulk(text) => Some(text),
        _ => None,
    }
}

pub(super) fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Integer(number) => Some(*number),
        _ => None,
    }
}

/// A field of a map, or of the flat array that is one in RESP2.
pub(super) fn field<'a>(map: &'a Value, name: &[u8]) -> Option<&'a Value> {
    match map {
        Value::Map(pairs) => pairs.iter().find(|(key, _)| text(key) == Some(name)).map(|(_, value)| value),
        Value::Array(flat) => flat.chunks_exact(2).find(|pair| text(&pair[0]) == Some(name)).map(|pair| &pair[1]),
        _ => None,
    }
}
