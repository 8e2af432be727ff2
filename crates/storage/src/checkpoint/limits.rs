//! Limits: what a run waits for. A permit, so that few logs of a node make one at once; bytes in a time, so that a run leaves the
//! disk to others while nothing presses. Who falls behind is freed of both, step by step (`docs/internals/maintenance.md`).
//!
//! ```text
//!   permit     none ── due ──► asked ── on_permit ──► held ── idle, nothing to begin ──► none
//!   bytes      a slice whenever the bucket is open ── pressed, or alarmed ──► always
//! ```

use base::Now;
use base::planted::{Bug, is_planted};

use super::{Checkpoints, Life, SLICE_WORK, State, View};
use crate::log::{LogIdentity, LogWriter};
use crate::maintenance::Notice;
use crate::maintenance::backlog::Backlog;
use crate::maintenance::bucket::Bucket;
use crate::maintenance::phase::Phase;
use crate::store::Store;

/// Bytes of runs that one log writes in a second while nothing presses: a slice every 4 ms. Log that comes faster than that presses
/// soon.
const RUN_BYTES_PER_SECOND: u64 = 64 << 20;
/// Bytes that may go at once after a rest.
const RUN_BURST_BYTES: u32 = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Permit {
    None,
    Asked,
    Held,
}

/// See the module.
pub(super) struct Limits {
    pub(super) phase: Phase,
    pub(super) bucket: Bucket,
    backlog: Backlog,
    permit: Permit,
    /// For who keeps the permits.
    notices: Vec<Notice>,
    /// Whether there is another log to share the node with.
    is_shared: bool,
}

impl Limits {
    pub(super) fn new(identity: &LogIdentity) -> Limits {
        Limits {
            phase: Phase::new(identity),
            bucket: Bucket::new(RUN_BYTES_PER_SECOND, RUN_BURST_BYTES),
            backlog: Backlog::default(),
            permit: Permit::None,
            notices: Vec::new(),
            is_shared: identity.cores > 1,
        }
    }
}

impl Checkpoints {
    /// What the next step could use, units of work: 0 while nothing is to be walked or changed over, or bytes in a time are
    /// used up, and nobody waits for a run.
    #[inline]
    pub fn work_wanted(&self, store: &Store, log: &LogWriter, now: Now) -> u32 {
        match self.is_walking() {
            _ if !self.changes.is_empty() => SLICE_WORK,
            false => 0,
            true if store.is_starved() || self.hurries(log) => 2 * SLICE_WORK,
            true if self.limits.bucket.is_open(now.monotonic_us) => SLICE_WORK,
            true => 0,
        }
    }

    /// When a run that waits for bytes in a time goes on, if one does, or it is quiet enough to look what may go.
    pub fn next_deadline_us(&self, store: &Store, log: &LogWriter, now: Now) -> Option<u64> {
        let waits = self.is_walking() && self.work_wanted(store, log, now) == 0;
        match waits {
            true => Some(self.limits.bucket.opens_at_us()),
            false if self.is_idle() => self.quiet_at_us(log.bytes_total(), now.monotonic_us),
            false => None,
        }
    }

    #[inline]
    fn is_walking(&self) -> bool {
        matches!(&self.state, State::Walking { making, writing: false } if making.end.is_none())
    }

    /// Runs are behind, or writers wait for one: no time is to be lost.
    fn hurries(&self, log: &LogWriter) -> bool {
        self.limits.backlog.is_alarmed() || self.is_pressed(log) || self.has_too_much_log(log)
    }

    /// Bytes of log since the next run came due.
    pub fn backlog_bytes(&self, log: &LogWriter) -> u64 {
        match self.pace.stride_bytes {
            0 => 0,
            _ => log.bytes_total().saturating_sub(self.due_at_bytes),
        }
    }

    /// Whether runs fall behind, and how often they began to.
    pub fn alarm(&self) -> (bool, u64) {
        (self.limits.backlog.is_alarmed(), self.limits.backlog.alarms())
    }

    pub(super) fn look_at_backlog(&mut self, log: &LogWriter) {
        if self.pace.stride_bytes == 0 {
            return;
        }
        let debt_bytes = self.backlog_bytes(log);
        let has_changed = self.limits.backlog.look(debt_bytes, log.bytes_total(), self.pace.stride_bytes);
        if has_changed && self.limits.is_shared {
            self.limits.notices.push(Notice::Alarm(self.limits.backlog.is_alarmed()));
        }
    }

    /// What who keeps the permits is to be told, oldest first ([`crate::maintenance::Permits`]).
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.limits.notices)
    }

    /// Whether there is anything to tell.
    #[inline]
    pub fn has_notices(&self) -> bool {
        !self.limits.notices.is_empty()
    }

    /// The permit is there: the next step may begin a run.
    pub fn on_permit(&mut self) {
        // Who gave it back meanwhile was forgotten.
        if self.limits.permit == Permit::Asked {
            self.limits.permit = Permit::Held;
        }
    }

    /// Whether a run that is due waits for others.
    pub fn awaits_permit(&self) -> bool {
        self.limits.permit == Permit::Asked
    }

    /// Whether a due run may begin; otherwise it is asked for.
    pub(super) fn has_permit(&mut self, view: &View<'_>) -> bool {
        if self.limits.permit == Permit::None && self.limits.is_shared && self.may_begin(view) {
            self.limits.permit = Permit::Asked;
            self.limits.notices.push(Notice::Ask);
        }
        !self.limits.is_shared || self.limits.permit == Permit::Held || is_planted(Bug::M26SynchronisedMaintenance)
    }

    /// Whether an idle log has use for its permit, or its place among those that wait.
    pub(super) fn keeps_permit(&self, view: &View<'_>) -> bool {
        view.life == Life::Serving && self.limits.permit != Permit::None && self.may_begin(view)
    }

    /// Nobody waits for this log any more, and it waits for nobody.
    pub(super) fn leave(&mut self) {
        self.release_permit();
        if self.limits.backlog.look(0, 0, 1) && self.limits.is_shared {
            self.limits.notices.push(Notice::Alarm(false));
        }
    }

    pub(super) fn release_permit(&mut self) {
        if self.limits.permit != Permit::None {
            self.limits.permit = Permit::None;
            self.limits.notices.push(Notice::GiveBack);
        }
    }
}
