//! A set of hash slots.

use base::{SLOT_COUNT, Slot};

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

    /// As [`SlotSet::from_words`] takes it.
    pub fn words(&self) -> [[u8; 8]; WORDS] {
        self.0.map(u64::to_le_bytes)
    }

    /// Put a slot in.
    pub fn insert(&mut self, slot: Slot) {
        self.0[usize::from(slot.number() / 64)] |= 1 << (slot.number() % 64);
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
        (0..SLOT_COUNT).map(Slot::wrapping).filter(|slot| self.contains(*slot))
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
}
