//! Turn: which group gets a run next, and when.

use base::planted::{Bug, is_planted};
use base::{LogOrdinal, Now, SlotGroupId};

use super::{Checkpoints, GroupRun, LAST_RUN_FAILURES_MAX, View};
use crate::log::LogWriter;
use crate::store::Store;

impl Checkpoints {
    pub(super) fn is_run_due(&self, log: &LogWriter, now: Now) -> bool {
        log.bytes_total() >= self.due_at_bytes && now.monotonic_us >= self.retry_at_us
    }

    /// Whether a run is due and nothing but the next step is needed to begin it, or a permit.
    pub fn has_due_run(&self, view: &View<'_>) -> bool {
        !view.log.is_syncing() && self.may_begin(view)
    }

    /// Whether a run is due, and of use, that can begin once all that was changed is sealed.
    pub(super) fn may_begin(&self, view: &View<'_>) -> bool {
        let begin = (view.begin)(view.store, view.log.sealed());
        begin.is_some_and(|begin| self.next_run(view, begin).is_some())
    }

    /// The run whose turn it is, if one is due: the oldest. What the memory limit needs is a run of what is dirty.
    fn next_run(&self, view: &View<'_>, begin: LogOrdinal) -> Option<&GroupRun> {
        let waiting = self.runs.iter().filter(|run| !self.has_walked(run.group));
        let next = match self.is_run_due(view.log, view.now) {
            true => waiting.min_by_key(|run| run.cut),
            false if self.is_clean_run_due(view) => {
                let is_of_use = |run: &&GroupRun| self.is_older(run, begin) && view.store.dirty_bytes(run.group) > 0;
                waiting.filter(is_of_use).max_by_key(|run| view.store.dirty_bytes(run.group))
            }
            false if self.is_quiet_run_due(view) => {
                let is_of_use = |run: &&GroupRun| self.is_older(run, begin) && self.is_of_use_at_rest(run, view);
                waiting.filter(is_of_use).min_by_key(|run| run.cut)
            }
            false => None,
        };
        next.filter(|run| view.store.group(run.group).is_some() && self.is_older(run, begin))
    }

    fn is_older(&self, run: &GroupRun, begin: LogOrdinal) -> bool {
        run.cut.incarnation != self.identity.incarnation || run.cut.begin < begin
    }

    /// The first step: when the first run is due.
    pub(super) fn set_first_turn(&mut self, view: &mut View<'_>) {
        self.set_stride(view);
        self.due_at_bytes = match is_planted(Bug::M26SynchronisedMaintenance) {
            true => self.round_bytes(),
            false => self.limits.phase.first(self.pace.stride_bytes),
        };
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
        let may_begin = |run: &GroupRun| {
            (self.is_older(run, begin) || view.store.has_unsealed()) && view.store.dirty_bytes(run.group) > 0
        };
        view.now.monotonic_us >= self.retry_at_us && self.runs.iter().any(may_begin)
    }

    pub(super) fn begin_due_run(&mut self, view: &mut View<'_>) {
        let Some(begin) = (view.begin)(view.store, view.log.sealed()) else { return };
        if let Some(group) = self.next_run(view, begin).map(|run| run.group) {
            self.begin_run(group, view);
        }
    }

    /// A run begins: when the next one is due.
    pub(super) fn set_next_turn(&mut self, log: &LogWriter) {
        if is_planted(Bug::M26SynchronisedMaintenance) {
            let ends_round = self.begun.is_multiple_of(self.runs.len() as u64);
            self.due_at_bytes += if ends_round { self.round_bytes() } else { 0 };
            return;
        }
        // Never more than a round behind.
        let due_at_bytes = self.due_at_bytes.max(log.bytes_total().saturating_sub(self.round_bytes()));
        self.due_at_bytes = due_at_bytes + self.limits.phase.next(self.pace.stride_bytes, self.begun);
    }

    /// What failed before may not fail now.
    pub(super) fn begin_last_run(&mut self, view: &mut View<'_>) {
        self.last_run_failures.get_or_insert(0);
        if self.gave_up() {
            return;
        }
        if let Some(group) = self.dirty_group(view.store) {
            self.begin_run(group, view);
        }
    }

    /// Whether a stop that has come to rest has nothing left to do.
    pub fn is_finished(&self, store: &Store) -> bool {
        self.dirty_group(store).is_none() && self.spares.is_empty()
    }

    /// Whether a stop leaves to the next start's replay what it has no runs of: on a disk that stays full it would never end.
    pub fn gave_up(&self) -> bool {
        self.last_run_failures.is_some_and(|failures| failures >= LAST_RUN_FAILURES_MAX)
    }

    /// A group whose run lacks something.
    pub(super) fn dirty_group(&self, store: &Store) -> Option<SlotGroupId> {
        let is_dirty = |run: &&GroupRun| {
            let group = store.group(run.group);
            let has_changed = group.is_some_and(|group| run.known_sum != Some(group.change_sum()));
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
