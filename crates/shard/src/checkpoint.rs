//! Checkpoints: one slot group after the other becomes a run, and what no group needs any more is given back.
//!
//! ```text
//!  idle ── due ──► walking ── every key seen, end written ──► settling ── durable everywhere ──► publishing ──► idle
//!                  a slice per tick, one write under way      no unit up to the end undecided     old runs and covered
//!                  ▲ the next group, if one is due already│                                       segments go
//!                  └───────────────────────────────────────┘
//! ```
//!
//! A core's groups take their turns by bytes of log: a round over all of them comes with as many bytes as live, or a little
//! less (see `pace.rs`). Where writers are faster than the disk, several groups settle and are published
//! together. When all cores have had a round, nobody needs the logs of earlier incarnations.

use base::planted::{Bug, is_planted};
use base::{Effect, LogOrdinal, SlotGroupId};
use storage::log::format::segment_file_name;
use storage::log::{LogIdentity, LogWriter, Recovery};
use storage::run::format::run_file_name;
use storage::run::{Cut, RunHeader, RunWriter};

use crate::gather::Question;
use crate::hop::Control;
use crate::pins::PinnedFile;
use crate::rest::Stop;
use crate::shard::Shard;

/// Records of one slice, bytes: about 0.1 ms of a tick.
const SLICE_BYTES: usize = 256 << 10;
/// The same where no client waits.
const STOP_SLICE_BYTES: usize = 1 << 20;
/// Slices of one tick where runs are behind.
const PRESSED_SLICES: usize = 2;
/// Runs that settle together: their files are there beside those that they will replace.
const WALKED_MAX: usize = 4;
/// After a failure, before the next attempt, microseconds.
const RETRY_US: u64 = 1_000_000;

/// The run of one of this core's slot groups.
pub(crate) struct GroupRun {
    pub(crate) group: SlotGroupId,
    cut: Cut,
    bytes: u64,
    /// [`storage::SlotGroup::version_sum`] of what the run has for sure; `None` when the log has more.
    pub(crate) known_sum: Option<u64>,
}

/// A run that is being made.
struct Making {
    writer: RunWriter,
    /// [`storage::SlotGroup::version_sum`] when it began.
    begin_sum: u64,
    /// [`storage::SlotGroup::clears`] when it began.
    clears: u64,
    /// Bytes asked to be written.
    offset: u64,
    /// Set with the end: the last log group that it may have something of.
    end: Option<LogOrdinal>,
}

#[derive(Default)]
enum State {
    #[default]
    Idle,
    /// A slice per tick, or waiting for the write of one.
    Walking {
        making: Making,
        writing: bool,
    },
    /// Those that are written wait until they may be published.
    Settling {
        asked: bool,
    },
    Publishing,
}

/// See the module.
#[derive(Default)]
pub struct Checkpoints {
    identity: Option<LogIdentity>,
    pub(crate) runs: Vec<GroupRun>,
    state: State,
    /// Written, not published, or being published.
    walked: Vec<Making>,
    /// Bytes of the log at which the next run is due.
    due_at_bytes: u64,
    slice_bytes: usize,
    /// Memory of the last slice, for the next one.
    buffer: Vec<u8>,
    retry_at_us: u64,
    /// Files of earlier incarnations; core 0 removes them.
    earlier: Vec<String>,
    /// Cores of which every group has a run of this incarnation.
    renewed: usize,
    has_told_renewed: bool,
    begun: u64,
    pub(crate) stop: Stop,
    /// Runs published since the start, and their bytes.
    pub(crate) published: u64,
    pub(crate) published_bytes: u64,
    pub(crate) failure: Option<String>,
}

impl Checkpoints {
    /// For a core that logs under `identity` and owns `groups`.
    pub(crate) fn new(identity: Option<LogIdentity>, groups: impl Iterator<Item = SlotGroupId>) -> Checkpoints {
        let run = |group| GroupRun { group, cut: Cut::default(), bytes: 0, known_sum: Some(0) };
        Checkpoints { identity, runs: groups.map(run).collect(), slice_bytes: SLICE_BYTES, ..Checkpoints::default() }
    }

    /// Bytes of the runs of this core's groups.
    pub(crate) fn run_bytes(&self) -> u64 {
        self.runs.iter().map(|run| run.bytes).sum()
    }

    /// Whether every group has a run.
    pub(crate) fn has_all_runs(&self) -> bool {
        self.runs.iter().all(|run| run.bytes > 0)
    }

    /// Whether a run of the group is written and not published.
    pub(crate) fn has_walked(&self, group: SlotGroupId) -> bool {
        self.walked.iter().any(|making| making.writer.header().group == group)
    }

    /// Whose log it is.
    pub(crate) fn identity(&self) -> Option<LogIdentity> {
        self.identity
    }

    /// The runs that count.
    pub(crate) fn run_files(&self) -> impl Iterator<Item = PinnedFile> {
        let runs = self.runs.iter().filter(|run| run.cut != Cut::default());
        runs.map(|run| (run_file_name(run.group, run.cut), Some(run.bytes)))
    }

    /// Logs of earlier incarnations that some run may need.
    pub(crate) fn earlier_files(&self) -> impl Iterator<Item = PinnedFile> {
        self.earlier.iter().map(|name| (name.clone(), None))
    }

    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle)
    }
}

impl Shard {
    /// What a start found on the disk, before the first tick.
    pub fn set_recovered(&mut self, recovery: &Recovery) {
        for run in &mut self.checkpoints.runs {
            run.cut = recovery.cuts.cut(run.group);
            run.bytes = recovery.cuts.run(run.group).map_or(0, |run| run.bytes);
            let group = self.store.group(run.group).expect("at start every group is at home");
            let is_known = recovery.changed_groups >> run.group.number() & 1 == 0;
            run.known_sum = is_known.then(|| group.version_sum());
        }
        if self.core.0 == 0 {
            self.checkpoints.earlier.clone_from(&recovery.files);
        }
    }

    /// More runs than there need be, they and long values in smaller slices, for the simulator.
    pub fn set_run_bounds(&mut self, stride_bytes_max: u64, slice_bytes: usize) {
        self.pace.set_stride_bytes_max(stride_bytes_max);
        self.checkpoints.slice_bytes = slice_bytes;
        self.uploads.set_slice_bytes(slice_bytes);
    }

    /// The stage: goes on with the run under way, or begins the next one.
    pub(crate) fn checkpoint(&mut self) {
        let Some(log) = self.log.as_ref().filter(|log| log.failure().is_none()) else { return };
        if self.stopping {
            self.checkpoints.stop.begin(self.now.monotonic_us);
        }
        let is_due = self.is_run_due(log);
        match &self.checkpoints.state {
            State::Idle if self.stopping => self.come_to_rest(),
            State::Idle if is_due => self.begin_due_run(),
            State::Idle | State::Walking { writing: true, .. } | State::Publishing => {}
            _ if self.stopping && !self.all_rest() => self.drop_runs(),
            State::Walking { making, .. } if self.is_spoilt(making) => self.drop_run(),
            State::Walking { making, .. } if making.end.is_some() => self.end_walk(is_due),
            State::Walking { .. } => self.walk(),
            State::Settling { .. } => self.settle(),
        }
        // Writers wait for a run that the next tick begins.
        if self.pace.holds_writers && !self.stopping && self.checkpoints.is_idle() && self.has_due_run() {
            self.put_off.note();
        }
    }

    fn is_run_due(&self, log: &LogWriter) -> bool {
        log.bytes_total() >= self.checkpoints.due_at_bytes && self.now.monotonic_us >= self.checkpoints.retry_at_us
    }

    /// Whether a run is due and nothing but the next tick is needed to begin it.
    pub(crate) fn has_due_run(&self) -> bool {
        let Some(log) = self.log.as_ref().filter(|log| !log.is_syncing() && self.is_run_due(log)) else { return false };
        let Some(begin) = self.begin_of_runs(log.sealed()) else { return false };
        let oldest = self.checkpoints.runs.iter().min_by_key(|run| run.cut);
        oldest.is_some_and(|run| {
            let own = self.checkpoints.identity.map(|identity| identity.incarnation);
            self.store.group(run.group).is_some() && (Some(run.cut.incarnation) != own || run.cut.begin < begin)
        })
    }

    fn begin_due_run(&mut self) {
        if self.pace.stride_bytes == 0 {
            self.set_stride();
            self.checkpoints.due_at_bytes = self.pace.stride_bytes;
            return;
        }
        let waiting = self.checkpoints.runs.iter().filter(|run| !self.checkpoints.has_walked(run.group));
        if let Some(group) = waiting.min_by_key(|run| run.cut).map(|run| run.group) {
            self.begin_run(group);
        }
    }

    /// Begins where nothing is changed and not sealed: the run has exactly the log groups up to now, and maybe later ones.
    pub(crate) fn begin_run(&mut self, id: SlotGroupId) {
        let is_sealed = self.store.log_mut().is_some_and(|buffer| buffer.is_empty());
        let (Some(identity), Some(log)) = (&self.checkpoints.identity, &self.log) else { return };
        let Some(group) = self.store.group(id).filter(|_| is_sealed) else { return };
        let Some(begin) = self.begin_of_runs(log.sealed()) else { return };
        let header = RunHeader {
            store_id: identity.store_id,
            group: id,
            core: identity.core,
            cut: Cut { incarnation: identity.incarnation, begin },
        };
        // The log did not grow since its last one: it would be the same, under the same name.
        if self.checkpoints.runs.iter().any(|run| run.group == id && run.cut == header.cut) {
            return;
        }
        let (writer, bytes) = RunWriter::begin(header);
        let (begin_sum, clears) = (group.version_sum(), group.clears());
        self.checkpoints.begun += 1;
        // Never more than a round behind.
        let due_at_bytes = self.checkpoints.due_at_bytes.max(log.bytes_total().saturating_sub(self.round_bytes()));
        self.checkpoints.due_at_bytes = due_at_bytes + self.pace.stride_bytes;
        let making = Making { writer, begin_sum, clears, offset: bytes.len() as u64, end: None };
        self.effects.push(Effect::WriteRun { name: header.file_name(), offset: 0, bytes });
        self.checkpoints.state = State::Walking { making, writing: true };
    }

    /// Whether a run is of no use any more: its group was cleared.
    fn is_spoilt(&self, making: &Making) -> bool {
        let group = self.store.group(making.writer.header().group);
        group.is_some_and(|group| group.clears() != making.clears)
    }

    /// The run under way is not wanted.
    fn drop_run(&mut self) {
        if let State::Walking { making, .. } = std::mem::take(&mut self.checkpoints.state) {
            self.effects.push(Effect::DropRun { name: making.writer.header().file_name() });
            self.store.let_go(making.writer.into_blocks());
        }
        self.end_walks();
    }

    /// No run that is not published is wanted.
    fn drop_runs(&mut self) {
        for making in std::mem::take(&mut self.checkpoints.walked) {
            self.effects.push(Effect::DropRun { name: making.writer.header().file_name() });
        }
        self.drop_run();
    }

    /// One slice; behind the last one the end.
    fn walk(&mut self) {
        let slice_bytes = match self.stopping {
            true => STOP_SLICE_BYTES,
            false if self.is_pressed() => PRESSED_SLICES * self.checkpoints.slice_bytes,
            false => self.checkpoints.slice_bytes,
        };
        let end = self.last_change_ordinal();
        let State::Walking { making, writing } = &mut self.checkpoints.state else { return };
        // While the group is lent it waits.
        let Some(group) = self.store.group(making.writer.header().group) else { return };
        let bytes = match making.writer.has_walked() {
            false => making.writer.slice(group, slice_bytes, std::mem::take(&mut self.checkpoints.buffer)),
            true => {
                making.end = Some(end);
                making.writer.finish(group, end)
            }
        };
        self.store.let_go(making.writer.take_spent().into_iter());
        if bytes.is_empty() {
            return self.put_off.note();
        }
        let (name, offset) = (making.writer.header().file_name(), making.offset);
        making.offset += bytes.len() as u64;
        *writing = true;
        self.effects.push(Effect::WriteRun { name, offset, bytes });
    }

    /// A slice, or the end, is written.
    pub(crate) fn on_run_written(&mut self, buffer: Vec<u8>) {
        // That of a long list is not kept.
        self.checkpoints.buffer = if buffer.capacity() > 4 * SLICE_BYTES { Vec::new() } else { buffer };
        match &mut self.checkpoints.state {
            State::Walking { writing, .. } => *writing = false,
            _ => unreachable!("one write is under way at most, and it is waited for"),
        }
    }

    /// A run is written. Where the next one is due already, it settles together with this one.
    fn end_walk(&mut self, is_due: bool) {
        if let State::Walking { making, .. } = std::mem::take(&mut self.checkpoints.state) {
            self.checkpoints.walked.push(making);
        }
        match self.stopping {
            true => self.dirty_group().into_iter().for_each(|group| self.begin_run(group)),
            false if is_due && self.checkpoints.walked.len() < WALKED_MAX => self.begin_due_run(),
            false => {}
        }
        if self.checkpoints.is_idle() {
            self.end_walks();
        }
    }

    fn end_walks(&mut self) {
        if !self.checkpoints.walked.is_empty() {
            self.checkpoints.state = State::Settling { asked: false };
        }
        self.put_off.note();
    }

    /// What a recovery may still cut must not be in a run: every unit up to its end has to be decided, and its parts
    /// durable on all cores.
    fn settle(&mut self) {
        // While stopping everybody rests: all logs are durable.
        if self.stopping || is_planted(Bug::M22RunPublishedUnsettled) {
            return self.publish();
        }
        let end = self.checkpoints.walked.iter().filter_map(|making| making.end).max().unwrap_or_default();
        let is_decided = self.units.first_pending().is_none_or(|pending| pending > end);
        let State::Settling { asked } = &mut self.checkpoints.state else { return };
        if is_decided && !std::mem::replace(asked, true) {
            let number = self.gathers.open_for_run(self.checkpoints.begun, self.outbox.len());
            self.ask_all(number, &Question::Durable);
        }
    }

    /// All cores are durable as far as they were when the run with this number asked.
    pub(crate) fn on_settled(&mut self, run: u64) {
        let asked = matches!(self.checkpoints.state, State::Settling { asked: true });
        if asked && run == self.checkpoints.begun && (!self.stopping || self.all_rest()) {
            self.publish();
        }
    }

    /// Those whose groups were not cleared meanwhile.
    fn publish(&mut self) {
        let (spoilt, walked): (Vec<Making>, Vec<Making>) =
            std::mem::take(&mut self.checkpoints.walked).into_iter().partition(|making| self.is_spoilt(making));
        for making in spoilt {
            self.effects.push(Effect::DropRun { name: making.writer.header().file_name() });
        }
        if is_planted(Bug::M10GivenBackTooEarly) {
            walked.iter().for_each(|making| self.give_back(making.writer.header()));
        }
        let names: Vec<String> = walked.iter().map(|making| making.writer.header().file_name()).collect();
        self.checkpoints.walked = walked;
        self.checkpoints.state = if names.is_empty() { State::Idle } else { State::Publishing };
        match names.is_empty() {
            true => self.put_off.note(),
            false => self.effects.push(Effect::PublishRuns { names }),
        }
    }

    /// The runs have their names: what they replace goes.
    pub(crate) fn on_runs_published(&mut self) {
        self.checkpoints.state = State::Idle;
        self.checkpoints.failure = None;
        for making in std::mem::take(&mut self.checkpoints.walked) {
            let (header, bytes) = (*making.writer.header(), making.writer.bytes());
            self.checkpoints.published += 1;
            self.checkpoints.published_bytes += bytes;
            self.give_back(&header);
            let run = self.checkpoints.runs.iter_mut().find(|run| run.group == header.group);
            let run = run.expect("only own groups get runs");
            (run.bytes, run.known_sum) = (bytes, Some(making.begin_sum));
        }
        self.set_stride();
        self.tell_renewed();
        self.put_off.note();
    }

    /// What the run with this header replaces goes: the run before, and segments that no group needs any more.
    fn give_back(&mut self, header: &RunHeader) {
        let run = self.checkpoints.runs.iter_mut().find(|run| run.group == header.group).expect("it is one of them");
        let old = std::mem::replace(&mut run.cut, header.cut);
        let mut names = Vec::new();
        if old != Cut::default() && old != header.cut {
            names.push(run_file_name(header.group, old));
        }
        self.give_back_segments(&mut names);
        self.remove_files(names);
    }

    fn give_back_segments(&mut self, names: &mut Vec<String>) {
        let (Some(identity), Some(log)) = (self.checkpoints.identity, &mut self.log) else { return };
        let begin = |run: &GroupRun| match run.cut.incarnation == identity.incarnation {
            true => run.cut.begin,
            false => LogOrdinal(0),
        };
        let covered = self.checkpoints.runs.iter().map(begin).min().unwrap_or_default();
        while let Some(segment) = log.give_back(covered) {
            names.push(segment_file_name(identity.incarnation, identity.core, segment));
        }
    }

    /// Writing or publishing failed; the group's turn comes again.
    pub(crate) fn on_run_failed(&mut self, reason: String) {
        self.checkpoints.failure = Some(reason);
        self.checkpoints.retry_at_us = self.now.monotonic_us + RETRY_US;
        if matches!(std::mem::take(&mut self.checkpoints.state), State::Publishing) {
            self.checkpoints.walked.clear();
        }
        self.end_walks();
    }

    /// That this core needs no earlier incarnation any more; a backup may until it is done.
    pub(crate) fn tell_renewed(&mut self) {
        let checkpoints = &mut self.checkpoints;
        let own = checkpoints.identity.map(|identity| identity.incarnation);
        let is_renewed = checkpoints.runs.iter().all(|run| Some(run.cut.incarnation) == own);
        if !is_renewed || self.pins.is_pinned() || std::mem::replace(&mut checkpoints.has_told_renewed, true) {
            return;
        }
        match self.core.0 {
            0 => self.on_renewed(),
            _ => self.outbox[0].controls.push(Control::Renewed),
        }
    }

    /// Another core, or this one, needs no earlier incarnation any more.
    pub(crate) fn on_renewed(&mut self) {
        self.checkpoints.renewed += 1;
        let names = std::mem::take(&mut self.checkpoints.earlier);
        match names.is_empty() || self.checkpoints.renewed < self.outbox.len() {
            true => self.checkpoints.earlier = names,
            false => self.remove_files(names),
        }
    }
}
