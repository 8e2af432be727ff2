//! What a start does to the data: runs are loaded, changes behind them are performed again.

use base::planted::{Bug, is_planted};
use base::{Database, Slot, SlotGroupId, Version};
use types::Change;

use super::Store;
use crate::group::{Found, GroupBytes, SlotGroup};
use crate::heap::HeapFull;
use crate::key::Key;
use crate::run::load::LoadedPlace;
use crate::tiering::ColdValue;

/// How a start gets at the record of a cold value.
pub type ReadCold<'a> = dyn FnMut(&ColdValue) -> Result<Vec<u8>, String> + 'a;

impl Store {
    /// A run of about so many keys will be loaded into a group without any.
    pub fn expect_keys(&mut self, group: SlotGroupId, keys: usize) {
        let Some(group) = self.groups[group.number() as usize].as_deref_mut() else { return };
        let before = group.bytes();
        group.index.expect(keys);
        if self.eviction.is_limited() {
            self.eviction.note_change(before, group.bytes());
        }
    }

    /// Put a key out of a run in its place, under the version it had.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn load(
        &mut self,
        key: &Key<'_>,
        (change, version): (&Change<'_>, Version),
        place: Option<LoadedPlace>,
    ) -> Result<(), String> {
        if !change.is_put() {
            return Err(format!("a run holds whole values, not changes (tag {})", change.tag()));
        }
        let found = self.group_of_mut(key.slot).find(key);
        self.perform(key, found, change, version)?;
        self.drop_garbage_of(key.slot);
        if let Some(place) = place.filter(|_| self.tier.is_on) {
            self.note_loaded(key, version, place);
            self.cool_to_limit();
        }
        Ok(())
    }

    /// What has to be read before [`Store::replay`] can perform this change.
    fn missing_for_replay(
        &self,
        key: &Key<'_>,
        (change, version): (&Change<'_>, Version),
        may_be_known: bool,
    ) -> Option<ColdValue> {
        let group = self.group(key.group()).filter(|_| self.tier.is_on && !change.is_put())?;
        let is_known = may_be_known && knows(group, group.find(key), change, version);
        group.cold_value(key).filter(|_| !is_known && *change != Change::Remove)
    }

    /// [`Store::replay`], for which `read` brings the record of a cold value that the change needs.
    ///
    /// # Errors
    /// As [`Store::replay`], and what is wrong with the value.
    pub fn replay_reading(
        &mut self,
        key: &Key<'_>,
        (change, version): (&Change<'_>, Version),
        may_be_known: bool,
        read: &mut ReadCold<'_>,
    ) -> Result<(), String> {
        if let Some(cold) = self.missing_for_replay(key, (change, version), may_be_known) {
            let place = || format!("{} at offset {}", cold.file, cold.offset);
            let record = read(&cold).map_err(|words| format!("{}: {words}", place()))?;
            self.warm(&cold, &record).map_err(|words| format!("{}: {words}", place()))?;
        }
        self.replay(key, change, version, may_be_known)
    }

    /// The end of a group's run.
    pub fn set_versions(&mut self, group: SlotGroupId, versions: &[(Version, Version)]) {
        if let Some(group) = self.groups[group.number() as usize].as_deref_mut() {
            group.set_versions(versions);
        }
    }

    /// Perform a change that was logged, under the version it had. `may_be_known`: it was logged while the key's run was
    /// being written, which may have it already, or may have found the key gone.
    ///
    /// # Errors
    /// What is wrong with the change: it does not fit the value it would change, or its version does not ascend.
    pub fn replay(
        &mut self,
        key: &Key<'_>,
        change: &Change<'_>,
        version: Version,
        may_be_known: bool,
    ) -> Result<(), String> {
        self.replay_beside(key, (change, version), may_be_known)?;
        self.drop_garbage_of(key.slot);
        Ok(())
    }

    /// Nobody waits while files are read, and what they set anew would need its memory twice.
    fn drop_garbage_of(&mut self, slot: Slot) {
        let group = self.group_of_mut(slot);
        if group.has_garbage() {
            drop(group.take_garbage());
        }
    }

    /// The same beside clients: what it takes the place of is given back a step at a time.
    ///
    /// # Errors
    /// As [`Store::replay`].
    pub(super) fn follow_one(
        &mut self,
        key: &Key<'_>,
        done: (&Change<'_>, Version),
        may_be_known: bool,
    ) -> Result<(), String> {
        self.replay_beside(key, done, may_be_known)?;
        let group = self.groups[key.group().number() as usize].as_deref_mut();
        if let Some(group) = group.filter(|group| group.has_garbage()) {
            self.lazy_free.add(group.take_garbage());
        }
        Ok(())
    }

    fn replay_beside(
        &mut self,
        key: &Key<'_>,
        (change, version): (&Change<'_>, Version),
        may_be_known: bool,
    ) -> Result<(), String> {
        let group = self.group_of_mut(key.slot);
        if !may_be_known {
            group.check_version(key, version)?;
        }
        let found = group.find(key);
        if may_be_known && knows(group, found, change, version) {
            return Ok(());
        }
        self.perform(key, found, change, version)
    }

    /// A change that was logged, of which only the version is there: the run of the key's group has it.
    ///
    /// # Errors
    /// The key has an older value than that.
    pub fn replay_known(&self, key: &Key<'_>, version: Version) -> Result<(), String> {
        let found = self.group(key.group()).and_then(|group| Some(group.record(group.find(key)?).version));
        match found.filter(|found| *found < version) {
            None => Ok(()),
            Some(found) => Err(format!(
                "a long value of version {} is neither in the log nor in the run of its group, which has version {}",
                version.0, found.0
            )),
        }
    }

    /// Replay of [`Store::clear`], group by group: the cores may have been others.
    pub fn replay_clear_group(&mut self, group: SlotGroupId, database: Option<Database>) {
        if let Some(group) = self.groups[group.number() as usize].as_deref_mut() {
            let before = group.bytes();
            group.clear(database, self.seed);
            drop(group.take_garbage());
            if self.eviction.is_limited() {
                self.eviction.note_change(before, group.bytes());
            }
        }
    }

    /// Replay of [`Store::forget_slot`].
    pub fn replay_forget(&mut self, slot: Slot) {
        self.with_group_counted(slot, |group| group.forget_slot(slot));
    }

    /// Does something with a slot's group that may free much; what it takes is counted again.
    pub(super) fn with_group_counted<T>(&mut self, slot: Slot, act: impl FnOnce(&mut SlotGroup) -> T) -> Option<T> {
        let group = self.groups[slot.group().number() as usize].as_deref_mut()?;
        let before = group.bytes();
        let done = act(group);
        let after = group.bytes();
        self.lazy_free.add(group.take_garbage());
        if self.eviction.is_limited() {
            self.eviction.note_change(before, after);
        }
        Some(done)
    }

    /// Perform a change, if it fits, of a key that was looked up once.
    fn perform(
        &mut self,
        key: &Key<'_>,
        found: Option<Found>,
        change: &Change<'_>,
        version: Version,
    ) -> Result<(), String> {
        let limited = self.eviction.is_limited();
        let group = self.group_of_mut(key.slot);
        group.check_fit(found, change)?;
        let before = if limited { group.bytes() } else { GroupBytes::default() };
        let applied = group.apply_to(key, found, change, version);
        let applied = applied.map_err(|HeapFull| "the slot group is full".to_owned());
        if limited {
            let after = group.bytes();
            self.eviction.note_change(before, after);
            self.cool_to_limit();
        }
        self.may_expire |= change.sets_expiry();
        applied
    }
}

/// Whether the key is past a change, or was when the run came to it: then it is absent, and its removal follows or came
/// before; a key that the run found had what a change of it needs.
fn knows(group: &SlotGroup, found: Option<Found>, change: &Change<'_>, version: Version) -> bool {
    match found {
        Some(found) => group.record(found).version >= version && !is_planted(Bug::M23KnownChangeReplayed),
        None => !change.is_put(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryLimit, SlotGroup};
    use base::CoreId;

    #[test]
    fn what_a_start_reserves_for_a_run_counts() {
        let mut store = Store::new(CoreId(0), 7, false);
        SlotGroupId::all().for_each(|group| store.insert_group(Box::new(SlotGroup::new(group, CoreId(0)))));
        store.set_memory_limit(Some(MemoryLimit { bytes: 8 << 20, policy: None, tiers: false }));
        SlotGroupId::all().for_each(|group| store.expect_keys(group, 1000));
        let counted = store.eviction.bytes;
        assert!(counted.total >= 64 * 1000 * 8 && counted.total == store.memory_bytes(), "{counted:?}");
    }
}
