//! What a core counts of each class: plain numbers that nobody else sees, copied when somebody asks.

/// Bounds of a histogram: 32 us and one and a half of that, and so on by octaves, to 17 s.
pub(crate) const BOUNDS: usize = 39;
/// The shortest bound, microseconds.
const BOUND_US_MIN: u64 = 32;

/// How long replies took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    counts: [u64; BOUNDS],
    /// Longer than the longest bound.
    pub longer: u64,
    /// All of them together, microseconds.
    pub sum_us: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: [0; BOUNDS], longer: 0, sum_us: 0 }
    }
}

impl Histogram {
    /// One more.
    #[inline]
    pub fn note(&mut self, us: u64) {
        self.sum_us += us;
        match self.counts.get_mut(place(us)) {
            Some(count) => *count += 1,
            None => self.longer += 1,
        }
    }

    /// Each bound, microseconds, and how many were not longer, but longer than the one before.
    pub fn buckets(&self) -> [(u64, u64); BOUNDS] {
        std::array::from_fn(|place| (bound_us(place), self.counts[place]))
    }
}

/// The bound of that place.
fn bound_us(place: usize) -> u64 {
    let octave_us = BOUND_US_MIN << (place / 2);
    if place.is_multiple_of(2) { octave_us } else { octave_us + octave_us / 2 }
}

/// The place of the shortest bound that is as long.
#[inline]
fn place(us: u64) -> usize {
    let Some(beyond) = us.checked_sub(BOUND_US_MIN + 1) else { return 0 };
    let us = beyond + BOUND_US_MIN;
    let octave = (us / BOUND_US_MIN).ilog2() as usize;
    let is_in_second_half = us >= (BOUND_US_MIN + BOUND_US_MIN / 2) << octave;
    2 * octave + 1 + usize::from(is_in_second_half)
}

/// Of one class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassCounts {
    /// Requests that were taken of its callers, and their bytes.
    pub requests: u64,
    /// See [`ClassCounts::requests`].
    pub request_bytes: u64,
    /// Replies that callers were given, and their bytes.
    pub replies: u64,
    /// See [`ClassCounts::replies`].
    pub reply_bytes: u64,
    /// Replies that were wanted by some time.
    pub wanted: u64,
    /// Those of them that came later.
    pub late: u64,
    /// From when a request was taken to its reply, of those that the store answered.
    pub latency: Histogram,
}

impl ClassCounts {
    /// A request was taken.
    #[inline]
    pub fn asked(&mut self, bytes: usize) {
        self.requests += 1;
        self.request_bytes += bytes as u64;
    }

    /// A reply was given that the proxy made itself.
    #[inline]
    pub fn answered_here(&mut self, bytes: usize) {
        self.replies += 1;
        self.reply_bytes += bytes as u64;
    }

    /// A reply of the store was given after so long, if it was asked; whether that was in time, if it was wanted by some.
    #[inline]
    pub fn answered(&mut self, bytes: usize, took_us: Option<u64>, was_kept: Option<bool>) {
        self.answered_here(bytes);
        if let Some(us) = took_us {
            self.latency.note(us);
        }
        if let Some(was_kept) = was_kept {
            self.wanted += 1;
            self.late += u64::from(!was_kept);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_is_counted_at_the_shortest_bound_that_is_as_long() {
        for us in
            (0..5000).chain((1..30).flat_map(|octave| (0..3).map(move |more| (BOUND_US_MIN << octave) - 1 + more)))
        {
            let mut histogram = Histogram::default();
            histogram.note(us);
            let wanted = histogram.buckets().iter().position(|(bound_us, _)| us <= *bound_us);
            let found = histogram.buckets().iter().position(|(_, count)| *count == 1);
            assert_eq!((found, histogram.longer), (wanted, u64::from(wanted.is_none())), "{us}");
            assert_eq!(histogram.sum_us, us);
        }
        let bounds = Histogram::default().buckets().map(|(bound_us, _)| bound_us);
        assert_eq!((bounds[..4].to_vec(), bounds[BOUNDS - 1]), (vec![32, 48, 64, 96], 16_777_216));
    }
}
