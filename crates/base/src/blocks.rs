//! Long values: bytes in blocks that several owners may share, so that nobody has to copy all of them at once.
//!
//! ```text
//!  Blocks ─► [ block 0 | block 1 | … | last ]      all but the last have BLOCK_BYTES
//!               ▲          ▲
//!  a reply, a run or a copy of the value refers to the same blocks; who writes to a shared one gets its own (one block)
//! ```
//!
//! A clone costs the same however long the value is. A stretch of zeros refers to one block of zeros again and again.

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use crate::limits::LOG_PIECE_BYTES_MAX;

/// Bytes of a block: what one record of the log holds.
pub const BLOCK_BYTES: usize = LOG_PIECE_BYTES_MAX;

type Block = Arc<Vec<u8>>;

static ZEROS: LazyLock<Block> = LazyLock::new(|| Arc::new(vec![0; BLOCK_BYTES]));

/// See the module.
#[derive(Clone, Default)]
pub struct Blocks {
    list: Arc<Vec<Block>>,
    len: usize,
}

impl Blocks {
    /// A copy of `bytes`.
    pub fn of(bytes: &[u8]) -> Blocks {
        let mut blocks = Blocks::default();
        blocks.append(bytes, 0);
        blocks
    }

    /// Bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds `bytes` at the end. `expected`: how many more will come. A block has its size at once then, but memory is never
    /// more than twice what came.
    pub fn append(&mut self, mut bytes: &[u8], expected: usize) {
        let list = Arc::make_mut(&mut self.list);
        while !bytes.is_empty() {
            let used = self.len % BLOCK_BYTES;
            if used == 0 {
                list.push(Block::default());
            }
            let last = Arc::make_mut(list.last_mut().expect("a block that has room"));
            let (now, later) = bytes.split_at(bytes.len().min(BLOCK_BYTES - used));
            if last.capacity() < used + now.len() {
                let ahead = expected.min(self.len + now.len());
                let wanted = (used + now.len() + ahead).max(2 * last.capacity()).min(BLOCK_BYTES);
                last.reserve_exact(wanted - used);
            }
            last.extend_from_slice(now);
            self.len += now.len();
            bytes = later;
        }
    }

    /// Writes `bytes` at `offset`, with zeros between the present end and there, and beyond the present end as needed.
    pub fn overwrite(&mut self, offset: usize, bytes: &[u8]) {
        self.extend_with_zeros(offset);
        let (inside, behind) = bytes.split_at(bytes.len().min(self.len - offset));
        let list = Arc::make_mut(&mut self.list);
        let mut at = offset;
        let mut rest = inside;
        while !rest.is_empty() {
            let start = at % BLOCK_BYTES;
            let (now, later) = rest.split_at(rest.len().min(BLOCK_BYTES - start));
            Arc::make_mut(&mut list[at / BLOCK_BYTES])[start..start + now.len()].copy_from_slice(now);
            (at, rest) = (at + now.len(), later);
        }
        self.append(behind, 0);
    }

    fn extend_with_zeros(&mut self, len: usize) {
        while self.len < len {
            let missing = len - self.len;
            if self.len.is_multiple_of(BLOCK_BYTES) && missing >= BLOCK_BYTES {
                Arc::make_mut(&mut self.list).push(Block::clone(&ZEROS));
                self.len += BLOCK_BYTES;
            } else {
                let count = missing.min(BLOCK_BYTES - self.len % BLOCK_BYTES);
                self.append(&ZEROS[..count], 0);
            }
        }
    }

    /// The bytes of `range`, which lies within the value, in pieces.
    pub fn pieces(&self, range: Range<usize>) -> impl Iterator<Item = &[u8]> {
        let first = range.start / BLOCK_BYTES;
        let blocks = self.list.iter().enumerate().skip(first);
        blocks.map_while(move |(number, block)| {
            let start = number * BLOCK_BYTES;
            let (from, to) = (range.start.max(start), range.end.min(start + BLOCK_BYTES));
            (from < to).then(|| &block[from - start..to - start])
        })
    }

    /// All bytes, one block after the other.
    pub fn all(&self) -> impl Iterator<Item = &[u8]> {
        self.list.iter().map(|block| block.as_slice())
    }

    /// The bytes in one piece.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.len);
        self.all().for_each(|piece| bytes.extend_from_slice(piece));
        bytes
    }

    /// Gives back blocks of about `bytes` from the end, unless others share them: then there is nothing to give back, and
    /// this owner lets go of all. Whether any are left.
    pub fn release(&mut self, bytes: usize) -> bool {
        match Arc::get_mut(&mut self.list) {
            Some(list) => {
                list.truncate(list.len().saturating_sub(bytes.div_ceil(BLOCK_BYTES)));
                self.len = self.len.min(list.len() * BLOCK_BYTES);
            }
            None => *self = Blocks::default(),
        }
        !self.is_empty()
    }
}

impl std::fmt::Debug for Blocks {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Blocks({} bytes)", self.len)
    }
}

impl PartialEq for Blocks {
    fn eq(&self, other: &Blocks) -> bool {
        self.len == other.len && self.all().eq(other.all())
    }
}

/// A part of a long value that is still to be sent, as it was when it was asked for.
#[derive(Clone, Debug)]
pub struct BlockRange {
    blocks: Blocks,
    rest: Range<usize>,
}

impl BlockRange {
    /// `range` lies within the value.
    pub fn new(blocks: &Blocks, range: Range<usize>) -> BlockRange {
        debug_assert!(range.end <= blocks.len());
        BlockRange { blocks: blocks.clone(), rest: range }
    }

    /// Bytes that are left.
    pub fn len(&self) -> usize {
        self.rest.len()
    }

    /// Whether none are left.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Moves the next `bytes`, or as many as are left, to the end of `out`.
    pub fn take(&mut self, bytes: usize, out: &mut Vec<u8>) {
        let end = self.rest.end.min(self.rest.start + bytes);
        self.blocks.pieces(self.rest.start..end).for_each(|piece| out.extend_from_slice(piece));
        self.rest.start = end;
    }

    /// The value it is a part of.
    pub fn into_blocks(self) -> Blocks {
        self.blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// Against a plain vector: every operation, at offsets around the ends of blocks.
    #[test]
    fn blocks_are_what_a_vector_would_be() {
        let mut rng = Rng::new(7);
        for _ in 0..40 {
            let (mut blocks, mut plain) = (Blocks::default(), Vec::new());
            let mut shared: Vec<(Blocks, Vec<u8>)> = Vec::new();
            for _ in 0..30 {
                let near = |rng: &mut Rng| {
                    let edge = rng.below(4) as usize * BLOCK_BYTES;
                    (edge + rng.below(5) as usize).saturating_sub(2)
                };
                let bytes = vec![rng.next_u64() as u8; near(&mut rng)];
                match rng.below(4) {
                    0 => {
                        blocks.append(&bytes, near(&mut rng));
                        plain.extend_from_slice(&bytes);
                    }
                    1 => {
                        let offset = near(&mut rng);
                        blocks.overwrite(offset, &bytes);
                        plain.resize(plain.len().max(offset), 0);
                        let inside = bytes.len().min(plain.len() - offset);
                        plain[offset..offset + inside].copy_from_slice(&bytes[..inside]);
                        plain.extend_from_slice(&bytes[inside..]);
                    }
                    2 => shared.push((blocks.clone(), plain.clone())),
                    _ => {
                        let start = near(&mut rng).min(plain.len());
                        let end = (start + near(&mut rng)).min(plain.len());
                        let mut part = BlockRange::new(&blocks, start..end);
                        let mut bytes = Vec::new();
                        while !part.is_empty() {
                            part.take(1 + near(&mut rng), &mut bytes);
                        }
                        assert_eq!(bytes, plain[start..end]);
                    }
                }
                assert_eq!(blocks.len(), plain.len());
                if plain.len() > 12 * BLOCK_BYTES {
                    break;
                }
            }
            assert_eq!(blocks.to_vec(), plain);
            assert!(shared.iter().all(|(blocks, plain)| blocks.to_vec() == *plain), "a clone changed with its origin");
        }
    }

    #[test]
    fn a_stretch_of_zeros_takes_no_memory() {
        let mut blocks = Blocks::default();
        blocks.overwrite(100 * BLOCK_BYTES, b"end");
        assert_eq!(blocks.len(), 100 * BLOCK_BYTES + 3);
        assert!(blocks.list[..100].iter().all(|block| Arc::ptr_eq(block, &ZEROS)));
        blocks.overwrite(5, b"x");
        assert_eq!(ZEROS[5], 0, "the shared block stays as it is");
    }

    #[test]
    fn memory_is_given_back_in_steps_and_never_from_under_another_owner() {
        let mut blocks = Blocks::of(&vec![1; 10 * BLOCK_BYTES + 1]);
        let other = blocks.clone();
        assert!(!blocks.release(BLOCK_BYTES) && blocks.is_empty());
        let mut last = other;
        let mut steps = 0;
        while last.release(4 * BLOCK_BYTES) {
            steps += 1;
        }
        assert_eq!(steps, 2);
    }
}
