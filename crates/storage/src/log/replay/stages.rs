//! Long values whose bytes were logged before their change: collected until it comes.
//!
//! ```text
//!   group 7  [block 1: 0…]   group 8  [block 1: 64k…][other]   group 9  [Put key = stage 1, 100k]
//! ```
//!
//! What was staged and never followed by its change is nobody's: the process died first.

use std::collections::BTreeMap;

use base::{BLOCK_BYTES, Blocks, Slot};

use crate::log::format::{BLOCK_AGAIN, u64_at};
use crate::log::record::RawRecord;

/// Stage and offset before the bytes of a block; stage and length at the end of the change.
pub(crate) const STAGE_HEAD_BYTES: usize = 16;

/// Room for a value whose bytes came before its change.
#[derive(Default)]
pub(crate) struct StagedValue {
    /// A string, or the encoding of a list.
    pub(crate) blocks: Blocks,
    /// So many bytes into the first.
    pub(crate) skip: usize,
    /// That encoding in one piece.
    pub(crate) bytes: Vec<u8>,
}

impl StagedValue {
    /// What is a value of its own begins with its first block: what was laid out to be written into another one is copied.
    pub(crate) fn begin_with_block(&mut self) {
        let (len, skip) = (self.blocks.len(), std::mem::take(&mut self.skip));
        if skip > 0 {
            let (mut laid, mut left) = (Blocks::default(), len - skip);
            for piece in self.blocks.pieces(skip..len) {
                left -= piece.len();
                laid.append(piece, left);
            }
            self.blocks = laid;
        }
    }
}

/// Values that will lie otherwise than from a block's beginning and have not begun; of more the oldest is copied in the end.
const ALIGNED_MAX: usize = 64;

/// Bytes that came, behind as many zeros as they lie behind a block's beginning.
#[derive(Default)]
struct Open {
    blocks: Blocks,
    skip: usize,
}

impl Open {
    fn of(skip: usize) -> Open {
        Open { blocks: Blocks::of(&vec![0; skip]), skip }
    }

    fn bytes(&self) -> u64 {
        (self.blocks.len() - self.skip) as u64
    }
}

/// The values under way in one chain or run.
#[derive(Default)]
pub(crate) struct Stages {
    open: BTreeMap<u64, Open>,
    /// How those will lie that have not begun.
    aligned: BTreeMap<u64, usize>,
}

impl Stages {
    /// A value of which nothing came yet will lie so many bytes behind a block's beginning.
    pub(crate) fn align(&mut self, stage: u64, skip: usize) {
        if skip < BLOCK_BYTES && !self.open.contains_key(&stage) {
            self.aligned.insert(stage, skip);
        }
        if self.aligned.len() > ALIGNED_MAX {
            self.aligned.pop_first();
        }
    }

    /// Of those that have not begun nothing will come.
    pub(crate) fn forget_aligned(&mut self) {
        self.aligned.clear();
    }

    /// The next block of a value, or an earlier one again. Where earlier ones are missing the value is, too: nobody can need it,
    /// unless its change says so.
    pub(crate) fn add(&mut self, record: &RawRecord<'_>) -> Result<(), String> {
        let Some((head, bytes)) = record.body.split_at_checked(STAGE_HEAD_BYTES) else {
            return Err("a block of a long value is shorter than its head".into());
        };
        Slot::new(record.slot).ok_or("a block's slot does not exist")?;
        let (stage, offset) = (u64_at(head, 0), u64_at(head, 8));
        if offset & BLOCK_AGAIN != 0 {
            self.replace(stage, offset ^ BLOCK_AGAIN, bytes);
            return Ok(());
        }
        let aligned = &mut self.aligned;
        let open = self.open.entry(stage).or_insert_with(|| Open::of(aligned.remove(&stage).unwrap_or(0)));
        if open.bytes() != offset {
            self.open.remove(&stage);
            return Ok(());
        }
        open.blocks.append(bytes, 0);
        Ok(())
    }

    fn replace(&mut self, stage: u64, offset: u64, bytes: &[u8]) {
        match self.open.get_mut(&stage) {
            Some(open) if offset <= open.bytes() => open.blocks.overwrite(open.skip + offset as usize, bytes),
            _ => drop(self.open.remove(&stage)),
        }
    }

    /// The value that a change names at the end of its body, and how it lies; the body without that.
    pub(crate) fn take<'a>(&mut self, body: &'a [u8]) -> Result<((Blocks, usize), &'a [u8]), String> {
        let (head, name) = body.len().checked_sub(STAGE_HEAD_BYTES).map(|at| body.split_at(at)).unwrap_or_default();
        if name.is_empty() {
            return Err("a change of a long value is shorter than its reference".into());
        }
        let open = self.open.remove(&u64_at(name, 0)).unwrap_or_default();
        if open.bytes() != u64_at(name, 8) {
            return Err(format!(
                "a long value has {} bytes in the log, and its change says {}",
                open.bytes(),
                u64_at(name, 8)
            ));
        }
        Ok(((open.blocks, open.skip), head))
    }

    /// What came of one value.
    pub(crate) fn take_stage(&mut self, stage: u64) -> Option<Blocks> {
        self.aligned.remove(&stage);
        self.open.remove(&stage).map(|open| open.blocks)
    }

    /// Bytes of what came.
    pub(crate) fn bytes(&self) -> usize {
        self.open.values().map(|open| open.blocks.len()).sum()
    }

    /// Whether the value that a change names has bytes, and nothing of it is there: not even what followed its first block, which
    /// is nobody's without that.
    pub(crate) fn lacks(&self, body: &[u8]) -> bool {
        let name = body.len().checked_sub(STAGE_HEAD_BYTES).map(|at| &body[at..]).unwrap_or_default();
        !name.is_empty() && u64_at(name, 8) > 0 && !self.open.contains_key(&u64_at(name, 0))
    }

    /// The value of a change that is not needed.
    pub(crate) fn forget(&mut self, body: &[u8]) {
        if let Some(at) = body.len().checked_sub(STAGE_HEAD_BYTES) {
            self.open.remove(&u64_at(&body[at..], 0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(value: &StagedValue) -> Vec<u8> {
        value.blocks.pieces(value.skip..value.blocks.len()).flatten().copied().collect()
    }

    #[test]
    fn what_is_a_value_of_its_own_begins_with_its_first_block() {
        let bytes: Vec<u8> = (0..2 * BLOCK_BYTES + 5).map(|at| at as u8).collect();
        let Open { mut blocks, skip } = Open::of(9);
        blocks.append(&bytes, 0);
        let mut value = StagedValue { blocks, skip, bytes: Vec::new() };
        assert_eq!(bytes_of(&value), bytes);
        value.begin_with_block();
        assert_eq!((value.skip, value.blocks.len()), (0, bytes.len()));
        assert_eq!(bytes_of(&value), bytes);
    }

    #[test]
    fn so_many_that_never_begin_are_kept_in_mind() {
        let mut stages = Stages::default();
        (0..1000).for_each(|stage| stages.align(stage, 7));
        assert_eq!(stages.aligned.len(), ALIGNED_MAX);
        assert!(stages.aligned.contains_key(&999), "the newest may still come");
        stages.align(1000, BLOCK_BYTES);
        assert!(!stages.aligned.contains_key(&1000), "no block is that long");
        stages.forget_aligned();
        assert!(stages.aligned.is_empty());
    }
}
