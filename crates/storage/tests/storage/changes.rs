//! Random changes that a command could have planned against a value.

use base::rng::Rng;
use base::{BLOCK_BYTES, Blocks};
use types::{Change, End, Expiry, Kind, List};

use crate::model::{Entry, ModelValue};

/// A change that owns its bytes.
pub struct OwnedChange {
    shape: Shape,
    bytes: Vec<u8>,
    elements: Vec<Vec<u8>>,
}

#[derive(Clone, Copy)]
enum Shape {
    Put(Kind, Expiry),
    Remove,
    Append,
    Overwrite(u64),
    Expire(u64),
    Persist,
    Push(End),
    Pop(End, u64),
    Set(u64),
    Insert(u64),
    RemoveEqual(i64),
    Trim(u64, u64),
}

impl OwnedChange {
    /// A whole string.
    pub fn put_string(bytes: &[u8]) -> OwnedChange {
        OwnedChange { shape: Shape::Put(Kind::String, Expiry::Clear), bytes: bytes.to_vec(), elements: Vec::new() }
    }

    /// The key goes.
    pub fn remove() -> OwnedChange {
        OwnedChange { shape: Shape::Remove, bytes: Vec::new(), elements: Vec::new() }
    }

    /// A whole list.
    pub fn put_list(elements: impl Iterator<Item = Vec<u8>>) -> OwnedChange {
        let (mut list, mut bytes) = (List::new(), Vec::new());
        elements.for_each(|element| list.push(End::Tail, &element));
        list.encode(&mut bytes);
        OwnedChange { shape: Shape::Put(Kind::List, Expiry::Clear), bytes, elements: Vec::new() }
    }

    /// The bytes of a string, or of what overwrites one, that are longer than a block.
    pub fn long_bytes(&self) -> Option<&[u8]> {
        let is_of_string = matches!(self.shape, Shape::Put(Kind::String, _) | Shape::Overwrite(_));
        (is_of_string && self.bytes.len() > BLOCK_BYTES).then_some(&self.bytes)
    }

    /// Hand the change to `use_it`, its long bytes in blocks that the log has as `stage`.
    pub fn with_staged<T>(&self, stage: u64, use_it: impl FnOnce(&Change<'_>) -> T) -> T {
        let staged = Some(stage);
        match self.shape {
            Shape::Overwrite(offset) => {
                // Every third time they do not lie as they will.
                let skip = if stage.is_multiple_of(3) { 5 } else { offset as usize % BLOCK_BYTES };
                let mut blocks = Blocks::of(&vec![7; skip]);
                blocks.append(&self.bytes, 0);
                use_it(&Change::OverwriteBlocks { offset, blocks: &blocks, skip, staged })
            }
            Shape::Put(_, expiry) => use_it(&Change::PutBlocks { blocks: &Blocks::of(&self.bytes), staged, expiry }),
            _ => panic!("only these are staged"),
        }
    }

    /// Hand the borrowed change to `use_it`.
    pub fn with<T>(&self, use_it: impl FnOnce(&Change<'_>) -> T) -> T {
        let elements: Vec<&[u8]> = self.elements.iter().map(Vec::as_slice).collect();
        let bytes = self.bytes.as_slice();
        use_it(&match self.shape {
            Shape::Put(kind, expiry) => Change::Put { kind, value: bytes, expiry },
            Shape::Remove => Change::Remove,
            Shape::Append => Change::Append { bytes },
            Shape::Overwrite(offset) => Change::Overwrite { offset, bytes },
            Shape::Expire(at_ms) => Change::Expire { at_ms },
            Shape::Persist => Change::Persist,
            Shape::Push(end) => Change::ListPush { end, elements: &elements },
            Shape::Pop(end, count) => Change::ListPop { end, count },
            Shape::Set(index) => Change::ListSet { index, element: bytes },
            Shape::Insert(index) => Change::ListInsert { index, element: bytes },
            Shape::RemoveEqual(count) => Change::ListRemove { count, element: bytes },
            Shape::Trim(start, length) => Change::ListTrim { start, length },
        })
    }
}

/// Sizes that commands meet: mostly short, sometimes above a piece, up to `most`.
pub fn random_bytes(rng: &mut Rng, most: usize) -> Vec<u8> {
    let bound = [8, 100, 1000, 5000, 70_000, 200 << 10]
        [[0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 4][rng.below(12) as usize] + usize::from(rng.chance(1, 100))];
    let (len, fill) = (rng.below(bound.min(most as u64) + 1) as usize, rng.next_u64());
    (0..len).map(|place| (base::rng::mix(fill ^ (place as u64 / 8)) >> (place % 8 * 8)) as u8).collect()
}

/// A change that fits `present`; values up to `most` bytes.
pub fn random_change(rng: &mut Rng, present: Option<&Entry>, most: usize) -> OwnedChange {
    let far_ms = 1 << 40 | rng.below(1 << 30);
    let expiry = [Expiry::Keep, Expiry::Clear, Expiry::At(far_ms)][rng.below(3) as usize];
    let (mut bytes, mut elements) = (Vec::new(), Vec::new());
    let end = if rng.chance(1, 2) { End::Head } else { End::Tail };
    let shape = match present.map(|entry| &entry.value) {
        Some(_) if rng.chance(1, 8) => Shape::Remove,
        Some(_) if rng.chance(1, 8) => Shape::Expire(far_ms),
        Some(_) if rng.chance(1, 12) => Shape::Persist,
        Some(ModelValue::String(value)) if rng.chance(1, 2) => {
            bytes = random_bytes(rng, most);
            if most > 2 * BLOCK_BYTES && rng.chance(1, 8) {
                bytes.resize(BLOCK_BYTES + rng.below((most - BLOCK_BYTES) as u64) as usize, rng.below(256) as u8);
            }
            let room = rng.below(value.len() as u64 + 20);
            if rng.chance(1, 2) && value.len() < most { Shape::Append } else { Shape::Overwrite(room) }
        }
        Some(ModelValue::List(list)) if rng.chance(7, 8) => {
            let len = list.len() as u64;
            bytes = if rng.chance(1, 2) { list[rng.below(len) as usize].clone() } else { random_bytes(rng, most) };
            match rng.below(8) {
                0 => Shape::Pop(end, rng.below(len + 1)),
                1 => Shape::Set(rng.below(len)),
                2 => Shape::Insert(rng.below(len + 1)),
                3 => Shape::RemoveEqual(rng.below(5) as i64 - 2),
                4 => Shape::Trim(rng.below(len + 1), rng.below(len + 1)),
                _ => {
                    elements = (0..1 + rng.below(6)).map(|_| random_bytes(rng, most / 4)).collect();
                    Shape::Push(end)
                }
            }
        }
        _ if rng.chance(1, 3) => {
            let mut list = List::new();
            (0..1 + rng.below(9)).for_each(|_| list.push(End::Tail, &random_bytes(rng, most / 8)));
            list.encode(&mut bytes);
            Shape::Put(Kind::List, expiry)
        }
        _ => {
            bytes = random_bytes(rng, most);
            Shape::Put(Kind::String, expiry)
        }
    };
    OwnedChange { shape, bytes, elements }
}

/// A short name out of `count`.
pub fn random_name(rng: &mut Rng, count: u64) -> Vec<u8> {
    let number = rng.below(count);
    let padding = "-".repeat((number % 40) as usize);
    format!("key:{number}{padding}").into_bytes()
}
