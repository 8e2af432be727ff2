//! Segments that nobody needs any more and that become the next ones: their blocks and, mostly, their pages are there.
//!
//! ```text
//!  00 01 02 03 04 05 │ 06 07 08 09 10 11 12
//!  spare             │ held, the present one last          oldest ── recycled as 13, or removed where files are too many
//! ```
//!
//! A log that comes in bursts gives many back at once and wants many at once later: making one anew costs more than filling it
//! (`cargo x bench durability`, SET P16). The oldest goes first, so that what is there is one chain without gaps.

use std::collections::VecDeque;

use base::SegmentNumber;

/// So many wait at most: a start reads them, too.
const SPARE_SEGMENTS_MAX: usize = 32;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Spare {
    segments: VecDeque<SegmentNumber>,
    /// Segments that may be there before those that wait are removed, needed ones included.
    pub(super) files_max: u64,
}

impl Spare {
    pub(super) fn len(&self) -> u64 {
        self.segments.len() as u64
    }

    /// The newest of them.
    pub(super) fn add(&mut self, segment: SegmentNumber) {
        self.segments.push_back(segment);
    }

    /// The oldest, to become the next segment, or to go.
    pub(super) fn take(&mut self) -> Option<SegmentNumber> {
        self.segments.pop_front()
    }

    /// One that is too many beside `held_segments`; the last one always stays.
    pub(super) fn take_excess(&mut self, held_segments: usize) -> Option<SegmentNumber> {
        let files = (held_segments + self.segments.len()) as u64;
        let is_excess = files > self.files_max || self.segments.len() > SPARE_SEGMENTS_MAX;
        (is_excess && self.segments.len() > 1).then(|| self.segments.pop_front()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_files_may_be_there_decides_and_one_always_waits() {
        let mut spare = Spare { files_max: 5, ..Spare::default() };
        (1..=4).for_each(|segment| spare.add(SegmentNumber(segment)));
        assert_eq!((spare.take_excess(1), spare.len()), (None, 4));
        assert_eq!(
            spare.take_excess(2),
            Some(SegmentNumber(1)),
            "the oldest: the others are a chain with what is needed"
        );
        assert_eq!(spare.take_excess(2), None);
        assert_eq!(spare.take(), Some(SegmentNumber(2)), "the oldest becomes the next one, too");
        assert_eq!(spare.take_excess(9), Some(SegmentNumber(3)));
        assert_eq!((spare.take_excess(9), spare.len()), (None, 1), "the next segment needs none to be made");
    }

    #[test]
    fn a_start_reads_them_so_they_are_few_however_large_the_disk() {
        let mut spare = Spare { files_max: u64::MAX, ..Spare::default() };
        (0..2 * SPARE_SEGMENTS_MAX as u64).for_each(|segment| spare.add(SegmentNumber(segment)));
        while spare.take_excess(1).is_some() {}
        assert_eq!(spare.len(), SPARE_SEGMENTS_MAX as u64);
    }
}
