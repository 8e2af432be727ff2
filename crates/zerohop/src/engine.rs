//! What the lock guards: the data, what survives of it, and who waits for it.

use base::{CoreId, Now, SlotGroupId};
use io::clock::Clock;
use storage::{SlotGroup, Store};

use crate::Error;
use crate::journal::Journal;
use crate::long_put::Uploads;
use crate::options::Durability;
use crate::wait::Waiters;
use storage::checkpoint::Life;

/// See the module.
pub(crate) struct Engine {
    pub data: Store,
    /// None in durability `memory`.
    pub journal: Option<Journal>,
    pub uploads: Uploads,
    pub waiters: Waiters,
    pub life: Life,
    clock: Clock,
    /// The keeper sleeps for longer than writers should go on without it.
    pub keeper_sleeps: bool,
    /// Why there is no journal any more.
    pub failure: Option<Error>,
}

/// Data that is empty, with all slot groups at home.
pub(crate) fn empty_data(seed: u64, logs: bool) -> Store {
    let mut data = Store::new(CoreId(0), seed, logs);
    SlotGroupId::all().for_each(|group| data.insert_group(Box::new(SlotGroup::new(group, CoreId(0)))));
    data
}

impl Engine {
    pub fn new(data: Store, journal: Option<Journal>) -> Engine {
        Engine {
            data,
            journal,
            uploads: Uploads::default(),
            waiters: Waiters::default(),
            life: Life::Serving,
            clock: Clock::new(),
            keeper_sleeps: false,
            failure: None,
        }
    }

    pub fn now(&mut self) -> Now {
        self.clock.now()
    }

    /// Whether the keeper has to be woken for what was done; it is then awake.
    #[inline]
    pub fn takes_keeper_from_sleep(&mut self) -> bool {
        let has_work = self.journal.is_some() || self.data.may_expire() || self.data.has_garbage();
        has_work && std::mem::take(&mut self.keeper_sleeps)
    }

    /// Whether a read left something for [`Engine::end_change`], or saw what is not as durable as promised.
    #[inline]
    pub fn has_to_end_read(&mut self) -> bool {
        self.data.has_unsealed() || !self.waiters.is_empty() || self.data.take_saw_uncommitted()
    }

    /// Unix milliseconds for a read: the clock is not asked where nothing can expire.
    #[inline]
    pub fn read_ms(&mut self) -> u64 {
        if self.data.may_expire() { self.now().unix_ms } else { 0 }
    }

    /// Whether a change would be taken.
    #[inline]
    pub fn check_writable(&self) -> Result<(), Error> {
        if self.life != Life::Serving {
            return Err(Error::Closed);
        }
        let Some(journal) = &self.journal else { return Ok(()) };
        if let Some(reason) = journal.log.failure() {
            return Err(Error::LogFailed(reason.to_owned()));
        }
        match journal.log.refusal() {
            Some(reason) => Err(Error::DiskFull(reason.to_owned())),
            None => Ok(()),
        }
    }

    /// Whether anything can be read.
    #[inline]
    pub fn check_open(&self) -> Result<(), Error> {
        if self.life == Life::Serving { Ok(()) } else { Err(Error::Closed) }
    }

    /// Whether a promise comes later than the change.
    fn tracks(&self) -> bool {
        self.journal.as_ref().is_some_and(|journal| journal.durability == Durability::Commit)
    }

    /// Before a change: which log group it will be part of.
    #[inline]
    pub fn begin_change(&mut self) {
        if self.tracks() {
            let ordinal = self.journal.as_ref().map(|journal| journal.log.next_ordinal());
            self.data.track_uncommitted(ordinal);
        }
    }

    /// Behind changes: they go to the log, or wait for the sync under way; those who wait for keys hear of them.
    #[inline]
    pub fn end_change(&mut self, now: Now) {
        if !self.waiters.is_empty() {
            self.fire_waiters(now);
        }
        if self.data.has_unsealed() {
            self.append(now);
        }
    }

    #[inline]
    fn append(&mut self, now: Now) {
        // In `commit` records that cannot be synced yet gain nothing from being written now.
        const WAITING_BYTES_MAX: usize = 1 << 20;
        let Some(journal) = &mut self.journal else { return };
        let waits = journal.durability == Durability::Commit && self.data.log_bytes() < WAITING_BYTES_MAX;
        if !waits {
            journal.seal(&mut self.data, &self.uploads, now);
        }
    }
}
