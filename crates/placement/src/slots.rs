//! A set of hash slots.

use std::ops::Range;

use base::{SLOT_COUNT, Slot};

use crate::table::SlotRange;

const WORDS: usize = SLOT_COUNT as usize / 64;

/// See the module.
#[derive(Clone, PartialEq, Eq)]
pub struct SlotSet(Box<[u64; WORDS]>);

impl Default for SlotSet {
    fn default() -> Self {
        SlotSet(Box::new([0; WORDS]))
    }
}

impl std::fmt::Debug for SlotSet {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} slots", self.count())
    }
}

impl FromIterator<Slot> for SlotSet {
    fn from_iter<I: IntoIterator<Item = Slot>>(slots: I) -> SlotSet {
        let mut set = SlotSet::default();
        slots.into_iter().for_each(|slot| set.insert(slot));
        set
    }
}

impl SlotSet {
    /// From its words: bit i of word w is slot 64 w + i.
    pub fn from_words(words: &[[u8; 8]; WORDS]) -> SlotSet {
        SlotSet(Box::new(words.map(u64::from_le_bytes)))
    }

    /// One of its words: bit i of word w is slot 64 w + i.
    pub fn word(&self, index: usize) -> u64 {
        self.0[index]
    }

    /// As [`SlotSet::from_words`] takes it.
    pub fn words(&self) -> [[u8; 8]; WORDS] {
        self.0.map(u64::to_le_bytes)
    }

    /// Put a slot in.
    pub fn insert(&mut self, slot: Slot) {
        self.0[usize::from(slot.number() / 64)] |= 1 << (slot.number() % 64);
    }

    /// Put all slots of a range in.
    pub fn insert_range(&mut self, range: SlotRange) {
        let Range { start: mut number, end: range_end } = range.numbers();
        while number < range_end {
            // Up to the end of a word at a time.
            let end = range_end.min((number / 64 + 1) * 64);
            let ones = u64::MAX >> (64 - (end - number));
            self.0[usize::from(number / 64)] |= ones << (number % 64);
            number = end;
        }
    }

    /// Take a slot out.
    pub fn remove(&mut self, slot: Slot) {
        self.0[usize::from(slot.number() / 64)] &= !(1 << (slot.number() % 64));
    }

    /// Whether it is in.
    #[inline]
    pub fn contains(&self, slot: Slot) -> bool {
        self.0[usize::from(slot.number() / 64)] >> (slot.number() % 64) & 1 == 1
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// Those that are in `self` and not in `other`.
    pub fn without(&self, other: &SlotSet) -> SlotSet {
        let mut set = self.clone();
        set.0.iter_mut().zip(other.0.iter()).for_each(|(word, other)| *word &= !other);
        set
    }

    /// Those that are in both.
    pub fn intersection(&self, other: &SlotSet) -> SlotSet {
        let mut set = self.clone();
        set.0.iter_mut().zip(other.0.iter()).for_each(|(word, other)| *word &= other);
        set
    }

    /// Those that are in either.
    pub fn union(&self, other: &SlotSet) -> SlotSet {
        let mut set = self.clone();
        set.0.iter_mut().zip(other.0.iter()).for_each(|(word, other)| *word |= other);
        set
    }

    /// The smallest one that is in none of the others.
    pub fn first_outside<const COUNT: usize>(&self, others: [&SlotSet; COUNT]) -> Option<Slot> {
        let outside = |index: usize| others.iter().fold(self.0[index], |word, other| word & !other.0[index]);
        let index = (0..WORDS).find(|index| outside(*index) != 0)?;
        Slot::new(index as u16 * 64 + outside(index).trailing_zeros() as u16)
    }

    /// Whether all of them are in `other`.
    pub fn is_within(&self, other: &SlotSet) -> bool {
        self.first_outside([other]).is_none()
    }

    /// All of them, ascending.
    pub fn iter(&self) -> impl Iterator<Item = Slot> {
        let words = self.0.iter().zip((0..SLOT_COUNT).step_by(64)).filter(|(word, _)| **word != 0);
        words.flat_map(|(word, first)| {
            // The lowest one that is left, each time.
            let rest = std::iter::successors(Some(*word), |rest| Some(rest & rest.wrapping_sub(1)));
            rest.take_while(|rest| *rest != 0).map(move |rest| Slot::wrapping(first + rest.trailing_zeros() as u16))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_put_in() {
        let slots = [0, 63, 64, 5000, 16383].map(Slot::wrapping);
        let set: SlotSet = slots.into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), slots);
        assert_eq!(set.count(), 5);
        assert_eq!(SlotSet::from_words(&set.words()), set);
        let other: SlotSet = [slots[0], slots[3], Slot::wrapping(7)].into_iter().collect();
        assert_eq!(set.without(&other).count(), 3);
        assert_eq!(set.intersection(&other).iter().collect::<Vec<_>>(), [slots[0], slots[3]]);
        let none = SlotSet::default();
        assert_eq!(set.first_outside([]), Some(slots[0]));
        assert_eq!(set.first_outside([&other]), Some(slots[1]));
        assert_eq!(set.first_outside([&[slots[1]].into_iter().collect(), &other]), Some(slots[2]));
        assert_eq!(set.first_outside([&set]), None);
        assert!(set.is_within(&set) && none.is_within(&set) && none.is_empty());
        assert!(!set.is_within(&other) && !other.is_within(&set));
    }

    #[test]
    fn a_range_is_all_that_is_in_it() {
        for (first, last) in [(0, 0), (63, 64), (64, 127), (7, 63), (100, 999), (0, 16383), (16383, 16383)] {
            let range = SlotRange { first: Slot::wrapping(first), last: Slot::wrapping(last) };
            let mut set: SlotSet = [3, 127, 16000].map(Slot::wrapping).into_iter().collect();
            let one_by_one: SlotSet = set.iter().chain(range.numbers().map(Slot::wrapping)).collect();
            set.insert_range(range);
            assert_eq!(set, one_by_one);
            assert!(set.iter().is_sorted() && set.iter().count() == set.count() as usize);
        }
    }
}
