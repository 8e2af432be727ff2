//! Values that leave memory under a limit, and come back when somebody asks for them (`docs/internals/tiering.md`).
//!
//! ```text
//!   get     lock ── cold? ── nothing held: read of the run ── lock ── room is made ── warm ── its bytes
//!   put     lock ── room is made ── nothing clean: waits for the run under way ── the change
//! ```

use std::sync::MutexGuard;

use base::Now;
use storage::{ColdValue, MemoryLimit, Room, Store, Value as Stored};

use crate::checks::{DATABASE, key_of};
use crate::engine::Engine;
use crate::store::Shared;
use crate::{Durability, Error, Options, Partition};

/// A record's header, its index entry and what its slot is too long, about, bytes.
const RECORD_EXTRA_BYTES: usize = 64;
/// Attempts to make room at once, each of a bounded number of steps; a write that finds none by then is not to wait for it.
const ATTEMPTS: usize = 64;

/// Of the limit, the quarters for what is loaded: files of runs are read whole.
const LOADED_QUARTERS: usize = 3;

/// Before anything is loaded.
pub(crate) fn begin_tiering(data: &mut Store, options: &Options) -> Result<(), Error> {
    let Some(bytes) = options.memory_bytes_max else { return Ok(()) };
    if options.durability == Durability::Memory {
        return Err(Error::LimitWithoutDisk);
    }
    data.set_tiering();
    data.set_memory_limit(Some(limit_of(bytes / 4 * LOADED_QUARTERS)));
    Ok(())
}

/// Behind it.
pub(crate) fn end_loading(data: &mut Store, options: &Options) {
    data.set_memory_limit(options.memory_bytes_max.map(limit_of));
}

fn limit_of(bytes: usize) -> MemoryLimit {
    MemoryLimit { bytes, policy: None, tiers: true }
}

impl Shared {
    /// The engine, with the key's value in memory, which others may use meanwhile.
    #[inline]
    pub(crate) fn with_value<'a>(
        &'a self,
        mut engine: MutexGuard<'a, Engine>,
        name: &[u8],
    ) -> Result<MutexGuard<'a, Engine>, Error> {
        while engine.data.tiers()
            && let Some(cold) = engine.data.cold_value(&key_of(&engine.data, name))
        {
            engine = self.fetch(engine, &cold)?;
        }
        Ok(engine)
    }

    /// As [`Shared::lock_to_write`], with the key's value in memory. Room for the change comes first: room that is made for it behind
    /// the value could be the value's own, again and again.
    pub(crate) fn lock_to_change(&self, name: &[u8], bytes: usize) -> Result<(MutexGuard<'_, Engine>, Now), Error> {
        let (mut engine, mut now) = self.lock_to_write(bytes)?;
        while !engine.has_value(name) {
            engine = self.with_value(engine, name)?;
            (engine, now) = self.until_writable(engine)?;
        }
        Ok((engine, now))
    }

    /// The engine, with all values of the partition in memory. Those that came for it stay until [`Shared::release`].
    pub(crate) fn lock_whole(
        &self,
        partition: Partition,
        kept: &mut Vec<ColdValue>,
    ) -> Result<MutexGuard<'_, Engine>, Error> {
        loop {
            let mut engine = self.lock();
            engine.check_open()?;
            let cold = engine.cold_values(partition);
            if cold.is_empty() {
                return Ok(engine);
            }
            cold.iter().for_each(|value| engine.data.keep(value));
            kept.extend(cold.iter().cloned());
            for value in &cold {
                engine = self.fetch(engine, value)?;
            }
        }
    }

    pub(crate) fn release(&self, kept: &[ColdValue]) {
        if !kept.is_empty() {
            let mut engine = self.lock();
            kept.iter().for_each(|value| engine.data.release(value));
        }
    }

    /// Reads a value with nothing held. That it is in memory then is not sure: its key may have changed, or its run.
    fn fetch<'a>(
        &'a self,
        mut engine: MutexGuard<'a, Engine>,
        cold: &ColdValue,
    ) -> Result<MutexGuard<'a, Engine>, Error> {
        engine.check_open()?;
        if engine.takes_keeper_from_sleep() {
            self.keeper_bell.ring();
        }
        let runs = engine.journal.as_ref().map(|journal| journal.runs.clone()).ok_or(Error::Closed)?;
        drop(engine);
        let read = runs.read(&cold.file, cold.offset, cold.bytes);
        let mut engine = self.lock();
        // Nobody would end a wait behind the end.
        engine.check_open()?;
        let now = engine.now();
        // Before it is here, because what goes is not to be what was read. Where nothing may go, not even for a write, it comes all the same.
        if engine.awaits_room(cold.bytes, now).unwrap_or(false) {
            self.keeper_bell.ring();
            return Ok(self.wait_for_progress(engine));
        }
        let place = |words| format!("{} at offset {}: {words}", cold.file, cold.offset);
        match read.and_then(|record| engine.data.warm(cold, &record).map_err(place)) {
            Err(words) if engine.data.is_still(cold) => Err(Error::Unreadable(words)),
            _ => Ok(engine),
        }
    }
}

impl Engine {
    /// Whether a write of so many bytes has to wait for a run, behind which values may leave memory. One that brings none, such as a
    /// deletion, needs no room: it is how a full store gets some.
    #[inline]
    pub fn awaits_room(&mut self, bytes: usize, now: Now) -> Result<bool, Error> {
        if bytes > 0 && self.data.tiers() { self.make_room(bytes + RECORD_EXTRA_BYTES, now) } else { Ok(false) }
    }

    fn make_room(&mut self, bytes: usize, now: Now) -> Result<bool, Error> {
        self.data.end_starvation();
        for _ in 0..ATTEMPTS {
            match self.data.make_room(bytes) {
                Room::Enough => return Ok(false),
                Room::Later => {}
                Room::Run if self.may_clean(now) => return Ok(true),
                Room::Run | Room::Refused => return Err(self.is_full()),
            }
        }
        Ok(false)
    }

    fn has_value(&self, name: &[u8]) -> bool {
        !self.data.tiers() || self.data.cold_value(&key_of(&self.data, name)).is_none()
    }

    fn cold_values(&mut self, partition: Partition) -> Vec<ColdValue> {
        let (mut names, now_ms) = (Vec::new(), self.read_ms());
        if self.data.tiers() {
            self.data.walk(Store::slot_range(partition.0), usize::MAX, (DATABASE, now_ms), |record| {
                if let Stored::Cold = record.value {
                    names.push(record.key.to_vec());
                }
            });
        }
        names.iter().filter_map(|name| self.data.cold_value(&key_of(&self.data, name))).collect()
    }

    fn may_clean(&mut self, now: Now) -> bool {
        let Engine { journal: Some(journal), data, uploads, .. } = self else { return false };
        journal.may_clean((data, uploads), now)
    }

    fn is_full(&self) -> Error {
        Error::MemoryFull { bytes_max: self.data.memory_limit().map_or(0, |limit| limit.bytes) }
    }
}
