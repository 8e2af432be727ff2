//! Values that go to a run or to a follower in blocks, a slice at a time: as they were at one moment.
//!
//! ```text
//!   [block 0: 0…][block 0: 64k…] … [Put key = stage 0, all of it]
//!                                   └ written to meanwhile, and who reads it wants it as it is now: what differs comes again
//! ```

use std::ops::Range;

use base::{BLOCK_BYTES, Blocks, Database, Slot, Text, Version};
use types::{Expiry, Kind, ListSnapshot};

use crate::group::{Record, Value};
use crate::key::Key;
use crate::lazy_free::Garbage;
use crate::log::buffer::LogBuffer;

/// See the module.
#[derive(Debug)]
pub(crate) struct LongValue {
    name: Vec<u8>,
    database: Database,
    slot: Slot,
    version: Version,
    expiry: Expiry,
    content: Content,
    /// Bytes of it that are in blocks already, from its beginning on.
    written_bytes: usize,
    block: Vec<u8>,
}

#[derive(Debug)]
enum Content {
    String {
        blocks: Blocks,
        /// What is to come, the next part at the end.
        missing: Vec<Range<usize>>,
    },
    /// What is left of it, in its canonical encoding.
    List(ListSnapshot),
}

impl LongValue {
    /// A record's value, if it is a string in blocks or a list of more than `list_bytes`.
    pub(crate) fn of(record: Record<'_>, (database, slot): (Database, Slot), list_bytes: usize) -> Option<LongValue> {
        let content = match record.value {
            Value::String { text: Text::Long(blocks), .. } => {
                Content::String { blocks: blocks.clone(), missing: std::iter::once(0..blocks.len()).collect() }
            }
            Value::List(list) if list.heap_bytes() > list_bytes => Content::List(ListSnapshot::of(list)),
            _ => return None,
        };
        Some(LongValue {
            name: record.key.to_vec(),
            database,
            slot,
            version: record.version,
            expiry: record.expiry(),
            content,
            written_bytes: 0,
            block: Vec::new(),
        })
    }

    /// Whether it is of this key.
    pub(crate) fn is_of(&self, name: &[u8], database: Database) -> bool {
        self.name == name && self.database == database
    }

    /// Whether the key has this value still.
    pub(crate) fn is_of_version(&self, version: Version) -> bool {
        self.version == version
    }

    /// Appends the next block; that of a list has no more than `bytes`.
    pub(crate) fn append_block(&mut self, stage: u64, bytes: usize, buffer: &mut LogBuffer) {
        self.block.clear();
        let (start, written) = (self.written_bytes, self.written_bytes);
        let start = match &mut self.content {
            Content::String { blocks, missing } => {
                let Some(part) = missing.last_mut() else { return };
                let (start, end) = (part.start, part.end.min(part.start + BLOCK_BYTES));
                part.start = end;
                missing.pop_if(|part| part.start == part.end);
                blocks.pieces(start..end).for_each(|piece| self.block.extend_from_slice(piece));
                start
            }
            Content::List(snapshot) => {
                snapshot.take(bytes.min(BLOCK_BYTES), &mut self.block);
                start
            }
        };
        match start < written {
            true => buffer.append_block_again(self.slot, (stage, start as u64), &self.block),
            false => buffer.append_block(self.slot, (stage, start as u64), &self.block),
        }
        self.written_bytes = written.max(start + self.block.len());
    }

    /// Whether all of it is in blocks.
    pub(crate) fn is_written(&self) -> bool {
        match &self.content {
            Content::String { missing, .. } => missing.is_empty(),
            Content::List(snapshot) => snapshot.is_empty(),
        }
    }

    /// Appends the change that names the blocks; a copy may be known where it is read.
    pub(crate) fn append_put(&self, stage: u64, is_copy: bool, buffer: &mut LogBuffer) {
        let key = Key { bytes: &self.name, database: self.database, slot: self.slot, hash: 0 };
        let kind = match self.content {
            Content::String { .. } => Kind::String,
            Content::List(_) => Kind::List,
        };
        let put = (kind, self.expiry, is_copy);
        buffer.append_put_staged(&key, self.version, put, (stage, self.written_bytes as u64));
    }

    /// The key has another value. Its blocks that differ come again, if it grew or was written to; what it was. `None`: what came of this
    /// one is of no use for it.
    pub(crate) fn renew(&mut self, newer: LongValue) -> Option<Garbage> {
        let LongValue { content: Content::String { blocks, .. }, .. } = &newer else { return None };
        let Content::String { blocks: older, missing: left } = &self.content else { return None };
        if blocks.len() < self.written_bytes {
            return None;
        }
        // Blocks are compared as a whole, so what lies behind both values in the last one is among them.
        let mut missing = blocks.changed_since(older);
        missing.extend(left.iter().map(|part| part.start..part.end.min(blocks.len())));
        let content = Content::String { blocks: blocks.clone(), missing: united(missing) };
        let newer = LongValue { written_bytes: self.written_bytes, content, ..newer };
        Some(std::mem::replace(self, newer).into_garbage())
    }

    /// What it refers to: maybe nobody else does any more.
    pub(crate) fn into_garbage(self) -> Garbage {
        match self.content {
            Content::String { blocks, .. } => Garbage::Blocks(blocks),
            Content::List(snapshot) => Garbage::List(Box::new(snapshot.into_list())),
        }
    }
}

/// The same bytes in parts that neither meet nor overlap, the first one at the end.
fn united(mut parts: Vec<Range<usize>>) -> Vec<Range<usize>> {
    parts.retain(|part| !part.is_empty());
    parts.sort_unstable_by_key(|part| part.start);
    let mut united: Vec<Range<usize>> = Vec::with_capacity(parts.len());
    for part in parts {
        match united.last_mut().filter(|last| last.end >= part.start) {
            Some(last) => last.end = last.end.max(part.end),
            None => united.push(part),
        }
    }
    united.reverse();
    united
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_united_and_the_first_one_is_the_last() {
        assert_eq!(united(vec![5..9, 0..2, 3..3, 8..12, 20..21, 2..4]), [20..21, 5..12, 0..4]);
    }
}
