//! A store whose values may leave memory: what goes, what comes back, and when a run should make more of them clean
//! (`docs/internals/tiering.md`).

use std::collections::BTreeMap;

use base::SlotGroupId;

use super::Store;
use super::evict::GROUPS_MAX;
use crate::eviction::MemoryLimit;
use crate::group::SlotGroup;
use crate::key::Key;
use crate::recency::Recency;
use crate::run::Cut;
use crate::run::load::LoadedPlace;
use crate::tiering::{ColdValue, Note};

/// A run is due where less than this part of the limit is clean, once the store is nearly full.
const CLEAN_SHARE: usize = 16;

/// Values on the disk, for INFO.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tiered {
    /// Keys whose value is not in memory.
    pub cold_keys: u64,
    /// Bytes of those values.
    pub cold_bytes: u64,
    /// Bytes of values that may go at once.
    pub clean_bytes: u64,
    /// Bytes of values that wait for a run.
    pub dirty_bytes: u64,
    /// Values that came back, since the start.
    pub fetched: u64,
    /// Values that went, since the start.
    pub cooled: u64,
}

/// See the module.
#[derive(Default)]
pub(super) struct Tier {
    pub(super) is_on: bool,
    /// Positions of values that somebody waits with, until they run.
    kept: BTreeMap<(u8, u32), usize>,
    /// Nothing goes now: somebody who saw that all is here is about to run.
    is_held: bool,
    /// Nothing was clean when room was asked for.
    is_starved: bool,
    fetched: u64,
    cooled: u64,
    /// Bytes of values that came back since a run began.
    fetched_bytes: usize,
}

impl Store {
    /// From now on, and that is before the first key, values may leave memory.
    pub fn set_tiering(&mut self) {
        self.tier.is_on = true;
        for group in self.groups.iter_mut().flatten() {
            assert!(group.index.is_empty(), "records get room for a place when they are written");
            group.tier.is_on = true;
        }
    }

    /// Whether values may leave memory.
    #[inline]
    pub fn tiers(&self) -> bool {
        self.tier.is_on
    }

    /// What has to be read to have the key's value; `None` where it is here, or there is none.
    pub fn cold_value(&self, key: &Key<'_>) -> Option<ColdValue> {
        self.group(key.group())?.cold_value(key)
    }

    /// Whether a value is still where it was when it was asked for.
    pub fn is_still(&self, cold: &ColdValue) -> bool {
        self.group(cold.group).is_some_and(|group| group.cold_again(cold).as_ref() == Some(cold))
    }

    /// What was read of a cold value: it is here again. Nothing happens if its key changed, or its group left.
    ///
    /// # Errors
    /// What is wrong.
    pub fn warm(&mut self, cold: &ColdValue, record: &[u8]) -> Result<(), &'static str> {
        let Some(group) = self.groups[usize::from(cold.group.number())].as_deref_mut() else { return Ok(()) };
        let counted = self.eviction.is_limited() && group.owner == self.core;
        let before = group.bytes();
        let cold_before = group.tier.tally.cold.keys;
        let warmed = group.warm(cold, record);
        let came = cold_before - group.tier.tally.cold.keys;
        self.tier.fetched += came as u64;
        self.tier.fetched_bytes += came * cold.bytes;
        if counted {
            self.eviction.note_change(before, group.bytes());
        }
        warmed
    }

    /// Until [`Store::release`] this value does not go.
    pub fn keep(&mut self, cold: &ColdValue) {
        *self.tier.kept.entry((cold.group.number(), cold.position)).or_default() += 1;
    }

    /// Undoes a [`Store::keep`].
    pub fn release(&mut self, cold: &ColdValue) {
        let place = (cold.group.number(), cold.position);
        if let Some(count) = self.tier.kept.get_mut(&place) {
            *count -= 1;
            if *count == 0 {
                self.tier.kept.remove(&place);
            }
        }
    }

    /// Whether nothing goes.
    pub fn holds_values(&self) -> bool {
        self.tier.is_on && self.tier.is_held
    }

    /// While `held`, nothing goes.
    pub fn hold_values(&mut self, held: bool) {
        self.tier.is_held = held;
    }

    /// A group's next run counts; false while the group is away.
    pub(crate) fn begin_run_change(&mut self, group: SlotGroupId, cut: Cut) -> bool {
        let group = self.groups[usize::from(group.number())].as_deref_mut();
        group.is_some_and(|group| {
            group.begin_run_change(cut);
            true
        })
    }

    /// The run that counts now has these values.
    pub(crate) fn note_places(&mut self, group: SlotGroupId, notes: &[Note]) {
        if let Some(group) = self.groups[usize::from(group.number())].as_deref_mut() {
            notes.iter().for_each(|note| group.note_place(*note));
        }
    }

    /// All notes are applied.
    pub(crate) fn end_run_change(&mut self, group: SlotGroupId) {
        if let Some(group) = self.groups[usize::from(group.number())].as_deref_mut() {
            group.end_run_change();
        }
    }

    /// Values that came back, since the start.
    pub fn fetched(&self) -> u64 {
        self.tier.fetched
    }

    /// For INFO.
    pub fn tiered(&self) -> Tiered {
        let mut sum = Tiered { fetched: self.tier.fetched, cooled: self.tier.cooled, ..Tiered::default() };
        for tally in self.own().map(|group| group.tier.tally) {
            sum.cold_keys += tally.cold.keys as u64;
            sum.cold_bytes += tally.cold.bytes as u64;
            sum.clean_bytes += tally.clean.bytes as u64;
            sum.dirty_bytes += tally.dirty.bytes as u64;
        }
        sum
    }

    fn own(&self) -> impl Iterator<Item = &SlotGroup> {
        self.groups().filter(|group| group.owner == self.core)
    }

    /// Whether a run would help against a lack of memory, now or soon.
    pub fn wants_run(&self) -> bool {
        let Some(limit) = self.eviction.limit.filter(|limit| limit.tiers) else { return false };
        if self.is_starved() {
            return true;
        }
        if self.live_bytes() < limit.bytes / 8 * 7 {
            return false;
        }
        let tiered = self.tiered();
        let least = (limit.bytes / CLEAN_SHARE) as u64;
        tiered.dirty_bytes > least && (tiered.clean_bytes < least || self.has_fetched_a_run(&tiered))
    }

    /// Whether as much came back since a run began as a run writes: what nobody reads keeps what is read out of memory while it
    /// is dirty, and a run of it costs no more than that did.
    fn has_fetched_a_run(&self, tiered: &Tiered) -> bool {
        let value_bytes = tiered.cold_bytes + tiered.clean_bytes + tiered.dirty_bytes;
        let groups = self.own().count().max(1) as u64;
        self.tier.fetched_bytes as u64 >= value_bytes / groups
    }

    /// A run of some group begins.
    pub(crate) fn note_run_begun(&mut self) {
        self.tier.fetched_bytes = 0;
    }

    /// Whether writers should wait for a run: nothing may go, and something may behind a run.
    pub fn is_starved(&self) -> bool {
        self.tier.is_starved
    }

    /// Bytes that a run of the group would let go.
    pub fn dirty_bytes(&self, group: SlotGroupId) -> usize {
        self.group(group).map_or(0, |group| group.tier.tally.dirty.bytes)
    }

    /// Between ticks: who waited because nothing was clean may look again.
    pub fn end_starvation(&mut self) {
        if self.tier.is_starved && self.own().any(may_cool) && !self.is_all_clean_kept() {
            self.tier.is_starved = false;
        }
    }

    /// Drops a clean value, or moves the hand on; false when nothing may go.
    pub(super) fn cool_once(&mut self) -> bool {
        if self.tier.is_held {
            return false;
        }
        let core = self.core;
        for _ in 0..GROUPS_MAX {
            let Some(number) = self.next_group(|group| group.owner == core && may_cool(group)) else { continue };
            let (tier, eviction) = (&mut self.tier, &mut self.eviction);
            let group = self.groups[number].as_deref_mut().expect("who has a turn is here");
            let before = group.bytes();
            let random = eviction.rng.next_u64();
            let may_go = |position| tier.kept.is_empty() || !tier.kept.contains_key(&(number as u8, position));
            let went = group.cool_step(random, &mut eviction.passed, may_go);
            tier.cooled += u64::from(went);
            eviction.note_change(before, group.bytes());
            if group.has_garbage() {
                self.lazy_free.add(group.take_garbage());
            }
            // Otherwise who waits for room would wait for what he keeps himself.
            return went || !self.is_all_clean_kept();
        }
        false
    }

    /// Whether somebody waits with every value that could go.
    fn is_all_clean_kept(&self) -> bool {
        if self.tier.kept.is_empty() {
            return false;
        }
        let clean: usize = self.own().map(|group| group.tier.tally.clean.keys).sum();
        let is_clean = |number: u8, position: u32| {
            let group = self.groups[usize::from(number)].as_deref().filter(|group| group.owner == self.core);
            group.is_some_and(|group| group.is_clean_at(position))
        };
        let kept = self.tier.kept.keys().filter(|(number, position)| is_clean(*number, *position));
        kept.count() >= clean
    }

    /// Nothing may go: whether that is so until a run is published only.
    pub(super) fn starve(&mut self) -> bool {
        self.tier.is_starved = !self.tier.is_held && self.own().any(|group| group.tier.tally.dirty.keys > 0);
        self.tier.is_starved
    }

    /// At start: a key came out of a run, with its place there.
    pub(super) fn note_loaded(&mut self, key: &Key<'_>, version: base::Version, place: LoadedPlace) {
        let group = self.group_of_mut(key.slot);
        group.set_loaded_run(place.cut, place.form);
        group.note_loaded(key, version, place.offset);
    }

    /// At start: as many clean values go as are too many. What is loaded last is no better than what was loaded first.
    pub(super) fn cool_to_limit(&mut self) {
        let Some(limit) = self.eviction.limit.filter(|limit| limit.tiers) else { return };
        while !self.fits(limit, 0) && self.room_step(limit, 0) {}
    }

    /// By what keys are measured under this limit.
    pub(super) fn recency_of(limit: Option<MemoryLimit>) -> Recency {
        match limit {
            Some(MemoryLimit { tiers: true, .. }) => Recency::Tier,
            Some(MemoryLimit { policy: Some(policy), .. }) => policy.recency(),
            _ => Recency::Nothing,
        }
    }
}

fn may_cool(group: &SlotGroup) -> bool {
    group.tier.tally.clean.keys > 0
}
