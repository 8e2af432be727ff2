//! Pace: when writers wait for the disk.
//!
//! How much log there may be, and when runs are behind, the storage says ([`storage::Checkpoints::is_outrun`]). Writers that
//! outrun the runs, or the disk, are made to wait, a connection at its next write; reads go on. The kernel would do the
//! same to the whole core, once too many of its pages are dirty; and a power cut would cost more than the last second.
//!
//! ```text
//!   log  ├──── may be: small changes ────┤┄┄┄┄ long values ┄┄┄┄┤      who brings a long value waits: behind the first mark
//!        └───────────────────────────────┴─────────────────────┴──►   who writes beside it waits: where small changes alone are as much
//! ```
//!
//! They also wait while the segment is nearly full and the next one is being made: room that is reserved is room on a full
//! disk, too, and what does not fit there fails the log for good. What one tick may log follows from the same room
//! ([`Shard::set_log_bound`]).

use base::ConnectionId;
use base::limits::{LOG_SYNC_SEGMENTS, LOG_UNSYNCED_SEGMENTS_MAX};
use storage::checkpoint::Asked;
use storage::log::LogWriter;
use wire::Arguments;
use wire::registry::{CommandId, CommandSpec};

use crate::connection::Stall;
use crate::shard::Shard;

/// A tick logs at most this part of the room that is reserved, and one unit, for each kind of work: so that both, and what is
/// sealed on the way, fit.
const ROOM_SHARES: u64 = 4;

/// Who outruns the disk.
#[derive(Default)]
struct Outruns {
    writers: bool,
    uploads: bool,
}

/// Ticks since the start in which somebody waited.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeldTicks {
    /// Writers.
    pub(crate) writers: u64,
    /// Of them, because the next segment was being made, or room behind the present one.
    pub(crate) for_segment: u64,
    /// Who brings a long value, for runs.
    pub(crate) uploads: u64,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Pace {
    /// Whether writes wait.
    pub(crate) holds_writers: bool,
    /// Whether who brings a long value waits.
    pub(crate) holds_uploads: bool,
    /// Connections that wait, in the order in which they came.
    writers: Vec<ConnectionId>,
    pub(crate) held: HeldTicks,
}

impl Pace {
    /// Whether a request waits for the disk.
    #[inline]
    pub(crate) fn holds(&self, spec: &CommandSpec) -> bool {
        self.holds_writers && (spec.is_write() || spec.id == CommandId::Exec)
    }
}

impl Shard {
    /// After the events: whether writes wait in this tick. They do only for something that is under way, so that its end
    /// is an event, or that this tick or the next begins.
    pub(crate) fn set_pace(&mut self) {
        let outruns = self.outruns_disk();
        let holds_writers = outruns.writers || self.awaits_clean_values();
        let held = self.pace.holds_writers && !holds_writers || self.pace.holds_uploads && !outruns.uploads;
        (self.pace.holds_writers, self.pace.holds_uploads) = (holds_writers, outruns.uploads);
        self.pace.held.writers += u64::from(holds_writers);
        self.pace.held.uploads += u64::from(outruns.uploads);
        if holds_writers {
            self.pace.held.for_segment += u64::from(self.log.as_ref().is_some_and(LogWriter::awaits_segment));
        }
        if held {
            // Those that waited go on in this tick, and so do requests of other cores.
            self.put_off.note();
        }
    }

    fn outruns_disk(&mut self) -> Outruns {
        let Some(log) = self.log.as_ref().filter(|log| log.failure().is_none()) else { return Outruns::default() };
        let unsynced_bytes_max = LOG_UNSYNCED_SEGMENTS_MAX * log.segment_bytes();
        let writers = log.awaits_segment() || (log.unsynced_bytes() > unsynced_bytes_max && log.is_syncing());
        let mut outruns = Outruns { writers, uploads: false };
        let has_uploads = self.uploads.are_under_way();
        self.with_checkpoints(|checkpoints, view| {
            outruns.writers |= checkpoints.is_outrun(view);
            outruns.uploads = has_uploads && checkpoints.is_outrun_by_long(view);
            Asked::Nothing
        });
        outruns
    }

    /// At a tick's begin: what it may log, and whether what expired may be removed. Where writes are refused nothing may be
    /// logged on behalf of readers either, or they would use up what is left.
    pub(crate) fn set_log_bound(&mut self) {
        let room_bytes = self.log.as_ref().map_or(u64::MAX, LogWriter::room_bytes);
        self.put_off.set_room(usize::try_from(room_bytes / ROOM_SHARES).unwrap_or(usize::MAX));
        self.store.keep_expired(self.logs_nothing());
    }

    /// Whether nothing may be logged, on whoever's behalf: there is no room for it, or the log failed.
    pub(crate) fn logs_nothing(&self) -> bool {
        self.has_no_log_room() || self.has_log_failed()
    }

    /// Whether writes are refused until there is room for the log.
    pub(crate) fn has_no_log_room(&self) -> bool {
        self.log.as_ref().is_some_and(|log| log.refusal().is_some())
    }

    /// Whether so much is not synced that the next sync should not wait for its time.
    pub(crate) fn wants_early_sync(&self) -> bool {
        self.log.as_ref().is_some_and(|log| log.unsynced_bytes() > LOG_SYNC_SEGMENTS * log.segment_bytes())
    }

    /// Writers that waited go on, one after the other, as long as none has to wait again: each try copies all that the connection
    /// brought.
    pub(crate) fn serve_held_writers(&mut self, received: &[u8]) {
        let mut writers = std::mem::take(&mut self.pace.writers).into_iter();
        while !self.pace.holds_writers
            && !self.tick_is_full()
            && let Some(id) = writers.next()
        {
            self.serve_again(id, received);
        }
        // Who had no turn comes before those who have to wait again.
        self.pace.writers.splice(..0, writers);
        if !self.pace.holds_writers && !self.pace.writers.is_empty() {
            self.put_off.note();
        }
    }

    /// The connection waits, and this request runs first when writers go on.
    #[cold]
    pub(crate) fn hold_writer(&mut self, index: u32, arguments: Arguments<'_>) {
        let Some(connection) = self.connections.at(index) else { return };
        connection.stall = Stall::TickFull;
        wire::request::encode(arguments, &mut connection.repeat);
        self.pace.writers.push(connection.id);
        // Those that come behind it wait as well, and the next tick looks whether they still have to.
        self.pace.holds_writers = true;
    }
}

#[cfg(test)]
mod tests;
