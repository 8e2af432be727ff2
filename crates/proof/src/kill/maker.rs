//! Draws what the client of a book sends next, and what must come of it.

use base::rng::Rng;

use super::book::{Book, Unit};
use super::long::{self, LONG_KEYS};
use super::state::{Kind, State};

/// Keys of one multi-key request, at most.
const UNIT_KEYS_MAX: u64 = 8;
/// Beyond it a string is written anew instead of appended to.
const TEXT_BYTES_MAX: usize = 4 << 10;
/// Beyond it elements are popped instead of pushed.
const ELEMENTS_MAX: usize = 48;
/// Elements of one LPUSH, at most.
const PUSHED_MAX: u64 = 3;

/// One of so many units is of a long string: they are a thousand times as long as others.
const LONG_ONE_IN: u64 = 150;

/// In a database of its own one of so many units empties it: a run that is being made is of no use then.
const FLUSH_ONE_IN: u64 = 3000;

/// `keys` watched keys of client `client`, the first ones for long strings, of the others every fifth a list. A tag brings
/// all of them to one core.
pub fn names(client: usize, keys: usize, is_tagged: bool) -> impl Iterator<Item = (Vec<u8>, Kind)> {
    let client = if is_tagged { format!("{{{client}}}") } else { client.to_string() };
    (0..keys).map(move |number| match number % 5 {
        _ if number < LONG_KEYS => (format!("watched:{client}:long:{number}").into_bytes(), Kind::Text),
        4 => (format!("watched:{client}:list:{number}").into_bytes(), Kind::List),
        _ => (format!("watched:{client}:text:{number}").into_bytes(), Kind::Text),
    })
}

/// The next unit of `book`.
pub fn next(book: &Book, rng: &mut Rng) -> Unit {
    if rng.chance(1, LONG_ONE_IN) {
        return long::next(book, rng);
    }
    if book.database() > 0 && rng.chance(1, FLUSH_ONE_IN) {
        return flush(book);
    }
    let key = any_key(book, rng);
    match (book.keys()[key].kind, rng.below(100)) {
        (_, 0..8) => delete(book, &one_or_more(book, key, rng)),
        (Kind::Text, 8..40) => set(book, &[key], rng),
        (Kind::Text, 40..70) => append(book, key, rng),
        (Kind::Text, _) => set(book, &one_or_more(book, key, rng), rng),
        (Kind::List, _) => push_or_pop(book, key, rng),
    }
}

/// A key that is not for long strings.
fn any_key(book: &Book, rng: &mut Rng) -> usize {
    LONG_KEYS + rng.below((book.keys().len() - LONG_KEYS) as u64) as usize
}

/// `first` and up to seven others of its kind.
fn one_or_more(book: &Book, first: usize, rng: &mut Rng) -> Vec<usize> {
    let mut keys = vec![first];
    for _ in 0..rng.below(UNIT_KEYS_MAX) {
        let other = any_key(book, rng);
        if book.keys()[other].kind == book.keys()[first].kind && !keys.contains(&other) {
            keys.push(other);
        }
    }
    keys
}

fn value(book: &Book, key: usize, rng: &mut Rng) -> Vec<u8> {
    let filler_bytes = match rng.below(1000) {
        0 => (60 << 10) + rng.below(200 << 10), // a body in several pieces
        1..50 => rng.below(4 << 10),
        _ => rng.below(64),
    };
    value_of(book, key, filler_bytes)
}

/// A value that names its unit, its key and its length, so that no other is like it.
pub(super) fn value_of(book: &Book, key: usize, filler_bytes: u64) -> Vec<u8> {
    let mut value = format!("{}.{key}.{filler_bytes};", book.next_number()).into_bytes();
    value.resize(value.len() + filler_bytes as usize, b'a' + (book.next_number() % 26) as u8);
    value
}

pub(super) fn words(command: &str, rest: impl IntoIterator<Item = Vec<u8>>) -> Vec<Vec<u8>> {
    std::iter::once(command.as_bytes().to_vec()).chain(rest).collect()
}

pub(super) fn name(book: &Book, key: usize) -> Vec<u8> {
    book.keys()[key].name.clone()
}

pub(super) fn integer(number: usize) -> Vec<u8> {
    format!(":{number}\r\n").into_bytes()
}

fn set(book: &Book, keys: &[usize], rng: &mut Rng) -> Unit {
    let (mut rest, mut changes) = (Vec::new(), Vec::new());
    for key in keys {
        let value = value(book, *key, rng);
        rest.extend([name(book, *key), value.clone()]);
        changes.push((*key, State::Text(value)));
    }
    let command = if keys.len() == 1 && rng.chance(3, 4) { "SET" } else { "MSET" };
    Unit { words: words(command, rest), changes, reply: b"+OK\r\n".to_vec() }
}

fn append(book: &Book, key: usize, rng: &mut Rng) -> Unit {
    let mut text = match book.latest(key) {
        State::Text(text) if text.len() > TEXT_BYTES_MAX => return set(book, &[key], rng),
        State::Text(text) => text.clone(),
        _ => Vec::new(),
    };
    let value = value(book, key, rng);
    text.extend_from_slice(&value);
    let reply = integer(text.len());
    Unit { words: words("APPEND", [name(book, key), value]), changes: vec![(key, State::Text(text))], reply }
}

fn delete(book: &Book, keys: &[usize]) -> Unit {
    let existing = keys.iter().filter(|key| *book.latest(**key) != State::Absent).count();
    let changes = keys.iter().map(|key| (*key, State::Absent)).collect();
    Unit { words: words("DEL", keys.iter().map(|key| name(book, *key))), changes, reply: integer(existing) }
}

fn flush(book: &Book) -> Unit {
    let changes = (0..book.keys().len()).map(|key| (key, State::Absent)).collect();
    Unit { words: words("FLUSHDB", []), changes, reply: b"+OK\r\n".to_vec() }
}

fn push_or_pop(book: &Book, key: usize, rng: &mut Rng) -> Unit {
    let mut elements = match book.latest(key) {
        State::List(elements) => elements.clone(),
        _ => std::collections::VecDeque::new(),
    };
    if elements.len() > ELEMENTS_MAX || rng.chance(1, 4) {
        let reply = match elements.pop_back() {
            None => b"$-1\r\n".to_vec(),
            Some(element) => [format!("${}\r\n", element.len()).as_bytes(), &element, b"\r\n"].concat(),
        };
        let state = if elements.is_empty() { State::Absent } else { State::List(elements) };
        return Unit { words: words("RPOP", [name(book, key)]), changes: vec![(key, state)], reply };
    }
    let count = 1 + rng.below(PUSHED_MAX);
    let pushed: Vec<Vec<u8>> =
        (0..count).map(|index| [value(book, key, rng), index.to_string().into_bytes()].concat()).collect();
    pushed.iter().for_each(|element| elements.push_front(element.clone()));
    let reply = integer(elements.len());
    let words = words("LPUSH", std::iter::once(name(book, key)).chain(pushed));
    Unit { words, changes: vec![(key, State::List(elements))], reply }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use base::rng::Rng;

    use super::{Book, names, next};
    use crate::kill::book::Habits;

    #[test]
    fn every_command_is_drawn_no_state_comes_twice_and_units_name_a_key_once() {
        let (mut book, mut rng) = (Book::new(1, names(0, 20, false), Habits::default()), Rng::new(3));
        let (mut commands, mut values) = (BTreeSet::new(), BTreeSet::new());
        for _ in 0..20_000 {
            let unit = next(&book, &mut rng);
            commands.insert(unit.words[0].clone());
            let keys: BTreeSet<usize> = unit.changes.iter().map(|(key, _)| *key).collect();
            assert_eq!(keys.len(), unit.changes.len());
            if matches!(&unit.words[0][..], b"SET" | b"APPEND") {
                assert!(values.insert(unit.words[2].clone()), "a value came twice");
            }
            let reply = unit.reply.clone();
            book.send(unit);
            book.acknowledge(&reply).expect("it is the reply it wants");
        }
        let told: Vec<String> = commands.iter().map(|command| String::from_utf8_lossy(command).into_owned()).collect();
        assert_eq!(told.join(" "), "APPEND COPY DEL FLUSHDB LPUSH MSET RENAME RPOP SET SETRANGE");
    }
}
