//! The store's own thread: syncs that nobody waits for, checkpoints, expiry, memory that is given back.
//!
//! Each step holds the lock for well under a millisecond: a slice of 256 KiB of a checkpoint, 2 MiB of memory, 2048 keys
//! looked at for expiry. Syncs and the disk's other work hold nothing.

use std::sync::{Condvar, Mutex};
use std::time::Duration;

use base::Now;
use storage::checkpoint::Life;
use storage::{EXPIRED_KEY_COST, Room};

use crate::engine::Engine;
use crate::store::{POISONED, Shared};

/// While writers write, between two looks at what is due, microseconds.
const BUSY_US: u64 = 10_000;
/// Between two steps of expiry, microseconds.
const EXPIRY_US: u64 = 100_000;
/// Memory given back by one step, bytes.
const LAZY_FREE_STEP_BYTES: usize = 2 << 20;
/// Keys looked at by one step of expiry.
const EXPIRY_STEP_KEYS: usize = 2048;

/// Wakes the keeper.
#[derive(Default)]
pub(crate) struct Bell {
    has_rung: Mutex<bool>,
    rung: Condvar,
}

impl Bell {
    pub fn ring(&self) {
        *self.has_rung.lock().expect(POISONED) = true;
        self.rung.notify_one();
    }

    /// Sleeps until it rings or has rung, at most so long; `None`: for ever.
    pub fn wait(&self, timeout_us: Option<u64>) {
        let has_rung = self.has_rung.lock().expect(POISONED);
        let mut has_rung = match timeout_us {
            None => self.rung.wait_while(has_rung, |has_rung| !*has_rung).expect(POISONED),
            Some(us) => {
                let timeout = Duration::from_micros(us);
                self.rung.wait_timeout_while(has_rung, timeout, |has_rung| !*has_rung).expect(POISONED).0
            }
        };
        *has_rung = false;
    }
}

/// Until the store is closed.
pub(crate) fn keep(shared: &Shared) {
    let mut state = Keeper::default();
    loop {
        let mut engine = shared.lock();
        if engine.life != Life::Serving {
            return;
        }
        let now = engine.now();
        state.look_after(&mut engine, now);
        shared.progress.notify_all();
        if engine.journal.as_ref().is_some_and(|journal| journal.wants_sync(now)) {
            drop(shared.sync(engine));
            continue;
        }
        let deadline_us = state.deadline_us(&engine, now);
        let sleep_us = deadline_us.map(|at_us| at_us.saturating_sub(now.monotonic_us));
        engine.keeper_sleeps = sleep_us.is_none_or(|us| us > EXPIRY_US);
        drop(engine);
        if sleep_us != Some(0) {
            shared.keeper_bell.wait(sleep_us);
        }
    }
}

#[derive(Default)]
struct Keeper {
    expiry_due_us: u64,
    /// Log when it looked last, bytes.
    seen_bytes: u64,
    /// Values that had come back by then.
    seen_fetched: u64,
    is_busy: bool,
    /// More values than one step lets go are to leave memory.
    makes_room: bool,
}

impl Keeper {
    /// One step of everything that is due.
    fn look_after(&mut self, engine: &mut Engine, now: Now) {
        engine.data.lazy_free_step(LAZY_FREE_STEP_BYTES);
        self.makes_room = engine.data.lacks_room() && engine.data.make_room(0) == Room::Later;
        if engine.data.may_expire() && now.monotonic_us >= self.expiry_due_us && engine.check_writable().is_ok() {
            engine.begin_change();
            let expired = engine.data.expire_step(now.unix_ms, EXPIRY_STEP_KEYS);
            engine.end_change(now);
            // Where much is due it goes on at once.
            let pause_us = if expired * EXPIRED_KEY_COST * 4 > EXPIRY_STEP_KEYS { 0 } else { EXPIRY_US };
            self.expiry_due_us = now.monotonic_us + pause_us;
        }
        let Engine { journal: Some(journal), data, uploads, life, .. } = engine else { return };
        journal.collect((data, uploads), *life, now);
        // A checkpoint begins where nothing waits to be sealed.
        journal.seal(data, uploads, now);
        journal.step((data, uploads), *life, now);
        let bytes = journal.log.bytes_total() + data.log_bytes() as u64;
        let fetched = data.fetched();
        let has_read = std::mem::replace(&mut self.seen_fetched, fetched) != fetched;
        self.is_busy = std::mem::replace(&mut self.seen_bytes, bytes) != bytes || has_read;
    }

    /// When to look again; `None`: when it rings.
    fn deadline_us(&self, engine: &Engine, now: Now) -> Option<u64> {
        let journal = engine.journal.as_ref();
        let is_pressing =
            engine.data.has_garbage() || self.makes_room || journal.is_some_and(|journal| journal.steps_again());
        let retries =
            journal.is_some_and(|journal| journal.log.wants_retry() || journal.checkpoints.failure().is_some());
        let deadlines = [
            is_pressing.then_some(now.monotonic_us),
            self.is_busy.then_some(now.monotonic_us + BUSY_US),
            engine.data.may_expire().then_some(self.expiry_due_us),
            journal.filter(|journal| !journal.log.is_syncing()).and_then(|journal| journal.sync_due_us()),
            retries.then_some(now.monotonic_us + EXPIRY_US),
            journal.and_then(|journal| journal.checkpoints.next_deadline_us(&engine.data, &journal.log, now)),
        ];
        deadlines.into_iter().flatten().min()
    }
}
