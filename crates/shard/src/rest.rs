//! The rest before a stop: no core begins anything any more, all logs are durable, and what changed gets a run.
//!
//! ```text
//!   every core: begins no unit ──► Resting ──► all rest, log durable ──► Resting, flushed ──► all flushed ──► last runs ──► stop
//! ```
//!
//! Two rounds, because a run must not have a unit that a recovery could still cut: only when nobody begins a unit can a log
//! be durable for ever, and only when all of them are may the first run be made. The next start replays nothing.

use crate::hop::Control;
use crate::shard::Shard;

/// How long a stopping core waits for the others to come to rest while no disk works, microseconds.
const REST_US_MAX: u64 = 2_000_000;
/// How often a core whose disk works says so to the others: what is left undone is replayed by the next start.
const BUSY_US: u64 = 500_000;

/// How far a stop is.
#[derive(Default)]
pub(crate) struct Stop {
    /// Since nothing went on.
    since_us: Option<u64>,
    told_busy_us: u64,
    has_told_rest: bool,
    has_told_flushed: bool,
    /// Cores, this one included, that begin no units any more,
    resting: usize,
    /// and whose logs are durable besides, for ever.
    flushed: usize,
}

impl Stop {
    /// The core stops from now on.
    pub(crate) fn begin(&mut self, now_us: u64) {
        self.since_us.get_or_insert(now_us);
    }

    /// This core's disk, or another one's, works.
    pub(crate) fn goes_on(&mut self, now_us: u64) {
        self.since_us = Some(now_us);
    }
}

impl Shard {
    /// Whether no core changes anything any more, and all logs are durable.
    pub(crate) fn all_rest(&self) -> bool {
        self.stop.flushed == self.outbox.len()
    }

    fn is_disk_busy(&self) -> bool {
        self.log.as_ref().is_some_and(|log| log.is_syncing() || log.written() < log.given())
    }

    /// What the disk owes comes in time, however slow it is.
    pub(crate) fn note_busy_disk(&mut self) {
        if self.all_rest() || !self.is_disk_busy() {
            return;
        }
        let now_us = self.now.monotonic_us;
        self.stop.goes_on(now_us);
        if now_us >= self.stop.told_busy_us + BUSY_US {
            self.stop.told_busy_us = now_us;
            self.tell_others(|| Control::StopGoesOn);
        }
    }

    /// Step by step with the other cores: begins no unit, has a durable log. Whether it got further.
    pub(crate) fn come_to_rest(&mut self) -> bool {
        let is_durable =
            self.log.as_ref().is_some_and(|log| log.durable() == log.sealed()) && !self.store.has_unsealed();
        let (cores, stop) = (self.outbox.len(), &mut self.stop);
        let flushed = if !stop.has_told_rest && self.units.is_quiet() {
            stop.has_told_rest = true;
            false
        } else if !stop.has_told_flushed && stop.resting == cores && is_durable && self.node.is_sealed() {
            stop.has_told_flushed = true;
            true
        } else {
            return false;
        };
        self.tell_others(|| Control::Resting { flushed });
        self.on_resting(flushed);
        true
    }

    fn tell_others(&mut self, control: impl Fn() -> Control) {
        for (core, batch) in self.outbox.iter_mut().enumerate() {
            if core != usize::from(self.core.0) {
                batch.controls.push(control());
            }
        }
    }

    /// A core, this one included, came so far.
    pub(crate) fn on_resting(&mut self, flushed: bool) {
        let stop = &mut self.stop;
        match flushed {
            false => stop.resting += 1,
            true => stop.flushed += 1,
        }
        if self.all_rest() {
            // Nobody comes for what was set aside, and it gets its last run with the others.
            self.bring_back(u64::MAX);
        }
        self.put_off.note();
    }

    /// Whether a stopping core may stop, as far as runs go. What it leaves undone costs the next start a replay.
    ///
    /// One whose runs fail stays as long as the others: they may wait for slot groups that it has from them.
    pub(crate) fn has_last_runs(&self) -> bool {
        let has_failed = self.log.as_ref().is_none_or(|log| log.failure().is_some());
        let Some(checkpoints) = self.checkpoints.as_ref().filter(|_| !has_failed) else { return true };
        let waits_in_vain = !self.all_rest() && self.has_waited(1);
        // A run may wait for a slot group that never comes home.
        if waits_in_vain && self.has_waited(2) {
            return true;
        }
        let is_done = self.all_rest() && (checkpoints.is_finished(&self.store) || checkpoints.gave_up());
        checkpoints.is_idle() && (is_done || waits_in_vain)
    }

    fn has_waited(&self, times: u64) -> bool {
        self.stop.since_us.is_some_and(|since_us| self.now.monotonic_us >= since_us + times * REST_US_MAX)
    }

    /// When a stopping core no longer waits for the others, and no longer for its own run either, if that is to come.
    pub(crate) fn rest_deadline_us(&self) -> Option<u64> {
        let since_us = self.stop.since_us?;
        let busy_us = self.is_disk_busy().then_some(since_us + BUSY_US);
        let deadlines = [1, 2].map(|times| since_us + times * REST_US_MAX);
        busy_us.into_iter().chain(deadlines).find(|deadline_us| *deadline_us > self.now.monotonic_us)
    }
}
