//! What a start does to the data: runs are loaded, changes behind them are performed again.

use base::planted::{Bug, is_planted};
use base::{Database, SlotGroupId, Version};
use types::Change;

use super::Store;
use crate::group::{Found, SlotGroup};
use crate::heap::HeapFull;
use crate::key::Key;

impl Store {
    /// A run of about so many keys will be loaded into a group without any.
    pub fn expect_keys(&mut self, group: SlotGroupId, keys: usize) {
        if let Some(group) = self.groups[group.number() as usize].as_deref_mut() {
            group.index.expect(keys);
        }
    }

    /// Put a key out of a run in its place, under the version it had.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn load(&mut self, key: &Key<'_>, change: &Change<'_>, version: Version) -> Result<(), String> {
        if !change.is_put() {
            return Err(format!("a run holds whole values, not changes (tag {})", change.tag()));
        }
        let found = self.group_of_mut(key.slot).find(key);
        self.perform(key, found, change, version)
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

    /// Replay of [`Store::clear`], group by group: the cores may have been others.
    pub fn replay_clear_group(&mut self, group: SlotGroupId, database: Option<Database>) {
        if let Some(group) = self.groups[group.number() as usize].as_deref_mut() {
            group.clear(database, self.seed);
            drop(group.take_garbage());
        }
    }

    /// Perform a change, if it fits, of a key that was looked up once.
    fn perform(
        &mut self,
        key: &Key<'_>,
        found: Option<Found>,
        change: &Change<'_>,
        version: Version,
    ) -> Result<(), String> {
        let group = self.group_of_mut(key.slot);
        group.check_fit(found, change)?;
        let applied = group.apply_to(key, found, change, version);
        let applied = applied.map_err(|HeapFull| "the slot group is full".to_owned());
        if group.has_garbage() {
            drop(group.take_garbage());
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
