//! What a key is worth to the policy of the memory limit: four bits, kept in the index beside the key's location.
//!
//! ```text
//!            a new key   a use                     the hand passes
//!  Lru       15          15                        one less                 a clock that ages
//!  Lfu       1           one more, at 1 in 2^worth one less, 1 time in 16   a Morris counter that decays
//!  Tier      15          15                        one less, down to 1    0: the value is not here, and may not go
//!  Nothing   0           0                         0
//! ```
//!
//! The clock is the hand, not time: where nothing is evicted nothing has to age. One pass of the hand replaces about a
//! sixteenth of the keys ([`super::index`]), so 15 steps of LRU span about one replacement of everything, and LFU forgets
//! half of a count in about the same (Morris 1978; the scheme of Redis' LFU with four bits instead of eight).

/// What a key is worth; the least is evicted first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Worth(pub(crate) u8);

impl Worth {
    /// The most that four bits hold.
    pub(crate) const MAX: Worth = Worth(15);

    /// From 0 to 15.
    pub fn number(self) -> u8 {
        self.0
    }
}

/// By what a key's worth is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recency {
    /// It is not.
    #[default]
    Nothing,
    /// When it was used last.
    Lru,
    /// How often it is used.
    Lfu,
    /// As by `Lru`, among those whose value is here.
    Tier,
}

/// Uses are counted from here, so that a key that came just now outlives those that decayed to nothing.
const LFU_NEW: Worth = Worth(1);
/// One time in so many the hand decays a bucket.
const LFU_DECAY: u64 = 16;

impl Recency {
    /// Of a key that was just made.
    #[inline]
    pub(crate) fn of_new(self) -> Worth {
        match self {
            Recency::Nothing => Worth(0),
            Recency::Lru | Recency::Tier => Worth::MAX,
            Recency::Lfu => LFU_NEW,
        }
    }

    /// After a use; `random` is uniform.
    #[inline]
    pub(crate) fn used(self, before: Worth, random: u64) -> Worth {
        match self {
            Recency::Nothing => before,
            Recency::Lru | Recency::Tier => Worth::MAX,
            Recency::Lfu if random & ((1 << before.0) - 1) == 0 => Worth((before.0 + 1).min(Worth::MAX.0)),
            Recency::Lfu => before,
        }
    }

    /// After the hand passed; `random` is uniform.
    #[inline]
    pub(crate) fn passed(self, before: Worth, random: u64) -> Worth {
        match self {
            Recency::Nothing => before,
            Recency::Lfu if !random.is_multiple_of(LFU_DECAY) => before,
            Recency::Lru | Recency::Lfu => Worth(before.0.saturating_sub(1)),
            Recency::Tier => Worth(before.0.saturating_sub(1).max(before.0.min(1))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::rng::Rng;

    fn uses(count: usize, rng: &mut Rng) -> u8 {
        (0..count).fold(Recency::Lfu.of_new(), |worth, _| Recency::Lfu.used(worth, rng.next_u64())).0
    }

    #[test]
    fn a_use_is_the_most_that_lru_knows_and_each_pass_takes_one() {
        let mut worth = Recency::Lru.used(Worth(3), 7);
        assert_eq!(worth, Recency::Lru.of_new());
        for left in (0..15).rev() {
            worth = Recency::Lru.passed(worth, 7);
            assert_eq!(worth, Worth(left));
        }
        assert_eq!(Recency::Lru.passed(worth, 7), Worth(0));
    }

    #[test]
    fn a_value_that_is_here_is_never_taken_for_one_that_is_not() {
        let worths: Vec<u8> = (0..=15).map(|worth| Recency::Tier.passed(Worth(worth), 7).0).collect();
        assert_eq!(worths, [0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]);
    }

    #[test]
    fn lfu_counts_in_doublings_and_forgets_slowly() {
        let mut rng = Rng::new(5);
        let mut mean = |count| (0..200).map(|_| u64::from(uses(count, &mut rng))).sum::<u64>() as f64 / 200.0;
        let (few, some, many) = (mean(4), mean(64), mean(1024));
        assert!(few < 3.5 && (some - few - 3.5).abs() < 1.5 && (many - some - 4.0).abs() < 1.0, "{few} {some} {many}");
        let mut passes = 0;
        let mut worth = Worth(15);
        while worth > Worth(0) {
            worth = Recency::Lfu.passed(worth, rng.next_u64());
            passes += 1;
        }
        assert!((100..500).contains(&passes), "{passes}");
    }

    #[test]
    fn without_a_policy_nothing_changes() {
        assert_eq!(Recency::Nothing.used(Worth(4), 0), Worth(4));
        assert_eq!(Recency::Nothing.passed(Worth(4), 0), Worth(4));
    }
}
