//! Pace: how much log there may be, and when writers wait for the disk.
//!
//! ```text
//!  log held   0 ─────────── round ── pressed ── allowed ──►
//!                             │         │          └ writers wait until a run, or a sync, is done
//!                             │         └ runs are made in larger slices
//!                             └ every slot group had its turn: the oldest log goes as fast as new log comes
//! ```
//!
//! Runs hold what lives once, and the log at most about as much again: so the disk holds twice what lives. Writers that
//! outrun the runs, or the disk, are made to wait, a connection at its next write; reads go on. The kernel would do the
//! same to the whole core, once too many of its pages are dirty; and a power cut would cost more than the last second.

use base::ConnectionId;
use base::limits::{LOG_SEGMENTS_MIN, LOG_UNSYNCED_SEGMENTS_MAX};
use storage::log::LogWriter;
use wire::Arguments;
use wire::registry::{CommandId, CommandSpec};

use crate::connection::Stall;
use crate::shard::Shard;

/// A round of runs comes with this share of the live bytes, in sixteenths: what is left is for log that comes while runs are
/// made.
const ROUND_SIXTEENTHS: u64 = 14;

/// See the module.
#[derive(Default)]
pub(crate) struct Pace {
    /// Bytes of log from one run of a core to its next.
    pub(crate) stride_bytes: u64,
    stride_bytes_max: Option<u64>,
    /// Whether writes wait.
    pub(crate) holds_writers: bool,
    /// Connections that wait, in the order in which they came.
    writers: Vec<ConnectionId>,
    /// Ticks in which writers waited, since the start.
    pub(crate) held_ticks: u64,
}

impl Pace {
    /// Runs come sooner, for the simulator.
    pub(crate) fn set_stride_bytes_max(&mut self, bytes: u64) {
        self.stride_bytes_max = Some(bytes);
    }

    /// Whether a request waits for the disk.
    #[inline]
    pub(crate) fn holds(&self, spec: &CommandSpec) -> bool {
        self.holds_writers && (spec.is_write() || spec.id == CommandId::Exec)
    }
}

impl Shard {
    /// Between two runs: how much log until the next.
    pub(crate) fn set_stride(&mut self) {
        let Some(log) = &self.log else { return };
        let groups = self.checkpoints.runs.len().max(1) as u64;
        // Runs say best what lives, once every group has one; what memory holds includes room.
        let live_bytes = match self.checkpoints.has_all_runs() {
            true => self.checkpoints.run_bytes(),
            false => self.checkpoints.run_bytes().max(self.store.record_bytes() as u64),
        };
        let round_bytes = (live_bytes / 16 * ROUND_SIXTEENTHS).max(LOG_SEGMENTS_MIN * log.segment_bytes());
        self.pace.stride_bytes = (round_bytes / groups).clamp(1, self.pace.stride_bytes_max.unwrap_or(u64::MAX));
    }

    /// Bytes of log with which every slot group has had its turn.
    pub(crate) fn round_bytes(&self) -> u64 {
        self.pace.stride_bytes * self.checkpoints.runs.len() as u64
    }

    /// Whether runs are behind, so that they should be made faster.
    pub(crate) fn is_pressed(&self) -> bool {
        let pressed_bytes = self.round_bytes() + 2 * self.pace.stride_bytes;
        self.log.as_ref().is_some_and(|log| log.held_bytes() > pressed_bytes + log.segment_bytes())
    }

    /// After the events: whether writes wait in this tick. They do only for something that is under way, so that its end
    /// is an event, or that this tick or the next begins.
    pub(crate) fn set_pace(&mut self) {
        let outruns = self.log.as_ref().is_some_and(|log| log.failure().is_none() && self.outruns_disk(log));
        let held = std::mem::replace(&mut self.pace.holds_writers, outruns);
        self.pace.held_ticks += u64::from(outruns);
        if held && !outruns {
            let writers = std::mem::take(&mut self.pace.writers);
            self.put_off.resume(writers);
            // Requests of other cores, too.
            self.put_off.note();
        }
    }

    fn outruns_disk(&self, log: &LogWriter) -> bool {
        let allowed_bytes = self.round_bytes() + self.round_bytes() / 16 + LOG_SEGMENTS_MIN * log.segment_bytes();
        let outruns_runs = log.held_bytes() > allowed_bytes && (!self.checkpoints.is_idle() || self.has_due_run());
        let unsynced_bytes_max = LOG_UNSYNCED_SEGMENTS_MAX * log.segment_bytes();
        outruns_runs || (log.unsynced_bytes() > unsynced_bytes_max && log.is_syncing())
    }

    /// Whether so much is not synced that the next sync should not wait for its time.
    pub(crate) fn wants_early_sync(&self) -> bool {
        self.log.as_ref().is_some_and(|log| log.unsynced_bytes() > log.segment_bytes())
    }

    /// The connection waits, and this request runs first when writers go on.
    #[cold]
    pub(crate) fn hold_writer(&mut self, index: u32, arguments: Arguments<'_>) {
        let Some(connection) = self.connections.at(index) else { return };
        connection.stall = Stall::TickFull;
        wire::request::encode(arguments, &mut connection.repeat);
        self.pace.writers.push(connection.id);
    }
}

#[cfg(test)]
mod tests;
