//! The end: what a clean stop of the server does. The log is sealed and durable, and what changed since its run gets one.

use storage::checkpoint::Life;

use crate::Error;
use crate::engine::Engine;
use crate::store::{POISONED, Shared};

impl Shared {
    /// Ends the store, once; who comes later finds it ended.
    pub(crate) fn end(&self) -> Result<(), Error> {
        {
            let mut engine = self.lock();
            if engine.life != Life::Serving {
                return Ok(());
            }
            engine.life = Life::Stopping;
            engine.uploads.clear();
            engine.waiters.end();
        }
        self.keeper_bell.ring();
        self.progress.notify_all();
        let keeper = self.keeper.lock().expect(POISONED).take();
        if keeper.is_some_and(|keeper| keeper.join().is_err()) {
            return Err(Error::LogFailed(String::from("the store's thread panicked")));
        }
        let ended = self.rest();
        let directory = self.directory.lock().expect(POISONED).take();
        let announced = directory.map_or(Ok(()), |directory| directory.announce(""));
        ended.and(announced.map_err(Error::from))
    }

    fn rest(&self) -> Result<(), Error> {
        let mut guard = self.lock();
        if let Some(buffer) = guard.data.log_mut() {
            buffer.append_seal();
        }
        // Others may be syncing; then they, or this one, go on.
        loop {
            let Some(journal) = &guard.journal else { return Ok(()) };
            if let Some(reason) = journal.log.failure() {
                let error = Error::LogFailed(reason.to_owned());
                guard.failure = Some(error.clone());
                guard.journal = None;
                return Err(error);
            }
            let is_durable = !guard.data.has_unsealed() && journal.log.durable() == journal.log.sealed();
            guard = match (is_durable, journal.log.is_syncing()) {
                (true, _) => break,
                (false, true) => self.progress.wait(guard).expect(POISONED),
                (false, false) => self.sync(guard),
            };
        }
        guard.life = Life::Resting;
        let checkpointed = self.write_last_runs(&mut guard);
        if let Some(journal) = guard.journal.take() {
            // Joins the disk thread: its last jobs are done.
            drop(journal);
        }
        checkpointed
    }

    /// Nothing changes any more, so the lock is held all the while.
    fn write_last_runs(&self, engine: &mut Engine) -> Result<(), Error> {
        loop {
            let now = engine.now();
            let Engine { journal: Some(journal), data, uploads, life, .. } = engine else { return Ok(()) };
            journal.collect((data, uploads), *life, now);
            if journal.checkpoints.is_idle() {
                if let Some(reason) = journal.checkpoints.failure() {
                    return Err(Error::NotCheckpointed(reason.to_owned()));
                }
                if journal.checkpoints.is_finished(data) {
                    return Ok(());
                }
            }
            journal.step((data, uploads), *life, now);
            if !journal.steps_again() && !journal.checkpoints.is_idle() {
                self.keeper_bell.wait(None);
            }
        }
    }
}
