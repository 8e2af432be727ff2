//! Long values whose bytes were logged before their change: collected until it comes.
//!
//! ```text
//!   group 7  [block 1: 0…]   group 8  [block 1: 64k…][other]   group 9  [Put key = stage 1, 100k]
//! ```
//!
//! What was staged and never followed by its change is nobody's: the process died first.

use std::collections::BTreeMap;

use base::{Blocks, Slot};

use crate::log::format::{BLOCK_AGAIN, u64_at};
use crate::log::record::RawRecord;

/// Stage and offset before the bytes of a block; stage and length at the end of the change.
pub(crate) const STAGE_HEAD_BYTES: usize = 16;

/// Room for a value whose bytes came before its change.
#[derive(Default)]
pub(crate) struct StagedValue {
    /// A string, or the encoding of a list.
    pub(crate) blocks: Blocks,
    /// That encoding in one piece.
    pub(crate) bytes: Vec<u8>,
}

/// The values under way in one chain or run.
#[derive(Default)]
pub(crate) struct Stages {
    open: BTreeMap<u64, Blocks>,
}

impl Stages {
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
        let blocks = self.open.entry(stage).or_default();
        if blocks.len() as u64 != offset {
            self.open.remove(&stage);
            return Ok(());
        }
        blocks.append(bytes, 0);
        Ok(())
    }

    fn replace(&mut self, stage: u64, offset: u64, bytes: &[u8]) {
        match self.open.get_mut(&stage) {
            Some(blocks) if offset <= blocks.len() as u64 => blocks.overwrite(offset as usize, bytes),
            _ => drop(self.open.remove(&stage)),
        }
    }

    /// The value that a change names at the end of its body, and the body without that.
    pub(crate) fn take<'a>(&mut self, body: &'a [u8]) -> Result<(Blocks, &'a [u8]), String> {
        let (head, name) = body.len().checked_sub(STAGE_HEAD_BYTES).map(|at| body.split_at(at)).unwrap_or_default();
        if name.is_empty() {
            return Err("a change of a long value is shorter than its reference".into());
        }
        let blocks = self.open.remove(&u64_at(name, 0)).unwrap_or_default();
        if blocks.len() as u64 != u64_at(name, 8) {
            return Err(format!(
                "a long value has {} bytes in the log, and its change says {}",
                blocks.len(),
                u64_at(name, 8)
            ));
        }
        Ok((blocks, head))
    }

    /// What came of one value.
    pub(crate) fn take_stage(&mut self, stage: u64) -> Option<Blocks> {
        self.open.remove(&stage)
    }

    /// Bytes of what came.
    pub(crate) fn bytes(&self) -> usize {
        self.open.values().map(Blocks::len).sum()
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
