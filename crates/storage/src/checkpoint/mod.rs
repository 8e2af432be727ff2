//! Checkpoints: one slot group after the other becomes a run, and what no group needs any more is given back.
//!
//! ```text
//!  idle ── due ──► walking ── every key seen, end written ──► settling ── durable everywhere ──► publishing ──► idle
//!                  a slice per step, one write under way      no unit up to the end undecided     old runs and covered
//!                  ▲ the next group, if one is due already│                                       segments go
//!                  └───────────────────────────────────────┘
//!
//!  caller ── step, on_run_written, on_run_failed, on_settled, on_runs_published ──► machine ──► effects, and `Asked`
//! ```
//!
//! One machine per log; it knows no other core, no client and no clock. What it sees of its surroundings is lent to it for
//! one call ([`View`]), and what only its caller can do is what the call returns ([`Asked`]).
//!
//! A log's groups take their turns by bytes of log: a round over all of them comes with as many bytes as live, or a little
//! less (see `pace`). Where writers are faster than the disk, several groups settle and are published together. When all
//! logs of the node have had a round, nobody needs those of earlier incarnations (see `earlier`).
//!
//! - `turn`: which group is due
//! - `pace`: how much log there may be
//! - `limits`: what a run waits for: a permit, and bytes in a time
//! - `walk`: from a group to a file
//! - `publish`: from a file to a run that counts
//! - `cold`: what a walk reads of the run before
//! - `quiet`: what goes where hardly anything is written
//! - `change`: places of cold values come to mean the run that counts
//! - `earlier`: the logs of earlier incarnations
//! - `pins`: what a backup keeps as it is
//! - `spare`: files of runs that become the next ones'

mod change;
mod cold;
mod earlier;
mod limits;
mod pace;
mod pins;
mod publish;
mod quiet;
mod spare;
mod turn;
mod walk;

use base::{Effect, LogOrdinal, Now, SlotGroupId};

use crate::log::{LogIdentity, LogWriter, Recovery};
use crate::maintenance::Class;
use crate::run::{Cut, RunWriter};
use crate::store::Store;
use change::RunChange;
pub use cold::READ_OF_RUN;
use earlier::Earlier;
use limits::Limits;
use pace::Pace;
use pins::Pins;
use quiet::Quiet;
use spare::Spares;

pub use pins::{CorePoint, PinnedFile};

/// Work of one slice: 256 KiB of records.
pub const SLICE_WORK: u32 = 128;
/// The same, bytes.
const SLICE_BYTES: usize = SLICE_WORK as usize * Class::Checkpoint.per_work();
/// Bytes in front of a key and its value in a run, about: the record's head, and what kind of value it is.
const HEAD_BYTES: u64 = 12;
/// Bytes of a run besides its records, about: header and end.
const RUN_END_BYTES: u64 = 4 << 10;
/// So many failures a stop puts up with before it leaves the rest to a replay.
const LAST_RUN_FAILURES_MAX: u32 = 3;
/// After a failure, before the next attempt, microseconds.
const RETRY_US: u64 = 1_000_000;

/// What a machine sees of its surroundings during one call.
pub struct View<'a> {
    /// Whose groups become runs.
    pub store: &'a mut Store,
    /// The log that they replace.
    pub log: &'a mut LogWriter,
    /// Where to ask for writes.
    pub effects: &'a mut Vec<Effect>,
    /// The clock of this call.
    pub now: Now,
    /// Whether this is the end.
    pub life: Life,
    /// What a slice may cost this step, units of work ([`crate::maintenance`]).
    pub work: u32,
    /// Where blocks of a long value are the next of a slice, it ends once it has so many bytes.
    pub long_bytes_max: usize,
    /// The first log group with a part of a unit that a recovery may still cut.
    pub first_pending: Option<LogOrdinal>,
    /// From where a replay has to go on for a run that begins when the log is sealed up to the argument: not behind blocks
    /// whose change has not come. `None`: no run may begin now.
    pub begin: &'a dyn Fn(&Store, LogOrdinal) -> Option<LogOrdinal>,
}

impl View<'_> {
    /// The log group of the last change, whether sealed or still to be.
    fn last_change(&self) -> LogOrdinal {
        match self.store.has_unsealed() {
            true => self.log.next_ordinal(),
            false => self.log.sealed(),
        }
    }
}

/// How far a stop is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// Clients are served.
    Serving,
    /// No client is served any more; units may still end, here or on other cores.
    Stopping,
    /// Nothing changes any more anywhere, and all logs are durable: what changed since its run gets the last one.
    Resting,
}

/// What the caller has to do behind a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Asked {
    /// Nothing: an event goes on with it, or more log.
    Nothing,
    /// The next step should come at once.
    StepAgain,
    /// Every log of the node is to be durable as far as it is now; then [`Checkpoints::on_settled`] with this number.
    Durability(u64),
    /// Every group has a run of this incarnation: who has the earlier logs is to know ([`Checkpoints::on_renewed`]), once.
    /// The next step should come at once.
    Renewal,
}

/// The run of one of this log's slot groups.
struct GroupRun {
    group: SlotGroupId,
    cut: Cut,
    bytes: u64,
    keys: u64,
    /// [`crate::SlotGroup::change_sum`] of what the run has for sure; `None` when the log has more.
    known_sum: Option<u64>,
}

/// A run that is being made.
struct Making {
    writer: RunWriter,
    /// [`crate::SlotGroup::change_sum`] when it began; `None` when the log has changes of the group behind where it begins.
    begin_sum: Option<u64>,
    /// [`crate::SlotGroup::clears`] when it began.
    clears: u64,
    /// Bytes of the log at which it was due; `None` where the memory limit, or a stop, asked for it.
    due_bytes: Option<u64>,
    /// Bytes asked to be written.
    offset: u64,
    /// Set with the end: the last log group that it may have something of.
    end: Option<LogOrdinal>,
}

#[derive(Default)]
enum State {
    #[default]
    Idle,
    /// A slice per step, or waiting for the write of one.
    Walking {
        making: Box<Making>,
        writing: bool,
    },
    /// Those that are written wait until they may be published.
    Settling {
        asked: bool,
    },
    Publishing,
}

/// See the module.
pub struct Checkpoints {
    identity: LogIdentity,
    runs: Vec<GroupRun>,
    state: State,
    /// Written, not published, or being published.
    walked: Vec<Making>,
    /// Published, while places of values change over.
    changes: Vec<RunChange>,
    /// Runs that the changes before them replaced, which nobody reads any more.
    replaced: Vec<String>,
    pace: Pace,
    quiet: Quiet,
    limits: Limits,
    /// Bytes of the log at which the next run is due.
    due_at_bytes: u64,
    slice_bytes: usize,
    /// Memory of the last slice, for the next one.
    buffer: Vec<u8>,
    retry_at_us: u64,
    earlier: Earlier,
    pins: Pins,
    spares: Spares,
    begun: u64,
    published: u64,
    published_bytes: u64,
    written_bytes: u64,
    failure: Option<String>,
    /// How often one failed since the stop came to rest.
    last_run_failures: Option<u32>,
}

impl Checkpoints {
    /// For the log of `identity`, whose core owns `groups`.
    pub fn new(identity: LogIdentity, groups: impl Iterator<Item = SlotGroupId>) -> Checkpoints {
        let run = |group| GroupRun { group, cut: Cut::default(), bytes: 0, keys: 0, known_sum: Some(0) };
        Checkpoints {
            identity,
            runs: groups.map(run).collect(),
            state: State::Idle,
            walked: Vec::new(),
            changes: Vec::new(),
            replaced: Vec::new(),
            pace: Pace::default(),
            quiet: Quiet::default(),
            limits: Limits::new(&identity),
            due_at_bytes: 0,
            slice_bytes: SLICE_BYTES,
            buffer: Vec::new(),
            retry_at_us: 0,
            earlier: Earlier::default(),
            pins: Pins::default(),
            spares: Spares::default(),
            begun: 0,
            published: 0,
            published_bytes: 0,
            written_bytes: 0,
            failure: None,
            last_run_failures: None,
        }
    }

    /// What a start found on the disk, before the first step. Core 0 removes what earlier incarnations left.
    pub fn set_recovered(&mut self, recovery: &Recovery, store: &Store) {
        for run in &mut self.runs {
            run.cut = recovery.cuts.cut(run.group);
            (run.bytes, run.keys) = recovery.cuts.run(run.group).map_or((0, 0), |run| (run.bytes, run.keys));
            let group = store.group(run.group).expect("at start every group is at home");
            let is_known = recovery.changed_groups >> run.group.number() & 1 == 0;
            run.known_sum = is_known.then(|| group.change_sum());
        }
        self.earlier.set_files(&recovery.files, &self.identity);
    }

    /// More runs than there need be, in smaller slices, for the simulator.
    pub fn set_bounds(&mut self, stride_bytes_max: u64, slice_bytes: usize) {
        self.pace.set_stride_bytes_max(stride_bytes_max);
        self.slice_bytes = slice_bytes;
    }

    /// It is quiet sooner, for the simulator.
    pub fn set_quiet_us(&mut self, quiet_us: u64) {
        self.quiet.set_quiet_us(quiet_us);
    }

    /// Goes on with the run under way, or begins the next one.
    pub fn step(&mut self, view: &mut View<'_>) -> Asked {
        if view.log.failure().is_some() {
            self.leave();
            return Asked::Nothing;
        }
        self.look_at_backlog(view.log);
        self.look_for_quiet(view);
        // A stop leaves nothing that nobody needs, and a disk that fails may want room.
        if !self.spares.is_empty() && (view.life != Life::Serving || self.failure.is_some()) {
            view.effects.push(Effect::RemoveFiles { names: self.spares.give_up() });
        }
        let asked = match self.change_step(view) {
            true => Asked::StepAgain,
            false => self.go_on(view),
        };
        if self.makes_none() && !self.keeps_permit(view) {
            self.release_permit();
        }
        asked
    }

    fn go_on(&mut self, view: &mut View<'_>) -> Asked {
        let is_due = self.is_run_due(view.log, view.now) || self.is_clean_run_due(view) || self.is_quiet_run_due(view);
        match &self.state {
            State::Idle => match view.life {
                Life::Serving if is_due && self.pace.stride_bytes == 0 => self.set_first_turn(view),
                Life::Serving if is_due && self.has_permit(view) => self.begin_due_run(view),
                Life::Serving | Life::Stopping => {}
                Life::Resting => self.begin_last_run(view),
            },
            State::Walking { writing: true, .. } | State::Publishing => {}
            _ if view.life == Life::Stopping => return self.drop_runs(view),
            State::Walking { making, .. } if is_spoilt(making, view.store) => return self.drop_run(view),
            State::Walking { making, .. } if making.end.is_some() => return self.end_walk(view, is_due),
            State::Walking { .. } => return self.walk(view),
            State::Settling { .. } => return self.settle(view),
        }
        Asked::Nothing
    }

    /// Writing or publishing failed; the group's turn comes again.
    pub fn on_run_failed(&mut self, reason: String, now: Now) -> Asked {
        self.note_failure(reason, now);
        if matches!(std::mem::take(&mut self.state), State::Publishing) {
            self.walked.clear();
        }
        self.end_walks()
    }

    fn note_failure(&mut self, reason: String, now: Now) {
        self.failure = Some(reason);
        self.last_run_failures = self.last_run_failures.map(|failures| failures + 1);
        self.retry_at_us = now.monotonic_us + RETRY_US;
    }

    /// Whether no run is under way, and every value's place means the run that counts.
    pub fn is_idle(&self) -> bool {
        self.makes_none() && self.changes.is_empty()
    }

    fn makes_none(&self) -> bool {
        matches!(self.state, State::Idle)
    }

    /// Bytes of the runs of this log's groups.
    pub fn run_bytes(&self) -> u64 {
        self.runs.iter().map(|run| run.bytes).sum()
    }

    /// Runs published since the start, and their bytes.
    pub fn published(&self) -> (u64, u64) {
        (self.published, self.published_bytes)
    }

    /// Bytes of runs asked to be written since the start, of those that were dropped, too.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// Why the last attempt failed, until one does not.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }
}

/// Whether a run is of no use any more: its group was cleared.
fn is_spoilt(making: &Making, store: &Store) -> bool {
    let group = store.group(making.writer.header().group);
    group.is_some_and(|group| group.clears() != making.clears)
}

#[cfg(test)]
mod tests;
