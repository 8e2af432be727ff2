//! What one client knows of its keys: the last acknowledged version of each, and those in doubt, which were sent and never
//! answered. What was refused must never be found.

use std::io;
use std::time::{Duration, Instant};

use base::rng::{Rng, mix};

use crate::connection::{Connection, encode};
use crate::reply::{Reply, decode, show};

/// Keys of the load: a few megabytes live, so that a slot group's run takes a few writes.
const KEYS: usize = 1500;
/// Longest value, bytes, of all but one of [`LONG_OF`].
const VALUE_BYTES_MAX: u64 = 3000;
const LONG_VALUE_BYTES_MAX: u64 = 30_000;
const LONG_OF: u64 = 40;
/// Requests written before their replies are read, when reading back.
const WINDOW: usize = 100;
/// Between two looks at whether an answer may still come.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// A node that neither answers nor says that it will not hangs: so long that no machine is that slow.
const SILENCE_MAX: Duration = Duration::from_secs(300);

#[derive(Clone, Debug, Default)]
struct Key {
    /// 0 is nothing.
    acknowledged: u32,
    in_doubt: Vec<u32>,
    sent: u32,
}

/// See the module.
#[derive(Clone)]
pub(super) struct Book {
    keys: Vec<Key>,
    rng: Rng,
    pub acknowledged: u64,
    pub refused: u64,
}

/// How a burst ended.
#[derive(Clone, Debug, Default)]
pub(super) struct Burst {
    pub acknowledged: u64,
    pub bytes: u64,
    /// The first refusal.
    pub refusal: Option<String>,
    /// Not all of it was answered.
    pub is_broken: bool,
}

impl Book {
    pub fn new(seed: u64) -> Book {
        Book { keys: vec![Key::default(); KEYS], rng: Rng::new(seed), acknowledged: 0, refused: 0 }
    }

    fn name(key: usize) -> Vec<u8> {
        format!("key:{key}").into_bytes()
    }

    fn value(key: usize, version: u32) -> Vec<u8> {
        let drawn = mix((key as u64) << 32 ^ u64::from(version));
        let bytes_max = if drawn.is_multiple_of(LONG_OF) { LONG_VALUE_BYTES_MAX } else { VALUE_BYTES_MAX };
        let mut value = format!("{key}.{version};").into_bytes();
        value.resize(value.len() + (mix(drawn) % bytes_max) as usize, b'a' + (drawn >> 32) as u8 % 26);
        value
    }

    /// Sends `count` units in one go over these connections and hears what becomes of them: SET, and MSET of two keys, which
    /// may be of two cores. `is_over` says whether what is not answered yet never will be.
    pub fn burst(
        &mut self,
        connections: &mut [Connection],
        count: usize,
        is_over: &mut dyn FnMut() -> bool,
    ) -> io::Result<Burst> {
        let mut burst = Burst::default();
        let mut requests = vec![Vec::new(); connections.len()];
        let mut under_way = vec![Vec::new(); connections.len()];
        for _ in 0..count {
            let unit = self.next_unit(connections.len() == 1);
            // All versions of a key go one way, or nobody knows their order.
            let way = unit[0].0 % connections.len();
            let mut words = vec![if unit.len() > 1 { b"MSET".to_vec() } else { b"SET".to_vec() }];
            words.extend(unit.iter().flat_map(|(key, version)| [Book::name(*key), Book::value(*key, *version)]));
            encode(&words, &mut requests[way]);
            under_way[way].push(unit);
        }
        let mut is_written = Vec::new();
        for (connection, request) in connections.iter_mut().zip(&requests) {
            connection.stream().set_read_timeout(Some(LOOK_EVERY))?;
            burst.bytes += request.len() as u64;
            // A process that is gone takes nothing, and nobody knows what it took before.
            is_written.push(connection.write(request).is_ok());
        }
        for ((connection, units), is_written) in connections.iter_mut().zip(under_way).zip(is_written) {
            let mut is_broken = !is_written;
            for unit in units {
                let answer = if is_broken { None } else { next_reply(connection, is_over)? };
                is_broken = answer.is_none();
                self.note(&unit, answer.as_deref(), &mut burst)?;
            }
            burst.is_broken |= is_broken;
        }
        self.acknowledged += burst.acknowledged;
        Ok(burst)
    }

    /// Keys with their next versions; before any byte of them is sent.
    fn next_unit(&mut self, may_be_several: bool) -> Vec<(usize, u32)> {
        let keys = if may_be_several && self.rng.chance(1, 10) { 2 } else { 1 };
        let mut unit: Vec<(usize, u32)> = Vec::new();
        while unit.len() < keys {
            let key = self.rng.below(KEYS as u64) as usize;
            if unit.iter().all(|(other, _)| *other != key) {
                self.keys[key].sent += 1;
                unit.push((key, self.keys[key].sent));
            }
        }
        unit
    }

    /// What a unit was answered, or that it never will be.
    fn note(&mut self, unit: &[(usize, u32)], answer: Option<&[u8]>, burst: &mut Burst) -> io::Result<()> {
        match answer {
            None => unit.iter().for_each(|(key, version)| self.keys[*key].in_doubt.push(*version)),
            Some(b"+OK\r\n") => {
                for (key, version) in unit {
                    let key = &mut self.keys[*key];
                    (key.acknowledged, key.in_doubt) = (*version, Vec::new());
                }
                burst.acknowledged += 1;
            }
            Some(reply) if reply.starts_with(b"-MISCONF ") => {
                self.refused += 1;
                burst.refusal.get_or_insert_with(|| String::from_utf8_lossy(reply).trim_end().to_owned());
            }
            Some(reply) => return Err(io::Error::other(format!("a write answers {}", show(reply)))),
        }
        Ok(())
    }

    /// Reads keys that nothing is in doubt of; what is not as acknowledged.
    pub fn read_clean(&mut self, connection: &mut Connection, count: usize) -> io::Result<Option<String>> {
        let clean: Vec<usize> = (0..KEYS).filter(|key| self.keys[*key].in_doubt.is_empty()).collect();
        connection.stream().set_read_timeout(Some(SILENCE_MAX))?;
        for _ in 0..count.min(clean.len()) {
            let key = clean[self.rng.below(clean.len() as u64) as usize];
            let reply = connection.call(&[&b"GET"[..], &Book::name(key)])?;
            if let Err(problem) = self.judge_key(key, &reply) {
                return Ok(Some(problem));
            }
        }
        Ok(None)
    }

    /// Reads everything after a restart and settles what was in doubt; what must not be.
    pub fn judge(&mut self, connection: &mut Connection) -> io::Result<Vec<String>> {
        let mut problems = Vec::new();
        connection.stream().set_read_timeout(Some(SILENCE_MAX))?;
        for first in (0..KEYS).step_by(WINDOW) {
            let (mut request, keys) = (Vec::new(), first..KEYS.min(first + WINDOW));
            keys.clone().for_each(|key| encode(&[&b"GET"[..], &Book::name(key)], &mut request));
            connection.write(&request)?;
            for key in keys {
                let reply = connection.read_reply()?;
                match self.judge_key(key, &reply) {
                    Ok(version) => {
                        let key = &mut self.keys[key];
                        (key.acknowledged, key.in_doubt) = (version, Vec::new());
                    }
                    Err(problem) => problems.push(problem),
                }
            }
        }
        Ok(problems)
    }

    /// Which version it is.
    fn judge_key(&self, key: usize, reply: &[u8]) -> Result<u32, String> {
        let Key { acknowledged, in_doubt, .. } = &self.keys[key];
        let found = match decode(reply) {
            Ok(Some((Reply::Nil, _))) => Some(0),
            Ok(Some((Reply::Bulk(value), _))) => {
                version_of(&value).filter(|version| value == Book::value(key, *version))
            }
            _ => None,
        };
        found.filter(|version| version == acknowledged || in_doubt.contains(version)).ok_or_else(|| {
            let head = show(&reply[..reply.len().min(60)]);
            format!("key:{key} answers {head}; acknowledged is version {acknowledged}, in doubt {in_doubt:?}")
        })
    }
}

/// `key.version;…` -> version
fn version_of(value: &[u8]) -> Option<u32> {
    let head = value.split(|byte| *byte == b';').next()?;
    std::str::from_utf8(head).ok()?.rsplit('.').next()?.parse().ok()
}

/// The next reply; `None` when the connection ended, or there will be none.
fn next_reply(connection: &mut Connection, is_over: &mut dyn FnMut() -> bool) -> io::Result<Option<Vec<u8>>> {
    let begun = Instant::now();
    loop {
        match connection.read_reply() {
            Ok(reply) => return Ok(Some(reply)),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(error),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                if is_over() {
                    return Ok(None);
                }
                if begun.elapsed() > SILENCE_MAX {
                    return Err(io::Error::other("it neither answers nor says that it will not"));
                }
            }
            Err(_) => return Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{Book, Key};
    use crate::connection::encode;

    fn bulk(value: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(&[value], &mut bytes);
        bytes.split_off(4)
    }

    #[test]
    fn only_what_was_acknowledged_or_is_in_doubt_may_be_found() {
        let mut book = Book::new(1);
        book.keys[7] = Key { acknowledged: 2, in_doubt: vec![4], sent: 4 };
        for (version, is_right) in [(1, false), (2, true), (3, false), (4, true), (5, false)] {
            let reply = bulk(&Book::value(7, version));
            assert_eq!(book.judge_key(7, &reply).is_ok(), is_right, "version {version}");
        }
        assert!(book.judge_key(7, b"$-1\r\n").is_err(), "an acknowledged write is gone");
        assert!(book.judge_key(8, b"$-1\r\n").is_ok());
        let mut torn = Book::value(7, 2);
        torn.push(b'x');
        assert!(book.judge_key(7, &bulk(&torn)).is_err(), "nobody wrote that");
    }
}
