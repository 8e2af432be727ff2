//! Groups into segments: which bytes go where, what is written and what is durable. Asks, never does.
//!
//! ```text
//!   segment n   [header][group 41][group 42]······         half full: CreateSegment n+1
//!   segment n+1 [header][group 43]                          full and n+1 ready: move on
//!
//!   sealed ≥ written ≥ durable      (ordinals)
//! ```
//!
//! A full segment whose successor is not ready yet simply grows: a slow disk never stalls a tick.

use std::collections::VecDeque;

use base::limits::{FILLED_SEGMENT_BYTES, FIRST_SEGMENT_BYTES, SEGMENT_BYTES};
use base::{Effect, LogOrdinal, Now, SegmentNumber};

use super::buffer::LogBuffer;
use super::format::{GroupHeader, SEGMENT_HEADER_BYTES, SegmentHeader, group_stride};

/// What is the same for all segments of one core's log in one incarnation.
#[derive(Clone, Copy, Debug)]
pub struct LogIdentity {
    /// Random identity of the store.
    pub store_id: [u8; 16],
    /// How often the store was opened, this time included.
    pub incarnation: u64,
    /// Which core.
    pub core: u16,
    /// Of how many.
    pub cores: u16,
}

impl LogIdentity {
    /// The header of one of its segments.
    pub fn segment_header(&self, segment: SegmentNumber, first_ordinal: LogOrdinal) -> SegmentHeader {
        SegmentHeader {
            store_id: self.store_id,
            incarnation: self.incarnation,
            core: self.core,
            cores: self.cores,
            segment,
            first_ordinal,
        }
    }
}

/// See the module.
#[derive(Debug)]
pub struct LogWriter {
    identity: LogIdentity,
    zero_fill: bool,
    segment_bytes: u64,
    segment: SegmentNumber,
    /// Segments that are there, the present one last: its number and the ordinal of its first group.
    held: VecDeque<(SegmentNumber, LogOrdinal)>,
    segment_identity: u64,
    offset: u64,
    next_requested: bool,
    next_ready: bool,
    next_failed: Option<String>,
    sealed: LogOrdinal,
    written: LogOrdinal,
    durable: LogOrdinal,
    syncing: Option<LogOrdinal>,
    failed: Option<String>,
    spare: Vec<Vec<u8>>,
    bytes_total: u64,
    /// [`LogWriter::bytes_total`] when the sync under way began, and of what is durable.
    bytes_syncing: u64,
    bytes_durable: u64,
    syncs_total: u64,
}

impl LogWriter {
    /// A writer for a log whose segment 0 exists with [`LogWriter::first_segment`] as its header. `zero_fill` makes
    /// syncs cheaper (durability `commit`).
    pub fn new(identity: LogIdentity, zero_fill: bool) -> LogWriter {
        LogWriter {
            identity,
            zero_fill,
            segment_bytes: if zero_fill { FILLED_SEGMENT_BYTES } else { SEGMENT_BYTES },
            segment: SegmentNumber(0),
            held: VecDeque::from([(SegmentNumber(0), LogOrdinal(1))]),
            segment_identity: LogWriter::first_segment(&identity).identity(),
            offset: SEGMENT_HEADER_BYTES as u64,
            next_requested: false,
            next_ready: false,
            next_failed: None,
            sealed: LogOrdinal(0),
            written: LogOrdinal(0),
            durable: LogOrdinal(0),
            syncing: None,
            failed: None,
            spare: Vec::new(),
            bytes_total: 0,
            bytes_syncing: 0,
            bytes_durable: 0,
            syncs_total: 0,
        }
    }

    /// The header of segment 0, which start-up creates before the first tick.
    pub fn first_segment(identity: &LogIdentity) -> SegmentHeader {
        identity.segment_header(SegmentNumber(0), LogOrdinal(1))
    }

    /// Another nominal segment size; the simulator uses tiny ones.
    pub fn with_segment_bytes(mut self, segment_bytes: u64) -> LogWriter {
        self.segment_bytes = segment_bytes;
        self
    }

    /// The ordinal that the next sealed group will have.
    pub fn next_ordinal(&self) -> LogOrdinal {
        LogOrdinal(self.sealed.0 + 1)
    }

    /// Highest group handed to the operating system.
    pub fn written(&self) -> LogOrdinal {
        self.written
    }

    /// Highest group that survives a power cut.
    pub fn durable(&self) -> LogOrdinal {
        self.durable
    }

    /// Highest group sealed.
    pub fn sealed(&self) -> LogOrdinal {
        self.sealed
    }

    /// Why nothing is acknowledged any more, if so.
    pub fn failure(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// Bytes of groups sealed since start.
    pub fn bytes_total(&self) -> u64 {
        self.bytes_total
    }

    /// Bytes of groups that are sealed and not durable.
    pub fn unsynced_bytes(&self) -> u64 {
        self.bytes_total - self.bytes_durable
    }

    /// Syncs completed since start.
    pub fn syncs_total(&self) -> u64 {
        self.syncs_total
    }

    /// The segment being filled and the offset in it.
    pub fn position(&self) -> (SegmentNumber, u64) {
        (self.segment, self.offset)
    }

    /// Whether a sync is under way.
    pub fn is_syncing(&self) -> bool {
        self.syncing.is_some()
    }

    /// Seal the tick's records into a group and ask for its write. `buffer` is replaced by an empty one.
    pub fn seal(&mut self, buffer: &mut LogBuffer, now: Now, effects: &mut Vec<Effect>) -> LogOrdinal {
        debug_assert!(!buffer.is_empty(), "an empty group would waste a header");
        let full = std::mem::replace(buffer, LogBuffer::reusing(self.spare.pop().unwrap_or_default()));
        let (records, record_bytes) = (full.records(), full.record_bytes());
        let stride = group_stride(record_bytes);
        self.sealed = self.next_ordinal();
        self.choose_segment(stride as u64, effects);
        let mut bytes = full.into_bytes();
        let header = GroupHeader {
            record_bytes: u32::try_from(record_bytes).expect("a group holds LOG_GROUP_BYTES and a unit at most"),
            records,
            ordinal: self.sealed,
            durable: self.durable,
            identity: self.segment_identity,
            unix_ms: now.unix_ms,
        };
        header.seal(&mut bytes);
        bytes.resize(stride, 0);
        effects.push(Effect::WriteLog { segment: self.segment, offset: self.offset, bytes, ordinal: self.sealed });
        self.offset += stride as u64;
        self.bytes_total += stride as u64;
        self.sealed
    }

    /// Ask for a sync of everything sealed so far, unless one is under way or nothing is new.
    pub fn sync(&mut self, effects: &mut Vec<Effect>) {
        if self.syncing.is_none() && self.sealed > self.durable && self.failed.is_none() {
            self.syncing = Some(self.sealed);
            self.bytes_syncing = self.bytes_total;
            effects.push(Effect::SyncLog { segment: self.segment, ordinal: self.sealed });
        }
    }

    /// A write was done.
    pub fn on_log_written(&mut self, ordinal: LogOrdinal, buffer: Vec<u8>) {
        assert_eq!(ordinal.0, self.written.0 + 1, "writes complete in order");
        self.written = ordinal;
        if self.spare.len() < 2 && buffer.capacity() <= 1 << 20 {
            self.spare.push(buffer);
        }
    }

    /// A sync was done.
    pub fn on_log_synced(&mut self, ordinal: LogOrdinal) {
        assert_eq!(self.syncing.take(), Some(ordinal), "one sync is under way at a time");
        self.durable = ordinal;
        self.bytes_durable = self.bytes_syncing;
        self.syncs_total += 1;
    }

    /// The next segment's file exists.
    pub fn on_segment_ready(&mut self, segment: SegmentNumber) {
        assert_eq!(segment.0, self.segment.0 + 1, "segments are made one ahead");
        self.next_ready = true;
        self.next_failed = None;
    }

    /// The next segment's file could not be made; the log goes on in the current one while that has room.
    pub fn on_segment_failed(&mut self, reason: String) {
        self.next_requested = false;
        self.next_failed = Some(reason);
    }

    /// Why the log takes no more changes for now: the current segment is nearly full and there is no room for the next.
    pub fn refusal(&self) -> Option<&str> {
        let nearly_full = self.offset + self.capacity() / 8 > self.capacity();
        self.next_failed.as_deref().filter(|_| nearly_full)
    }

    /// Whether the next segment has to be asked for again ([`LogWriter::retry_segment`]).
    pub fn wants_retry(&self) -> bool {
        self.next_failed.is_some() && !self.next_requested
    }

    /// Ask for the next segment again.
    pub fn retry_segment(&mut self, effects: &mut Vec<Effect>) {
        if self.wants_retry() {
            self.request_next(effects);
        }
    }

    /// Writing or syncing failed: from now on nothing is acknowledged (fsync is never retried: the kernel may have
    /// dropped the pages; "Can Applications Recover from fsync Failures?", ATC 2020).
    pub fn on_log_failed(&mut self, reason: String) {
        self.failed.get_or_insert(reason);
    }

    /// The next segment that may be given back, because nobody needs the groups up to `covered` any more. Only behind a
    /// segment whose first group is durable: that one tells a recovery where the log begins.
    pub fn give_back(&mut self, covered: LogOrdinal) -> Option<SegmentNumber> {
        let (_, first_of_next) = self.held.get(1)?;
        let may_go = *first_of_next <= self.durable && first_of_next.0 <= covered.0 + 1;
        self.held.pop_front_if(|_| may_go).map(|(segment, _)| segment)
    }

    /// Segments that are there.
    pub fn segment_count(&self) -> u64 {
        self.held.len() as u64
    }

    /// Nominal bytes of a segment.
    pub fn segment_bytes(&self) -> u64 {
        self.segment_bytes
    }

    /// Nominal bytes of the present segment.
    fn capacity(&self) -> u64 {
        if self.segment.0 == 0 { self.segment_bytes.min(FIRST_SEGMENT_BYTES) } else { self.segment_bytes }
    }

    fn choose_segment(&mut self, stride: u64, effects: &mut Vec<Effect>) {
        if self.offset + stride > self.capacity() && self.next_ready {
            self.segment.0 += 1;
            self.held.push_back((self.segment, self.sealed));
            self.offset = SEGMENT_HEADER_BYTES as u64;
            // `first_ordinal` is not part of the identity: the header was made before it was known.
            self.segment_identity = self.identity.segment_header(self.segment, self.sealed).identity();
            (self.next_requested, self.next_ready) = (false, false);
        }
        let is_due = self.offset + stride > self.capacity() / 2;
        if is_due && !self.next_requested && self.next_failed.is_none() {
            self.request_next(effects);
        }
    }

    fn request_next(&mut self, effects: &mut Vec<Effect>) {
        self.next_requested = true;
        let segment = SegmentNumber(self.segment.0 + 1);
        effects.push(Effect::CreateSegment {
            segment,
            header: self.identity.segment_header(segment, LogOrdinal(0)).encode().to_vec(),
            bytes: self.segment_bytes,
            zero_fill: self.zero_fill,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;
    use base::{Database, Slot, Version};
    use types::{Change, Expiry};

    fn writer() -> LogWriter {
        LogWriter::new(LogIdentity { store_id: [1; 16], incarnation: 1, core: 0, cores: 1 }, false)
            .with_segment_bytes(1024)
    }

    fn record(buffer: &mut LogBuffer) {
        let key = Key::new(b"key", Database(0), Slot::wrapping(5), 0);
        buffer.append(&key, Version(1), &Change::put_string(&[7; 200], Expiry::Clear));
    }

    #[test]
    fn moves_on_only_when_the_next_segment_is_ready() {
        let (mut writer, mut buffer, mut effects) = (writer(), LogBuffer::default(), Vec::new());
        for _ in 0..6 {
            record(&mut buffer);
            writer.seal(&mut buffer, Now::default(), &mut effects);
        }
        let creations = effects.iter().filter(|effect| matches!(effect, Effect::CreateSegment { .. })).count();
        assert_eq!(creations, 1, "asked for once");
        assert_eq!(writer.position().0, SegmentNumber(0), "it grows while the next one is not ready");
        writer.on_segment_ready(SegmentNumber(1));
        record(&mut buffer);
        writer.seal(&mut buffer, Now::default(), &mut effects);
        let last = effects.iter().rfind(|effect| matches!(effect, Effect::WriteLog { .. }));
        assert!(matches!(last, Some(Effect::WriteLog { segment: SegmentNumber(1), offset: 64, .. })), "{last:?}");
    }

    #[test]
    fn segments_are_given_back_behind_a_durable_group() {
        let (mut writer, mut buffer, mut effects) = (writer(), LogBuffer::default(), Vec::new());
        let mut fill = |writer: &mut LogWriter| {
            let segment = writer.position().0;
            while writer.position().0 == segment {
                record(&mut buffer);
                writer.seal(&mut buffer, Now::default(), &mut effects);
                let next = SegmentNumber(writer.position().0.0 + 1);
                if !writer.next_ready {
                    writer.on_segment_ready(next);
                }
            }
            writer.sealed()
        };
        let first_of_1 = fill(&mut writer);
        let first_of_2 = fill(&mut writer);
        let all = LogOrdinal(u64::MAX - 1);
        assert_eq!(writer.give_back(all), None, "nothing is durable");
        writer.durable = first_of_1;
        assert_eq!(writer.give_back(LogOrdinal(first_of_1.0 - 2)), None, "its last group is needed");
        assert_eq!(writer.give_back(LogOrdinal(first_of_1.0 - 1)), Some(SegmentNumber(0)));
        assert_eq!(writer.give_back(all), None, "the next one's first group is not durable");
        writer.durable = first_of_2;
        assert_eq!(writer.give_back(all), Some(SegmentNumber(1)));
        assert_eq!(writer.give_back(all), None, "the present one stays");
    }

    #[test]
    fn the_first_segment_is_small_and_filled_ones_are_smaller() {
        for (zero_fill, nominal) in [(false, SEGMENT_BYTES), (true, FILLED_SEGMENT_BYTES)] {
            let identity = LogIdentity { store_id: [1; 16], incarnation: 1, core: 0, cores: 1 };
            let (mut writer, mut effects) = (LogWriter::new(identity, zero_fill), Vec::new());
            let mut buffer = LogBuffer::default();
            while effects.iter().all(|effect| matches!(effect, Effect::WriteLog { .. })) {
                record(&mut buffer);
                writer.seal(&mut buffer, Now::default(), &mut effects);
            }
            let asked = (FIRST_SEGMENT_BYTES / 2).next_multiple_of(512);
            assert!(writer.position().1.abs_diff(asked) < 512, "{:?}", writer.position());
            let creation = effects.iter().find(|effect| matches!(effect, Effect::CreateSegment { .. }));
            assert!(matches!(creation, Some(Effect::CreateSegment { bytes, .. }) if *bytes == nominal), "{creation:?}");
        }
    }

    #[test]
    fn one_sync_at_a_time_and_none_after_a_failure() {
        let (mut writer, mut buffer, mut effects) = (writer(), LogBuffer::default(), Vec::new());
        record(&mut buffer);
        let first = writer.seal(&mut buffer, Now::default(), &mut effects);
        effects.clear();
        writer.sync(&mut effects);
        writer.sync(&mut effects);
        assert_eq!(effects.len(), 1);
        writer.on_log_synced(first);
        assert_eq!(writer.durable(), first);
        record(&mut buffer);
        writer.seal(&mut buffer, Now::default(), &mut effects);
        writer.on_log_failed("disk on fire".into());
        effects.clear();
        writer.sync(&mut effects);
        assert!(effects.is_empty());
    }
}
