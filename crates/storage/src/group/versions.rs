//! What a group counts of each of its slots: versions that were given out, those whose promise holds, and what was removed.

use base::{Slot, Version};

use super::SlotGroup;
use crate::key::Key;

/// How many removals a group remembers by hash.
pub(super) const REMOVALS_REMEMBERED: usize = 256;

/// The last removals: they tell whether an absent key came and went since somebody looked.
#[derive(Default)]
pub(super) struct Removals {
    pub(super) count: u64,
    /// Hashes of the last ones, the newest last.
    pub(super) recent: std::collections::VecDeque<u64>,
}

impl Removals {
    pub(super) fn note(&mut self, hash: u64) {
        self.count += 1;
        if self.recent.len() == REMOVALS_REMEMBERED {
            self.recent.pop_front();
        }
        self.recent.push_back(hash);
    }

    pub(super) fn forget_all(&mut self) {
        self.count += REMOVALS_REMEMBERED as u64 + 1;
        self.recent.clear();
    }

    /// Whether the key may be among the removals after the first `count`; sure unless too many followed.
    pub(super) fn may_include(&self, hash: u64, count: u64) -> bool {
        let since = usize::try_from(self.count - count).unwrap_or(usize::MAX);
        since > self.recent.len() || self.recent.iter().rev().take(since).any(|removed| *removed == hash)
    }
}

/// The counters of one partition.
#[derive(Clone, Copy, Default)]
pub(super) struct Sequences {
    /// Last version given out.
    pub(super) last: Version,
    /// Version at which a key was last removed: what a reader of an absent key has to compare with.
    pub(super) removed: Version,
    /// First version whose promise does not hold yet; absent when all of them do.
    pub(super) uncommitted_from: Version,
    pub(super) keys: u32,
    /// The next version leaves some out.
    pub(super) skips: bool,
}

/// Versions that the first write of a promoted store leaves out. 65,536 promotions of a slot use up 48 bits.
const PROMOTION_SKIP: u64 = 1 << 32;

impl SlotGroup {
    /// Keys of one slot, all databases.
    pub fn keys_in_slot(&self, slot: Slot) -> u32 {
        self.sequences[slot.in_group() as usize].keys
    }

    /// Ask for the slot's counters.
    #[inline]
    pub(crate) fn prefetch_counters(&self, slot: Slot) {
        base::prefetch::prefetch(&raw const self.sequences[slot.in_group() as usize]);
    }

    /// Last version given out in this partition.
    pub fn last_version(&self, slot: Slot) -> Version {
        self.sequences[slot.in_group() as usize].last
    }

    /// Version of the partition's last removal; what WATCH remembers of an absent key.
    pub fn removed_version(&self, slot: Slot) -> Version {
        self.sequences[slot.in_group() as usize].removed
    }

    /// How many keys were removed here so far; what WATCH remembers of an absent key.
    pub fn removal_count(&self) -> u64 {
        self.removals.count
    }

    /// Whether `key` may have been removed since the count was `count`.
    pub fn may_have_removed(&self, key: &Key<'_>, count: u64) -> bool {
        self.removals.may_include(key.hash, count)
    }

    /// The sum of all slots' last versions, and what these do not tell of: every change makes it larger.
    pub fn change_sum(&self) -> u64 {
        self.sequences.iter().map(|sequences| sequences.last.0).sum::<u64>() + self.untold_changes
    }

    /// The versions that a run states for its group's slots.
    pub(crate) fn set_versions(&mut self, versions: &[(Version, Version)]) {
        for (sequences, (last, removed)) in self.sequences.iter_mut().zip(versions) {
            (sequences.last, sequences.removed) = (sequences.last.max(*last), *removed);
        }
    }

    /// The version of the partition's next write.
    pub(crate) fn next_version(&self, slot: Slot) -> Version {
        let Sequences { last, skips, .. } = self.sequences[slot.in_group() as usize];
        let next = Version(last.0 + 1 + if skips { PROMOTION_SKIP } else { 0 });
        assert!(next <= Version::MAX, "48 bits of versions outlast any disk");
        next
    }

    /// The next write of the partition leaves versions out; nothing that others know changes before it.
    pub(crate) fn skip_versions(&mut self, slot: Slot) {
        self.sequences[slot.in_group() as usize].skips = true;
    }

    /// The write whose version was to come after `last` did not happen.
    pub(crate) fn take_back_version(&mut self, slot: Slot, last: Version) {
        self.sequences[slot.in_group() as usize].last = last;
    }

    /// It happened.
    pub(crate) fn end_skip(&mut self, slot: Slot) {
        self.sequences[slot.in_group() as usize].skips = false;
    }

    /// Remember that `version` is not committed; true when the partition was clean before.
    pub(crate) fn mark_uncommitted(&mut self, slot: Slot, version: Version) -> bool {
        let from = &mut self.sequences[slot.in_group() as usize].uncommitted_from;
        let was_clean = *from == Version::ABSENT;
        if was_clean {
            *from = version;
        }
        was_clean
    }

    /// The promise holds up to `version`; true when the partition is clean now.
    pub(crate) fn commit(&mut self, slot: Slot, version: Version) -> bool {
        let sequences = &mut self.sequences[slot.in_group() as usize];
        if sequences.uncommitted_from == Version::ABSENT || sequences.uncommitted_from > version {
            return false;
        }
        let clean = sequences.last <= version;
        sequences.uncommitted_from = if clean { Version::ABSENT } else { Version(version.0 + 1) };
        clean
    }

    /// Whether a reader who saw `version` (or, seeing nothing, the last removal) saw what is not committed.
    pub(crate) fn is_uncommitted(&self, slot: Slot, version: Version) -> bool {
        let from = self.sequences[slot.in_group() as usize].uncommitted_from;
        from != Version::ABSENT && version >= from
    }

    /// What a slot's sequence is on the node that it was copied from.
    pub(crate) fn set_sequence(&mut self, slot: Slot, (last, removed): (Version, Version)) {
        let sequences = &mut self.sequences[slot.in_group() as usize];
        self.untold_changes += 1 + sequences.last.0.saturating_sub(last.0);
        (sequences.last, sequences.removed) = (last, removed);
    }
}
