//! What the next tick does because this one is full: its log group, or the time it may take.
//!
//! ```text
//!   tick n     units · waiters · hops │ connections           each side of the line has a group's bytes to itself
//!              run run run ▌full: seal│ run run ▌full         ▌what comes after waits in its own queue
//!   tick n+1   units · waiters · hops │ connections, who had no turn first
//! ```
//!
//! A tick's writes leave when it ends, so everything it logs is in memory until then. Requests that copy what is stored
//! (COPY, RENAME, LMOVE) would fill it with a few bytes each; this is what bounds it: to [`LOG_GROUP_BYTES`] and one
//! unit ([`base::limits::LOG_UNIT_BYTES_MAX`]) for each kind of work. Replies are bounded likewise: a connection stalls
//! behind a long one, and hops wait while the batch back to their core is long. Order is kept: of a connection by its stall, of
//! hops by their queue.
//!
//! Requests of connections also end a tick when it has done enough work ([`TICK_WORK_MAX`]), so that no client waits long for
//! the rest of a tick: what arrives is no measure of what it costs. The street takes less when ticks become long; this bounds
//! the first of them. Nobody starves: every kind of work begins a tick with room, and connections take turns.

use base::limits::LOG_GROUP_BYTES;
use base::{ConnectionId, Span};
use session::Pressure;
use wire::Arguments;
use wire::registry::CommandSpec;

use crate::connection::Stall;
use crate::hop::Origin;
use crate::receive::Arrival;
use crate::shard::Shard;
use crate::tick_time::SERVE_US_MAX;

/// What the requests of connections may cost a tick, in requests and in bytes that they bring or ask for: about a
/// millisecond and a half of small ones, more than the street lets come once it knows them: putting off costs a quarter.
const TICK_WORK_MAX: usize = 2048;
/// Work after which the time is looked at: a look costs as much as a tenth of a small request.
const LOOK_WORK: usize = 32;
/// Bytes that count as much as a request.
const WORK_BYTES: usize = 256;
/// The same of bytes that are logged: writes of a store with a log cost more, and so does their log when the tick ends.
const LOG_WORK_BYTES: usize = 512;

/// See the module.
pub(crate) struct PutOff {
    group_bytes: usize,
    /// What the room of the log allows this tick, bytes.
    room_bytes: usize,
    work_max: usize,
    /// Work of this tick's connections so far.
    work: usize,
    /// The time is looked at when so much is done.
    look_at: usize,
    /// Bytes of this kind of work's records that were sealed, or went to another core, before its end.
    sealed_bytes: usize,
    /// Something waits for the next tick.
    noted: bool,
    /// Connections with [`Stall::TickFull`], in the order of their turns.
    connections: Vec<ConnectionId>,
}

impl Default for PutOff {
    fn default() -> PutOff {
        PutOff {
            group_bytes: LOG_GROUP_BYTES,
            room_bytes: usize::MAX,
            work_max: TICK_WORK_MAX,
            work: 0,
            look_at: LOOK_WORK,
            sealed_bytes: 0,
            noted: false,
            connections: Vec::new(),
        }
    }
}

impl PutOff {
    /// Other bounds, for the simulator and tests.
    pub(crate) fn set_bounds(&mut self, group_bytes: usize, work_max: usize) {
        (self.group_bytes, self.work_max) = (group_bytes, work_max);
    }

    /// So much may be logged by each kind of work of this tick, whatever else allows more.
    pub(crate) fn set_room(&mut self, bytes: usize) {
        // One unit always may: a tick that could do nothing would come again at once, and without end.
        self.room_bytes = bytes.max(1);
    }

    /// Bytes of log after which nothing more is served in this tick.
    #[inline]
    pub(crate) fn log_bytes_max(&self) -> usize {
        self.group_bytes.min(self.room_bytes)
    }

    /// A connection's request was run; whether the time is to be looked at.
    #[inline]
    pub(crate) fn note_work(&mut self, request_bytes: usize, reply_bytes: usize) -> bool {
        self.work += 1 + (request_bytes + reply_bytes) / WORK_BYTES;
        self.work >= self.look_at
    }

    /// So much of the tick has passed.
    fn note_time(&mut self, elapsed_us: u64) {
        self.look_at = self.work + LOOK_WORK;
        if elapsed_us >= SERVE_US_MAX {
            self.work = self.work.max(self.work_max);
        }
    }

    /// Something waits for the next tick.
    pub(crate) fn note(&mut self) {
        self.noted = true;
    }

    /// Whether the next tick should come at once.
    pub(crate) fn is_noted(&self) -> bool {
        self.noted
    }

    /// Records left the buffer before the kind of work that wrote them ended.
    pub(crate) fn note_sealed(&mut self, bytes: usize) {
        self.sealed_bytes += bytes;
    }
}

impl Shard {
    /// Whether the present kind of work has logged what a tick may.
    #[inline]
    pub(crate) fn log_is_full(&self) -> bool {
        self.store.log_bytes() + self.put_off.sealed_bytes >= self.put_off.log_bytes_max()
    }

    /// Whether requests of connections wait for the next tick.
    #[inline]
    pub(crate) fn tick_is_full(&self) -> bool {
        let logged_bytes = self.store.log_bytes() + self.put_off.sealed_bytes;
        self.put_off.work + logged_bytes / LOG_WORK_BYTES >= self.put_off.work_max || self.log_is_full()
    }

    /// Requests of connections were run: those that follow wait if the tick has taken long.
    #[cold]
    pub(crate) fn look_at_time(&mut self) {
        let elapsed_us = self.elapsed_us();
        self.put_off.note_time(elapsed_us);
    }

    /// Seals what the tick changed so far: what is logged from now on is a group of its own.
    pub(crate) fn seal_group(&mut self) {
        let Some(log) = self.log.as_mut().filter(|log| log.failure().is_none()) else { return };
        let Some(buffer) = self.store.log_mut().filter(|buffer| !buffer.is_empty()) else { return };
        self.put_off.note_sealed(buffer.record_bytes());
        log.seal_or_wait(buffer, self.now, self.tracks, &mut self.effects);
        if self.tracks {
            self.store.track_uncommitted(Some(log.next_ordinal()));
        }
    }

    /// Records of `bytes` come that cannot wait: they get a group of their own if they do not fit this one.
    pub(crate) fn make_log_room(&mut self, bytes: usize) {
        if self.store.log_bytes() + bytes >= self.put_off.group_bytes {
            self.seal_group();
        }
    }

    /// Another kind of work begins: it does not suffer from what came before it in this tick.
    fn begin_kind(&mut self) {
        if self.log_is_full() {
            self.seal_group();
        }
        self.put_off.sealed_bytes = 0;
    }

    /// At a tick's start, all but the connections.
    pub(crate) fn go_on_with_put_off(&mut self) {
        (self.put_off.sealed_bytes, self.put_off.work, self.put_off.look_at) = (0, 0, LOOK_WORK);
        if !std::mem::take(&mut self.put_off.noted) || self.stopping {
            return;
        }
        self.retry_units();
        if !self.waiters.is_empty() {
            self.begin_kind();
            self.fire_waiters();
        }
        self.begin_kind();
        self.run_parked_hops();
    }

    /// Whether a forwarded request waits: for the next tick, with room in the log or in the batch that takes the answer back,
    /// or with all writers for the disk.
    pub(crate) fn puts_off_hop(&mut self, (origin, spec): (Origin, &CommandSpec)) -> bool {
        if self.pace.holds(spec) {
            return true;
        }
        let waits = self.log_is_full() || self.outbox[usize::from(origin.core.0)].is_long();
        self.put_off.noted |= waits;
        waits
    }

    /// Forwarded requests that waited for lent groups or for the next tick, in their order.
    pub(crate) fn run_parked_hops(&mut self) {
        while let Some(parked) = self.parked_hops.pop_front() {
            if self.puts_off_hop((parked.origin, parked.request.spec)) || !self.may_run_hop(&parked.request) {
                return self.parked_hops.push_front(parked);
            }
            self.run_parked(parked);
        }
    }

    /// The connection waits, and this request runs first in the next tick.
    #[cold]
    pub(crate) fn put_off_request(&mut self, index: u32, arguments: Arguments<'_>) {
        let Some(connection) = self.connections.at(index) else { return };
        connection.stall = Stall::TickFull;
        wire::request::encode(arguments, &mut connection.repeat);
        self.put_off.connections.push(connection.id);
        self.put_off.note();
    }

    /// Connections that were put off, before any other request of this tick.
    pub(crate) fn serve_put_off(&mut self, received: &[u8]) {
        self.begin_kind();
        self.serve_held_writers(received);
        self.serve_awaiting_memory(received);
        if self.put_off.connections.is_empty() {
            return;
        }
        let mut waiting = std::mem::take(&mut self.put_off.connections).into_iter();
        while !self.tick_is_full()
            && let Some(id) = waiting.next()
        {
            self.serve_again(id, received);
        }
        // Who had no turn comes before those who had one and were put off again.
        self.put_off.connections.splice(..0, waiting);
        if !self.put_off.connections.is_empty() {
            self.put_off.note();
        }
    }

    /// A connection that was put off goes on.
    pub(crate) fn serve_again(&mut self, id: ConnectionId, received: &[u8]) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let reads_replies = connection.output.pressure() == Pressure::Ok;
        connection.stall = if reads_replies { Stall::None } else { Stall::Output };
        self.decode(Arrival { connection: id, span: Span::default() }, received);
        self.run_window(received);
        self.list_for_flush(id.index);
    }
}

#[cfg(test)]
mod tests;
