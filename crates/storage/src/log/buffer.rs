//! Records of the tick under way, with room for the group's header in front: the group is sealed in place and written
//! from where it was built.

use base::limits::LOG_PIECE_BYTES_MAX;
use base::prefetch::prefetch;
use base::{Blocks, Database, Slot, Version};
use types::change::{PUT_HEAD_BYTES_MAX, put_head};
use types::{Change, Expiry, Kind};

use super::format::{BLOCK_AGAIN, BLOCK_UNNEEDED, GROUP_HEADER_BYTES, UnitMark, Witness, tag};
use super::record::{
    FLAG_COPIED, FLAG_PIECES, FLAG_SEALED, FLAG_STAGED, RECORD_CHECKSUM_BYTES, RECORD_HEAD_BYTES_MAX, RecordForm,
    RecordHead, Records, flags_at,
};
use crate::key::Key;

/// Memory of a longer group is not kept. In durability `commit` a group has a mebibyte when it is written although the disk is busy, and
/// its memory grew by doubling: giving that back took half a millisecond, and the next group's first touches as much.
const MEMORY_BYTES_MAX: usize = 3 << 20;

/// Lines of the next record that are asked for, and their bytes.
const PREFETCH_LINES: usize = 4;
const CACHE_LINE_BYTES: usize = 64;

/// What makes bytes a change: its tag and its flags.
type Mark = (u8, u8);

/// See the module.
#[derive(Debug)]
pub struct LogBuffer {
    bytes: Vec<u8>,
    records: u32,
    /// Bytes of blocks of long values.
    block_bytes: u64,
    /// Whether all keys of a slot went.
    has_forget: bool,
    /// Room for the body of a change, whose length is in front of it; empty between two.
    body: Vec<u8>,
}

impl Default for LogBuffer {
    fn default() -> Self {
        LogBuffer::reusing(Vec::new())
    }
}

impl LogBuffer {
    /// An empty buffer in the memory of an old one.
    pub fn reusing(mut bytes: Vec<u8>) -> LogBuffer {
        bytes.clear();
        bytes.resize(GROUP_HEADER_BYTES, 0);
        LogBuffer { bytes, records: 0, block_bytes: 0, has_forget: false, body: Vec::new() }
    }

    /// The next records are built in the memory of a group that was written, if there are none yet. One place for all of them
    /// stays in the CPU's cache, where the operating system just read the last group from it.
    pub fn reuse(&mut self, memory: Vec<u8>) {
        if self.is_empty() && memory.capacity() <= MEMORY_BYTES_MAX {
            let body = std::mem::take(&mut self.body);
            *self = LogBuffer { body, ..LogBuffer::reusing(memory) };
        }
    }

    /// Whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Number of records.
    pub fn records(&self) -> u32 {
        self.records
    }

    /// Bytes of the records.
    #[inline]
    pub fn record_bytes(&self) -> usize {
        self.bytes.len() - GROUP_HEADER_BYTES
    }

    /// The group's bytes, header room included.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Append a change of `key`. A body above the piece limit goes into records of its own before it, all but its end,
    /// so that no record is longer than a piece, a key and two heads.
    #[inline]
    pub fn append(&mut self, key: &Key<'_>, version: Version, change: &Change<'_>) {
        self.append_flagged(key, version, change, 0);
    }

    /// Append a change that may be known where it is read.
    pub(crate) fn append_copied(&mut self, key: &Key<'_>, version: Version, change: &Change<'_>) {
        self.append_flagged(key, version, change, FLAG_COPIED);
    }

    #[inline]
    fn append_flagged(&mut self, key: &Key<'_>, version: Version, change: &Change<'_>, flags: u8) {
        match *change {
            Change::Put { kind, value, expiry } if value.len() <= LOG_PIECE_BYTES_MAX => {
                self.append_whole(key, version, (kind, expiry), (value, flags));
            }
            Change::PutBlocks { blocks, staged, expiry } => {
                let mut room = [0; PUT_HEAD_BYTES_MAX];
                let head = put_head(&mut room, Kind::String, expiry);
                self.append_blocks(key, version, (change.tag(), flags, head), (blocks, 0, staged));
            }
            Change::OverwriteBlocks { blocks, skip, staged, .. } => {
                let mut head = Vec::new();
                change.encode_head(&mut head);
                self.append_blocks(key, version, (change.tag(), flags, &head), (blocks, skip, staged));
            }
            _ => self.append_change(key, version, change, flags),
        }
    }

    /// Append what most records are: a whole value no longer than a piece.
    #[inline]
    pub(crate) fn append_put(&mut self, key: &Key<'_>, version: Version, put: (Kind, Expiry), value: &[u8]) {
        self.append_whole(key, version, put, (value, 0));
    }

    #[inline]
    fn append_whole(
        &mut self,
        key: &Key<'_>,
        version: Version,
        (kind, expiry): (Kind, Expiry),
        (value, flags): (&[u8], u8),
    ) {
        debug_assert!(value.len() <= LOG_PIECE_BYTES_MAX);
        let tag = Change::Put { kind, value: &[], expiry }.tag();
        let mut head = [0u8; PUT_HEAD_BYTES_MAX];
        let head = put_head(&mut head, kind, expiry);
        self.append_head(key, version, (tag, flags), head.len() + value.len());
        self.bytes.extend_from_slice(head);
        self.bytes.extend_from_slice(value);
        self.prefetch_next();
    }

    /// Where the next record comes: a tick's memory is more than a second-level cache holds, and to store without would wait.
    #[inline]
    fn prefetch_next(&self) {
        let end = self.bytes.as_ptr().wrapping_add(self.bytes.len());
        (0..PREFETCH_LINES).for_each(|line| prefetch(end.wrapping_add(line * CACHE_LINE_BYTES)));
    }

    fn append_change(&mut self, key: &Key<'_>, version: Version, change: &Change<'_>, flags: u8) {
        let mut body = std::mem::take(&mut self.body);
        let tail = change.encode_head(&mut body);
        if body.len() + tail.len() > LOG_PIECE_BYTES_MAX + PUT_HEAD_BYTES_MAX {
            let pieces = body.chunks(LOG_PIECE_BYTES_MAX).chain(tail.chunks(LOG_PIECE_BYTES_MAX));
            self.append_pieces(key, version, (change.tag(), flags), (body.len() + tail.len(), pieces));
        } else {
            self.append_head(key, version, (change.tag(), flags), body.len() + tail.len());
            self.bytes.extend_from_slice(&body);
            self.bytes.extend_from_slice(tail);
        }
        // Elements of a list may have been long.
        if body.capacity() <= LOG_PIECE_BYTES_MAX {
            body.clear();
            self.body = body;
        }
    }

    /// Append a record that may be read alone: no piece of it is elsewhere, and it ends with a checksum of its own. The body is
    /// that of a change with this tag.
    pub(crate) fn append_sealed(&mut self, key: &Key<'_>, version: Version, tag: u8, body: &[&[u8]]) {
        let start = self.bytes.len();
        let body_bytes: usize = body.iter().map(|part| part.len()).sum();
        self.append_head(key, version, (tag, FLAG_SEALED), body_bytes + RECORD_CHECKSUM_BYTES);
        body.iter().for_each(|part| self.bytes.extend_from_slice(part));
        let checksum = base::checksum::crc32c(&self.bytes[start..]).to_le_bytes();
        self.bytes.extend_from_slice(&checksum);
    }

    /// Append that all keys of a slot went.
    pub(crate) fn append_forget(&mut self, slot: Slot) {
        self.has_forget = true;
        self.append_of_slot(slot, Version::ABSENT, tag::FORGET, &[]);
    }

    /// Append a record, and its pieces in front of it, as another node's log has them. That node says how much of long values comes:
    /// who writes here waits for none of it.
    pub(crate) fn append_raw(&mut self, records: &[u8], count: u32) {
        self.bytes.extend_from_slice(records);
        self.records += count;
        self.block_bytes += if count > 1 { records.len() as u64 } else { 0 };
    }

    /// The records without the room in front of them.
    pub fn record_slice(&self) -> &[u8] {
        &self.bytes[GROUP_HEADER_BYTES..]
    }

    /// Without records, its memory kept.
    pub fn clear(&mut self) {
        self.bytes.truncate(GROUP_HEADER_BYTES);
        (self.records, self.block_bytes, self.has_forget) = (0, 0, false);
    }

    /// Whether all keys of some slot went.
    pub(crate) fn has_forget(&self) -> bool {
        self.has_forget
    }

    /// Bytes of blocks of long values among the records.
    pub fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    /// Append a whole record as it stands in another group.
    pub(crate) fn append_record(&mut self, record: &[u8]) {
        self.bytes.extend_from_slice(record);
        self.records += 1;
    }

    /// The same record, as one that may be known where it is read.
    pub(crate) fn append_record_as_copy(&mut self, record: &[u8]) {
        let flags = self.bytes.len() + flags_at(record);
        self.append_record(record);
        self.bytes[flags] |= FLAG_COPIED;
    }

    #[cold]
    fn append_blocks(
        &mut self,
        key: &Key<'_>,
        version: Version,
        (tag, flags, head): (u8, u8, &[u8]),
        (blocks, skip, staged): (&Blocks, usize, Option<u64>),
    ) {
        let len = blocks.len() - skip;
        if let Some(stage) = staged {
            return self.append_staged(key, version, (tag, flags, head), (stage, len as u64));
        }
        let pieces = std::iter::once(head).chain(blocks.pieces(skip..blocks.len()));
        self.append_pieces(key, version, (tag, flags), (head.len() + len, pieces));
    }

    /// Append that a key has the value of `bytes` that came before as the blocks of a stage: a string, or in runs a list in its
    /// canonical encoding.
    pub(crate) fn append_put_staged(
        &mut self,
        key: &Key<'_>,
        version: Version,
        (kind, expiry, is_copy): (Kind, Expiry, bool),
        (stage, bytes): (u64, u64),
    ) {
        let mut room = [0; PUT_HEAD_BYTES_MAX];
        let tag = Change::Put { kind, value: &[], expiry }.tag();
        let flags = if is_copy { FLAG_COPIED } else { 0 };
        self.append_staged(key, version, (tag, flags, put_head(&mut room, kind, expiry)), (stage, bytes));
    }

    fn append_staged(
        &mut self,
        key: &Key<'_>,
        version: Version,
        (tag, flags, head): (u8, u8, &[u8]),
        (stage, bytes): (u64, u64),
    ) {
        self.append_head(key, version, (tag, flags | FLAG_STAGED), head.len() + 16);
        self.bytes.extend_from_slice(head);
        self.bytes.extend_from_slice(&stage.to_le_bytes());
        self.bytes.extend_from_slice(&bytes.to_le_bytes());
    }

    /// Append the next part of a long value whose change will follow, in this group or a later one.
    pub fn append_block(&mut self, slot: Slot, (stage, offset): (u64, u64), bytes: &[u8]) {
        self.block_bytes += bytes.len() as u64;
        let body = [&stage.to_le_bytes(), &offset.to_le_bytes(), bytes];
        self.append_of_slot(slot, Version::ABSENT, tag::BLOCK, &body);
    }

    /// Append a part again that came before, and perhaps more behind it: it was written to.
    pub fn append_block_again(&mut self, slot: Slot, (stage, offset): (u64, u64), bytes: &[u8]) {
        self.append_block(slot, (stage, offset | BLOCK_AGAIN), bytes);
    }

    /// Append that nobody needs the blocks of a stage.
    pub fn append_unneeded(&mut self, slot: Slot, stage: u64) {
        self.append_block(slot, (stage, BLOCK_UNNEEDED), &[]);
    }

    fn append_pieces<'a>(
        &mut self,
        key: &Key<'_>,
        version: Version,
        (tag, flags): Mark,
        (len, pieces): (usize, impl Iterator<Item = &'a [u8]>),
    ) {
        // At once and no more than needed: growing by doubling would take twice the memory of a long value.
        let heads = (len / LOG_PIECE_BYTES_MAX + 2) * RECORD_HEAD_BYTES_MAX;
        self.bytes.reserve(heads + key.bytes.len() + len);
        let mut pieces = pieces.peekable();
        while let Some(piece) = pieces.next() {
            if pieces.peek().is_some() {
                self.append_special(tag::PIECE, piece);
                continue;
            }
            self.append_head(key, version, (tag, flags | FLAG_PIECES), piece.len());
            self.bytes.extend_from_slice(piece);
        }
    }

    /// The head and the key of a record, behind which the caller puts so many bytes.
    #[inline]
    fn append_head(&mut self, key: &Key<'_>, version: Version, (tag, flags): Mark, following: usize) {
        let (slot, database, key_bytes) = (key.slot.number(), key.database.0, key.bytes.len());
        let head = RecordHead { tag, flags, slot, version, database, key_bytes };
        self.bytes.reserve(RECORD_HEAD_BYTES_MAX + key_bytes + following);
        self.bytes.extend_from_slice(head.encode(key_bytes + following, &mut [0; RECORD_HEAD_BYTES_MAX]));
        self.bytes.extend_from_slice(key.bytes);
        self.records += 1;
    }

    /// A record that is of no key.
    fn append_of_slot(&mut self, slot: Slot, version: Version, tag: u8, body: &[&[u8]]) {
        let key = Key { bytes: b"", database: Database(0), slot, hash: 0 };
        self.append_head(&key, version, (tag, 0), body.iter().map(|part| part.len()).sum());
        body.iter().for_each(|part| self.bytes.extend_from_slice(part));
    }

    /// Append the removal of all keys; `slot` has `version` since.
    pub fn append_clear(&mut self, database: Option<Database>, slot: Slot, version: Version) {
        self.append_of_slot(slot, version, tag::CLEAR, &[&[database.map_or(u8::MAX, |database| database.0)]]);
    }

    /// Append the mark of a clean stop.
    pub fn append_seal(&mut self) {
        self.append_special(tag::SEAL, &[]);
    }

    /// Append the end of a run.
    pub(crate) fn append_run_end(&mut self, body: &[u8]) {
        self.append_special(tag::RUN_END, body);
    }

    /// Append `part`'s records as one core's part of a unit over several cores.
    pub fn append_unit(&mut self, unit: u64, parts: &[Witness], part: &LogBuffer) {
        let mut body = Vec::new();
        UnitMark { unit, records: part.records, parts: parts.to_vec() }.encode(&mut body);
        self.append_special(tag::UNIT, &body);
        self.append_all(part);
    }

    /// What tells that these records of `core` were there; `None` when there is no change among them.
    pub fn witness(&self, core: u16) -> Option<Witness> {
        let mut records = Records::new(self.record_slice(), RecordForm::Short).filter_map(|(_, record)| record.ok());
        let change = records.find(|record| record.tag == tag::CLEAR || record.tag < tag::PIECE)?;
        Some(Witness { core, slot: change.slot, version: change.version })
    }

    /// Append `part`'s records as they are.
    pub fn append_all(&mut self, part: &LogBuffer) {
        self.bytes.extend_from_slice(part.record_slice());
        self.records += part.records;
    }

    fn append_special(&mut self, tag: u8, body: &[u8]) {
        self.append_of_slot(Slot::wrapping(0), Version::ABSENT, tag, &[body]);
    }
}
