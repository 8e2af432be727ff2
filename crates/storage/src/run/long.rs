//! Values that a run takes in blocks, a slice at a time: as they were when the walk came to them.

use base::{BLOCK_BYTES, BlockRange, Blocks, Database, Slot, Version};
use types::{Expiry, Kind, ListSnapshot};

use super::writer::expiry_of;
use crate::group::Record;
use crate::key::Key;
use crate::lazy_free::Garbage;
use crate::log::buffer::LogBuffer;

/// See the module.
#[derive(Debug)]
pub(super) struct LongValue {
    name: Vec<u8>,
    database: Database,
    slot: Slot,
    version: Version,
    expiry: Expiry,
    content: Content,
    /// Bytes of it that are in blocks already.
    written_bytes: usize,
    block: Vec<u8>,
}

#[derive(Debug)]
enum Content {
    String {
        blocks: Blocks,
        rest: BlockRange,
    },
    /// What is left of it, in its canonical encoding.
    List(ListSnapshot),
}

impl LongValue {
    pub(super) fn string(record: Record<'_>, place: (Database, Slot), blocks: &Blocks) -> LongValue {
        let rest = BlockRange::new(blocks, 0..blocks.len());
        LongValue::of(record, place, Content::String { blocks: blocks.clone(), rest })
    }

    pub(super) fn list(record: Record<'_>, place: (Database, Slot), snapshot: ListSnapshot) -> LongValue {
        LongValue::of(record, place, Content::List(snapshot))
    }

    fn of(record: Record<'_>, (database, slot): (Database, Slot), content: Content) -> LongValue {
        LongValue {
            name: record.key.to_vec(),
            database,
            slot,
            version: record.version,
            expiry: expiry_of(record),
            content,
            written_bytes: 0,
            block: Vec::new(),
        }
    }

    /// Appends the next block; that of a list has no more than `bytes`.
    pub(super) fn append_block(&mut self, stage: u64, bytes: usize, buffer: &mut LogBuffer) {
        self.block.clear();
        match &mut self.content {
            Content::String { rest, .. } => rest.take(BLOCK_BYTES, &mut self.block),
            Content::List(snapshot) => snapshot.take(bytes.min(BLOCK_BYTES), &mut self.block),
        }
        buffer.append_block(self.slot, (stage, self.written_bytes as u64), &self.block);
        self.written_bytes += self.block.len();
    }

    /// Whether all of it is in blocks.
    pub(super) fn is_written(&self) -> bool {
        match &self.content {
            Content::String { rest, .. } => rest.is_empty(),
            Content::List(snapshot) => snapshot.is_empty(),
        }
    }

    /// Appends the change that names the blocks.
    pub(super) fn append_put(&self, stage: u64, buffer: &mut LogBuffer) {
        let key = Key { bytes: &self.name, database: self.database, slot: self.slot, hash: 0 };
        let kind = match self.content {
            Content::String { .. } => Kind::String,
            Content::List(_) => Kind::List,
        };
        buffer.append_put_staged(&key, self.version, (kind, self.expiry), (stage, self.written_bytes as u64));
    }

    /// What it refers to: maybe nobody else does any more.
    pub(super) fn into_garbage(self) -> Garbage {
        match self.content {
            Content::String { blocks, .. } => Garbage::Blocks(blocks),
            Content::List(snapshot) => Garbage::List(Box::new(snapshot.into_list())),
        }
    }
}
