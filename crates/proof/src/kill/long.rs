//! Long strings: written whole and in parts, copied and renamed, over cores and beside everything else.

use base::rng::Rng;

use super::book::{Book, Unit};
use super::maker::{integer, name, value_of, words};
use super::state::State;

/// The first keys of a client are for long strings.
pub const LONG_KEYS: usize = 5;
/// Beyond it a long string is written anew.
const LONG_BYTES_MAX: usize = 400 << 10;
/// Longest part that is appended or overwritten, bytes: more than one piece of the log.
const PART_BYTES_MAX: u64 = 90 << 10;
/// What SETRANGE may leave out behind the end, bytes: zeros come there.
const HOLE_BYTES_MAX: u64 = 100;

/// A unit of a long string.
pub fn next(book: &Book, rng: &mut Rng) -> Unit {
    let key = rng.below(LONG_KEYS as u64) as usize;
    let other = (key + 1 + rng.below(LONG_KEYS as u64 - 1) as usize) % LONG_KEYS;
    match (book.latest(key), rng.below(20)) {
        (State::Text(text), 0..6) if text.len() < LONG_BYTES_MAX => append(book, key, text.clone(), rng),
        (State::Text(text), 6..13) if text.len() < LONG_BYTES_MAX => overwrite(book, key, text.clone(), rng),
        (State::Text(text), 13..16) => copy(book, key, other, text.clone()),
        (State::Text(text), 16..18) => rename(book, key, other, text.clone()),
        (_, 18) => {
            let reply = integer(usize::from(*book.latest(key) != State::Absent));
            Unit { words: words("DEL", [name(book, key)]), changes: vec![(key, State::Absent)], reply }
        }
        _ => {
            let text = value_of(book, key, (60 << 10) + rng.below(200 << 10));
            let words = words("SET", [name(book, key), text.clone()]);
            Unit { words, changes: vec![(key, State::Text(text))], reply: b"+OK\r\n".to_vec() }
        }
    }
}

fn append(book: &Book, key: usize, mut text: Vec<u8>, rng: &mut Rng) -> Unit {
    let part = value_of(book, key, rng.below(PART_BYTES_MAX));
    text.extend_from_slice(&part);
    let reply = integer(text.len());
    Unit { words: words("APPEND", [name(book, key), part]), changes: vec![(key, State::Text(text))], reply }
}

fn overwrite(book: &Book, key: usize, mut text: Vec<u8>, rng: &mut Rng) -> Unit {
    let part = value_of(book, key, rng.below(PART_BYTES_MAX));
    let offset = rng.below(text.len() as u64 + HOLE_BYTES_MAX) as usize;
    text.resize(text.len().max(offset + part.len()), 0);
    text[offset..offset + part.len()].copy_from_slice(&part);
    let words = words("SETRANGE", [name(book, key), offset.to_string().into_bytes(), part]);
    let reply = integer(text.len());
    Unit { words, changes: vec![(key, State::Text(text))], reply }
}

fn copy(book: &Book, from: usize, to: usize, text: Vec<u8>) -> Unit {
    let words = words("COPY", [name(book, from), name(book, to), b"REPLACE".to_vec()]);
    Unit { words, changes: vec![(to, State::Text(text))], reply: integer(1) }
}

fn rename(book: &Book, from: usize, to: usize, text: Vec<u8>) -> Unit {
    let changes = vec![(from, State::Absent), (to, State::Text(text))];
    Unit { words: words("RENAME", [name(book, from), name(book, to)]), changes, reply: b"+OK\r\n".to_vec() }
}
