//! From a slot group to a run, slice by slice. Makes bytes, writes nothing.

use base::{LogOrdinal, Slot};
use types::{Change, Expiry, Kind};

use super::format::{RunEnd, RunHeader};
use crate::group::{SlotGroup, Value};
use crate::key::Key;
use crate::log::buffer::LogBuffer;
use crate::log::format::{GroupHeader, group_stride};

/// Steps of the index's walk that one slice takes, of a few keys each: where many were removed, most find none.
const STEPS_MAX: usize = 4096;

/// See the module.
#[derive(Debug)]
pub struct RunWriter {
    header: RunHeader,
    /// Where the walk goes on; `None` once every key was seen.
    cursor: Option<u32>,
    ordinal: LogOrdinal,
    keys: u64,
    bytes: u64,
}

impl RunWriter {
    /// A run that begins, and the first bytes of its file.
    pub fn begin(header: RunHeader) -> (RunWriter, Vec<u8>) {
        let bytes = header.encode().to_vec();
        (RunWriter { header, cursor: Some(0), ordinal: LogOrdinal(0), keys: 0, bytes: bytes.len() as u64 }, bytes)
    }

    /// What the run says about itself.
    pub fn header(&self) -> &RunHeader {
        &self.header
    }

    /// Whether every key was seen.
    pub fn has_walked(&self) -> bool {
        self.cursor.is_none()
    }

    /// Bytes made so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The next bytes of the file: about `bytes` of records, or one that is longer; none of a stretch without keys.
    pub fn slice(&mut self, group: &SlotGroup, bytes: usize) -> Vec<u8> {
        let mut buffer = LogBuffer::default();
        let (mut elements, mut keys, mut steps) = (Vec::new(), 0, 0);
        while let Some(from) = self.cursor.filter(|_| buffer.record_bytes() < bytes && steps < STEPS_MAX) {
            steps += 1;
            self.cursor = group.index.walk(from, |position, location| {
                let slot = group.id().slot((position >> 24) as u8);
                let (record, database) = (group.record_at(location), group.database_at(location));
                let key = Key { bytes: record.key, database, slot, hash: 0 };
                let expiry = record.expire_at_ms.map_or(Expiry::Clear, Expiry::At);
                let (kind, value) = match record.value {
                    Value::String { bytes, .. } => (Kind::String, bytes),
                    Value::List(list) => {
                        elements.clear();
                        list.encode(&mut elements);
                        (Kind::List, &elements[..])
                    }
                };
                buffer.append(&key, record.version, &Change::Put { kind, value, expiry });
                keys += 1;
            });
        }
        self.keys += keys;
        self.seal(buffer)
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
        };
        let mut bytes = buffer.into_bytes();
        header.seal(&mut bytes);
        bytes.resize(group_stride(record_bytes), 0);
        self.bytes += bytes.len() as u64;
        bytes
    }
}
