//! Turn: which group gets a run next, and when.

use base::{Now, SlotGroupId};

use super::{Checkpoints, GroupRun, View};
use crate::log::LogWriter;
use crate::store::Store;

impl Checkpoints {
    pub(super) fn is_run_due(&self, log: &LogWriter, now: Now) -> bool {
        log.bytes_total() >= self.due_at_bytes && now.monotonic_us >= self.retry_at_us
    }

    /// Whether a run is due and nothing but the next step is needed to begin it.
    pub fn has_due_run(&self, view: &View<'_>) -> bool {
        if view.log.is_syncing() || !self.is_run_due(view.log, view.now) {
            return false;
        }
        let Some(begin) = (view.begin)(view.store, view.log.sealed()) else { return false };
        let oldest = self.runs.iter().min_by_key(|run| run.cut);
        oldest.is_some_and(|run| {
            let is_older = run.cut.incarnation != self.identity.incarnation || run.cut.begin < begin;
            view.store.group(run.group).is_some() && is_older
        })
    }

    /// Whether the memory limit needs values of which a run has the newest version.
    pub(super) fn is_clean_run_due(&self, view: &View<'_>) -> bool {
        view.now.monotonic_us >= self.retry_at_us && view.store.wants_run()
    }

    /// Whether a run is under way, or the next steps begin one, behind which more values may leave memory: who waits for that
    /// waits for an event.
    pub fn may_clean(&self, view: &View<'_>) -> bool {
        if !self.is_idle() || view.log.is_syncing() {
            return true;
        }
        let Some(begin) = (view.begin)(view.store, view.log.sealed()) else { return false };
        let incarnation = self.identity.incarnation;
        let may_begin = |run: &GroupRun| {
            let is_older = run.cut.incarnation != incarnation || run.cut.begin < begin || view.store.has_unsealed();
            is_older && view.store.dirty_bytes(run.group) > 0
        };
        view.now.monotonic_us >= self.retry_at_us && self.runs.iter().any(may_begin)
    }

    pub(super) fn begin_due_run(&mut self, view: &mut View<'_>) {
        if self.pace.stride_bytes == 0 {
            self.set_stride(view);
            self.due_at_bytes = self.pace.stride_bytes;
            return;
        }
        let waiting = self.runs.iter().filter(|run| !self.has_walked(run.group));
        let next = match self.is_run_due(view.log, view.now) {
            true => waiting.min_by_key(|run| run.cut),
            // What the memory limit needs is a run of what is dirty.
            false => waiting.max_by_key(|run| view.store.dirty_bytes(run.group)),
        };
        if let Some(group) = next.map(|run| run.group) {
            self.begin_run(group, view);
        }
    }

    pub(super) fn begin_last_run(&mut self, view: &mut View<'_>) {
        if let Some(group) = self.dirty_group(view.store) {
            self.begin_run(group, view);
        }
    }

    /// A group whose run lacks something.
    pub fn dirty_group(&self, store: &Store) -> Option<SlotGroupId> {
        let is_dirty = |run: &&GroupRun| {
            let group = store.group(run.group);
            let has_changed = group.is_some_and(|group| run.known_sum != Some(group.version_sum()));
            has_changed && !self.has_walked(run.group)
        };
        self.runs.iter().find(is_dirty).map(|run| run.group)
    }

    /// Whether a run of the group is written, and not published or not in use yet.
    fn has_walked(&self, group: SlotGroupId) -> bool {
        let is_changing = self.changes.iter().any(|change| change.group == group);
        is_changing || self.walked.iter().any(|making| making.writer.header().group == group)
    }
}
