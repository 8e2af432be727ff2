//! What is said to an end, and what it says: a head of six bytes, and values where the kind has them.
//!
//! ```text
//!  head   kind:u8 way:u8 number:u32
//!  SET, FOUND   + a value        COPIES, PULLED   + number × (key:u32, value)        PULL   + number × key:u32
//! ```

use std::io::{Read, Result, Write};

/// A value: its number in the first eight bytes. A key without one has number 0.
pub type Value = [u8; VALUE_BYTES];
/// Length of every value.
pub const VALUE_BYTES: usize = 64;
const HEAD_BYTES: usize = 6;
const KEY_BYTES: usize = 4;

/// Requests of clients; their number is the key, their way the one that the client believes in.
pub const GET: u8 = 1;
pub const SET: u8 = 2;
/// Answers; their number is the cursor.
pub const DONE: u8 = 10;
pub const FOUND: u8 = 11;
pub const ABSENT: u8 = 12;
/// The other end serves it.
pub const MOVED: u8 = 13;
/// It is not here yet: ask again.
pub const LATER: u8 = 14;
/// From the source to the destination: pairs, and that keys below the number are the destination's.
pub const COPIES: u8 = 20;
pub const SWITCH: u8 = 21;
/// From the destination to the source: pairs that somebody waits for, and their answer.
pub const PULL: u8 = 22;
pub const PULLED: u8 = 23;
/// From who measures, with an [`Order`](super::end::Order) as JSON of this length, and the answer's text of that length.
pub const ORDER: u8 = 30;
pub const ANSWER: u8 = 31;

/// How every message begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub kind: u8,
    pub way: u8,
    pub number: u32,
}

impl Head {
    /// The next one.
    pub fn read(source: &mut impl Read) -> Result<Head> {
        let mut bytes = [0; HEAD_BYTES];
        source.read_exact(&mut bytes)?;
        let number = u32::from_le_bytes(bytes[2..].try_into().expect("four bytes"));
        Ok(Head { kind: bytes[0], way: bytes[1], number })
    }

    /// Its bytes.
    pub fn bytes(self) -> [u8; HEAD_BYTES] {
        let [a, b, c, d] = self.number.to_le_bytes();
        [self.kind, self.way, a, b, c, d]
    }
}

/// A head with what follows it, in one write.
pub fn write(to: &mut impl Write, head: Head, rest: &[u8]) -> Result<()> {
    to.write_all(&[&head.bytes()[..], rest].concat())
}

/// A value that is its number and nothing else.
pub fn value(number: u64) -> Value {
    let mut value = [b'x'; VALUE_BYTES];
    value[..8].copy_from_slice(&number.to_le_bytes());
    value
}

/// The number of a value.
pub fn number(value: &Value) -> u64 {
    u64::from_le_bytes(value[..8].try_into().expect("eight bytes"))
}

/// Pairs as they follow COPIES.
pub fn pairs_bytes(pairs: &[(u32, Value)]) -> Vec<u8> {
    pairs.iter().flat_map(|(key, value)| key.to_le_bytes().into_iter().chain(*value)).collect()
}

/// So many pairs.
pub fn read_pairs(source: &mut impl Read, count: u32) -> Result<Vec<(u32, Value)>> {
    let mut bytes = vec![0; count as usize * (KEY_BYTES + VALUE_BYTES)];
    source.read_exact(&mut bytes)?;
    let pair = |bytes: &[u8]| {
        let (key, value) = bytes.split_at(KEY_BYTES);
        (u32::from_le_bytes(key.try_into().expect("four bytes")), value.try_into().expect("the rest of a pair"))
    };
    Ok(bytes.chunks_exact(KEY_BYTES + VALUE_BYTES).map(pair).collect())
}

/// So many keys.
pub fn read_keys(source: &mut impl Read, count: u32) -> Result<Vec<u32>> {
    let mut bytes = vec![0; count as usize * KEY_BYTES];
    source.read_exact(&mut bytes)?;
    Ok(bytes.chunks_exact(KEY_BYTES).map(|key| u32::from_le_bytes(key.try_into().expect("four bytes"))).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let pairs = vec![(7, value(1)), (u32::MAX, value(u64::MAX))];
        let head = Head { kind: COPIES, way: 3, number: 2 };
        let mut bytes = Vec::new();
        write(&mut bytes, head, &pairs_bytes(&pairs)).unwrap();
        let mut source = bytes.as_slice();
        assert_eq!(Head::read(&mut source).unwrap(), head);
        assert_eq!(read_pairs(&mut source, 2).unwrap(), pairs);
        assert_eq!((source.len(), number(&pairs[1].1)), (0, u64::MAX));
        assert_eq!(read_keys(&mut &[1, 0, 0, 0, 0, 1, 0, 0][..], 2).unwrap(), [1, 256]);
    }
}
