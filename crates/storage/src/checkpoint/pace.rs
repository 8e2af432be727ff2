//! Pace: how much log there may be.
//!
//! ```text
//!  log held   0 ─────────── round ── pressed ── allowed ──►
//!                             │         │          └ writers should wait until a run is done
//!                             │         └ runs are made in larger slices
//!                             └ every slot group had its turn: the oldest log goes as fast as new log comes
//! ```
//!
//! Runs hold what lives once, and the log at most about as much again: so the disk holds twice what lives.

use base::limits::LOG_SEGMENTS_MIN;

use super::{Checkpoints, View};
use crate::log::LogWriter;

/// A round of runs comes with this share of the live bytes, in sixteenths: what is left is for log that comes while runs are
/// made.
const ROUND_SIXTEENTHS: u64 = 14;

/// See the module.
#[derive(Default)]
pub(super) struct Pace {
    /// Bytes of log from one run to the next; 0 before the first.
    pub(super) stride_bytes: u64,
    stride_bytes_max: Option<u64>,
}

impl Pace {
    /// Runs come sooner, for the simulator.
    pub(super) fn set_stride_bytes_max(&mut self, bytes: u64) {
        self.stride_bytes_max = Some(bytes);
    }
}

impl Checkpoints {
    /// Between two runs: how much log until the next.
    pub(super) fn set_stride(&mut self, view: &View<'_>) {
        let groups = self.runs.len().max(1) as u64;
        // Runs say best what lives, once every group has one; what memory holds includes room.
        let live_bytes = match self.runs.iter().all(|run| run.bytes > 0) {
            true => self.run_bytes(),
            false => self.run_bytes().max(view.store.record_bytes() as u64),
        };
        let round_bytes = (live_bytes / 16 * ROUND_SIXTEENTHS).max(LOG_SEGMENTS_MIN * view.log.segment_bytes());
        self.pace.stride_bytes = (round_bytes / groups).clamp(1, self.pace.stride_bytes_max.unwrap_or(u64::MAX));
    }

    /// Bytes of log with which every slot group has had its turn.
    pub(super) fn round_bytes(&self) -> u64 {
        self.pace.stride_bytes * self.runs.len() as u64
    }

    /// Whether runs are behind, so that they should be made faster.
    pub(super) fn is_pressed(&self, log: &LogWriter) -> bool {
        let pressed_bytes = self.round_bytes() + 2 * self.pace.stride_bytes;
        log.held_bytes() > pressed_bytes + log.segment_bytes()
    }

    /// Whether there is more log than may be, and a run under way, or one that the next step begins, that makes it less:
    /// who waits for that waits for an event.
    pub fn is_outrun(&self, view: &View<'_>) -> bool {
        let round_bytes = self.round_bytes();
        let allowed_bytes = round_bytes + round_bytes / 16 + LOG_SEGMENTS_MIN * view.log.segment_bytes();
        view.log.held_bytes() > allowed_bytes && (!self.is_idle() || self.has_due_run(view))
    }
}
