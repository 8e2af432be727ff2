//! Change: a run is published, and places of its group's values come to mean it, a few per step; then the run before goes.

use base::{Effect, SlotGroupId};

use super::{Checkpoints, Life, View};
use crate::run::Cut;
use crate::tiering::Note;

/// Notes applied in one step: about a fifth of a millisecond.
const NOTES_PER_STEP: usize = 2048;

/// A group whose places change over.
pub(super) struct RunChange {
    pub group: SlotGroupId,
    /// The run that counts now.
    pub cut: Cut,
    /// Where it has what; those before `applied` are done.
    pub notes: Vec<Note>,
    pub applied: Option<usize>,
    /// The run before.
    pub old_name: Option<String>,
}

impl Checkpoints {
    /// Goes on with the first change; whether it did something. While the group is lent it waits.
    pub(super) fn change_step(&mut self, view: &mut View<'_>) -> bool {
        let Some(change) = self.changes.first_mut() else { return false };
        if view.store.group(change.group).is_none() {
            return false;
        }
        let from = match change.applied {
            Some(applied) => applied,
            None if view.store.begin_run_change(change.group, change.cut) => 0,
            None => return false,
        };
        let count = if view.life == Life::Serving { NOTES_PER_STEP } else { usize::MAX };
        let to = from.saturating_add(count).min(change.notes.len());
        view.store.note_places(change.group, &change.notes[from..to]);
        change.applied = Some(to);
        if to == change.notes.len() {
            let change = self.changes.remove(0);
            view.store.end_run_change(change.group);
            view.effects.extend(change.old_name.map(|name| Effect::RemoveFiles { names: vec![name] }));
        }
        true
    }
}
