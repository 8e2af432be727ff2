//! Pace: how much log there may be.
//!
//! ```text
//!  disk   0 ── runs: what lives ──┬────────────── log ───────────────┬─ late ─┬─ files ─┐ twice keys and values;
//!                                 0 ──────────── round ──────────────┤        │         │ more of small stores
//!                                                                    │        │         └ segments that hold nothing needed
//!                                                                    │        └ log that comes, and runs that wait, between the
//!                                                                    │          moment in which a run is due and its publication
//!                                                                    └ every slot group had its turn: the oldest log goes
//! ```
//!
//! Files of runs may be a little longer than these. The longer a round, the fewer bytes of runs for each byte of log. So it is as long
//! as the disk's bound allows, and how late runs are is measured: where that grows, rounds become shorter. Where runs cannot follow at
//! all writers should wait.

use base::limits::{DISK_SEGMENTS_MIN, LOG_SEGMENTS_MIN, RUN_ROOM_SHARE};

use super::{Checkpoints, HEAD_BYTES, Making, RUN_END_BYTES, State, View};
use crate::log::LogWriter;

/// Segments that hold nothing needed, at most: what nobody needs of the first one, what is left of the present one, and the next one,
/// asked for when an eighth of that is full, or one to be recycled. There are more of those where less log is there than may be.
const FILES_SEGMENTS: u64 = 3;
/// A round is never shorter than this share of the live bytes, in sixteenths, however late runs are, where the disk's bound allows it.
const ROUND_SIXTEENTHS_MIN: u64 = 14;
/// A round of runs that are never late is not shorter than this share, whatever the bound: records of a few bytes are mostly heads, and to hold them to
/// twice their keys and values would write runs all the time.
const ALLOWED_SIXTEENTHS_MIN: u64 = 12;
/// Nor than so many segments.
const ROUND_SEGMENTS_MIN: u64 = 8;
/// Writers wait when there are so many more segments of log than in the longest round, for which at least so many count: there a disk
/// that stands still for a moment finds room. Where what lives is much, the round's own room for what is late is more than that.
const LATE_SEGMENTS_MAX: u64 = 4;
const ROUND_SEGMENTS_MAX: u64 = 14;
/// What was late once counts less by this part with every publication.
const LATE_FADES: u64 = 256;

/// See the module.
#[derive(Default)]
pub(super) struct Pace {
    /// Bytes of log from one run to the next; 0 before the first.
    pub(super) stride_bytes: u64,
    stride_bytes_max: Option<u64>,
    /// The longest that a round may be; that of a moment follows how late runs are, and the log that is there follows it a round later.
    round_bytes_max: u64,
    /// Bytes of log that came since a run was due, and of the runs that wait with it, when it is published: the most that was seen,
    /// less and less as time goes by.
    late_bytes: u64,
    /// Segments that may be there: what is not needed of the log that may be becomes the next ones.
    files_max: u64,
    /// Segments beyond those, and beyond the longest round, that there may be while runs are behind.
    late_segments_max: u64,
}

/// What lives.
#[derive(Clone, Copy)]
struct Live {
    /// As runs have it.
    record_bytes: u64,
    /// Of it, keys and values.
    payload_bytes: u64,
}

impl Live {
    /// Log, and what waits with it, that there may be beside the runs and the segments without use.
    fn allowed_log_bytes(self, segment_bytes: u64) -> u64 {
        let of_small = 2 * self.record_bytes + LOG_SEGMENTS_MIN * segment_bytes;
        let of_small = of_small.min(DISK_SEGMENTS_MIN * segment_bytes);
        let disk_bytes_max = self.payload_bound_bytes(segment_bytes).max(of_small);
        let log_bytes_max = disk_bytes_max.saturating_sub(self.beside_bytes(segment_bytes));
        log_bytes_max.max(self.record_bytes / 16 * ALLOWED_SIXTEENTHS_MIN)
    }

    /// What a store that is not small may have on the disk: about twice keys and values, because three segments are rarely without use.
    fn payload_bound_bytes(self, segment_bytes: u64) -> u64 {
        2 * self.payload_bytes + segment_bytes
    }

    fn beside_bytes(self, segment_bytes: u64) -> u64 {
        self.record_bytes + self.record_bytes / RUN_ROOM_SHARE + FILES_SEGMENTS * segment_bytes
    }

    /// None where keys and values bound the disk.
    fn late_segments_max(self, segment_bytes: u64) -> u64 {
        let disk_bytes_max = self.allowed_log_bytes(segment_bytes) + self.beside_bytes(segment_bytes);
        if disk_bytes_max == self.payload_bound_bytes(segment_bytes) { 0 } else { LATE_SEGMENTS_MAX }
    }
}

impl Pace {
    /// Runs come sooner, for the simulator.
    pub(super) fn set_stride_bytes_max(&mut self, bytes: u64) {
        self.stride_bytes_max = Some(bytes);
    }

    /// So many bytes of runs are published, of which one was due when the log had `due_bytes`.
    fn note_published(&mut self, run_bytes: u64, due_bytes: Option<u64>, log: &LogWriter) {
        let late_bytes = due_bytes.map_or(0, |due_bytes| log.bytes_total().saturating_sub(due_bytes)) + run_bytes;
        self.late_bytes = late_bytes.max(self.late_bytes - self.late_bytes / LATE_FADES);
    }

    fn set(&mut self, live: Live, groups: u64, segment_bytes: u64) {
        let live_bytes = live.record_bytes;
        let allowed_bytes = live.allowed_log_bytes(segment_bytes);
        // A turn comes up to a fifth of a stride too late.
        let jitter_bytes = allowed_bytes / groups / 4;
        let least_bytes = (live_bytes / 16 * ROUND_SIXTEENTHS_MIN).max(ROUND_SEGMENTS_MIN * segment_bytes);
        let least_bytes = least_bytes.min(allowed_bytes / 8 * 7 - jitter_bytes);
        // What makes no difference is not remembered.
        self.late_bytes = self.late_bytes.min((allowed_bytes - jitter_bytes - least_bytes) / 5 * 4);
        let late_bytes = self.late_bytes + self.late_bytes / 4;
        let round_bytes = allowed_bytes - jitter_bytes - late_bytes;
        let stride_bytes_max = self.stride_bytes_max.unwrap_or(u64::MAX);
        self.stride_bytes = (round_bytes / groups).clamp(1, stride_bytes_max);
        // What waits to be published together is a segment of runs.
        self.files_max = (allowed_bytes / segment_bytes).saturating_sub(1) + FILES_SEGMENTS;
        self.late_segments_max = live.late_segments_max(segment_bytes);
        let round_bytes_max = allowed_bytes.max(ROUND_SEGMENTS_MAX * segment_bytes);
        self.round_bytes_max = round_bytes_max.min(stride_bytes_max.saturating_mul(groups));
    }
}

impl Checkpoints {
    /// Between two runs: how much log until the next.
    pub(super) fn set_stride(&mut self, view: &mut View<'_>) {
        let groups = self.runs.len().max(1) as u64;
        // Runs say best what lives, once every group has one; what memory holds includes room.
        let live_bytes = match self.runs.iter().all(|run| run.bytes > 0) {
            true => self.run_bytes(),
            false => self.run_bytes().max(view.store.record_bytes() as u64),
        };
        let keys: u64 = self.runs.iter().map(|run| run.keys).sum();
        let other_bytes = HEAD_BYTES * keys + RUN_END_BYTES * groups;
        let live = Live { record_bytes: live_bytes, payload_bytes: live_bytes.saturating_sub(other_bytes) };
        self.pace.set(live, groups, view.log.segment_bytes());
    }

    /// Segments that may be there. Where runs are behind, what is needed may be more than that: those that go then are the next ones a
    /// moment later, and to make others instead writes as many zeros as there is log. No more are there for it than would be needed.
    pub(super) fn segments_max(&self, log: &LogWriter) -> u64 {
        let late = if self.is_pressed(log) { self.pace.late_segments_max } else { 0 };
        self.pace.files_max + late
    }

    /// The runs that wait have their names.
    pub(super) fn note_late(&mut self, published: &[Making], log: &LogWriter) {
        let run_bytes = published.iter().map(|making| making.writer.bytes()).sum();
        let due_bytes = published.iter().filter_map(|making| making.due_bytes).min();
        self.pace.note_published(run_bytes, due_bytes, log);
    }

    /// Bytes of log with which every slot group has had its turn.
    pub(super) fn round_bytes(&self) -> u64 {
        self.pace.stride_bytes * self.runs.len() as u64
    }

    /// Whether runs are behind, so that they should be made faster: the one under way was due half a stride ago, or others wait for
    /// it to be published with them.
    pub(super) fn is_pressed(&self, log: &LogWriter) -> bool {
        let due_bytes = match &self.state {
            State::Walking { making, .. } => making.due_bytes,
            _ => None,
        };
        let behind_bytes = log.bytes_total().saturating_sub(due_bytes.unwrap_or(self.due_at_bytes));
        !self.walked.is_empty() || behind_bytes > self.pace.stride_bytes / 2
    }

    /// Whether writers wait: there is more log than may be, beside long values, and a run under way, or one that the next step begins,
    /// that makes it less. Who waits for that waits for an event.
    pub fn is_outrun(&self, view: &View<'_>) -> bool {
        self.log_too_much_bytes(view.log) > view.log.held_block_bytes() && self.is_awaited(view)
    }

    /// Whether who brings a long value waits: as [`Checkpoints::is_outrun`], with all log. A value of 512 MiB is more log than many a store
    /// may have, and the run that takes it takes as long as the disk needs for that: meanwhile others write.
    pub fn is_outrun_by_long(&self, view: &View<'_>) -> bool {
        self.has_too_much_log(view.log) && self.is_awaited(view)
    }

    fn is_awaited(&self, view: &View<'_>) -> bool {
        !self.is_idle() || self.has_due_run(view)
    }

    /// Whether there is more log than may be.
    pub(super) fn has_too_much_log(&self, log: &LogWriter) -> bool {
        self.log_too_much_bytes(log) > 0
    }

    fn log_too_much_bytes(&self, log: &LogWriter) -> u64 {
        let bytes_max = self.pace.round_bytes_max + self.pace.late_segments_max * log.segment_bytes();
        log.held_bytes().saturating_sub(bytes_max)
    }
}

#[cfg(test)]
pub(super) mod tests;
