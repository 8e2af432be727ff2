//! The hand that goes over an index like a clock's: it shows what may be evicted, ages what it passes, and gives back
//! buckets that eviction left empty.

use super::{Index, LANES, Location, Segment};
use crate::recency::{Recency, Worth};

/// Buckets that one step of the hand passes: about sixteen keys at the usual load, of which one goes. So a pass over all
/// buckets replaces a sixteenth of the keys.
pub(crate) const HAND_BUCKETS: usize = 3;

/// An entry that the hand passed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub position: u32,
    pub location: Location,
    /// Before the hand passed.
    pub worth: Worth,
}

impl Index {
    /// Buckets of all segments.
    pub(crate) fn bucket_count(&self) -> usize {
        self.bucket_count
    }

    /// Passes a few buckets, from the one where `from` is at home, and adds what lies in them to `passed`; where to go
    /// on, or `None` at the end.
    pub(crate) fn pass(
        &mut self,
        from: u32,
        recency: Recency,
        random: u64,
        passed: &mut Vec<Candidate>,
    ) -> Option<u32> {
        let segment_number = self.segment_of(from);
        self.shrink(segment_number);
        let segment = &mut self.segments[segment_number as usize];
        let home = segment.home(from);
        let end = (home + HAND_BUCKETS).min(segment.buckets.len());
        for (number, bucket) in segment.buckets[home..end].iter_mut().enumerate() {
            for lane in 0..LANES {
                if bucket.used >> lane & 1 == 0 {
                    continue;
                }
                let worth = bucket.worth(lane);
                let location = Location(bucket.locations[lane]);
                passed.push(Candidate { position: bucket.positions[lane], location, worth });
                bucket.set_worth(lane, recency.passed(worth, random >> (8 * number)));
            }
        }
        segment.start_after(from, end - 1)
    }

    /// Of a segment that is less than a quarter full, as many buckets as its entries need.
    fn shrink(&mut self, segment_number: u32) {
        let segment = &mut self.segments[segment_number as usize];
        let (before, after) = (segment.buckets.len(), Segment::buckets_for(segment.len as usize));
        if segment.len as usize * 4 < before * LANES && after < before {
            segment.resize(after);
            self.bucket_count -= before - after;
        }
    }
}
