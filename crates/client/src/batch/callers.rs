//! Whose requests a bucket has: asked when a caller's next request goes to the other bucket, so that order is kept.
//!
//! A small filter answers "not this one" in a step; only a hit is looked for among the callers themselves. While nobody has
//! sent anything urgent nothing is written down, and everybody counts as being there.

/// Words of the filter: 1,024 bits, cleared with each batch.
const FILTER_WORDS: usize = 16;

/// The callers of one bucket.
#[derive(Debug, Default)]
pub(super) struct Callers {
    filter: [u64; FILTER_WORDS],
    callers: Vec<u64>,
    /// Some were not written down.
    has_others: bool,
}

impl Callers {
    /// A request of this caller is in the bucket.
    pub(super) fn note(&mut self, caller: u64) {
        let (word, bit) = place(caller);
        self.filter[word] |= bit;
        self.callers.push(caller);
    }

    /// A request of somebody is in the bucket.
    #[inline]
    pub(super) fn note_unnamed(&mut self) {
        self.has_others = true;
    }

    /// Whether a request of this caller may be in the bucket; never wrong when it says no.
    pub(super) fn may_have(&self, caller: u64) -> bool {
        let (word, bit) = place(caller);
        self.has_others || (self.filter[word] & bit != 0 && self.callers.contains(&caller))
    }

    /// The bucket is empty.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.has_others = false;
        if !self.callers.is_empty() {
            self.filter = [0; FILTER_WORDS];
            self.callers.clear();
        }
    }
}

fn place(caller: u64) -> (usize, u64) {
    let hash = base::rng::mix(caller);
    (hash as usize % FILTER_WORDS, 1 << (hash >> 58))
}

#[cfg(test)]
mod tests {
    use super::Callers;

    #[test]
    fn who_was_noted_is_found_and_nobody_else_until_cleared() {
        let mut callers = Callers::default();
        (0..500).for_each(|caller| callers.note(caller * 3));
        assert!((0..1500).all(|caller| callers.may_have(caller) == caller.is_multiple_of(3)));
        callers.clear();
        assert!((0..1500).all(|caller| !callers.may_have(caller)));
    }

    #[test]
    fn after_somebody_unnamed_everybody_may_be_there() {
        let mut callers = Callers::default();
        callers.note_unnamed();
        assert!(callers.may_have(7));
        callers.clear();
        assert!(!callers.may_have(7));
    }
}
