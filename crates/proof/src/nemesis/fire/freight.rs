//! What moves besides: a value of many megabytes, and a slot with more keys than two nodes compare. Both are written to all the time;
//! what is written is never written to again, so a request of which nobody knows may be said once more.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use base::rng::Rng;

use super::super::doors::{Door, Doors, ask, next_reply};
use crate::connection::Connection;
use crate::reply::{Reply, show};

/// Keys that are written, or read, at once.
const AT_ONCE: usize = 500;
/// How long one of these requests may take, and all tries for one: a value of more than `LINK_BACKLOG_BYTES_MAX` has its follower
/// filled anew, and sent again before that is over it would be so for ever.
const PATIENCE: Duration = Duration::from_secs(60);
const WITHIN: Duration = Duration::from_secs(300);
const PAUSE: Duration = Duration::from_millis(10);
/// Keys that are set for one patch of the long value, which goes to who is being filled as a whole each time.
const KEYS_PER_PATCH: usize = 50;
/// Bytes that are set in the long value at once.
const PATCH_BYTES: usize = 16;

/// What was written.
pub(super) struct Freight {
    tag_of_long: String,
    tag_of_many: String,
    long: Vec<u8>,
    many: BTreeMap<usize, String>,
    keys: usize,
    /// Keys that were set anew.
    writes: usize,
}

impl Freight {
    /// Puts it there.
    ///
    /// # Errors
    /// When a node refuses it.
    pub(super) fn load(doors: &Doors, tags: [String; 2], (bytes, keys): (usize, usize)) -> Result<Freight, String> {
        let [tag_of_long, tag_of_many] = tags;
        let mut rng = Rng::new(bytes as u64);
        let long: Vec<u8> = (0..bytes / 8).flat_map(|_| rng.next_u64().to_le_bytes()).collect();
        let freight = Freight { tag_of_long, tag_of_many, long, many: BTreeMap::new(), keys, writes: 0 };
        let mut hand = Hand::new(doors);
        hand.done(&[b"SET", freight.long_key().as_bytes(), &freight.long])?;
        let numbers: Vec<usize> = (0..keys).collect();
        for numbers in numbers.chunks(AT_ONCE) {
            let mut words = vec!["MSET".to_owned()];
            words.extend(numbers.iter().flat_map(|number| [freight.key(*number), format!("first {number}")]));
            let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
            hand.done(&words)?;
        }
        Ok(freight)
    }

    fn long_key(&self) -> String {
        format!("long:{{{}}}", self.tag_of_long)
    }

    fn key(&self, number: usize) -> String {
        format!("many:{{{}}}:{number}", self.tag_of_many)
    }

    /// How many keys there are.
    pub(super) fn count(&self) -> u64 {
        self.keys as u64 + 1
    }

    /// How often it was written to.
    pub(super) fn writes(&self) -> usize {
        self.writes
    }

    /// Writes until it is over.
    ///
    /// # Errors
    /// When a write is not done for minutes.
    pub(super) fn run(&mut self, doors: &Doors, is_over: impl Fn() -> bool) -> Result<(), String> {
        let mut hand = Hand::new(doors);
        while !is_over() && self.writes < self.keys.min(self.long.len() / PATCH_BYTES) {
            if self.writes.is_multiple_of(KEYS_PER_PATCH) {
                // Spread over all of it, and no place twice.
                let at = self.writes * (self.long.len() / PATCH_BYTES / self.keys).max(1) * PATCH_BYTES;
                let patch = format!("{:0width$}", self.writes, width = PATCH_BYTES);
                let (key, offset) = (self.long_key(), at.to_string());
                hand.done(&[b"SETRANGE", key.as_bytes(), offset.as_bytes(), patch.as_bytes()])?;
                self.long[at..at + PATCH_BYTES].copy_from_slice(patch.as_bytes());
            }
            let (number, value) = (self.writes, format!("then {}", self.writes));
            hand.done(&[b"SET", self.key(number).as_bytes(), value.as_bytes()])?;
            self.many.insert(number, value);
            self.writes += 1;
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// What is not there as it was written, at who serves it and at a copy.
    ///
    /// # Errors
    /// When nobody shows it.
    pub(super) fn differences(&self, doors: &Doors, server: usize) -> Result<Vec<String>, String> {
        let mut wrong = Vec::new();
        for avoided in [None, Some(server)] {
            let at = if avoided.is_some() { "a copy" } else { "who serves" };
            let mut hand = Hand { avoided, ..Hand::new(doors) };
            if avoided.is_some() {
                hand.door = Door::of_core((server + 1) % doors.len(), 0);
            }
            match hand.told(&[b"GET", self.long_key().as_bytes()])? {
                Reply::Bulk(value) if value == self.long => {}
                Reply::Bulk(value) => {
                    let from = value.iter().zip(&self.long).position(|(one, other)| one != other);
                    let from = from.unwrap_or(value.len().min(self.long.len()));
                    wrong.push(format!("the long value at {at} has {} bytes, other ones from {from} on", value.len()));
                }
                other => wrong.push(format!("the long value at {at} is {}", show(format!("{other:?}").as_bytes()))),
            }
            let numbers: Vec<usize> = (0..self.keys).collect();
            for numbers in numbers.chunks(AT_ONCE) {
                let keys: Vec<String> = numbers.iter().map(|number| self.key(*number)).collect();
                let words: Vec<&[u8]> = [&b"MGET"[..]].into_iter().chain(keys.iter().map(String::as_bytes)).collect();
                let Reply::Array(values) = hand.told(&words)? else {
                    return Err("MGET is answered with no list".to_owned());
                };
                for (number, value) in numbers.iter().zip(values) {
                    let wanted = self.many.get(number).cloned().unwrap_or(format!("first {number}"));
                    if value != Reply::Bulk(wanted.clone().into_bytes()) {
                        let value = show(format!("{value:?}").as_bytes());
                        wrong.push(format!("{} at {at} is {value} and not {wanted}", self.key(*number)));
                    }
                }
            }
        }
        Ok(wrong)
    }
}

/// Asks until somebody answers with something else than an error.
struct Hand<'a> {
    doors: &'a Doors,
    connection: Option<(Door, Connection)>,
    door: Door,
    /// Who reads copies asks each node in turn, but this one, which serves.
    avoided: Option<usize>,
}

impl<'a> Hand<'a> {
    fn new(doors: &'a Doors) -> Hand<'a> {
        Hand { doors, connection: None, door: Door::of_core(0, 0), avoided: None }
    }

    fn done(&mut self, words: &[&[u8]]) -> Result<(), String> {
        self.told(words).map(drop)
    }

    fn told(&mut self, words: &[&[u8]]) -> Result<Reply, String> {
        let begun = Instant::now();
        loop {
            let told = self.once(words).map_err(|error| error.to_string());
            let why = match told {
                Ok(Reply::Error(text)) => {
                    let text = String::from_utf8_lossy(&text).into_owned();
                    let moved = text.strip_prefix("MOVED ").and_then(|rest| rest.split_once(' '));
                    let named = moved.and_then(|(_, address)| self.doors.ground.door_at(address));
                    self.door = match named {
                        Some(door) if self.avoided.is_none() => door,
                        _ => self.next(),
                    };
                    text
                }
                Ok(reply) => return Ok(reply),
                Err(why) => {
                    self.connection = None;
                    self.door = self.next();
                    why
                }
            };
            if begun.elapsed() > WITHIN {
                let name = String::from_utf8_lossy(words[1]).into_owned();
                return Err(format!("{name}: not answered within {} s: {why}", WITHIN.as_secs()));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn next(&self) -> Door {
        let next = |node: usize| (node + 1) % self.doors.len();
        let node = next(self.door.node);
        Door::of_core(if self.avoided == Some(node) { next(node) } else { node }, 0)
    }

    fn once(&mut self, words: &[&[u8]]) -> std::io::Result<Reply> {
        if self.connection.as_ref().is_none_or(|(door, _)| *door != self.door) {
            let mut connection = Connection::open_within(&self.doors.ground.address(self.door), PATIENCE)?;
            if self.avoided.is_some() {
                ask(&mut connection, &["READONLY"])?;
            }
            self.connection = Some((self.door, connection));
        }
        let (_, connection) = self.connection.as_mut().expect("it was just made");
        connection.write_words(words)?;
        next_reply(connection)
    }
}
