//! A slot group under a memory limit: what it takes, whom it would give up first, and pages given back.

use base::{Database, Slot};

use super::{Found, SlotGroup};
use crate::eviction::{Order, Policy, Whose};
use crate::heap::{Condemned, Location};
use crate::index::Candidate;
use crate::recency::{Recency, Worth};
use crate::record::Header;

/// Keys with an expiry that a choice among such keys should see.
const EXPIRING_SEEN_MIN: usize = 5;
/// Steps of the hand that one choice takes at most: where few keys may go, most steps find none.
pub(crate) const HAND_STEPS_MAX: usize = 8;
/// Steps of the index's walk that one step of compaction takes, of a few keys each.
const WALK_STEPS: usize = 32;

/// Memory of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct GroupBytes {
    /// All that it takes.
    pub total: usize,
    /// Of it: slots of the heap that hold nothing.
    pub slack: usize,
}

/// A key to be evicted.
#[derive(Debug)]
pub(crate) struct Victim {
    pub name: Vec<u8>,
    pub database: Database,
    pub slot: Slot,
}

impl Default for Victim {
    fn default() -> Self {
        Victim { name: Vec::new(), database: Database(0), slot: Slot::wrapping(0) }
    }
}

/// A walk that empties pages.
#[derive(Default)]
pub(super) struct Compaction {
    /// Where it goes on; `None` while there is none.
    cursor: Option<u32>,
    condemned: Condemned,
    /// Less slack than this was not worth a walk lately.
    slack_min: usize,
    scratch: Vec<(u32, Location)>,
}

impl SlotGroup {
    pub(crate) fn bytes(&self) -> GroupBytes {
        let total = self.index.heap_bytes() + self.heap.reserved_bytes() + self.beside_bytes;
        GroupBytes { total, slack: self.heap.reserved_bytes() - self.heap.used_bytes() }
    }

    pub(crate) fn set_recency(&mut self, recency: Recency) {
        self.recency = recency;
    }

    /// The key was used; `random` is uniform.
    #[inline]
    pub(crate) fn touch(&mut self, found: Found, random: u64) {
        self.index.touch(found.place, self.recency, random);
    }

    /// What the key is worth.
    pub(crate) fn worth(&self, found: Found) -> Worth {
        self.index.worth(found.place)
    }

    /// Slots that may give a key. What another node serves is its to evict: here it goes when that one's log says so.
    pub(crate) fn givers(&self, whose: Whose) -> [u64; 4] {
        std::array::from_fn(|index| match whose {
            Whose::Any => !self.followed[index],
            Whose::Crowded => !self.followed[index] & self.crowded[index],
        })
    }

    /// Of whose slots copies are where there is no room: bit i of word w is slot 64 w + i of all.
    pub(crate) fn set_crowded(&mut self, word: impl Fn(usize) -> u64) {
        self.crowded = self.words_of(word);
    }

    /// Its own words of a set of all slots.
    pub(super) fn words_of(&self, word: impl Fn(usize) -> u64) -> [u64; 4] {
        let first = usize::from(self.id.slot(0).number()) / 64;
        std::array::from_fn(|index| word(first + index))
    }

    pub(crate) fn is_crowded(&self, slot: Slot) -> bool {
        has(&self.crowded, slot)
    }

    /// Moves the hand on and chooses among what it passed of `givers`; true when `victim` is to go.
    pub(crate) fn choose(
        &mut self,
        policy: Policy,
        (random, givers): (u64, [u64; 4]),
        passed: &mut Vec<Candidate>,
        victim: &mut Victim,
    ) -> bool {
        passed.clear();
        let mut from = 0;
        for _ in 0..HAND_STEPS_MAX {
            let next = self.index.pass(self.hand, self.recency, random, passed);
            self.hand = next.unwrap_or(0);
            if givers != [u64::MAX; 4] {
                retain_from(passed, from, |candidate| has(&givers, self.slot_of(candidate)));
            }
            if policy.only_expiring {
                retain_from(passed, from, |candidate| Header::expiry(self.heap.bytes(candidate.location)).is_some());
            }
            from = passed.len();
            let enough = if policy.only_expiring { EXPIRING_SEEN_MIN } else { 1 };
            if passed.len() >= enough {
                break;
            }
        }
        if passed.is_empty() {
            return false;
        }
        // Among equals not always the first: those at the hand's end would never go.
        let start = (random >> 32) as usize % passed.len();
        let in_turn = passed[start..].iter().chain(&passed[..start]);
        let chosen = match policy.order {
            Order::Random => passed.get(start),
            Order::Soonest => in_turn.min_by_key(|candidate| Header::expiry(self.heap.bytes(candidate.location))),
            Order::Lru | Order::Lfu => in_turn.min_by_key(|candidate| candidate.worth),
        };
        let Some(chosen) = chosen else { return false };
        let record = self.record_at(chosen.location);
        victim.name.clear();
        victim.name.extend_from_slice(record.key);
        victim.database = self.database_at(chosen.location);
        victim.slot = self.slot_of(chosen);
        true
    }

    fn slot_of(&self, candidate: &Candidate) -> Slot {
        self.id.slot((candidate.position >> 24) as u8)
    }

    /// Goes on emptying pages, or begins if it is worth it; false when there is nothing to do.
    pub(crate) fn compact_step(&mut self) -> bool {
        let Some(mut cursor) = self.compaction.cursor.or_else(|| self.begin_compaction()) else { return false };
        let mut scratch = std::mem::take(&mut self.compaction.scratch);
        let mut next = Some(cursor);
        for _ in 0..WALK_STEPS {
            let heap = &self.heap;
            scratch.clear();
            next = self.index.walk(cursor, |position, location| {
                if heap.is_condemned(location) {
                    scratch.push((position, location));
                }
            });
            for &(position, from) in &scratch {
                let Some((place, _)) = self.index.find(position, |location| location == from) else { continue };
                if let Some(to) = self.heap.rescue(from) {
                    self.index.relocate(place, to);
                }
            }
            match next {
                Some(next) => cursor = next,
                None => break,
            }
        }
        self.compaction.scratch = scratch;
        self.compaction.cursor = next;
        if next.is_none() {
            self.heap.pardon(std::mem::take(&mut self.compaction.condemned));
            self.note_compacted();
        }
        true
    }

    fn begin_compaction(&mut self) -> Option<u32> {
        if self.bytes().slack < self.compaction.slack_min.max(1) {
            return None;
        }
        self.compaction.condemned = self.heap.condemn();
        if self.compaction.condemned.is_empty() {
            self.note_compacted();
            return None;
        }
        Some(0)
    }

    /// The next walk waits until there is something new to gain.
    fn note_compacted(&mut self) {
        self.compaction.slack_min = self.bytes().slack + self.heap.reserved_bytes() / 32;
    }
}

pub(super) fn has(slots: &[u64; 4], slot: Slot) -> bool {
    slots[usize::from(slot.in_group() / 64)] >> (slot.in_group() % 64) & 1 == 1
}

/// [`Vec::retain`] for the elements from `start` on.
fn retain_from(candidates: &mut Vec<Candidate>, start: usize, mut keep: impl FnMut(&Candidate) -> bool) {
    let mut kept = start;
    for index in start..candidates.len() {
        if keep(&candidates[index]) {
            candidates.swap(kept, index);
            kept += 1;
        }
    }
    candidates.truncate(kept);
}
