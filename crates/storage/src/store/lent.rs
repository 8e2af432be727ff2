//! Groups come and go between cores; what a unit does to one that is lent goes to the lender's log.

use base::{CoreId, Slot, SlotGroupId, Version};
use types::Change;

use super::Store;
use crate::group::SlotGroup;
use crate::key::Key;
use crate::log::LogBuffer;

/// What a unit did to the groups that one core lent: the lender appends it to its own log.
#[derive(Debug, Default)]
pub struct LentPart {
    /// Its records; empty in durability `memory`.
    pub log: LogBuffer,
    /// Slot, hash and version of every changed key.
    pub touched: Vec<(Slot, u64, Version)>,
    /// Everything went.
    pub cleared: bool,
}

impl Store {
    /// Take a group in: an empty one at start, a lent one for a unit, an own one coming back.
    pub fn insert_group(&mut self, mut group: Box<SlotGroup>) {
        let place = &mut self.groups[group.id().number() as usize];
        assert!(place.is_none(), "a group is in one place at a time");
        let id = group.id();
        group.set_recency(self.eviction.recency);
        group.tier.is_on = self.tier.is_on;
        if group.owner == self.core {
            self.eviction.note_home(&group);
        }
        self.may_expire |= group.has_expiring();
        *place = Some(group);
        self.commit_at_home(id);
    }

    /// Hand a group out; `None` when it is not here.
    pub fn take_group(&mut self, group: SlotGroupId) -> Option<Box<SlotGroup>> {
        let group = self.groups[group.number() as usize].take()?;
        if group.owner == self.core {
            self.eviction.note_away(&group);
        }
        Some(group)
    }

    /// Takes out all groups that other cores lent, for a command that is to see the own ones only.
    pub fn set_lent_aside(&mut self) -> Vec<Box<SlotGroup>> {
        let core = self.core;
        let lent = |place: &mut Option<Box<SlotGroup>>| place.take_if(|group| group.owner != core);
        self.groups.iter_mut().filter_map(lent).collect()
    }

    pub(super) fn note_lent(&mut self, owner: CoreId, key: &Key<'_>, version: Version, change: &Change<'_>) {
        let logs = self.log.is_some();
        let part = lent_part(&mut self.lent, owner);
        if logs {
            let before = part.log.record_bytes();
            part.log.append(key, version, change);
            self.lent_bytes += part.log.record_bytes() - before;
        }
        part.touched.push((key.slot, key.hash, version));
    }
}

pub(super) fn lent_part(parts: &mut Vec<(CoreId, LentPart)>, owner: CoreId) -> &mut LentPart {
    let index = parts.iter().position(|(core, _)| *core == owner).unwrap_or_else(|| {
        parts.push((owner, LentPart::default()));
        parts.len() - 1
    });
    &mut parts[index].1
}
