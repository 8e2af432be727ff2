//! What the log has on the disk, and what of it may go where hardly anything is written (`checkpoint::quiet`).

use base::SegmentNumber;

use super::LogWriter;

impl LogWriter {
    /// Hardly anything comes, or much does again: the next segment is asked for when the present one is nearly full, or soon.
    pub(crate) fn set_quiet(&mut self, is_quiet: bool) {
        self.is_quiet = is_quiet;
    }

    /// Segments of which runs still need something, and the present one.
    pub(crate) fn needed_segments(&self) -> u64 {
        self.held.len() as u64
    }

    /// Bytes of the files.
    pub(crate) fn file_bytes(&self) -> u64 {
        let held_bytes: u64 = self.held.iter().map(|held| self.capacity_of(held.segment)).sum();
        let next_bytes = if self.next_requested { self.segment_bytes } else { 0 };
        // Long units make segments longer.
        held_bytes.max(self.held_bytes()) + self.spare_segments.len() * self.segment_bytes + next_bytes
    }

    /// The same, once runs need none of it: the present segment, and the next one where that is nearly full.
    pub(crate) fn least_file_bytes(&self) -> u64 {
        self.capacity() + if self.is_nearly_full() { self.segment_bytes } else { 0 }
    }

    /// A segment that goes because it only waits to be written. The next one, too, unless the present one is nearly full: then
    /// writers would wait for it. Until it is asked for again nobody writes there, so its name may be removed and made again.
    pub(crate) fn trim(&mut self) -> Option<SegmentNumber> {
        let waiting = self.spare_segments.take();
        let next = SegmentNumber(self.segment.0 + 1);
        match waiting {
            None if self.next_ready && self.is_quiet && !self.is_nearly_full() && !self.has_waiting() => {
                (self.next_requested, self.next_ready) = (false, false);
                Some(next)
            }
            waiting => waiting,
        }
    }
}
