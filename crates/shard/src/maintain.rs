//! The stage `maintain`: what is due by time, and what the scheduler of maintenance ([`storage::maintenance`]) gives each class to
//! do in this tick.
//!
//! ```text
//!   wants: over the limit? a run to walk? garbage? keys to look through? ──► Scheduler ──► evict · reclaim · expire · sweep     here
//!                                                                                     └──► a slice of a run            checkpoint
//! ```

use storage::EXPIRED_KEY_COST;
use storage::checkpoint::SLICE_WORK;
use storage::maintenance::{Class, TICK_WORK};

use crate::company::ENOUGH_US;
use crate::connection::{Connection, Stall};
use crate::shard::{EXPIRY_INTERVAL_US, LIMITS_INTERVAL_US, Shard};

/// Memory given back by one tick, units of work: 2 MiB.
const RECLAIM_WORK: u32 = 256;
/// After so much of it the time is looked at, bytes.
const RECLAIM_STEP_BYTES: usize = 128 << 10;
/// Keys looked through by one step of expiry, units of work: 1024 of them, or 85 that go.
const EXPIRY_WORK: u32 = 256;
/// Keys of other nodes' slots that go in one step, units of work: 85 of them.
const STRAYS_WORK: u32 = 256;
/// Eviction of one tick that nobody waits for, units of work: 512 steps of hands.
const EVICTION_WORK: u32 = 256;

impl Shard {
    /// What is due by time: deadlines of waiters, and maintenance.
    pub(crate) fn maintain(&mut self) {
        self.hand_on();
        if self.stopping {
            // Nobody is told that a wait is over when what ended it is the stop, and nothing expires behind the last runs.
            return;
        }
        let now_us = self.now.monotonic_us;
        if self.waiters.next_deadline_us().is_some_and(|deadline_us| deadline_us <= now_us) {
            for waiter in self.waiters.take_overdue(now_us) {
                self.time_out(waiter);
            }
            self.track_touched();
        }
        if !self.wide_waits.is_empty() {
            self.end_overdue_wide_waits();
        }
        if self.gathers.next_deadline_us().is_some_and(|deadline_us| deadline_us <= now_us) {
            self.end_overdue_gathers();
        }
        self.end_overdue_pin();
        self.look_for_strays();
        self.share_work_out();
        self.reclaim();
        self.evict_step();
        if self.has_limits() && now_us >= self.last_limits_us + LIMITS_INTERVAL_US {
            self.last_limits_us = now_us;
            self.look_after_limits();
        }
        self.expire();
        self.sweep_strays();
    }

    fn share_work_out(&mut self) {
        let runs = self.checkpoints.as_ref().zip(self.log.as_ref());
        let runs_max = if self.uploads.are_under_way() { self.run_work_in_company() } else { u32::MAX };
        let mut wants = [
            if self.may_evict() && self.store.lacks_room() { EVICTION_WORK } else { 0 },
            runs.map_or(0, |(checkpoints, log)| checkpoints.work_wanted(&self.store, log, self.now)).min(runs_max),
            if self.store.has_garbage() { RECLAIM_WORK } else { 0 },
            if self.is_expiry_due() { EXPIRY_WORK } else { 0 },
            if self.has_strays_to_sweep() { STRAYS_WORK } else { 0 },
        ];
        // A unit is about a microsecond: a tick that took long already does little of it.
        let took_us = if wants.iter().any(|want| *want > 0) { self.elapsed_us() } else { 0 };
        let run = &mut wants[Class::Checkpoint as usize];
        if *run <= SLICE_WORK {
            *run = (*run).min(self.calm_run_work(took_us));
        }
        let late = took_us.min(u64::from(TICK_WORK));
        self.scheduler.step(TICK_WORK - late as u32, wants);
    }

    fn reclaim(&mut self) {
        let mut bytes = self.scheduler.granted(Class::Reclaim) as usize * Class::Reclaim.per_work();
        let before = self.store.garbage_bytes();
        while bytes > 0 {
            let step = bytes.min(RECLAIM_STEP_BYTES);
            self.store.lazy_free_step(step);
            // What a page costs that goes back to the operating system is the system's affair.
            let is_enough = self.is_late() || self.has_company() && self.elapsed_us() >= ENOUGH_US;
            bytes = if is_enough { 0 } else { bytes - step };
        }
        self.statistics.counters.reclaimed_bytes += (before - self.store.garbage_bytes()) as u64;
    }

    fn is_expiry_due(&self) -> bool {
        self.expiry_due_us().is_some_and(|due_us| due_us <= self.now.monotonic_us) && !self.log_is_full()
    }

    /// When keys are looked through for expired ones; `None` while no key expires, and while writers wait for the disk or are
    /// refused: it writes, too.
    pub(crate) fn expiry_due_us(&self) -> Option<u64> {
        let may_log = !self.pace.holds_writers && !self.logs_nothing();
        (self.store.may_expire() && may_log).then_some(self.last_expiry_us + EXPIRY_INTERVAL_US)
    }

    fn expire(&mut self) {
        let keys = self.scheduler.granted(Class::Expiry) as usize * Class::Expiry.per_work();
        // Eviction may have filled the log group meanwhile.
        if keys == 0 || self.log_is_full() {
            return;
        }
        self.last_expiry_us = self.now.monotonic_us;
        let expired = self.store.expire_step(self.now.unix_ms, keys);
        if expired * EXPIRED_KEY_COST * 4 > keys {
            // Much is due: go on in the next tick instead of the next interval.
            self.last_expiry_us = self.now.monotonic_us.saturating_sub(EXPIRY_INTERVAL_US);
        }
        if expired > 0 && !self.waiters.is_empty() {
            self.fire_waiters();
        }
    }

    /// When maintenance goes on that waits for time alone.
    pub(crate) fn maintenance_deadline_us(&self) -> Option<u64> {
        let runs = self.checkpoints.as_ref().zip(self.log.as_ref());
        runs.and_then(|(checkpoints, log)| checkpoints.next_deadline_us(&self.store, log, self.now))
    }

    pub(crate) fn has_limits(&self) -> bool {
        let config = &self.node.config;
        config.memory_bytes_max().is_some() || config.idle_timeout_s().is_some()
    }

    /// What the process takes beside the stores, and `timeout`.
    fn look_after_limits(&mut self) {
        self.tell_memory();
        let Some(idle_s) = self.node.config.idle_timeout_s() else { return };
        let now_us = self.now.monotonic_us;
        let is_idle = |connection: &&mut Connection| {
            connection.stall == Stall::None
                && now_us.saturating_sub(connection.session.active_us()) > idle_s * 1_000_000
        };
        let mut idle = Vec::new();
        for connection in self.connections.iter_mut().filter(is_idle) {
            connection.session.set_closing();
            idle.push(connection.id.index);
        }
        idle.into_iter().for_each(|index| self.list_for_flush(index));
    }
}
