//! Groups into segments: which bytes go where, what is written and what is durable. Asks, never does.
//!
//! ```text
//!   segment n   [header][group 41][group 42]······         half full, or a megabyte: CreateSegment n+1
//!   segment n+1 [header][group 43]                          full and n+1 ready: move on
//!
//!   sealed ≥ given ≥ written ≥ durable      (ordinals)
//! ```
//!
//! Room is reserved, so a write into it never finds the disk full. Whoever writes is therefore to wait while the present
//! segment is nearly full and the next one is being made ([`LogWriter::awaits_segment`]), and is refused while it cannot be made
//! ([`LogWriter::refusal`]). What comes all the same, one long unit, waits for room of its own if nobody was promised its write
//! (see `room`), and otherwise makes the segment grow. A segment that nobody needs
//! any more becomes the next: neither the file system nor the page cache has anything to make or to give back.

use std::collections::VecDeque;

use base::limits::{FIRST_SEGMENT_BYTES, SEGMENT_BYTES};
use base::{Effect, LogOrdinal, Now, SegmentNumber};

use super::buffer::LogBuffer;
use super::format::{GroupHeader, SEGMENT_HEADER_BYTES, SegmentHeader, group_stride};
use super::record::RecordForm;

/// The next segment is asked for when the present one has so many bytes, or is half full: what is left of one of 8 MiB until writers
/// would have to wait takes 40 ms at 150 MB of log a second.
const NEXT_AT_BYTES: u64 = 1 << 20;
/// A page of the operating system's cache, on most machines.
const PAGE_BYTES: usize = 4096;

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
    /// The header of one of its segments, whose file has `bytes` from the beginning.
    pub fn segment_header(&self, segment: SegmentNumber, first_ordinal: LogOrdinal, bytes: u64) -> SegmentHeader {
        SegmentHeader {
            store_id: self.store_id,
            incarnation: self.incarnation,
            core: self.core,
            cores: self.cores,
            segment,
            first_ordinal,
            room_bytes: u32::try_from(bytes).expect("segments are far shorter than 4 GiB"),
        }
    }
}

mod files;
mod outcomes;
mod pins;
mod room;
mod spare;

use room::Waiting;
use spare::Spare;

/// A segment that is there.
#[derive(Clone, Copy, Debug)]
struct Held {
    segment: SegmentNumber,
    /// Its first group.
    first: LogOrdinal,
    /// [`LogWriter::bytes_total`] before that, and what of it are blocks of long values.
    bytes_before: u64,
    block_bytes_before: u64,
}

impl Held {
    fn first() -> Held {
        Held { segment: SegmentNumber(0), first: LogOrdinal(1), bytes_before: 0, block_bytes_before: 0 }
    }
}

/// Which segments are to stay as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pinned {
    None,
    /// Those that are there and those that come: nothing is given back.
    All,
    /// They are given back, and not recycled.
    UpTo(SegmentNumber),
}

/// See the module.
#[derive(Debug)]
pub struct LogWriter {
    identity: LogIdentity,
    segment_bytes: u64,
    next_at_bytes: u64,
    segment: SegmentNumber,
    /// Segments that are there, the present one last.
    held: VecDeque<Held>,
    spare_segments: Spare,
    /// Who copies the directory needs the files of segments up to this one as they are.
    pinned: Pinned,
    segment_identity: u64,
    offset: u64,
    /// Whether the present segment, and the next one, have old bytes behind what was written.
    is_recycled: bool,
    next_is_recycled: bool,
    next_requested: bool,
    next_ready: bool,
    next_failed: Option<String>,
    /// Hardly anything comes: the next segment is asked for as late as may be.
    is_quiet: bool,
    /// Groups beyond the room, and those behind them.
    waiting: Waiting,
    sealed: LogOrdinal,
    /// Highest group whose write was asked for.
    given: LogOrdinal,
    written: LogOrdinal,
    durable: LogOrdinal,
    syncing: Option<LogOrdinal>,
    failed: Option<String>,
    bytes_total: u64,
    block_bytes_total: u64,
    /// [`LogWriter::bytes_total`] when the sync under way began, and of what is durable.
    bytes_syncing: u64,
    bytes_durable: u64,
    syncs_total: u64,
}

impl LogWriter {
    /// A writer for a log whose segment 0 exists with [`LogWriter::first_segment`] as its header.
    pub fn new(identity: LogIdentity) -> LogWriter {
        LogWriter {
            identity,
            segment_bytes: SEGMENT_BYTES,
            next_at_bytes: NEXT_AT_BYTES,
            segment: SegmentNumber(0),
            held: VecDeque::from([Held::first()]),
            spare_segments: Spare::default(),
            pinned: Pinned::None,
            segment_identity: LogWriter::first_segment(&identity, 0).identity(),
            offset: SEGMENT_HEADER_BYTES as u64,
            is_recycled: false,
            next_is_recycled: false,
            next_requested: false,
            next_ready: false,
            next_failed: None,
            is_quiet: false,
            waiting: Waiting::default(),
            sealed: LogOrdinal(0),
            given: LogOrdinal(0),
            written: LogOrdinal(0),
            durable: LogOrdinal(0),
            syncing: None,
            failed: None,
            bytes_total: 0,
            block_bytes_total: 0,
            bytes_syncing: 0,
            bytes_durable: 0,
            syncs_total: 0,
        }
    }

    /// The header of segment 0, which start-up creates before the first tick with `bytes`.
    pub fn first_segment(identity: &LogIdentity, bytes: u64) -> SegmentHeader {
        identity.segment_header(SegmentNumber(0), LogOrdinal(1), bytes)
    }

    /// Another nominal segment size; the simulator uses tiny ones.
    pub fn with_segment_bytes(mut self, segment_bytes: u64) -> LogWriter {
        self.segment_bytes = segment_bytes;
        self
    }

    /// Asks for the next segment when the present one has so many bytes.
    #[cfg(test)]
    pub fn with_next_at_bytes(mut self, bytes: u64) -> LogWriter {
        self.next_at_bytes = bytes;
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

    /// Highest group whose write was asked for: with this tick's effects it is handed to the operating system.
    pub fn given(&self) -> LogOrdinal {
        self.given
    }

    /// Highest group sealed.
    pub fn sealed(&self) -> LogOrdinal {
        self.sealed
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
        self.seal_or_wait(buffer, now, false, effects)
    }

    /// As [`LogWriter::seal`]; a group beyond the room that is reserved is written once there is room for it, if it `may_wait`:
    /// if nothing was promised that depends on its write before [`LogWriter::given`] tells of it.
    pub fn seal_or_wait(
        &mut self,
        buffer: &mut LogBuffer,
        now: Now,
        may_wait: bool,
        effects: &mut Vec<Effect>,
    ) -> LogOrdinal {
        debug_assert!(!buffer.is_empty(), "an empty group would waste a header");
        let full = std::mem::take(buffer);
        let (records, record_bytes, block_bytes) = (full.records(), full.record_bytes(), full.block_bytes());
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
            form: RecordForm::Short,
        };
        header.seal(&mut bytes);
        bytes.resize(stride, 0);
        if self.is_recycled {
            // Whole pages: what the file had there need not be read first, if it left the cache.
            let end = self.offset as usize + stride;
            bytes.resize(end.next_multiple_of(PAGE_BYTES) - self.offset as usize, 0);
        }
        let write = Effect::WriteLog { segment: self.segment, offset: self.offset, bytes, ordinal: self.sealed };
        let was_nearly_full = self.is_nearly_full();
        self.offset += stride as u64;
        if !was_nearly_full && self.is_nearly_full() && self.next_failed.is_some() && !self.next_requested {
            // What was refused up to a second ago refuses nobody unless it is asked for again: there may be room since.
            self.next_failed = None;
            self.request_next(effects);
        }
        self.bytes_total += stride as u64;
        self.block_bytes_total += block_bytes;
        self.write_or_wait(write, stride as u64, may_wait, effects);
        self.sealed
    }

    /// Ask for a sync of everything given so far, unless one is under way or nothing is new.
    pub fn sync(&mut self, effects: &mut Vec<Effect>) {
        if self.syncing.is_none() && self.given > self.durable && self.failed.is_none() {
            self.syncing = Some(self.given);
            self.bytes_syncing = self.bytes_total - self.waiting.bytes();
            effects.push(Effect::SyncLog { segment: self.segment, ordinal: self.given });
        }
    }

    /// Bytes of groups, however they are cut, that fit where room is reserved.
    #[inline]
    pub fn room_bytes(&self) -> u64 {
        match self.next_ready {
            true => self.segment_bytes - SEGMENT_HEADER_BYTES as u64,
            false => self.capacity().saturating_sub(self.offset),
        }
    }

    #[inline]
    fn is_nearly_full(&self) -> bool {
        self.offset + self.capacity() / 8 > self.capacity()
    }

    /// Bytes of groups in the segments that are needed.
    pub fn held_bytes(&self) -> u64 {
        self.bytes_total - self.held.front().map_or(0, |held| held.bytes_before)
    }

    /// Of them, blocks of long values.
    pub fn held_block_bytes(&self) -> u64 {
        self.block_bytes_total - self.held.front().map_or(0, |held| held.block_bytes_before)
    }

    /// Segments that may be there before who gives back removes those that wait to become others.
    pub fn set_files_max(&mut self, segments: u64) {
        self.spare_segments.files_max = segments;
    }

    /// Segments that are there.
    pub fn segment_count(&self) -> u64 {
        self.held.len() as u64 + self.spare_segments.len()
    }

    /// Nominal bytes of a segment.
    pub fn segment_bytes(&self) -> u64 {
        self.segment_bytes
    }

    /// Nominal bytes of the present segment.
    fn capacity(&self) -> u64 {
        self.capacity_of(self.segment)
    }

    fn capacity_of(&self, segment: SegmentNumber) -> u64 {
        if segment.0 == 0 { self.segment_bytes.min(FIRST_SEGMENT_BYTES) } else { self.segment_bytes }
    }

    fn choose_segment(&mut self, stride: u64, effects: &mut Vec<Effect>) {
        if self.offset + stride > self.capacity() && self.next_ready {
            self.segment.0 += 1;
            self.held.push_back(Held {
                segment: self.segment,
                first: self.sealed,
                bytes_before: self.bytes_total,
                block_bytes_before: self.block_bytes_total,
            });
            self.offset = SEGMENT_HEADER_BYTES as u64;
            // `first_ordinal` is not part of the identity: the header was made before it was known.
            self.segment_identity = self.identity.segment_header(self.segment, self.sealed, 0).identity();
            (self.next_requested, self.next_ready) = (false, false);
            self.is_recycled = self.next_is_recycled;
        }
        let next_at_bytes = match self.is_quiet {
            true => self.capacity() / 8 * 7,
            false => self.next_at_bytes.min(self.capacity() / 2),
        };
        let is_due = self.offset + stride > next_at_bytes;
        if is_due && !self.next_requested && self.next_failed.is_none() {
            self.request_next(effects);
        }
    }

    fn request_next(&mut self, effects: &mut Vec<Effect>) {
        self.next_requested = true;
        let segment = SegmentNumber(self.segment.0 + 1);
        let recycle = self.spare_segments.take();
        self.next_is_recycled = recycle.is_some();
        effects.push(Effect::CreateSegment {
            segment,
            header: self.identity.segment_header(segment, LogOrdinal(0), self.segment_bytes).encode().to_vec(),
            bytes: self.segment_bytes,
            recycle,
        });
    }
}

#[cfg(test)]
mod tests;
