//! Keys whose slots are chosen, and who of several workers owns which: each key has one worker, so that somebody knows its value.
//!
//! ```text
//!  slot     0 … 999       1000 …          16383
//!           the moved     the others
//!  key      {tag of its slot}:number        owned by worker (slot + number) % workers
//! ```

use std::collections::VecDeque;

use placement::slot_of;

/// Slots that are moved, from 0 on.
pub const SLOTS_MOVED: u16 = 1000;
/// Keys of a slot that is not moved, at most: as many as one has where 61,000 keys lie in a thousand slots.
const KEYS_OF_OTHERS_MAX: u32 = 61;

/// A key: its slot, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The slot.
    pub slot: u16,
    /// From 0 on.
    pub number: u32,
}

/// See the module.
#[derive(Debug)]
pub struct Keys {
    tags: Vec<String>,
    of_moved: u32,
    of_others: u32,
}

impl Keys {
    /// `moved` keys, rounded up to as many for each, in the slots that are moved; as many or fewer in each of the others.
    pub fn new(moved: u64) -> Keys {
        let of_moved = u32::try_from(moved.div_ceil(u64::from(SLOTS_MOVED))).unwrap_or(u32::MAX).max(1);
        Keys { tags: tags(), of_moved, of_others: of_moved.min(KEYS_OF_OTHERS_MAX) }
    }

    /// How many have this slot.
    pub fn count_of(&self, slot: u16) -> u32 {
        if slot < SLOTS_MOVED { self.of_moved } else { self.of_others }
    }

    /// How many lie in the slots that are moved.
    pub fn moved(&self) -> u64 {
        u64::from(self.of_moved) * u64::from(SLOTS_MOVED)
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.moved() + u64::from(self.of_others) * u64::from(base::SLOT_COUNT - SLOTS_MOVED)
    }

    /// As the store knows it.
    pub fn name(&self, key: Key) -> String {
        format!("{{{}}}:{}", self.tags[usize::from(key.slot)], key.number)
    }
}

/// A hash tag for every slot.
fn tags() -> Vec<String> {
    let mut tags = vec![String::new(); usize::from(base::SLOT_COUNT)];
    let mut missing = tags.len();
    for number in 0u32.. {
        let tag = format!("{number:x}");
        let place = &mut tags[usize::from(slot_of(tag.as_bytes()).number())];
        if place.is_empty() {
            *place = tag;
            missing -= 1;
            if missing == 0 {
                break;
            }
        }
    }
    tags
}

/// The keys of one worker, each with a place in its books.
#[derive(Debug)]
pub struct Share {
    worker: u32,
    workers: u32,
    /// For each slot, the place of its first key; one more for the end.
    first: Vec<u32>,
}

impl Share {
    /// Those of `worker` of `workers`.
    pub fn new(keys: &Keys, worker: usize, workers: usize) -> Share {
        let small = |number: usize| u32::try_from(number).expect("there are few workers");
        let (worker, workers) = (small(worker), small(workers));
        let mut share = Share { worker, workers, first: vec![0] };
        let mut next = 0;
        for slot in 0..base::SLOT_COUNT {
            next += keys.count_of(slot).saturating_sub(share.lowest(slot)).div_ceil(workers);
            share.first.push(next);
        }
        share
    }

    /// How many.
    pub fn count(&self) -> usize {
        *self.first.last().expect("it has an end") as usize
    }

    /// Of all keys the one that has this place; the places of a slot lie beside each other.
    pub fn key(&self, place: usize) -> Key {
        let place = u32::try_from(place).expect("places are few");
        let slot = self.first.partition_point(|first| *first <= place) - 1;
        let slot = u16::try_from(slot).expect("it has a place for each slot");
        Key { slot, number: self.lowest(slot) + (place - self.first[usize::from(slot)]) * self.workers }
    }

    /// The places of the keys of `slot`.
    pub fn places(&self, slot: u16) -> std::ops::Range<usize> {
        self.first[usize::from(slot)] as usize..self.first[usize::from(slot) + 1] as usize
    }

    /// The lowest number of its keys in `slot`.
    fn lowest(&self, slot: u16) -> u32 {
        (self.worker + self.workers - u32::from(slot) % self.workers) % self.workers
    }
}

/// `count` places in pieces of at most `length`, for those who write or read everything.
pub fn pieces(count: usize, length: usize) -> VecDeque<std::ops::Range<usize>> {
    (0..count).step_by(length.max(1)).map(|first| first..(first + length).min(count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_its_slot_and_one_worker() {
        let keys = Keys::new(2500);
        assert_eq!((keys.moved(), keys.count()), (3000, 3000 + 3 * 15_384));
        let mut all = Vec::new();
        for worker in 0..7 {
            let share = Share::new(&keys, worker, 7);
            for place in 0..share.count() {
                let key = share.key(place);
                assert!(share.places(key.slot).contains(&place), "{key:?}");
                assert_eq!((usize::from(key.slot) + key.number as usize) % 7, worker);
                assert!(key.number < keys.count_of(key.slot));
                all.push(key);
            }
        }
        all.sort();
        all.dedup();
        assert_eq!(all.len() as u64, keys.count());
        for key in all.iter().step_by(101) {
            assert_eq!(slot_of(keys.name(*key).as_bytes()).number(), key.slot);
        }
    }

    #[test]
    fn many_keys_are_many_where_they_are_moved_only() {
        let keys = Keys::new(1_000_000);
        assert_eq!((keys.count_of(999), keys.count_of(1000)), (1000, 61));
        assert_eq!(pieces(5, 2), [0..2, 2..4, 4..5]);
    }
}
