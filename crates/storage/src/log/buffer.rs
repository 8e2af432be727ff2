//! Records of the tick under way, with room for the group's header in front: the group is sealed in place and written
//! from where it was built.

use base::limits::LOG_PIECE_BYTES_MAX;
use base::{Blocks, Database, Slot, Version};
use types::change::{PUT_HEAD_BYTES_MAX, put_head};
use types::{Change, Expiry, Kind};

use super::format::{
    FLAG_COPIED, FLAG_PIECES, FLAG_SEALED, FLAG_STAGED, GROUP_HEADER_BYTES, RECORD_CHECKSUM_BYTES, RECORD_HEADER_BYTES,
    UnitMark, Witness, tag, u16_at, u32_at, u64_at,
};
use crate::key::Key;

/// Memory of a longer group is not kept. In durability `commit` a group has a mebibyte when it is written although the disk is busy, and
/// its memory grew by doubling: giving that back took half a millisecond, and the next group's first touches as much.
const MEMORY_BYTES_MAX: usize = 3 << 20;

/// Offset of a record's flags.
const FLAGS_AT: usize = 5;

/// See the module.
#[derive(Debug)]
pub struct LogBuffer {
    bytes: Vec<u8>,
    records: u32,
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
        LogBuffer { bytes, records: 0 }
    }

    /// The next records are built in the memory of a group that was written, if there are none yet. One place for all of them
    /// stays in the CPU's cache, where the operating system just read the last group from it.
    pub fn reuse(&mut self, memory: Vec<u8>) {
        if self.is_empty() && memory.capacity() <= MEMORY_BYTES_MAX {
            *self = LogBuffer::reusing(memory);
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
    /// so that no record is longer than a piece, a key and two headers.
    #[inline]
    pub fn append(&mut self, key: &Key<'_>, version: Version, change: &Change<'_>) {
        match *change {
            Change::Put { kind, value, expiry } if value.len() <= LOG_PIECE_BYTES_MAX => {
                self.append_put(key, version, (kind, expiry), value);
            }
            Change::PutBlocks { blocks, staged, expiry } => {
                self.append_put_blocks(key, version, expiry, (blocks, staged));
            }
            _ => self.append_change(key, version, change),
        }
    }

    /// Append what most records are: a whole value no longer than a piece.
    #[inline]
    pub(crate) fn append_put(&mut self, key: &Key<'_>, version: Version, (kind, expiry): (Kind, Expiry), value: &[u8]) {
        debug_assert!(value.len() <= LOG_PIECE_BYTES_MAX);
        let tag = Change::Put { kind, value: &[], expiry }.tag();
        let mut head = [0u8; PUT_HEAD_BYTES_MAX];
        let head = put_head(&mut head, kind, expiry);
        let bytes = RECORD_HEADER_BYTES + key.bytes.len() + head.len() + value.len();
        self.bytes.reserve(bytes);
        self.bytes.extend_from_slice(&header_of(bytes, key, version, (tag, 0)));
        self.bytes.extend_from_slice(key.bytes);
        self.bytes.extend_from_slice(head);
        self.bytes.extend_from_slice(value);
        self.records += 1;
    }

    fn append_change(&mut self, key: &Key<'_>, version: Version, change: &Change<'_>) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0u8; RECORD_HEADER_BYTES]);
        self.bytes.extend_from_slice(key.bytes);
        let body_start = self.bytes.len();
        let tail = change.encode_head(&mut self.bytes);
        if self.bytes.len() - body_start + tail.len() > LOG_PIECE_BYTES_MAX + PUT_HEAD_BYTES_MAX {
            let head = self.bytes.split_off(body_start);
            self.bytes.truncate(start);
            let pieces = head.chunks(LOG_PIECE_BYTES_MAX).chain(tail.chunks(LOG_PIECE_BYTES_MAX));
            return self.append_pieces(key, version, change.tag(), (head.len() + tail.len(), pieces));
        }
        self.bytes.extend_from_slice(tail);
        self.write_header(start, key, version, change.tag(), 0);
    }

    /// Append a record that may be read alone: no piece of it is elsewhere, and it ends with a checksum of its own.
    pub(crate) fn append_sealed(&mut self, key: &Key<'_>, version: Version, change: &Change<'_>) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0u8; RECORD_HEADER_BYTES]);
        self.bytes.extend_from_slice(key.bytes);
        let tail = change.encode_head(&mut self.bytes);
        self.bytes.extend_from_slice(tail);
        self.bytes.extend_from_slice(&[0; RECORD_CHECKSUM_BYTES]);
        self.write_header(start, key, version, change.tag(), FLAG_SEALED);
        let (content, checksum) = self.bytes[start..].split_last_chunk_mut().expect("it was just made room for");
        *checksum = base::checksum::crc32c(content).to_le_bytes();
    }

    /// Append a change that may be known where it is read.
    pub(crate) fn append_copied(&mut self, key: &Key<'_>, version: Version, change: &Change<'_>) {
        let start = self.bytes.len();
        self.append(key, version, change);
        let last = RecordBytes(&self.bytes[start..]).last().map_or(0, <[u8]>::len);
        let at = self.bytes.len() - last;
        self.bytes[at + FLAGS_AT] |= FLAG_COPIED;
    }

    /// Append that all keys of a slot went.
    pub(crate) fn append_forget(&mut self, slot: Slot) {
        let key = Key { bytes: b"", database: Database(0), slot, hash: 0 };
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0u8; RECORD_HEADER_BYTES]);
        self.write_header(start, &key, Version::ABSENT, tag::FORGET, 0);
    }

    /// Append records as another node's log has them.
    pub(crate) fn append_raw(&mut self, records: &[u8], count: u32) {
        self.bytes.extend_from_slice(records);
        self.records += count;
    }

    /// The records without the room in front of them.
    pub fn record_slice(&self) -> &[u8] {
        &self.bytes[GROUP_HEADER_BYTES..]
    }

    /// Without records, its memory kept.
    pub fn clear(&mut self) {
        self.bytes.truncate(GROUP_HEADER_BYTES);
        self.records = 0;
    }

    /// Append a whole record as it stands in another run.
    pub(crate) fn append_record(&mut self, record: &[u8]) {
        self.bytes.extend_from_slice(record);
        self.records += 1;
    }

    #[cold]
    fn append_put_blocks(
        &mut self,
        key: &Key<'_>,
        version: Version,
        expiry: Expiry,
        (blocks, staged): (&Blocks, Option<u64>),
    ) {
        if let Some(stage) = staged {
            return self.append_put_staged(key, version, (Kind::String, expiry), (stage, blocks.len() as u64));
        }
        let mut room = [0u8; PUT_HEAD_BYTES_MAX];
        let head = put_head(&mut room, Kind::String, expiry);
        let pieces = std::iter::once(head).chain(blocks.all());
        let tag = Change::Put { kind: Kind::String, value: &[], expiry }.tag();
        self.append_pieces(key, version, tag, (head.len() + blocks.len(), pieces));
    }

    /// Append that a key has the value of `bytes` that came before as the blocks of a stage: a string, or in runs a list in its
    /// canonical encoding.
    pub(crate) fn append_put_staged(
        &mut self,
        key: &Key<'_>,
        version: Version,
        (kind, expiry): (Kind, Expiry),
        (stage, bytes): (u64, u64),
    ) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0u8; RECORD_HEADER_BYTES]);
        self.bytes.extend_from_slice(key.bytes);
        self.bytes.extend_from_slice(put_head(&mut [0; PUT_HEAD_BYTES_MAX], kind, expiry));
        self.bytes.extend_from_slice(&stage.to_le_bytes());
        self.bytes.extend_from_slice(&bytes.to_le_bytes());
        let tag = Change::Put { kind, value: &[], expiry }.tag();
        self.write_header(start, key, version, tag, FLAG_STAGED);
    }

    /// Append the next part of a long value whose change will follow, in this group or a later one.
    pub fn append_block(&mut self, slot: Slot, (stage, offset): (u64, u64), bytes: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0u8; RECORD_HEADER_BYTES]);
        self.bytes.extend_from_slice(&stage.to_le_bytes());
        self.bytes.extend_from_slice(&offset.to_le_bytes());
        self.bytes.extend_from_slice(bytes);
        let key = Key { bytes: b"", database: Database(0), slot, hash: 0 };
        self.write_header(start, &key, Version::ABSENT, tag::BLOCK, 0);
    }

    fn append_pieces<'a>(
        &mut self,
        key: &Key<'_>,
        version: Version,
        tag: u8,
        (len, pieces): (usize, impl Iterator<Item = &'a [u8]>),
    ) {
        // At once and no more than needed: growing by doubling would take twice the memory of a long value.
        let headers = (len / LOG_PIECE_BYTES_MAX + 2) * RECORD_HEADER_BYTES;
        self.bytes.reserve(headers + key.bytes.len() + len);
        let mut pieces = pieces.peekable();
        while let Some(piece) = pieces.next() {
            if pieces.peek().is_some() {
                self.append_special(tag::PIECE, piece);
                continue;
            }
            let start = self.bytes.len();
            self.bytes.extend_from_slice(&[0u8; RECORD_HEADER_BYTES]);
            self.bytes.extend_from_slice(key.bytes);
            self.bytes.extend_from_slice(piece);
            self.write_header(start, key, version, tag, FLAG_PIECES);
        }
    }

    #[inline]
    fn write_header(&mut self, start: usize, key: &Key<'_>, version: Version, tag: u8, flags: u8) {
        let header = header_of(self.bytes.len() - start, key, version, (tag, flags));
        self.bytes[start..][..RECORD_HEADER_BYTES].copy_from_slice(&header);
        self.records += 1;
    }

    /// Append the removal of all keys; `slot` has `version` since.
    pub fn append_clear(&mut self, database: Option<Database>, slot: Slot, version: Version) {
        let key = Key { bytes: b"", database: Database(0), slot, hash: 0 };
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0u8; RECORD_HEADER_BYTES]);
        self.bytes.push(database.map_or(u8::MAX, |database| database.0));
        self.write_header(start, &key, version, tag::CLEAR, 0);
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
        let changes = |record: &[u8]| record[4] == tag::CLEAR || record[4] < tag::PIECE;
        let record = RecordBytes(&self.bytes[GROUP_HEADER_BYTES..]).find(|record| changes(record))?;
        let version = Version(u64_at(record, 8) & Version::MAX.0);
        Some(Witness { core, slot: u16_at(record, 6), version })
    }

    /// Append `part`'s records as they are.
    pub fn append_all(&mut self, part: &LogBuffer) {
        self.bytes.extend_from_slice(&part.bytes[GROUP_HEADER_BYTES..]);
        self.records += part.records;
    }

    fn append_special(&mut self, tag: u8, body: &[u8]) {
        let mut header = [0u8; RECORD_HEADER_BYTES];
        header[..4].copy_from_slice(&((RECORD_HEADER_BYTES + body.len()) as u32).to_le_bytes());
        header[4] = tag;
        self.bytes.extend_from_slice(&header);
        self.bytes.extend_from_slice(body);
        self.records += 1;
    }
}

/// The front of a record of `bytes`, itself included.
#[inline]
fn header_of(bytes: usize, key: &Key<'_>, version: Version, (tag, flags): (u8, u8)) -> [u8; RECORD_HEADER_BYTES] {
    let mut header = [0u8; RECORD_HEADER_BYTES];
    header[..4].copy_from_slice(&(bytes as u32).to_le_bytes());
    header[4] = tag;
    header[FLAGS_AT] = flags;
    header[6..8].copy_from_slice(&key.slot.number().to_le_bytes());
    header[8..16].copy_from_slice(&(version.0 | u64::from(key.database.0) << 48).to_le_bytes());
    header[16..18].copy_from_slice(&(key.bytes.len() as u16).to_le_bytes());
    header
}

/// Records as they were appended.
struct RecordBytes<'a>(&'a [u8]);

impl<'a> Iterator for RecordBytes<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let bytes = u32_at(self.0.first_chunk::<4>()?, 0) as usize;
        let (record, rest) = self.0.split_at(bytes);
        self.0 = rest;
        Some(record)
    }
}
