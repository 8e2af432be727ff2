//! The memory limit of a node: each core's share, what does not fit, and who goes to make room
//! (`docs/internals/memory.md`).
//!
//! ```text
//!   maxmemory ─ what the process takes beside its stores ─ ÷ cores ─ what waits on its way ──► the store's limit
//!
//!   core i   takes so much ──────────────► core 0    all stores together, and the process's memory
//!            ◄──────────── so much is beside them    every tenth of a second
//! ```

use storage::checkpoint::Asked;
use storage::maintenance::Class;
use storage::{MemoryLimit, Room};
use wire::registry::{CommandSpec, Flags};
use wire::{Arguments, ErrorReply, Reply, error};

use base::ConnectionId;

use crate::connection::Stall;
use crate::hop::Control;
use crate::owned_request::OwnedRequest;
use crate::shard::Shard;
use crate::unit::UnitWork;

/// A record's header, its index entry and what its slot is too long, about, bytes.
const RECORD_EXTRA_BYTES: usize = 64;
/// Steps of one call of [`storage::Store::make_room`] for nothing in particular.
const STEPS_PER_CALL: usize = 16;
/// What lies beside the stores counts up to this part of the limit: memory that the C library keeps is beside them, too,
/// and evicting does not make it less.
const BESIDE_SHARE_MAX: u64 = 2;

/// This part of the limit is left for what grows beside the stores between two looks: without it the process was seen at
/// 108 % of a limit of 256 MB (`cargo x bench memory-limit`).
const HEADROOM_SHARE: u64 = 24;
/// What lies beside the stores is looked into when it grew by this part of the limit.
const NOTICED_SHARE: u64 = 64;

/// See the module.
#[derive(Default)]
pub(crate) struct Memory {
    limit: Option<MemoryLimit>,
    /// Core 0 only: the allocator was told to keep nothing, because there is a limit.
    keeps_nothing: bool,
    /// What the process takes beside the stores of all cores, as core 0 said last.
    beside_bytes: u64,
    /// Connections of this core that brought more than it could serve, and so were told to be silent.
    pub(crate) held_requests: Vec<ConnectionId>,
    /// Bytes of their requests when this tick began.
    held_bytes: usize,
    /// Connections whose request found no room, and its bytes, in the order in which they came.
    pub(crate) waiting: Vec<(ConnectionId, usize)>,
    /// The least that found none in this tick: nobody asks for as much before the next one.
    pub(crate) lacking_bytes: Option<usize>,
    /// Core 0 only: what each core's store takes, as they said last.
    stores: Vec<Option<u64>>,
    /// A core that lent groups to the unit that runs now has no room, and nobody to evict.
    lender_is_full: bool,
    /// Core 0 only: the reading before, and the lowest of all.
    beside_last: u64,
    beside_lowest: Option<u64>,
    /// Keys that were evicted before this tick's [`Shard::evict_step`].
    evicted: u64,
    /// The store takes more than it may, and nobody goes for that.
    is_full: bool,
}

impl Memory {
    /// Whether writes have to be asked for.
    #[inline]
    pub(crate) fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    fn is_lacking(&self, bytes: usize) -> bool {
        self.lacking_bytes.is_some_and(|least| bytes >= least)
    }

    /// Whether the store takes more than it may, and nobody goes for that.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    /// A unit begins to run on groups of which some are lent.
    pub(crate) fn note_lenders(&mut self, any_is_full: bool) {
        self.lender_is_full = any_is_full;
    }

    pub(crate) fn note_beside(&mut self, bytes: u64) {
        self.beside_bytes = bytes;
    }

    pub(crate) fn note_store(&mut self, core: usize, bytes: u64) {
        if self.stores.len() <= core {
            self.stores.resize(core + 1, None);
        }
        self.stores[core] = Some(bytes);
    }
}

impl Shard {
    /// Before anything is loaded: values may leave memory where that is asked for and there are runs to have them. What is
    /// loaded is to fit beside the files that a start reads whole.
    pub(crate) fn begin_tiering(&mut self) {
        if self.log.is_none() || self.node.config.value("zerohop-when-full") != b"tier" {
            return;
        }
        self.store.set_tiering();
        self.memory.note_beside(u64::MAX);
        self.update_memory();
        self.memory.note_beside(0);
    }

    /// The store's limit follows the settings, and what lies beside it.
    pub(crate) fn update_memory(&mut self) {
        self.keep_freed_memory();
        self.weigh_held_requests();
        let limit = self.node.config.memory_bytes_max().map(|bytes_max| {
            let beside = self.memory.beside_bytes.min(bytes_max / BESIDE_SHARE_MAX);
            let share = (bytes_max - beside - bytes_max / HEADROOM_SHARE) / self.outbox.len() as u64;
            let bytes = share.saturating_sub(self.on_its_way_bytes() as u64) as usize;
            MemoryLimit { bytes, policy: self.node.config.eviction(), tiers: self.store.tiers() }
        });
        if limit != self.memory.limit {
            self.memory.limit = limit;
            self.store.set_memory_limit(limit);
        }
    }

    /// Under a limit what is kept would take from the stores.
    fn keep_freed_memory(&mut self) {
        let keeps_nothing = self.core.0 == 0 && self.node.config.memory_bytes_max().is_some();
        if keeps_nothing != std::mem::replace(&mut self.memory.keeps_nothing, keeps_nothing) {
            self.effects.push(base::Effect::KeepFreedMemory(!keeps_nothing));
        }
    }

    /// What waits for the disk or for room comes and goes faster than anybody looks at the process, so it is known exactly.
    fn weigh_held_requests(&mut self) {
        let mut held = std::mem::take(&mut self.memory.held_requests);
        self.memory.held_bytes = 0;
        held.retain(|&id| {
            let Some(connection) = self.connections.get_mut(id) else { return false };
            connection.is_held = connection.receive_paused;
            self.memory.held_bytes += if connection.is_held { connection.input.capacity() } else { 0 };
            connection.is_held
        });
        self.memory.held_requests = held;
    }

    /// Bytes on their way into the store.
    fn on_its_way_bytes(&self) -> usize {
        let arriving = self.membership.as_deref().map_or(0, |membership| membership.links.arriving_bytes());
        self.uploads.bytes() + arriving + self.memory.held_bytes
    }

    /// Tells core 0 what this core's store takes; core 0 tells all what the process takes beside them.
    pub(crate) fn tell_memory(&mut self) {
        let Some(limit_bytes) = self.node.config.memory_bytes_max() else { return };
        let bytes = (self.store.memory_bytes() + self.on_its_way_bytes()) as u64;
        if self.core.0 > 0 {
            return self.outbox[0].controls.push(Control::StoreTakes { bytes });
        }
        self.memory.note_store(0, bytes);
        let known: Vec<u64> = self.memory.stores.iter().flatten().copied().collect();
        if known.len() < self.outbox.len() {
            return;
        }
        let beside = self.node.process().resident_bytes.saturating_sub(known.iter().sum());
        let lowest = self.memory.beside_lowest.map_or(beside, |lowest| lowest.min(beside));
        self.memory.beside_lowest = Some(lowest);
        if beside > lowest + limit_bytes / NOTICED_SHARE {
            // Part of it may be what the allocator keeps: the next reading is without that.
            self.effects.push(base::Effect::ReleaseMemory);
        }
        // What is there only until it is given back takes nothing from anybody.
        let beside = beside.min(std::mem::replace(&mut self.memory.beside_last, beside));
        self.memory.note_beside(beside);
        self.outbox.iter_mut().skip(1).for_each(|batch| batch.controls.push(Control::ProcessTakes { beside }));
    }

    pub(crate) fn may_evict(&self) -> bool {
        self.memory.is_limited() && !self.log_is_full() && self.write_refusal().is_none()
    }

    /// Evicts a slice of what is too much.
    pub(crate) fn evict_step(&mut self) {
        if !self.may_evict() {
            self.memory.is_full &= self.memory.is_limited();
            return;
        }
        let steps = self.scheduler.granted(Class::Eviction) as usize * Class::Eviction.per_work();
        let mut room = if steps > 0 { Room::Later } else { Room::Enough };
        for _ in 0..steps / STEPS_PER_CALL {
            room = self.store.make_room(0);
            if room != Room::Later || self.log_is_full() {
                break;
            }
        }
        if room == Room::Later {
            self.put_off.note();
        }
        self.memory.is_full = self.store.lacks_room() && (room == Room::Refused || self.memory.is_full);
        // Also what went for requests of this tick.
        let before = std::mem::replace(&mut self.memory.evicted, self.store.evicted());
        if self.memory.evicted > before && !self.waiters.is_empty() {
            self.fire_waiters();
        }
    }

    /// Whether a request of this core's keys may take memory now, also where copies are if it `crowds` these.
    pub(crate) fn room_for(&mut self, spec: &CommandSpec, crowds: bool, bytes: usize) -> Room {
        // Whoever goes is logged.
        if !spec.flags.contains(Flags::DENYOOM) || self.logs_nothing() {
            return Room::Enough;
        }
        match if self.memory.is_limited() { self.store.make_room(bytes) } else { Room::Enough } {
            Room::Enough if crowds => self.store.make_room_in_copies(bytes),
            room => room,
        }
    }

    /// Writes the error of a request that needs memory where there is none, or puts it off until there is; true if it
    /// does not run now.
    pub(crate) fn lacks_memory(&mut self, index: u32, spec: &CommandSpec, arguments: Arguments<'_>) -> bool {
        let bytes = taken_by(arguments);
        let is_asked = spec.flags.contains(Flags::DENYOOM) && self.memory.is_limited();
        if is_asked && self.memory.is_lacking(bytes) {
            self.await_memory(index, bytes, arguments);
            return true;
        }
        let crowds = self.crowds(spec, arguments);
        match self.room_for(spec, crowds, bytes) {
            Room::Enough => {
                self.take_room_in_copies(crowds, bytes);
                return false;
            }
            Room::Later => self.await_memory(index, bytes, arguments),
            Room::Run if self.may_clean() => self.hold_writer(index, arguments),
            Room::Run | Room::Refused => self.refuse_memory(index, self.out_of_memory(crowds)),
        }
        true
    }

    /// The connection waits for room; a request that asks for as much as one that found none does not ask in the same tick, nor is it
    /// decoded for that: each try copies all that the connection brought.
    fn await_memory(&mut self, index: u32, bytes: usize, arguments: Arguments<'_>) {
        let Some(connection) = self.connections.at(index) else { return };
        self.memory.lacking_bytes = Some(self.memory.lacking_bytes.map_or(bytes, |least| least.min(bytes)));
        connection.stall = Stall::TickFull;
        wire::request::encode(arguments, &mut connection.repeat);
        self.memory.waiting.push((connection.id, bytes));
        self.put_off.note();
    }

    /// Those that wait for room try again, as long as one of their size may find it.
    pub(crate) fn serve_awaiting_memory(&mut self, received: &[u8]) {
        for (id, bytes) in std::mem::take(&mut self.memory.waiting) {
            if self.memory.is_lacking(bytes) || self.tick_is_full() {
                self.memory.waiting.push((id, bytes));
            } else {
                self.serve_again(id, received);
            }
        }
        if !self.memory.waiting.is_empty() {
            self.put_off.note();
        }
    }

    /// Inside MULTI everything takes memory until EXEC, so everything is refused where there is none; as in Redis.
    pub(crate) fn refuses_to_queue(&mut self, index: u32, bytes: usize) -> bool {
        let asks = self.memory.is_limited() && !self.logs_nothing();
        let room = if asks { self.store.make_room(bytes) } else { Room::Enough };
        let refuses = matches!(room, Room::Refused | Room::Run);
        if refuses {
            self.refuse_memory(index, error::OUT_OF_MEMORY);
        }
        refuses
    }

    fn refuse_memory(&mut self, index: u32, refusal: ErrorReply) {
        let Some(connection) = self.connections.at(index) else { return };
        refusal.write(&mut connection.output.reply(connection.session.protocol()));
    }

    /// Whether a forwarded request waits for the next tick to make room.
    pub(crate) fn awaits_memory(&mut self, request: &OwnedRequest) -> bool {
        let crowds = self.crowds(request.spec, request.arguments());
        match self.room_for(request.spec, crowds, taken_by_owned(request)) {
            Room::Enough | Room::Refused => false,
            Room::Later => {
                self.put_off.note();
                true
            }
            Room::Run => {
                let waits = self.may_clean();
                self.pace.holds_writers |= waits;
                waits
            }
        }
    }

    /// Whether a unit that takes `bytes` on its cores may not run. It holds groups of several cores, so it does not wait:
    /// the steps are as many as its own bytes ask for.
    pub(crate) fn unit_lacks_memory(
        &mut self,
        specs: &[(&CommandSpec, usize)],
        (has_own_keys, crowds): (bool, bool),
    ) -> bool {
        let taking = specs.iter().filter(|(spec, _)| spec.flags.contains(Flags::DENYOOM));
        let (count, bytes) = taking.fold((0, 0), |(count, sum), (_, bytes)| (count + 1, sum + bytes));
        if count == 0 || !(self.memory.is_limited() || crowds) {
            return false;
        }
        self.memory.lender_is_full
            || (has_own_keys && self.is_full_for(bytes))
            || (crowds && self.copies_are_full_for(bytes))
    }

    /// Makes room for a unit before it looks whether its values are here.
    pub(crate) fn make_room_for_unit(&mut self, work: &UnitWork) {
        let bytes = match work {
            UnitWork::Command(request) => taken_by_owned(request),
            UnitWork::Exec(exec) => exec.taken().iter().map(|(_, bytes)| bytes).sum(),
            UnitWork::Serve { .. } | UnitWork::Watch(_) | UnitWork::Keyspace(_) => return,
        };
        self.is_full_for(bytes);
    }

    /// Whether a run is under way, or may begin, behind which more values may leave memory.
    fn may_clean(&mut self) -> bool {
        let mut may = false;
        if self.has_log_failed() {
            return false;
        }
        self.with_checkpoints(|checkpoints, view| {
            may = checkpoints.may_clean(view);
            Asked::Nothing
        });
        may
    }

    /// Whether writers wait for a run because no value may leave memory.
    pub(crate) fn awaits_clean_values(&mut self) -> bool {
        if !self.store.tiers() {
            return false;
        }
        self.store.end_starvation();
        self.store.is_starved() && self.may_clean()
    }

    /// Whether nothing makes room for `bytes`.
    pub(crate) fn is_full_for(&mut self, bytes: usize) -> bool {
        if !self.memory.is_limited() || self.logs_nothing() {
            return false;
        }
        loop {
            let gone = (self.store.evicted(), self.store.garbage_bytes());
            match self.store.make_room(bytes) {
                Room::Enough => return false,
                Room::Refused | Room::Run => return true,
                // Nothing found, or only pages moved: the unit is not to wait for it.
                Room::Later if (self.store.evicted(), self.store.garbage_bytes()) == gone => return false,
                Room::Later => {}
            }
        }
    }

    /// Whether a long value of `bytes` can ever fit.
    pub(crate) fn could_hold(&self, bytes: usize) -> bool {
        self.node.config.memory_bytes_max().is_none_or(|most| bytes as u64 <= most / self.outbox.len() as u64)
    }

    /// Writes the error of a forwarded request that needs memory where there is none; true if there is one.
    pub(crate) fn refuse_forwarded(&mut self, request: &OwnedRequest, reply: &mut Reply<'_>) -> bool {
        if self.store.holds_values() {
            return false; // It was let in before its values were looked at.
        }
        let (crowds, bytes) = (self.crowds(request.spec, request.arguments()), taken_by_owned(request));
        let refuses = match self.room_for(request.spec, crowds, bytes) {
            Room::Enough | Room::Later => {
                self.take_room_in_copies(crowds, bytes);
                false
            }
            Room::Refused => true,
            // It was let through because it freed what it takes.
            Room::Run => !self.may_clean(),
        };
        if refuses {
            self.out_of_memory(crowds).write(reply);
        }
        refuses
    }
}

/// Bytes that a request takes, about, if it keeps all that it brings.
pub(crate) fn taken_by(arguments: Arguments<'_>) -> usize {
    arguments.iter().map(<[u8]>::len).sum::<usize>() + RECORD_EXTRA_BYTES
}

pub(crate) fn taken_by_owned(request: &OwnedRequest) -> usize {
    taken_by(request.arguments()) + request.new_bytes()
}

#[cfg(test)]
mod tests;
