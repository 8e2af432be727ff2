//! The memory limit: what the store takes, and keys that go to make room.
//!
//! ```text
//!   a write of n bytes ──► fits? ─ yes ─► runs
//!                            │ no
//!                            ▼                        each step bounded, and their number by n
//!                     give back garbage ─► empty sparse pages ─► evict the least of those that the hand passes
//! ```

use base::rng::Rng;
use base::{CoreId, SLOT_GROUP_COUNT};
use types::Change;

use super::Store;
use super::crowd::Crowd;
use crate::eviction::{MemoryLimit, Policy, Room, Whose};
use crate::group::{GroupBytes, HAND_STEPS_MAX, SlotGroup, Victim};
use crate::index::Candidate;
use crate::lazy_free::LAZY_FREE_BYTES_MIN;
use crate::recency::Recency;

/// Steps that one call takes in any case.
const STEPS: usize = 16;
/// A further step for as many bytes that are asked for: about the smallest key with its record and index entry.
const STEP_BYTES: usize = 48;
/// Steps of one call at most: about a millisecond of them.
const STEPS_MAX: usize = 2048;
/// Memory that nothing refers to of which one call gives back no more, bytes: about half a millisecond.
const GIVEN_BACK_BYTES_MAX: usize = 4 << 20;
/// Groups that one eviction asks at most; those of a store whose keys lie in few groups are asked in vain.
pub(super) const GROUPS_MAX: usize = 2 * SLOT_GROUP_COUNT as usize;

/// What a store knows of its limit.
pub(super) struct Eviction {
    pub(super) limit: Option<MemoryLimit>,
    /// Own groups, those away as they left.
    pub(super) bytes: GroupBytes,
    away: [GroupBytes; SLOT_GROUP_COUNT as usize],
    pub(super) recency: Recency,
    pub(super) rng: Rng,
    /// Whose turn it is, and what each group is owed: turns in proportion to buckets.
    turn: usize,
    credit: [usize; SLOT_GROUP_COUNT as usize],
    turn_buckets: usize,
    /// Steps in a row that found nobody who may go, of those of all slots and of crowded ones.
    vain_steps: [usize; 2],
    pub(super) crowd: Crowd,
    /// The group that is being compacted, or was last.
    compacting: usize,
    pub(super) passed: Vec<Candidate>,
    victim: Victim,
    evicted: u64,
}

impl Eviction {
    pub(super) fn new(seed: u64) -> Eviction {
        const NOTHING: GroupBytes = GroupBytes { total: 0, slack: 0 };
        Eviction {
            limit: None,
            bytes: NOTHING,
            away: [NOTHING; SLOT_GROUP_COUNT as usize],
            recency: Recency::Nothing,
            rng: Rng::new(seed),
            turn: 0,
            credit: [0; SLOT_GROUP_COUNT as usize],
            turn_buckets: 1,
            vain_steps: [0; 2],
            crowd: Crowd::default(),
            compacting: 0,
            passed: Vec::new(),
            victim: Victim::default(),
            evicted: 0,
        }
    }

    pub(super) fn reset_counters(&mut self) {
        self.evicted = 0;
    }

    /// Whether anybody asks what is taken: without a limit nothing is counted.
    #[inline]
    pub(super) fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    /// An own group came home.
    pub(super) fn note_home(&mut self, group: &SlotGroup) {
        let away = std::mem::take(&mut self.away[group.id().number() as usize]);
        if self.is_limited() {
            self.note_change(away, group.bytes());
        }
    }

    /// An own group leaves.
    pub(super) fn note_away(&mut self, group: &SlotGroup) {
        self.away[group.id().number() as usize] = group.bytes();
    }

    #[inline]
    pub(super) fn note_change(&mut self, before: GroupBytes, after: GroupBytes) {
        self.bytes.total = self.bytes.total + after.total - before.total;
        self.bytes.slack = self.bytes.slack + after.slack - before.slack;
    }
}

impl Store {
    /// From now on the store takes no more than that, if it can help it.
    pub fn set_memory_limit(&mut self, limit: Option<MemoryLimit>) {
        let recency = Store::recency_of(limit);
        if limit.is_some() && !self.eviction.is_limited() {
            self.eviction.bytes = self.count_bytes();
        }
        self.eviction.limit = limit;
        if recency != self.eviction.recency {
            self.eviction.recency = recency;
            self.groups.iter_mut().flatten().for_each(|group| group.set_recency(recency));
        }
    }

    /// What it may take, if anybody said.
    pub fn memory_limit(&self) -> Option<MemoryLimit> {
        self.eviction.limit
    }

    /// Bytes of the own groups, those that are lent as they left, and of what is still to be given back.
    pub fn memory_bytes(&self) -> usize {
        self.count_bytes().total + self.lazy_free.bytes()
    }

    fn count_bytes(&self) -> GroupBytes {
        let own = self.groups.iter().flatten().filter(|group| group.owner == self.core).map(|group| group.bytes());
        own.chain(self.eviction.away).fold(GroupBytes::default(), |sum, bytes| GroupBytes {
            total: sum.total + bytes.total,
            slack: sum.slack + bytes.slack,
        })
    }

    /// Keys that went to make room, since the start.
    pub fn evicted(&self) -> u64 {
        self.eviction.evicted
    }

    /// What a key is worth to the policy, by Redis' OBJECT FREQ a logarithmic counter; `None` where nothing counts.
    pub fn frequency(&self, key: &crate::Key<'_>) -> Option<u8> {
        let group = self.group_of(key);
        group.find(key).filter(|_| self.eviction.recency == Recency::Lfu).map(|found| group.worth(found).number())
    }

    /// By what keys are measured now.
    pub fn recency(&self) -> Recency {
        self.eviction.recency
    }

    /// Whether more is taken than may be.
    #[inline]
    pub fn lacks_room(&self) -> bool {
        self.eviction.limit.is_some_and(|limit| !self.fits(limit, 0))
    }

    /// Makes room for `bytes`, or 0: to be within the limit, by a bounded number of steps; what is evicted goes by record, as any removal.
    pub fn make_room(&mut self, bytes: usize) -> Room {
        let Some(limit) = self.eviction.limit else { return Room::Enough };
        if bytes > limit.bytes - limit.slack_bytes() {
            return Room::Refused;
        }
        if self.gives_back_later(limit, bytes) {
            return Room::Later;
        }
        if self.fits(limit, bytes) {
            // What comes now may go again.
            self.eviction.look_anew();
            return Room::Enough;
        }
        let live_before = self.live_bytes();
        for _ in 0..steps_for(bytes) {
            if !self.room_step(limit, bytes) {
                return if limit.tiers && self.starve() { Room::Run } else { Room::Refused };
            }
            if self.fits(limit, bytes) {
                return if self.gives_back_later(limit, bytes) { Room::Later } else { Room::Enough };
            }
        }
        // The limit was lowered, or much came at once: who frees what it takes makes nothing worse.
        let freed_bytes = live_before.saturating_sub(self.live_bytes());
        if bytes > 0 && freed_bytes >= bytes { Room::Enough } else { Room::Later }
    }

    /// What was let go of is given back at least as fast as it is asked for, so nothing has to go for it. Whether that takes more than
    /// one call may: who asks for megabytes waits, and the rest is not given back in one go.
    fn gives_back_later(&mut self, limit: MemoryLimit, bytes: usize) -> bool {
        let is_tight =
            |store: &Store| !store.lazy_free.is_empty() && !store.fits(limit, bytes + store.lazy_free.bytes());
        if !is_tight(self) {
            return false;
        }
        let wanted = 2 * bytes + LAZY_FREE_BYTES_MIN;
        self.lazy_free.step(wanted.min(GIVEN_BACK_BYTES_MAX));
        wanted > GIVEN_BACK_BYTES_MAX && is_tight(self)
    }

    /// One step towards room for `bytes`; false when there is nothing to do.
    pub(super) fn room_step(&mut self, limit: MemoryLimit, bytes: usize) -> bool {
        let is_sparse = self.eviction.bytes.slack > limit.slack_bytes();
        if is_sparse && self.eviction.bytes.total + bytes > limit.bytes && self.compact_step() {
            return true;
        }
        match limit.tiers {
            true => self.cool_once(),
            false => limit.policy.is_some_and(|policy| self.evict_step(policy, Whose::Any)),
        }
    }

    /// Bytes in use: index, slots of the heap that hold records, lists, long values.
    pub(super) fn live_bytes(&self) -> usize {
        self.eviction.bytes.total - self.eviction.bytes.slack
    }

    pub(super) fn fits(&self, limit: MemoryLimit, bytes: usize) -> bool {
        self.eviction.bytes.total + bytes <= limit.bytes
            && self.live_bytes() + bytes <= limit.bytes - limit.slack_bytes()
    }

    /// Evicts a key, or moves the hand on; false when no key may go.
    pub(super) fn evict_step(&mut self, policy: Policy, whose: Whose) -> bool {
        if policy.only_expiring && !self.may_expire {
            return false;
        }
        for _ in 0..GROUPS_MAX {
            let core = self.core;
            let Some(number) = self.next_group(|group| may_give(group, core, (policy, whose))) else { continue };
            let eviction = &mut self.eviction;
            let group = self.groups[number].as_deref_mut().expect("who has a turn is here");
            let before = group.bytes();
            let among = (eviction.rng.next_u64(), group.givers(whose));
            let found = group.choose(policy, among, &mut eviction.passed, &mut eviction.victim);
            // The hand gives back empty buckets.
            eviction.note_change(before, group.bytes());
            if found {
                self.eviction.vain_steps[whose as usize] = 0;
                self.evict();
                return true;
            }
            self.eviction.vain_steps[whose as usize] += 1;
            return self.eviction.vain_steps[whose as usize] <= self.eviction.steps_of_two_rounds();
        }
        false
    }

    /// The group whose turn it is, if it is owed a step: in proportion to its buckets, among those that have keys to give.
    pub(super) fn next_group(&mut self, may_give: impl Fn(&SlotGroup) -> bool) -> Option<usize> {
        let eviction = &mut self.eviction;
        if eviction.turn == 0 {
            let giving = self.groups.iter().flatten().filter(|group| may_give(group));
            let (count, sum) = giving.fold((0, 0), |(count, sum), group| (count + 1, sum + group.index.bucket_count()));
            eviction.turn_buckets = (sum / count.max(1)).max(1);
        }
        let number = eviction.turn;
        let Some(group) = self.groups[number].as_deref().filter(|group| may_give(group)) else {
            eviction.next_turn();
            return None;
        };
        let (credit, wanted) = (&mut eviction.credit[number], eviction.turn_buckets);
        if *credit < wanted {
            *credit += group.index.bucket_count();
        }
        let has_turn = *credit >= wanted;
        *credit = credit.saturating_sub(if has_turn { wanted } else { 0 });
        if *credit < wanted {
            eviction.next_turn();
        }
        has_turn.then_some(number)
    }

    fn evict(&mut self) {
        let victim = std::mem::take(&mut self.eviction.victim);
        let key = self.key(&victim.name, victim.database, victim.slot);
        self.apply(&key, &Change::Remove).expect("a removal needs no room");
        self.eviction.victim = victim;
        self.eviction.evicted += 1;
    }

    /// Goes on emptying pages of some own group; false when none has enough to give.
    fn compact_step(&mut self) -> bool {
        let core = self.core;
        for offset in 0..usize::from(SLOT_GROUP_COUNT) {
            let number = (self.eviction.compacting + offset) % usize::from(SLOT_GROUP_COUNT);
            let own = self.groups[number].as_deref_mut().filter(|group| group.owner == core);
            let Some(group) = own else { continue };
            let before = group.bytes();
            let went_on = group.compact_step();
            let after = group.bytes();
            self.eviction.note_change(before, after);
            if went_on {
                self.eviction.compacting = number;
                return true;
            }
        }
        false
    }
}

impl Eviction {
    /// There may be keys that may go, whatever was looked at in vain.
    pub(super) fn look_anew(&mut self) {
        self.vain_steps = [0; 2];
    }

    /// After so many in vain, each of which passes a bucket at least as often as the hand may go on, it has passed everything: who
    /// asks is refused, and each who asks has it go one step on.
    fn steps_of_two_rounds(&self) -> usize {
        2 * (self.turn_buckets / HAND_STEPS_MAX + 1) * usize::from(SLOT_GROUP_COUNT)
    }

    fn next_turn(&mut self) {
        self.turn = (self.turn + 1) % usize::from(SLOT_GROUP_COUNT);
    }
}

/// Steps that one call takes at most towards room for `bytes`.
pub(super) fn steps_for(bytes: usize) -> usize {
    (STEPS + bytes / STEP_BYTES).min(STEPS_MAX)
}

/// Whether eviction may take a key of the group: what is lent belongs to a unit, and nobody would log what is done to it; what is
/// followed is another node's.
fn may_give(group: &SlotGroup, core: CoreId, (policy, whose): (Policy, Whose)) -> bool {
    let has_any = if policy.only_expiring { group.has_expiring() } else { !group.index.is_empty() };
    has_any && group.owner == core && group.givers(whose) != [0; 4]
}

#[cfg(test)]
mod tests;
