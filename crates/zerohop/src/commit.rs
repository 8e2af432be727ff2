//! When a call may return: what it changed, or saw, is as durable as promised.
//!
//! ```text
//!   thread a   change ─ seal ─ write ─┐ sync (nothing held) ┌─ tells all ─► returns
//!   thread b      change ─────────────┼── waits ────────────┤  seal ─ write ─┐ sync ┌─► returns
//!   thread c         change ──────────┼── waits ────────────┴─ waits ────────┼──────┴─► returns
//!                    what waits becomes one log group ───────────────────────┘
//! ```

use std::sync::MutexGuard;

use base::{LogOrdinal, Now};

use crate::Error;
use crate::engine::Engine;
use crate::journal::Journal;
use crate::options::Durability;
use crate::store::Shared;

impl Shared {
    /// The engine, once so many bytes may be written to it (not while writers outrun the disk, or memory is full of what no run
    /// has), and the clock.
    #[inline]
    pub(crate) fn lock_to_write(&self, bytes: usize) -> Result<(MutexGuard<'_, Engine>, Now), Error> {
        let mut engine = self.lock();
        loop {
            let (mut writable, now) = self.until_writable(engine)?;
            if !writable.awaits_room(bytes, now)? {
                return Ok((writable, now));
            }
            self.keeper_bell.ring();
            engine = self.wait_for_progress(writable);
        }
    }

    /// As [`Shared::lock_to_write`], of a slice of a long value, which waits for all log.
    pub(crate) fn lock_to_log_slice(&self) -> Result<(MutexGuard<'_, Engine>, Now), Error> {
        loop {
            let (writable, now) = self.lock_to_write(0)?;
            if !writable.journal.as_ref().is_some_and(Journal::outruns_disk_with_long) {
                return Ok((writable, now));
            }
            self.keeper_bell.ring();
            drop(self.wait_for_progress(writable));
        }
    }

    /// As [`Shared::lock_to_write`], of what needs no room, or has it.
    #[inline]
    pub(crate) fn until_writable<'a>(
        &'a self,
        mut engine: MutexGuard<'a, Engine>,
    ) -> Result<(MutexGuard<'a, Engine>, Now), Error> {
        loop {
            engine.check_writable()?;
            let now = engine.now();
            let Engine { journal: Some(journal), data, uploads, .. } = &mut *engine else { return Ok((engine, now)) };
            if !journal.outruns_disk((data, uploads), now) {
                engine.begin_change();
                return Ok((engine, now));
            }
            self.keeper_bell.ring();
            engine = self.wait_for_progress(engine);
        }
    }

    /// Returns once the changes up to now are as durable as promised; the first of those who wait does the work.
    #[inline]
    pub(crate) fn promise(&self, mut engine: MutexGuard<'_, Engine>) -> Result<(), Error> {
        if engine.takes_keeper_from_sleep() {
            self.keeper_bell.ring();
        }
        let Some(journal) = &engine.journal else { return engine.failure.clone().map_or(Ok(()), Err) };
        let ordinal = journal.last_change(&engine.data);
        self.promise_up_to(engine, ordinal)
    }

    /// As [`Shared::promise`], for the log groups up to `ordinal`.
    pub(crate) fn promise_up_to<'a>(
        &'a self,
        mut engine: MutexGuard<'a, Engine>,
        ordinal: LogOrdinal,
    ) -> Result<(), Error> {
        loop {
            let Some(journal) = &engine.journal else { return engine.failure.clone().map_or(Ok(()), Err) };
            if let Some(reason) = journal.log.failure() {
                return Err(Error::LogFailed(reason.to_owned()));
            }
            let promised = match journal.durability {
                Durability::Commit => journal.log.durable(),
                Durability::Interval | Durability::Memory => journal.log.written(),
            };
            if ordinal <= promised {
                return Ok(());
            }
            engine = match journal.log.is_syncing() {
                true => self.wait_for_progress(engine),
                false => self.sync(engine),
            };
        }
    }

    /// Syncs everything up to now, with the engine free for others meanwhile.
    pub(crate) fn sync<'a>(&'a self, mut guard: MutexGuard<'a, Engine>) -> MutexGuard<'a, Engine> {
        let now = guard.now();
        let engine = &mut *guard;
        let Some(journal) = &mut engine.journal else { return guard };
        journal.seal(&mut engine.data, &engine.uploads, now);
        let Some(sync) = journal.begin_sync((&mut engine.data, &engine.uploads), engine.life, now) else {
            // The write failed; who waits is to hear of it.
            self.progress.notify_all();
            return guard;
        };
        drop(guard);
        let done = sync.perform();
        let mut guard = self.lock();
        let now = guard.now();
        let engine = &mut *guard;
        if let Some(journal) = &mut engine.journal {
            journal.end_sync(done, (&mut engine.data, &engine.uploads), engine.life, now);
            if journal.steps_again() {
                self.keeper_bell.ring();
            }
        }
        self.progress.notify_all();
        guard
    }

    /// Until a sync, a step of a checkpoint or a failure.
    pub(crate) fn wait_for_progress<'a>(&'a self, engine: MutexGuard<'a, Engine>) -> MutexGuard<'a, Engine> {
        self.progress.wait(engine).expect(crate::store::POISONED)
    }
}

#[cfg(test)]
mod tests;
