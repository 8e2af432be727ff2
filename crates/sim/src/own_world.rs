//! What a set of keys of one client may be, and what requests make of it: the model runs them, and compares the replies.

use std::collections::BTreeMap;
use std::fmt;

use wire::reply_parse::Value;

use crate::history::Operation;
use crate::own::OwnAction;

/// Milliseconds are cut off where the clock is read, and added where an expiry is set.
const ROUNDING_US: u64 = 2_000;

/// What a key has.
#[derive(Clone, PartialEq, Eq)]
enum Content {
    Text(String),
    List(Vec<String>),
}

impl fmt::Debug for Content {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = |text: &str| format!("{:.20} ({})", text, text.len());
        match self {
            Content::Text(text) => formatter.write_str(&short(text)),
            Content::List(items) => formatter.debug_list().entries(items.iter().map(|item| short(item))).finish(),
        }
    }
}

/// A value and the virtual times between which it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stored {
    content: Content,
    /// Earliest and latest moment of expiry.
    expires_us: Option<(u64, u64)>,
}

/// One of the states that a set of keys may be in. What is not in it is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct World<'a> {
    keys: BTreeMap<&'a str, Option<Stored>>,
}

/// When a request ran: some time between its invocation and its reply.
#[derive(Clone, Copy)]
pub struct Moment {
    invoked_us: u64,
    returned_us: u64,
    /// Memory is limited, and a key with an expiry may go at any time.
    evicts: bool,
}

impl Moment {
    /// That of an operation.
    pub fn of(operation: &Operation, evicts: bool) -> Moment {
        Moment { invoked_us: operation.invoked_us, returned_us: operation.returned_us, evicts }
    }

    fn life(self, life_ms: u64) -> Option<(u64, u64)> {
        let latest_us = if self.returned_us == u64::MAX { u64::MAX / 2 } else { self.returned_us };
        let life_us = life_ms * 1000;
        Some(((self.invoked_us + life_us).saturating_sub(ROUNDING_US), latest_us + life_us + ROUNDING_US))
    }
}

impl Stored {
    fn may_be_there(&self, moment: Moment) -> bool {
        self.expires_us.is_none_or(|(_, latest)| moment.invoked_us <= latest)
    }

    fn may_be_gone(&self, moment: Moment) -> bool {
        self.expires_us.is_some_and(|(earliest, _)| moment.evicts || earliest <= moment.returned_us)
    }
}

impl<'a> World<'a> {
    /// The same with all that may be gone of these keys gone, or not.
    pub fn alternatives(self, keys: &[&'a str], moment: Moment) -> Vec<World<'a>> {
        let mut worlds = vec![self];
        for key in keys {
            let of_key = |world: World<'a>| {
                let stored = world.keys.get(key).and_then(Option::as_ref);
                let (there, gone) =
                    stored.map_or((true, false), |stored| (stored.may_be_there(moment), stored.may_be_gone(moment)));
                let mut without = world.clone();
                if gone {
                    without.keys.insert(key, None);
                }
                there.then_some(world).into_iter().chain(gone.then_some(without)).collect::<Vec<_>>()
            };
            worlds = worlds.into_iter().flat_map(of_key).collect();
        }
        worlds
    }

    /// Everything that is known goes.
    pub fn flush(&mut self) {
        self.keys.values_mut().for_each(|stored| *stored = None);
    }

    /// Runs a request; whether it can have been answered so.
    pub fn run(&mut self, action: &'a OwnAction, reply: Option<&Value>, moment: Moment) -> bool {
        match action {
            OwnAction::Together { actions } => {
                let replies = match reply {
                    None => None,
                    Some(Value::Array(items)) if items.len() == actions.len() => Some(items),
                    Some(_) => return false,
                };
                let reply = |number: usize| replies.map(|items| &items[number]);
                actions.iter().enumerate().all(|(number, action)| self.run(action, reply(number), moment))
            }
            OwnAction::Give { key, target, renames } => self.give((key, target, *renames), reply),
            OwnAction::SetAll { pairs } => {
                for (key, value) in pairs {
                    self.keys.insert(key, Some(text(value.clone(), None)));
                }
                is(reply, &ok())
            }
            OwnAction::GetAll { keys } => keys.iter().enumerate().all(|(number, key)| {
                let found = match self.keys.get(key.as_str()) {
                    None => return true,
                    Some(Some(Stored { content: Content::Text(text), .. })) => bulk(text),
                    Some(_) => Value::Null,
                };
                match reply {
                    Some(Value::Array(items)) => items.get(number).is_some_and(|item| *item == found),
                    reply => reply.is_none(),
                }
            }),
            OwnAction::Set { key, value, life_ms } => {
                let expires_us = life_ms.and_then(|life_ms| moment.life(life_ms));
                self.keys.insert(key, Some(text(value.clone(), expires_us)));
                is(reply, &ok())
            }
            OwnAction::Remove { key } => match self.keys.insert(key, None) {
                None => true,
                Some(stored) => is(reply, &Value::Integer(stored.is_some().into())),
            },
            _ => {
                let key = action.keys()[0];
                let Some(stored) = self.keys.get_mut(key) else { return true };
                let expected = on_key(action, stored, moment);
                is(reply, &expected)
            }
        }
    }

    fn give(&mut self, (key, target, renames): (&'a str, &'a str, bool), reply: Option<&Value>) -> bool {
        let (missed, done) = match renames {
            true => (error("ERR no such key"), ok()),
            false => (Value::Integer(0), Value::Integer(1)),
        };
        match self.keys.get(key).cloned() {
            Some(None) => return is(reply, &missed),
            Some(stored) => drop(self.keys.insert(target, stored)),
            None if reply.is_some_and(|reply| is(Some(reply), &missed)) => {
                self.keys.insert(key, None);
                return true;
            }
            None => drop(self.keys.remove(target)),
        }
        if renames && (reply.is_some() || self.keys.contains_key(key)) {
            self.keys.insert(key, None);
        }
        is(reply, &done)
    }
}

/// What a request makes of its one key, and the reply.
fn on_key(action: &OwnAction, key: &mut Option<Stored>, moment: Moment) -> Value {
    let is_list = matches!(key, Some(Stored { content: Content::List(_), .. }));
    match action {
        OwnAction::Expire { life_ms, .. } => match key {
            None => Value::Integer(0),
            Some(stored) => {
                stored.expires_us = moment.life(*life_ms);
                Value::Integer(1)
            }
        },
        OwnAction::Persist { .. } => {
            Value::Integer(key.as_mut().is_some_and(|stored| stored.expires_us.take().is_some()).into())
        }
        OwnAction::Push { .. }
        | OwnAction::Pop { .. }
        | OwnAction::SetElement { .. }
        | OwnAction::Trim { .. }
        | OwnAction::Range { .. } => match key.is_some() && !is_list {
            true => error("WRONGTYPE "),
            false => on_list(action, key),
        },
        _ if is_list => error("WRONGTYPE "),
        _ => on_text(action, key),
    }
}

fn on_text(action: &OwnAction, key: &mut Option<Stored>) -> Value {
    let old = match key {
        Some(Stored { content: Content::Text(text), .. }) => Some(text),
        _ => None,
    };
    let new = match (action, old) {
        (OwnAction::Get { takes, .. }, old) => {
            let found = old.map_or(Value::Null, |text| bulk(text));
            if *takes {
                *key = None;
            }
            return found;
        }
        (OwnAction::GetPart { first, last, .. }, old) => {
            let text = old.map_or("", |text| text);
            return bulk(text.get(*first..text.len().min(last + 1)).unwrap_or(""));
        }
        (OwnAction::Append { value, .. }, old) => old.map_or(String::new(), std::mem::take) + value,
        (OwnAction::Overwrite { offset, value, .. }, old) => {
            overwritten(&old.map_or(String::new(), std::mem::take), *offset, value)
        }
        (action, _) => unreachable!("{action:?} is none of one string"),
    };
    let reply = Value::Integer(new.len() as i64);
    let expires_us = key.as_ref().and_then(|stored| stored.expires_us);
    *key = Some(text(new, expires_us));
    reply
}

fn on_list(action: &OwnAction, key: &mut Option<Stored>) -> Value {
    let expires_us = key.as_ref().and_then(|stored| stored.expires_us);
    let (was_there, mut items) = match key.take() {
        Some(Stored { content: Content::List(items), .. }) => (true, items),
        _ => (false, Vec::new()),
    };
    let reply = match action {
        OwnAction::Push { values, front, .. } => {
            match front {
                true => drop(items.splice(0..0, values.iter().rev().cloned())),
                false => items.extend(values.iter().cloned()),
            }
            Value::Integer(items.len() as i64)
        }
        OwnAction::Pop { .. } if items.is_empty() => Value::Null,
        OwnAction::Pop { front: true, .. } => bulk(&items.remove(0)),
        OwnAction::Pop { front: false, .. } => items.pop().map_or(Value::Null, |item| bulk(&item)),
        OwnAction::SetElement { .. } if !was_there => error("ERR no such key"),
        OwnAction::SetElement { index, value, .. } => match items.get_mut(*index) {
            None => error("ERR index out of range"),
            Some(item) => {
                item.clone_from(value);
                ok()
            }
        },
        OwnAction::Trim { first, .. } => {
            items.drain(..items.len().min(*first));
            ok()
        }
        _ => Value::Array(items.iter().map(|item| bulk(item)).collect()),
    };
    if !items.is_empty() {
        *key = Some(Stored { content: Content::List(items), expires_us });
    }
    reply
}

fn text(text: String, expires_us: Option<(u64, u64)>) -> Stored {
    Stored { content: Content::Text(text), expires_us }
}

fn ok() -> Value {
    Value::Simple(b"OK".to_vec())
}

fn bulk(text: &str) -> Value {
    Value::Bulk(text.as_bytes().to_vec())
}

fn error(start: &str) -> Value {
    Value::Error(start.as_bytes().to_vec())
}

/// Whether a reply, if there is one, is this; of errors the model knows the beginning.
fn is(reply: Option<&Value>, expected: &Value) -> bool {
    match (reply, expected) {
        (None, _) => true,
        (Some(Value::Error(text)), Value::Error(start)) => text.starts_with(start),
        (Some(reply), expected) => reply == expected,
    }
}

/// What a string is with `value` at `offset`.
fn overwritten(old: &str, offset: usize, value: &str) -> String {
    let mut bytes = old.as_bytes().to_vec();
    bytes.resize(bytes.len().max(offset + value.len()), 0);
    bytes[offset..offset + value.len()].copy_from_slice(value.as_bytes());
    String::from_utf8(bytes).expect("values are ASCII")
}
