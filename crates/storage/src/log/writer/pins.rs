//! Segments that go and that stay: what runs have goes, unless a backup reads it.

use base::{LogOrdinal, SegmentNumber};

use super::{Held, LogWriter, Pinned};
use crate::log::format::SEGMENT_HEADER_BYTES;

impl LogWriter {
    /// Nothing is given back until [`LogWriter::pin_point`] or [`LogWriter::unpin`].
    pub fn pin(&mut self) {
        self.pinned = Pinned::All;
    }

    /// The segments that are needed and, of each, the bytes up to its last group; none of them is recycled until
    /// [`LogWriter::unpin`]. Later ones are.
    pub fn pin_point(&mut self) -> Vec<(SegmentNumber, u64)> {
        self.pinned = Pinned::UpTo(self.segment);
        let ends = self.held.iter().skip(1).map(|held| held.bytes_before).chain([self.bytes_total]);
        let bytes = |(held, end): (&Held, u64)| (held.segment, SEGMENT_HEADER_BYTES as u64 + end - held.bytes_before);
        self.held.iter().zip(ends).map(bytes).collect()
    }

    /// Everything may go again.
    pub fn unpin(&mut self) {
        self.pinned = Pinned::None;
    }

    /// The next segment to be removed, because nobody needs the groups up to `covered` any more; some are kept, to
    /// become the next ones. Only behind a segment whose first group is durable: that one tells a recovery where the log begins.
    pub fn give_back(&mut self, covered: LogOrdinal) -> Option<SegmentNumber> {
        loop {
            if self.pinned == Pinned::All {
                return None;
            }
            if let Some(excess) = self.spare_segments.take_excess(self.held.len()) {
                return Some(excess);
            }
            let next = self.held.get(1)?;
            let may_go = next.first <= self.durable && next.first.0 <= covered.0 + 1;
            let Held { segment, .. } = self.held.pop_front_if(|_| may_go)?;
            let is_pinned = matches!(self.pinned, Pinned::UpTo(last) if segment <= last);
            // The first one is smaller than the others.
            if segment.0 == 0 || is_pinned {
                return Some(segment);
            }
            self.spare_segments.add(segment);
        }
    }
}
