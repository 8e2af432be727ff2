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

    /// Writes at `offset`, as [`Blocks::overwrite`], what `source` has behind its first `skip` bytes. Where that lies in `source` as it
    /// will lie here, `skip` bytes into a block, whole blocks are shared and not copied. Those they take the place of.
    ///
    /// ```text
    ///   source   [··skip··│ 1 ][ 2        ][ 3   ]
    ///   here     [ old    │ 1 ][ 2 shared ][ 3   │ old ]
    ///                     ▲ offset
    /// ```
    pub fn overwrite_with(&mut self, offset: usize, source: &Blocks, skip: usize) -> Blocks {
        let mut replaced = Blocks::default();
        if skip != offset % BLOCK_BYTES {
            let mut at = offset;
            for piece in source.pieces(skip..source.len()) {
                self.overwrite(at, piece);
                at += piece.len();
            }
            return replaced;
        }
        self.extend_with_zeros(offset);
        for (number, block) in source.list.iter().enumerate() {
            let skipped = if number == 0 { skip } else { 0 };
            let index = offset / BLOCK_BYTES + number;
            let start = index * BLOCK_BYTES;
            let covers = skipped == 0 && start + block.len() >= self.len.min(start + BLOCK_BYTES);
            if !covers {
                self.overwrite(start + skipped, &block[skipped..]);
            } else if let Some(old) = Arc::make_mut(&mut self.list).get_mut(index) {
                replaced.push(std::mem::replace(old, Block::clone(block)));
            } else {
                Arc::make_mut(&mut self.list).push(Block::clone(block));
            }
            self.len = self.len.max(start + block.len());
        }
        replaced
    }

    /// Adds a block behind whole ones.
    fn push(&mut self, block: Block) {
        debug_assert!(self.len.is_multiple_of(BLOCK_BYTES));
        self.len += block.len();
        Arc::make_mut(&mut self.list).push(block);
    }

    /// Whether both are the same blocks: nothing was written to either since one was a clone of the other.
    pub fn is_same(&self, other: &Blocks) -> bool {
        self.len == other.len && Arc::ptr_eq(&self.list, &other.list)
    }

    /// The parts of this value that differ from `older`, or lie behind its end, by whole blocks: what was written to since both were
    /// the same blocks.
    pub fn changed_since(&self, older: &Blocks) -> Vec<Range<usize>> {
        let blocks = self.list.iter().enumerate();
        let changed =
            blocks.filter(|(number, block)| !older.list.get(*number).is_some_and(|old| Arc::ptr_eq(old, block)));
        changed.map(|(number, block)| number * BLOCK_BYTES..number * BLOCK_BYTES + block.len()).collect()
    }

    /// Lets go of the whole blocks in front of `end`, which nobody reads any more: they read as zeros.
    pub fn forget_front(&mut self, end: usize) {
        let list = Arc::make_mut(&mut self.list);
        let passed = list[..end / BLOCK_BYTES].iter_mut().rev();
        passed.take_while(|block| !Arc::ptr_eq(block, &ZEROS)).for_each(|block| *block = Block::clone(&ZEROS));
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

impl Eq for Blocks {}

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

    fn overwrite_plain(plain: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
        plain.resize(plain.len().max(offset + bytes.len()), 0);
        plain[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

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
                match rng.below(6) {
                    0 => {
                        blocks.append(&bytes, near(&mut rng));
                        plain.extend_from_slice(&bytes);
                    }
                    1 => {
                        let offset = near(&mut rng);
                        blocks.overwrite(offset, &bytes);
                        overwrite_plain(&mut plain, offset, &bytes);
                    }
                    2 | 3 => {
                        let offset = if rng.below(2) == 0 { plain.len() } else { near(&mut rng) };
                        let skip = if rng.below(8) == 0 { rng.below(9) as usize } else { offset % BLOCK_BYTES };
                        let mut source = Blocks::of(&vec![0xEE; skip]);
                        source.append(&bytes, 0);
                        let (before, old_len) = (blocks.clone(), plain.len());
                        let replaced = blocks.overwrite_with(offset, &source, skip);
                        overwrite_plain(&mut plain, offset, &bytes);
                        let whole = (offset.next_multiple_of(BLOCK_BYTES)..old_len).step_by(BLOCK_BYTES);
                        let gone = whole.filter(|start| offset + bytes.len() >= old_len.min(start + BLOCK_BYTES));
                        let gone: Vec<&Block> = gone.map(|start| &before.list[start / BLOCK_BYTES]).collect();
                        let is_shared = skip == offset % BLOCK_BYTES;
                        assert!(!is_shared || replaced.list.iter().eq(gone), "what to give back");
                        shared.push((source, [&vec![0xEE; skip][..], &bytes].concat()));
                    }
                    4 => shared.push((blocks.clone(), plain.clone())),
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
    fn what_lies_as_it_will_lie_is_shared() {
        let end = BLOCK_BYTES - 10;
        let mut value = Blocks::of(&vec![1; end]);
        let mut source = Blocks::of(&vec![0; end]);
        source.append(&vec![2; 3 * BLOCK_BYTES], 0);
        let before = value.clone();
        assert!(value.is_same(&before));
        assert!(value.overwrite_with(end, &source, end).is_empty() && !value.is_same(&before));
        assert!((1..4).all(|block| Arc::ptr_eq(&value.list[block], &source.list[block])));
        assert_eq!((value.list[0][end - 1], value.list[0][end], value.len()), (1, 2, end + 3 * BLOCK_BYTES));
        let before = value.clone();
        let replaced = value.overwrite_with(BLOCK_BYTES, &Blocks::of(&vec![3; 2 * BLOCK_BYTES]), 0);
        assert_eq!(value.changed_since(&before), [1, 2].map(|block| block * BLOCK_BYTES..(block + 1) * BLOCK_BYTES));
        value.append(&[4; BLOCK_BYTES], 0);
        let end = 3 * BLOCK_BYTES..4 * BLOCK_BYTES;
        assert_eq!(value.changed_since(&before)[2..], [end, 4 * BLOCK_BYTES..value.len()]);
        assert!(replaced.len() == 2 * BLOCK_BYTES && replaced.list.iter().all(|block| block[0] == 2));
    }

    #[test]
    fn what_nobody_reads_any_more_is_let_go_of() {
        let mut blocks = Blocks::of(&vec![5; 4 * BLOCK_BYTES]);
        blocks.forget_front(2 * BLOCK_BYTES - 1);
        blocks.forget_front(3 * BLOCK_BYTES);
        assert!(blocks.list[..3].iter().all(|block| Arc::ptr_eq(block, &ZEROS)));
        assert_eq!((blocks.len(), blocks.list[3][0]), (4 * BLOCK_BYTES, 5));
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
