//! Quiet: where hardly anything was written for a while, the directory becomes as small as it is to be, twice what lives and a segment.
//!
//! ```text
//!  busy ── a 32nd of a segment at most in 30 s ─► looking ── nothing, or little, would go ──► settled
//!   ▲                                               │ ▲                                         │ more log, still quiet
//!   │                                               ▼ │ published                               ▼
//!   └────────────── more ────────────── files that wait go, and runs are made of all that logs, or dead records, keep ◄── looking
//! ```
//!
//! While much is written, files that wait to become the next ones save work, and so does the longer log of small stores (see `pace`).
//! At rest they save none, and a start would read them.

use super::{Checkpoints, GroupRun, HEAD_BYTES, Life, RUN_END_BYTES, View};
use crate::log::format::segment_file_name;
use crate::store::Store;

/// So long hardly anything comes before it is quiet.
const QUIET_US: u64 = 30_000_000;
/// More log than this share of a segment is not quiet: 256 KiB.
const BUSY_SHARE: u64 = 32;
/// Runs are made for no less than this share of a segment, 512 KiB: who writes a little now and then would have many made for it.
const WORTH_SHARE: u64 = 16;

/// Bytes of a record in memory that are neither key nor value, about and at most: the head, and what its slot is longer.
const SLOT_BYTES: u64 = 32;

/// See the module.
pub(super) struct Quiet {
    quiet_us: u64,
    /// Since when hardly anything came, and how much log there was then; 0 before the first look.
    since_us: u64,
    since_bytes: u64,
    /// The log's bytes at which nothing was left to give back.
    settled_bytes: Option<u64>,
    /// Whether runs are due, whatever the log's turns say.
    pub(super) wants_runs: bool,
}

impl Default for Quiet {
    fn default() -> Quiet {
        Quiet { quiet_us: QUIET_US, since_us: 0, since_bytes: 0, settled_bytes: None, wants_runs: false }
    }
}

/// What a directory has, and what of it lives; bytes.
struct Directory {
    files: u64,
    live: u64,
    /// Of what lives, keys and values.
    payload: u64,
}

impl Quiet {
    pub(super) fn set_quiet_us(&mut self, quiet_us: u64) {
        self.quiet_us = quiet_us;
    }

    /// Whether it is quiet now.
    #[inline]
    fn look(&mut self, log_bytes: u64, busy_bytes: u64, now_us: u64) -> bool {
        if log_bytes - self.since_bytes > busy_bytes || self.since_us == 0 {
            (self.since_us, self.since_bytes) = (now_us, log_bytes);
        }
        now_us.saturating_sub(self.since_us) >= self.quiet_us
    }
}

impl Checkpoints {
    /// Files that wait go, and runs become due, where it is quiet and the directory has more than it is to have.
    pub(super) fn look_for_quiet(&mut self, view: &mut View<'_>) {
        let (log_bytes, segment_bytes) = (view.log.bytes_total(), view.log.segment_bytes());
        let is_quiet = self.quiet.look(log_bytes, segment_bytes / BUSY_SHARE, view.now.monotonic_us);
        let is_quiet = is_quiet && view.life == Life::Serving && self.pace.stride_bytes > 0;
        view.log.set_quiet(is_quiet);
        if !is_quiet {
            self.quiet.wants_runs = false;
        } else if self.quiet.settled_bytes != Some(log_bytes) && self.may_look(view) {
            self.shrink(view);
        }
    }

    /// Not while files are copied, nor before what runs there are have taken their places.
    fn may_look(&self, view: &View<'_>) -> bool {
        self.is_idle() && self.failure.is_none() && !self.pins.is_pinned() && view.log.is_settled()
    }

    fn shrink(&mut self, view: &mut View<'_>) {
        let segment_bytes = view.log.segment_bytes();
        let there = self.directory(view);
        let bytes_max = 2 * there.payload + segment_bytes;
        let is_too_much = there.files > bytes_max;
        if is_too_much {
            self.trim(view);
        }
        let there = if is_too_much { self.directory(view) } else { there };
        let dead_bytes = there.files.saturating_sub(there.live + view.log.least_file_bytes());
        self.quiet.wants_runs = there.files > bytes_max && dead_bytes >= segment_bytes / WORTH_SHARE;
        if !self.quiet.wants_runs {
            self.quiet.settled_bytes = Some(view.log.bytes_total());
        }
    }

    /// What waits to become something else goes.
    fn trim(&mut self, view: &mut View<'_>) {
        let mut names = self.spares.give_up();
        while let Some(segment) = view.log.trim() {
            names.push(segment_file_name(self.identity.incarnation, self.identity.core, segment));
        }
        self.pins.remove(names, view.effects);
    }

    fn directory(&self, view: &View<'_>) -> Directory {
        let earlier_bytes = self.earlier.segments() * view.log.segment_bytes();
        let files = self.run_bytes() + self.spares.bytes() + view.log.file_bytes() + earlier_bytes;
        let mut there = Directory { files, live: 0, payload: 0 };
        for run in &self.runs {
            let (bytes, other_bytes) = live_of(run, view.store);
            there.live += bytes;
            there.payload += bytes.saturating_sub(other_bytes);
        }
        there
    }

    /// Whether a run is due because it is quiet.
    pub(super) fn is_quiet_run_due(&self, view: &View<'_>) -> bool {
        self.quiet.wants_runs && view.now.monotonic_us >= self.retry_at_us
    }

    /// Whether a run of the group gives anything back now: log, or dead records of its own.
    pub(super) fn is_of_use_at_rest(&self, run: &GroupRun, view: &View<'_>) -> bool {
        let logs = view.log.needed_segments() > 1 || self.earlier.segments() > 0;
        logs || view.store.group(run.group).is_some_and(|group| run.known_sum != Some(group.change_sum()))
    }

    /// When to look, if there is anything to be looked at.
    pub(super) fn quiet_at_us(&self, log_bytes: u64, now_us: u64) -> Option<u64> {
        let at_us = self.quiet.since_us + self.quiet.quiet_us;
        let waits = self.pace.stride_bytes > 0 && self.quiet.settled_bytes != Some(log_bytes) && now_us < at_us;
        waits.then_some(at_us)
    }
}

/// Bytes that a run of the group has, or would have, and what of it is neither key nor value.
fn live_of(run: &GroupRun, store: &Store) -> (u64, u64) {
    match store.group(run.group) {
        Some(group) if run.known_sum != Some(group.change_sum()) => {
            let end_bytes = run.bytes.min(RUN_END_BYTES);
            let bytes = group.used_bytes() as u64 + end_bytes;
            // Values that left memory are in the run.
            let bytes = if store.tiers() { bytes.max(run.bytes) } else { bytes };
            (bytes, SLOT_BYTES * group.keys() + end_bytes)
        }
        _ => (run.bytes, HEAD_BYTES * run.keys + RUN_END_BYTES),
    }
}

#[cfg(test)]
mod tests;
