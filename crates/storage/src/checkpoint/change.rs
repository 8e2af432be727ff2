//! Change: a run is published, and places of its group's values come to mean it, a few per step; then the run before goes.

use base::SlotGroupId;

use super::{Checkpoints, Life, SLICE_WORK, View};
use crate::run::Cut;
use crate::tiering::Note;

/// Notes applied by the work of a slice: about a fifth of a millisecond.
const NOTES_PER_SLICE: usize = 2048;

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
    /// Goes on with the first change, and where no client waits with all of them; whether it did something.
    pub(super) fn change_step(&mut self, view: &mut View<'_>) -> bool {
        let mut has_changed = false;
        while self.change_first(view) {
            has_changed = true;
            if view.life == Life::Serving {
                break;
            }
        }
        // One effect for what a publication replaced: a street takes so many jobs at once, and one of each change was more
        // where runs are short.
        if self.changes.is_empty() || !has_changed {
            self.pins.remove(std::mem::take(&mut self.replaced), view.effects);
        }
        has_changed
    }

    /// While the group is lent it waits.
    fn change_first(&mut self, view: &mut View<'_>) -> bool {
        let Some(change) = self.changes.first_mut() else { return false };
        let from = match change.applied {
            _ if view.store.group(change.group).is_none() => return false,
            Some(applied) => applied,
            None if view.store.begin_run_change(change.group, change.cut) => 0,
            None => return false,
        };
        let count = match view.life {
            Life::Serving => (NOTES_PER_SLICE * view.work as usize).div_ceil(SLICE_WORK as usize),
            Life::Stopping | Life::Resting => usize::MAX,
        };
        let to = from.saturating_add(count).min(change.notes.len());
        view.store.note_places(change.group, &change.notes[from..to]);
        change.applied = Some(to);
        if to == change.notes.len() {
            let change = self.changes.remove(0);
            view.store.end_run_change(change.group);
            self.replaced.extend(change.old_name);
        }
        true
    }
}
