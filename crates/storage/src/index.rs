//! From a key's position to its record: an ordered, extendible hash index of 64-byte buckets.
//!
//! ```text
//!  position (32 bits) = slot in group (8) · hash (24)          ordered: keys of a slot are neighbours
//!
//!  directory[top `depth` bits] ─► segment ─► bucket = next bits scaled to the segment's bucket count
//!                                            [7 positions | used, overflow | 7 locations | recency]  one cache line
//! ```
//!
//! - A segment grows by a quarter up to 64 buckets, then splits in two: no rehash is longer than 448 entries, and load
//!   stays between two thirds and seven eighths.
//! - A full bucket passes an entry on to the next one and counts it (`overflow`), so a miss ends at the first bucket
//!   that passed nothing on (the scheme of F14, Facebook 2019).
//! - Buckets divide the position range in order, so a cursor is a position: it stays right while segments grow and split
//!   (the guarantee of SCAN), and a slot can be walked alone.

mod hand;

use crate::heap::Location;
use crate::recency::{Recency, Worth};

pub(crate) use hand::Candidate;

const LANES: usize = 7;
const LANES_FULL: u8 = (1 << LANES) - 1;
const BUCKETS_MAX: usize = 64;
/// A segment is not split further below this many remaining position bits.
const DEPTH_MAX: u32 = 24;
/// Entries of a segment that is made for a number of them: as many as it has buckets for, as [`Segment::buckets_for`] counts.
const SEGMENT_EXPECTED_MAX: usize = BUCKETS_MAX * LANES * 4 / 5;
const OVERFLOW_STICKY: u8 = u8::MAX;

#[repr(C, align(64))]
#[derive(Clone, Default)]
struct Bucket {
    positions: [u32; LANES],
    used: u8,
    overflow: u8,
    spare: u16,
    locations: [u32; LANES],
    /// Four bits for each lane: what its key is worth to the policy of the memory limit.
    recency: [u8; 4],
}

const _: () = assert!(size_of::<Bucket>() == 64);

impl Bucket {
    /// Bit i is set where lane i is in use and has `position`.
    #[inline]
    fn lanes_at(&self, position: u32) -> u8 {
        let mut lanes = 0u8;
        for lane in 0..LANES {
            lanes |= u8::from(self.positions[lane] == position) << lane;
        }
        lanes & self.used
    }

    fn entries(&self) -> impl Iterator<Item = (u32, Location)> {
        self.lanes_used().map(|lane| (self.positions[lane], Location(self.locations[lane])))
    }

    fn lanes_used(&self) -> impl Iterator<Item = usize> {
        (0..LANES).filter(|lane| self.used >> lane & 1 == 1)
    }

    #[inline]
    fn worth(&self, lane: usize) -> Worth {
        Worth(self.recency[lane / 2] >> (lane % 2 * 4) & Worth::MAX.0)
    }

    #[inline]
    fn set_worth(&mut self, lane: usize, worth: Worth) {
        let shift = lane % 2 * 4;
        let byte = &mut self.recency[lane / 2];
        *byte = *byte & !(Worth::MAX.0 << shift) | worth.0 << shift;
    }
}

struct Segment {
    /// Top bits of the position that all its entries share.
    depth: u32,
    len: u32,
    buckets: Box<[Bucket]>,
}

/// Where an entry is; valid until the next insertion or removal.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    segment: u32,
    bucket: u32,
    lane: u8,
}

/// The index of one slot group.
pub struct Index {
    depth: u32,
    directory: Vec<u32>,
    segments: Vec<Segment>,
    len: usize,
    /// Of all segments.
    bucket_count: usize,
}

impl Default for Index {
    fn default() -> Self {
        Index { depth: 0, directory: vec![0], segments: vec![Segment::new(0, 1)], len: 0, bucket_count: 1 }
    }
}

impl Index {
    /// Number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Room for `len` entries that are spread evenly, if there are none: growing to it would move each a few times.
    pub(crate) fn expect(&mut self, len: usize) {
        if self.len > 0 {
            return;
        }
        let mut depth = 0;
        while len >> depth > SEGMENT_EXPECTED_MAX && depth < DEPTH_MAX {
            depth += 1;
        }
        let segment = || Segment::new(depth, Segment::buckets_for(len >> depth));
        self.segments = std::iter::repeat_with(segment).take(1 << depth).collect();
        self.directory = (0..1 << depth).collect();
        self.bucket_count = self.segments.iter().map(|segment| segment.buckets.len()).sum();
        self.depth = depth;
    }

    /// Bytes of memory, directory included.
    pub fn heap_bytes(&self) -> usize {
        self.bucket_count * size_of::<Bucket>() + self.segments.len() * size_of::<Segment>() + self.directory.len() * 4
    }

    /// Of an index that nothing refers to: give back segments of `bytes` or a little more; whether any are left.
    pub(crate) fn release(&mut self, bytes: usize) -> bool {
        self.directory = Vec::new();
        let mut released = 0;
        while released < bytes
            && let Some(segment) = self.segments.pop()
        {
            self.bucket_count -= segment.buckets.len();
            released += size_of_val(&*segment.buckets) + size_of::<Segment>();
        }
        !self.segments.is_empty()
    }

    /// Ask for the bucket where `position` is at home.
    #[inline]
    pub fn prefetch(&self, position: u32) {
        let segment = &self.segments[self.segment_of(position) as usize];
        base::prefetch::prefetch(&segment.buckets[segment.home(position)]);
    }

    /// The first location filed under `position` in its home bucket: a guess for prefetching, right nearly always.
    #[inline]
    pub fn guess(&self, position: u32) -> Option<Location> {
        let segment = &self.segments[self.segment_of(position) as usize];
        let bucket = &segment.buckets[segment.home(position)];
        let lanes = bucket.lanes_at(position);
        (lanes != 0).then(|| Location(bucket.locations[lanes.trailing_zeros() as usize]))
    }

    /// The entry under `position` for which `is_it` says so.
    #[inline]
    pub fn find(&self, position: u32, mut is_it: impl FnMut(Location) -> bool) -> Option<(Place, Location)> {
        let segment_number = self.segment_of(position);
        let segment = &self.segments[segment_number as usize];
        let mut bucket_number = segment.home(position);
        for _ in 0..segment.buckets.len() {
            let bucket = &segment.buckets[bucket_number];
            let mut lanes = bucket.lanes_at(position);
            while lanes != 0 {
                let lane = lanes.trailing_zeros() as u8;
                let location = Location(bucket.locations[lane as usize]);
                if is_it(location) {
                    return Some((Place { segment: segment_number, bucket: bucket_number as u32, lane }, location));
                }
                lanes &= lanes - 1;
            }
            if bucket.overflow == 0 {
                return None;
            }
            bucket_number = segment.next(bucket_number);
        }
        None
    }

    /// The key at `place` was used.
    #[inline]
    pub fn touch(&mut self, place: Place, recency: Recency, random: u64) {
        let bucket = &mut self.segments[place.segment as usize].buckets[place.bucket as usize];
        let before = bucket.worth(place.lane as usize);
        let after = recency.used(before, random);
        if after != before {
            bucket.set_worth(place.lane as usize, after);
        }
    }

    /// From now on the key at `place` is worth that.
    pub fn set_worth(&mut self, place: Place, worth: Worth) {
        self.segments[place.segment as usize].buckets[place.bucket as usize].set_worth(place.lane as usize, worth);
    }

    /// What the key at `place` is worth.
    pub fn worth(&self, place: Place) -> Worth {
        self.segments[place.segment as usize].buckets[place.bucket as usize].worth(place.lane as usize)
    }

    /// File `location` under `position`. The caller knows that its key is not there yet.
    pub fn insert(&mut self, position: u32, location: Location, worth: Worth) {
        let mut segment_number = self.segment_of(position);
        while self.segments[segment_number as usize].is_full() {
            self.grow(segment_number, position);
            segment_number = self.segment_of(position);
        }
        self.segments[segment_number as usize].insert(position, location, worth);
        self.len += 1;
    }

    /// Point the entry at `place` elsewhere.
    #[inline]
    pub fn relocate(&mut self, place: Place, location: Location) {
        self.segments[place.segment as usize].buckets[place.bucket as usize].locations[place.lane as usize] =
            location.0;
    }

    /// Take the entry at `place` out.
    pub fn remove(&mut self, place: Place) {
        let segment = &mut self.segments[place.segment as usize];
        let bucket = &mut segment.buckets[place.bucket as usize];
        let position = bucket.positions[place.lane as usize];
        bucket.used &= !(1 << place.lane);
        let mut passed = segment.home(position);
        while passed != place.bucket as usize {
            let overflow = &mut segment.buckets[passed].overflow;
            if *overflow != OVERFLOW_STICKY {
                *overflow -= 1;
            }
            passed = segment.next(passed);
        }
        segment.len -= 1;
        self.len -= 1;
    }

    /// Visit the entries that are at home in the bucket of `from`; the position to go on with, or `None` at the end.
    /// Every entry that exists all the while from a walk's start to its end is visited at least once.
    pub fn walk(&self, from: u32, mut visit: impl FnMut(u32, Location)) -> Option<u32> {
        let segment = &self.segments[self.segment_of(from) as usize];
        let home = segment.home(from);
        let mut bucket_number = home;
        for _ in 0..segment.buckets.len() {
            let bucket = &segment.buckets[bucket_number];
            for (position, location) in bucket.entries() {
                if segment.home(position) == home {
                    visit(position, location);
                }
            }
            if bucket.overflow == 0 {
                break;
            }
            bucket_number = segment.next(bucket_number);
        }
        segment.start_after(from, home)
    }

    #[inline]
    fn segment_of(&self, position: u32) -> u32 {
        self.directory[prefix(position, self.depth)]
    }

    fn grow(&mut self, segment_number: u32, position: u32) {
        let segment = &mut self.segments[segment_number as usize];
        let bucket_count = segment.buckets.len();
        if bucket_count < BUCKETS_MAX || segment.depth == DEPTH_MAX {
            // Never more than a split can put into one half: all entries of a segment may share their next bit.
            let most = if segment.depth == DEPTH_MAX { usize::MAX } else { BUCKETS_MAX };
            segment.resize((bucket_count + (bucket_count / 4).max(1)).min(most));
            self.bucket_count += segment.buckets.len() - bucket_count;
            return;
        }
        self.split(segment_number, position);
    }

    fn split(&mut self, segment_number: u32, position: u32) {
        let depth = self.segments[segment_number as usize].depth;
        if depth == self.depth {
            self.directory = self.directory.iter().flat_map(|segment| [*segment, *segment]).collect();
            self.depth += 1;
        }
        let old = &self.segments[segment_number as usize];
        let high_bit = |position: u32| position >> (31 - depth) & 1 == 1;
        let high_count = old.entries().filter(|(position, ..)| high_bit(*position)).count();
        let mut low = Segment::new(depth + 1, Segment::buckets_for(old.len as usize - high_count));
        let mut high = Segment::new(depth + 1, Segment::buckets_for(high_count));
        for (position, location, worth) in old.entries() {
            if high_bit(position) { &mut high } else { &mut low }.insert(position, location, worth);
        }
        self.bucket_count = self.bucket_count - old.buckets.len() + low.buckets.len() + high.buckets.len();
        let high_number = self.segments.len() as u32;
        self.segments[segment_number as usize] = low;
        self.segments.push(high);
        let width = 1usize << (self.depth - depth - 1);
        let first = (prefix(position, depth) * 2 + 1) * width;
        self.directory[first..first + width].fill(high_number);
    }
}

impl Segment {
    fn new(depth: u32, bucket_count: usize) -> Segment {
        Segment { depth, len: 0, buckets: vec![Bucket::default(); bucket_count].into_boxed_slice() }
    }

    /// Buckets for `len` entries with some room to grow.
    fn buckets_for(len: usize) -> usize {
        (len * 5).div_ceil(LANES * 4).clamp(1, BUCKETS_MAX)
    }

    fn is_full(&self) -> bool {
        // Seven eighths: beyond it the chains of full buckets grow quickly.
        (self.len as usize + 1) * 8 > self.buckets.len() * LANES * 7
    }

    #[inline]
    fn home(&self, position: u32) -> usize {
        ((u64::from(position << self.depth) * self.buckets.len() as u64) >> 32) as usize
    }

    #[inline]
    fn next(&self, bucket_number: usize) -> usize {
        if bucket_number + 1 == self.buckets.len() { 0 } else { bucket_number + 1 }
    }

    fn insert(&mut self, position: u32, location: Location, worth: Worth) {
        let mut bucket_number = self.home(position);
        loop {
            let bucket = &mut self.buckets[bucket_number];
            if bucket.used != LANES_FULL {
                let lane = bucket.used.trailing_ones() as usize;
                bucket.used |= 1 << lane;
                bucket.positions[lane] = position;
                bucket.locations[lane] = location.0;
                bucket.set_worth(lane, worth);
                self.len += 1;
                return;
            }
            bucket.overflow = bucket.overflow.saturating_add(1);
            bucket_number = self.next(bucket_number);
        }
    }

    fn entries(&self) -> impl Iterator<Item = (u32, Location, Worth)> {
        self.buckets.iter().flat_map(|bucket| {
            let entry = |lane| (bucket.positions[lane], Location(bucket.locations[lane]), bucket.worth(lane));
            bucket.lanes_used().map(entry)
        })
    }

    /// As many buckets as that, with the same entries.
    fn resize(&mut self, bucket_count: usize) {
        let old = std::mem::replace(self, Segment::new(self.depth, bucket_count));
        old.entries().for_each(|(position, location, worth)| self.insert(position, location, worth));
    }

    /// The smallest position whose home is after bucket `home`, where `from` is at home in it.
    fn start_after(&self, from: u32, home: usize) -> Option<u32> {
        let segment_start = (prefix(from, self.depth) as u64) << (32 - self.depth);
        let scaled = ((home as u64 + 1) << 32).div_ceil(self.buckets.len() as u64);
        let next = segment_start + scaled.div_ceil(1 << self.depth);
        u32::try_from(next).ok()
    }
}

/// The top `depth` bits of `position`.
#[inline]
fn prefix(position: u32, depth: u32) -> usize {
    (u64::from(position) >> (32 - depth)) as usize
}

#[cfg(test)]
mod tests;
