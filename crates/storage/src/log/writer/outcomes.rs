//! What became of what the log asked the disk for, and what it waits for.

use base::{Effect, LogOrdinal, SegmentNumber};

use super::LogWriter;
use super::room::Waiting;

impl LogWriter {
    /// A write was done.
    pub fn on_log_written(&mut self, ordinal: LogOrdinal) {
        assert_eq!(ordinal.0, self.written.0 + 1, "writes complete in order");
        self.written = ordinal;
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

    /// Writing or syncing failed: from now on nothing is acknowledged (fsync is never retried: the kernel may have
    /// dropped the pages; "Can Applications Recover from fsync Failures?", ATC 2020).
    pub fn on_log_failed(&mut self, reason: String) {
        self.failed.get_or_insert(reason);
        self.waiting = Waiting::default();
    }

    /// Why the log takes no more changes for now: the current segment is nearly full and there is no room for the next.
    pub fn refusal(&self) -> Option<&str> {
        self.waiting.failure().or(self.next_failed.as_deref().filter(|_| self.is_nearly_full()))
    }

    /// Why nothing is acknowledged any more, if so.
    pub fn failure(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// Whether changes should wait: the current segment is nearly full, and the next one is being made, or room for a long
    /// group is. An event ends it.
    #[inline]
    pub fn awaits_segment(&self) -> bool {
        self.awaits_next() && self.is_nearly_full() || self.awaits_room()
    }

    /// As [`LogWriter::awaits_segment`], for long values: what is left of the current segment is for others, should the next one be long in
    /// coming.
    #[inline]
    pub fn awaits_segment_with_long(&self) -> bool {
        self.awaits_next() && self.offset > self.capacity() / 2 || self.awaits_room()
    }

    #[inline]
    fn awaits_next(&self) -> bool {
        self.next_requested && !self.next_ready && self.next_failed.is_none()
    }

    /// Whether the next segment, or room, has to be asked for again ([`LogWriter::retry_segment`]).
    pub fn wants_retry(&self) -> bool {
        (self.next_failed.is_some() && !self.next_requested) || self.waiting.wants_retry()
    }

    /// Ask for it again.
    pub fn retry_segment(&mut self, effects: &mut Vec<Effect>) {
        if self.next_failed.is_some() && !self.next_requested {
            self.request_next(effects);
        }
        self.retry_room(effects);
    }
}
