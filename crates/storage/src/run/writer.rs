//! From a slot group to a run, slice by slice. Makes bytes, writes nothing.

use base::{LogOrdinal, Slot, Text};
use types::change::{PUT_HEAD_BYTES_MAX, put_head};
use types::{Change, Expiry, Kind};

use super::cold::{ColdSlice, Stretch, Wanted};
use super::format::{RunEnd, RunHeader};
use crate::group::{SlotGroup, Value};
use crate::heap::Location;
use crate::key::Key;
use crate::lazy_free::Garbage;
use crate::log::buffer::LogBuffer;
use crate::log::format::{GROUP_HEADER_BYTES, GroupHeader, group_stride};
use crate::log::record::RecordForm;
use crate::long_value::LongValue;
use crate::tiering::{COLD_VALUE_BYTES_MIN, Note};

/// Steps of the index's walk that one slice takes, of a few keys each: where many were removed, most find none.
const STEPS_MAX: usize = 4096;
/// Records that are asked for before the first of them is read.
const PREFETCH_COUNT: usize = 24;

/// See the module.
pub struct RunWriter {
    header: RunHeader,
    /// Where the walk goes on; `None` once every key was seen.
    cursor: Option<u32>,
    /// What the walk came to and asked for; empty between slices.
    found: Vec<(u32, Location)>,
    /// Long values that the walk came to: they are written, block by block, before it goes on.
    long: Vec<LongValue>,
    long_bytes_max: usize,
    /// What is left of long values that are written: it may be the last reference.
    spent: Vec<Garbage>,
    stages: u64,
    /// Room for that of a list.
    encoding: Vec<u8>,
    ordinal: LogOrdinal,
    keys: u64,
    bytes: u64,
    /// Where the values are that may go cold, if anybody wants to know.
    notes: Option<Vec<Note>>,
    /// Cold values of the slice under way.
    wanted: Vec<Wanted>,
    cold_bytes: usize,
    /// The slice that waits for them.
    reading: Option<ColdSlice>,
}

/// What comes of a step of the walk.
#[derive(Debug)]
pub enum Slice {
    /// The next bytes of the file; none of a stretch without keys.
    Bytes(Vec<u8>),
    /// The old run has to be read first ([`RunWriter::next_reads`]).
    Reads,
}

impl Slice {
    /// The bytes, unless values on the disk belong to them.
    pub fn into_bytes(self) -> Option<Vec<u8>> {
        match self {
            Slice::Bytes(bytes) => Some(bytes),
            Slice::Reads => None,
        }
    }
}

impl RunWriter {
    /// A run that begins, and the first bytes of its file.
    /// With `notes` it remembers where it has what may go cold.
    pub fn begin(header: RunHeader, notes: bool) -> (RunWriter, Vec<u8>) {
        let bytes = header.encode().to_vec();
        let writer = RunWriter {
            header,
            cursor: Some(0),
            found: Vec::new(),
            long: Vec::new(),
            long_bytes_max: usize::MAX,
            spent: Vec::new(),
            stages: 0,
            encoding: Vec::new(),
            ordinal: LogOrdinal(0),
            keys: 0,
            bytes: bytes.len() as u64,
            notes: notes.then(Vec::new),
            wanted: Vec::new(),
            cold_bytes: 0,
            reading: None,
        };
        (writer, bytes)
    }

    /// What the run says about itself.
    pub fn header(&self) -> &RunHeader {
        &self.header
    }

    /// Whether every key was seen.
    pub fn has_walked(&self) -> bool {
        self.cursor.is_none() && self.long.is_empty()
    }

    /// Bytes made so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Keys that it has so far.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// Of the slices from now on: a long value goes on in the next one where the slice has so many bytes already.
    pub fn set_long_bytes_max(&mut self, bytes: usize) {
        self.long_bytes_max = bytes;
    }

    /// The next bytes of the file, in the memory of `memory`: about `bytes` of records, none of a stretch without keys.
    pub fn slice(&mut self, group: &SlotGroup, bytes: usize, memory: Vec<u8>) -> Slice {
        let mut buffer = LogBuffer::reusing(memory);
        let mut steps = 0;
        self.write_long(&mut buffer, bytes);
        let is_short = |walk: &RunWriter, buffer: &LogBuffer| buffer.record_bytes() + walk.cold_bytes < bytes;
        while self.cursor.is_some() && self.long.is_empty() && is_short(self, &buffer) && steps < STEPS_MAX {
            steps += self.find(group);
            let mut found = std::mem::take(&mut self.found);
            for (position, location) in found.drain(..) {
                let slot = group.id().slot((position >> 24) as u8);
                self.write_record(group, (slot, position, location), &mut buffer, bytes);
            }
            self.found = found;
        }
        self.write_long(&mut buffer, bytes);
        if self.wanted.is_empty() {
            return Slice::Bytes(self.seal(buffer));
        }
        self.cold_bytes = 0;
        self.reading = Some(ColdSlice::new(buffer, std::mem::take(&mut self.wanted)));
        Slice::Reads
    }

    /// What has to be read of the group's old run for the slice under way, as far as more reads may be under way.
    pub fn next_reads(&mut self) -> Vec<Stretch> {
        self.reading.as_mut().map_or(Vec::new(), |slice| slice.next_reads().collect())
    }

    /// A stretch of the old run; the next bytes of the file, if that was the last one that was missing.
    ///
    /// # Errors
    /// The offset in the old run of what is not the record that it should be.
    pub fn take_read(&mut self, number: usize, bytes: &[u8]) -> Result<Option<Vec<u8>>, u64> {
        let Some(slice) = &mut self.reading else { return Ok(None) };
        let (notes, base) = (&mut self.notes, self.bytes + GROUP_HEADER_BYTES as u64);
        slice.take(number, bytes, |wanted, at| {
            let note = Note { position: wanted.position, version: wanted.version, offset: base + at as u64 };
            notes.iter_mut().for_each(|notes| notes.push(note));
        })?;
        if !slice.is_whole() {
            return Ok(None);
        }
        let whole = self.reading.take().map(|slice| slice.buffer);
        Ok(whole.map(|buffer| self.seal(buffer)))
    }

    /// Where it has what may go cold.
    pub(crate) fn take_notes(&mut self) -> Vec<Note> {
        self.notes.take().unwrap_or_default()
    }

    /// Walks on to the next few records and asks for them; how many steps that took.
    fn find(&mut self, group: &SlotGroup) -> usize {
        let mut steps = 0;
        while let Some(from) = self.cursor.filter(|_| self.found.len() < PREFETCH_COUNT && steps < STEPS_MAX) {
            steps += 1;
            self.cursor = group.index.walk(from, |position, location| {
                group.heap.prefetch(location);
                self.found.push((position, location));
            });
        }
        steps
    }

    fn write_record(
        &mut self,
        group: &SlotGroup,
        (slot, position, location): (Slot, u32, Location),
        buffer: &mut LogBuffer,
        bytes: usize,
    ) {
        self.keys += 1;
        // Who tiers reads records alone later, so that they are sealed.
        let may_go_cold = |bytes: usize| self.notes.is_some() && bytes >= COLD_VALUE_BYTES_MIN;
        if let Some(plain) = group.plain_at(location).filter(|plain| !may_go_cold(plain.value.len())) {
            let key = Key { bytes: plain.key, database: plain.database, slot, hash: 0 };
            let expiry = plain.expire_at_ms.map_or(Expiry::Clear, Expiry::At);
            return buffer.append_put(&key, plain.version, (Kind::String, expiry), plain.value);
        }
        let (record, database) = (group.record_at(location), group.database_at(location));
        if let Some(value) = LongValue::of(record, (database, slot), bytes) {
            return self.long.push(value);
        }
        let (kind, value) = match record.value {
            Value::Cold => return self.want(group, (slot, position, location)),
            Value::String { text: Text::Long(_), .. } => unreachable!("it is long"),
            Value::String { text: Text::Short(value), .. } => (Kind::String, value),
            Value::List(list) => {
                self.encoding.clear();
                list.encode(&mut self.encoding);
                (Kind::List, &self.encoding[..])
            }
        };
        let key = Key { bytes: record.key, database, slot, hash: 0 };
        let expiry = record.expiry();
        let is_noted = kind == Kind::String && value.len() >= COLD_VALUE_BYTES_MIN;
        let Some(notes) = self.notes.as_mut().filter(|_| is_noted) else {
            return buffer.append(&key, record.version, &Change::Put { kind, value, expiry });
        };
        let offset = self.bytes + (GROUP_HEADER_BYTES + buffer.record_bytes()) as u64;
        notes.push(Note { position, version: record.version, offset });
        let (tag, mut room) = (Change::Put { kind, value: &[], expiry }.tag(), [0; PUT_HEAD_BYTES_MAX]);
        buffer.append_sealed(&key, record.version, tag, &[put_head(&mut room, kind, expiry), value]);
    }

    /// A cold value comes into the slice once it is read.
    fn want(&mut self, group: &SlotGroup, (slot, position, location): (Slot, u32, Location)) {
        let cold = group.cold_value_at(position, location).expect("the caller saw that it is cold");
        self.cold_bytes += cold.bytes;
        let (version, offset, bytes, form) = (cold.version, cold.offset, cold.bytes, cold.form);
        self.wanted.push(Wanted { position, slot, version, offset, bytes, form });
    }

    /// What is left of long values that were written.
    pub(crate) fn take_spent(&mut self) -> Vec<Garbage> {
        std::mem::take(&mut self.spent)
    }

    /// All that an unfinished run refers to.
    pub(crate) fn into_garbage(self) -> impl Iterator<Item = Garbage> {
        self.long.into_iter().map(LongValue::into_garbage).chain(self.spent)
    }

    /// Blocks of the long values under way, up to about `bytes` in all.
    fn write_long(&mut self, buffer: &mut LogBuffer, bytes: usize) {
        let bytes = bytes.min(self.long_bytes_max);
        while let Some(value) = self.long.last_mut().filter(|_| buffer.record_bytes() < bytes) {
            value.append_block(self.stages, bytes, buffer);
            if !value.is_written() {
                continue;
            }
            value.append_put(self.stages, false, buffer);
            self.stages += 1;
            self.spent.extend(self.long.pop().map(LongValue::into_garbage));
        }
    }

    /// The last bytes of the file. `end` is the owner's last log group that was sealed.
    pub fn finish(&mut self, group: &SlotGroup, end: LogOrdinal) -> Vec<u8> {
        assert!(self.has_walked(), "an end says that every key was seen");
        let versions = |position: u8| -> (base::Version, base::Version) {
            let slot: Slot = group.id().slot(position);
            (group.last_version(slot), group.removed_version(slot))
        };
        let mut body = Vec::new();
        RunEnd { end, keys: self.keys, versions: (0..=u8::MAX).map(versions).collect() }.encode(&mut body);
        let mut buffer = LogBuffer::default();
        buffer.append_run_end(&body);
        self.seal(buffer)
    }

    fn seal(&mut self, buffer: LogBuffer) -> Vec<u8> {
        if buffer.is_empty() {
            return Vec::new();
        }
        let (records, record_bytes) = (buffer.records(), buffer.record_bytes());
        self.ordinal.0 += 1;
        let header = GroupHeader {
            record_bytes: u32::try_from(record_bytes).expect("a slice holds one long record at most"),
            records,
            ordinal: self.ordinal,
            durable: LogOrdinal(0),
            identity: self.header.identity(),
            unix_ms: 0,
            form: RecordForm::Short,
        };
        let mut bytes = buffer.into_bytes();
        header.seal(&mut bytes);
        bytes.resize(group_stride(record_bytes), 0);
        self.bytes += bytes.len() as u64;
        bytes
    }
}
