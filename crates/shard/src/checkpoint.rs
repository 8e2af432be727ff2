//! Checkpoints: one slot group after the other becomes a run, and what no group needs any more is given back.
//!
//! ```text
//!  idle ── due ──► walking ── every key seen, end written ──► settling ── durable everywhere ──► publishing ──► idle
//!                  a slice per tick, one write under way      no unit up to the end undecided     old run and covered
//!                  the group was cleared: begin again                                             segments go
//! ```
//!
//! A core's groups take their turns by bytes of log, so that a round over all of them comes once per live bytes plus a
//! segment: the log and the runs together stay below twice what lives, and a segment. When all cores have had a round,
//! nobody needs the logs of earlier incarnations.
//!
//! At a clean stop every group that changed gets a run, once no core changes anything any more: the next start replays
//! nothing.

use base::planted::{Bug, is_planted};
use base::{Effect, LogOrdinal, SlotGroupId};
use storage::log::format::segment_file_name;
use storage::log::{LogIdentity, Recovery};
use storage::run::format::run_file_name;
use storage::run::{Cut, RunHeader, RunWriter};

use crate::gather::Question;
use crate::hop::Control;
use crate::shard::Shard;

/// Records of one slice, bytes: about 0.1 ms of a tick.
const SLICE_BYTES: usize = 64 << 10;
/// The same where no client waits.
const STOP_SLICE_BYTES: usize = 1 << 20;
/// After a failure, before the next attempt, microseconds.
const RETRY_US: u64 = 1_000_000;
/// How long a stopping core waits for the others to come to rest, microseconds.
const REST_US_MAX: u64 = 2_000_000;

/// The run of one of this core's slot groups.
struct GroupRun {
    group: SlotGroupId,
    cut: Cut,
    bytes: u64,
    /// [`SlotGroup::version_sum`] of what the run has for sure; `None` when the log has more.
    known_sum: Option<u64>,
}

/// A run that is being made.
struct Making {
    writer: RunWriter,
    /// [`SlotGroup::version_sum`] when it began.
    begin_sum: u64,
    /// [`SlotGroup::clears`] when it began.
    clears: u64,
    /// Bytes asked to be written.
    offset: u64,
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
    /// Every key was seen; `end` is the last log group that it may have something of.
    Settling {
        making: Making,
        end: LogOrdinal,
        writing: bool,
        asked: bool,
    },
    Publishing {
        making: Making,
    },
}

/// How far a stop is. Before the last runs are made, nobody may begin a unit any more, and then all logs must be durable:
/// a run must not have a unit that a recovery could still cut.
#[derive(Default)]
struct Stop {
    since_us: Option<u64>,
    has_told_rest: bool,
    has_told_flushed: bool,
    /// Cores, this one included, that begin no units any more,
    resting: usize,
    /// and whose logs are durable besides, for ever.
    flushed: usize,
}

/// See the module.
#[derive(Default)]
pub struct Checkpoints {
    identity: Option<LogIdentity>,
    runs: Vec<GroupRun>,
    state: State,
    /// Bytes of the log when the last run was begun.
    begun_at_bytes: u64,
    /// Bytes of log from one run to the next, at the most `stride_bytes_max`.
    stride_bytes: u64,
    stride_bytes_max: u64,
    slice_bytes: usize,
    retry_at_us: u64,
    /// Files of earlier incarnations; core 0 removes them.
    earlier: Vec<String>,
    /// Cores of which every group has a run of this incarnation.
    renewed: usize,
    has_told_renewed: bool,
    begun: u64,
    stop: Stop,
    /// Runs published since the start, and their bytes.
    pub(crate) published: u64,
    pub(crate) published_bytes: u64,
    pub(crate) failure: Option<String>,
}

impl Checkpoints {
    /// For a core that logs under `identity` and owns `groups`.
    pub(crate) fn new(identity: Option<LogIdentity>, groups: impl Iterator<Item = SlotGroupId>) -> Checkpoints {
        let run = |group| GroupRun { group, cut: Cut::default(), bytes: 0, known_sum: Some(0) };
        Checkpoints {
            identity,
            runs: groups.map(run).collect(),
            stride_bytes_max: u64::MAX,
            slice_bytes: SLICE_BYTES,
            ..Checkpoints::default()
        }
    }

    /// Bytes of the runs of this core's groups.
    pub(crate) fn run_bytes(&self) -> u64 {
        self.runs.iter().map(|run| run.bytes).sum()
    }

    fn is_idle(&self) -> bool {
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

    /// More runs than there need be, in smaller slices, for the simulator.
    pub fn set_run_bounds(&mut self, stride_bytes_max: u64, slice_bytes: usize) {
        (self.checkpoints.stride_bytes_max, self.checkpoints.slice_bytes) = (stride_bytes_max, slice_bytes);
    }

    /// The stage: goes on with the run under way, or begins the next one.
    pub(crate) fn checkpoint(&mut self) {
        let Some(log) = self.log.as_ref().filter(|log| log.failure().is_none()) else { return };
        if self.stopping {
            self.checkpoints.stop.since_us.get_or_insert(self.now.monotonic_us);
        }
        match &self.checkpoints.state {
            State::Idle if self.stopping => self.come_to_rest(),
            State::Idle if log.bytes_total() < self.checkpoints.begun_at_bytes + self.checkpoints.stride_bytes => {}
            State::Idle => self.begin_due_run(),
            State::Walking { writing: true, .. } | State::Settling { writing: true, .. } | State::Publishing { .. } => {
            }
            _ if self.is_spoilt() => self.drop_run(),
            State::Walking { .. } => self.walk(),
            State::Settling { .. } => self.settle(),
        }
    }

    /// Between two runs: how much log until the next.
    fn set_stride(&mut self) {
        let Some(log) = &self.log else { return };
        let groups = self.checkpoints.runs.len().max(1) as u64;
        let live_bytes = self.checkpoints.run_bytes().max(self.store.record_bytes() as u64);
        let stride_bytes = (live_bytes + log.segment_bytes()) / groups;
        self.checkpoints.stride_bytes = stride_bytes.clamp(1, self.checkpoints.stride_bytes_max);
    }

    fn begin_due_run(&mut self) {
        if self.checkpoints.stride_bytes == 0 {
            self.set_stride();
            return;
        }
        if self.now.monotonic_us < self.checkpoints.retry_at_us {
            return;
        }
        let oldest = self.checkpoints.runs.iter().min_by_key(|run| run.cut).map(|run| run.group);
        if let Some(group) = oldest {
            self.begin_run(group);
        }
    }

    /// Begins where nothing is changed and not sealed: the run has exactly the log groups up to now, and maybe later ones.
    fn begin_run(&mut self, id: SlotGroupId) {
        let is_sealed = self.store.log_mut().is_some_and(|buffer| buffer.is_empty());
        let (Some(identity), Some(log)) = (&self.checkpoints.identity, &self.log) else { return };
        let Some(group) = self.store.group(id).filter(|_| is_sealed) else { return };
        let header = RunHeader {
            store_id: identity.store_id,
            group: id,
            core: identity.core,
            cut: Cut { incarnation: identity.incarnation, begin: log.sealed() },
        };
        let (writer, bytes) = RunWriter::begin(header);
        let (begin_sum, clears) = (group.version_sum(), group.clears());
        self.checkpoints.begun += 1;
        self.checkpoints.begun_at_bytes = log.bytes_total();
        let making = Making { writer, begin_sum, clears, offset: bytes.len() as u64 };
        self.effects.push(Effect::WriteRun { name: header.file_name(), offset: 0, bytes });
        self.checkpoints.state = State::Walking { making, writing: true };
    }

    /// Whether the run under way is of no use any more.
    fn is_spoilt(&self) -> bool {
        let (State::Walking { making, .. } | State::Settling { making, .. }) = &self.checkpoints.state else {
            return false;
        };
        let has_ended = self.stopping && self.checkpoints.stop.flushed < self.outbox.len();
        let group = self.store.group(making.writer.header().group);
        has_ended || group.is_some_and(|group| group.clears() != making.clears)
    }

    fn drop_run(&mut self) {
        let state = std::mem::take(&mut self.checkpoints.state);
        if let State::Walking { making, .. } | State::Settling { making, .. } = state {
            self.effects.push(Effect::DropRun { name: making.writer.header().file_name() });
        }
        self.put_off.note();
    }

    /// One slice; behind the last one the end.
    fn walk(&mut self) {
        let slice_bytes = if self.stopping { STOP_SLICE_BYTES } else { self.checkpoints.slice_bytes };
        let end = self.last_change_ordinal();
        let State::Walking { mut making, .. } = std::mem::take(&mut self.checkpoints.state) else { return };
        // While the group is lent it waits.
        let Some(group) = self.store.group(making.writer.header().group) else {
            self.checkpoints.state = State::Walking { making, writing: false };
            return;
        };
        let has_walked = making.writer.has_walked();
        let bytes = match has_walked {
            false => making.writer.slice(group, slice_bytes),
            true => making.writer.finish(group, end),
        };
        let (name, offset) = (making.writer.header().file_name(), making.offset);
        making.offset += bytes.len() as u64;
        let writing = !bytes.is_empty();
        if writing {
            self.effects.push(Effect::WriteRun { name, offset, bytes });
        } else {
            self.put_off.note();
        }
        self.checkpoints.state = match has_walked {
            true => State::Settling { making, end, writing, asked: false },
            false => State::Walking { making, writing },
        };
    }

    /// A slice, or the end, is written.
    pub(crate) fn on_run_written(&mut self) {
        match &mut self.checkpoints.state {
            State::Walking { writing, .. } | State::Settling { writing, .. } => *writing = false,
            State::Idle | State::Publishing { .. } => {
                unreachable!("one write is under way at most, and it is waited for")
            }
        }
    }

    /// What a recovery may still cut must not be in a run: every unit up to its end has to be decided, and its parts
    /// durable on all cores.
    fn settle(&mut self) {
        let State::Settling { end, asked, .. } = &mut self.checkpoints.state else { return };
        let is_decided = self.units.first_pending().is_none_or(|pending| pending > *end);
        // While stopping everybody rests: all logs are durable.
        if self.stopping || is_planted(Bug::M22RunPublishedUnsettled) {
            return self.publish();
        }
        if is_decided && !*asked {
            *asked = true;
            let number = self.gathers.open_for_run(self.checkpoints.begun, self.outbox.len());
            self.ask_all(number, &Question::Durable);
        }
    }

    /// All cores are durable as far as they were when the run with this number asked.
    pub(crate) fn on_settled(&mut self, run: u64) {
        let asked = matches!(self.checkpoints.state, State::Settling { asked: true, .. });
        if asked && run == self.checkpoints.begun && !self.is_spoilt() {
            self.publish();
        }
    }

    fn publish(&mut self) {
        let State::Settling { making, .. } = std::mem::take(&mut self.checkpoints.state) else { return };
        if is_planted(Bug::M10GivenBackTooEarly) {
            self.give_back(making.writer.header());
        }
        self.effects.push(Effect::PublishRun { name: making.writer.header().file_name() });
        self.checkpoints.state = State::Publishing { making };
    }

    /// The run has its name: what it replaces goes.
    pub(crate) fn on_run_published(&mut self) {
        let State::Publishing { making } = std::mem::take(&mut self.checkpoints.state) else { return };
        let bytes = making.writer.bytes();
        (self.checkpoints.published, self.checkpoints.failure) = (self.checkpoints.published + 1, None);
        self.checkpoints.published_bytes += bytes;
        self.give_back(making.writer.header());
        let group = making.writer.header().group;
        let run = self.checkpoints.runs.iter_mut().find(|run| run.group == group).expect("only own groups get runs");
        (run.bytes, run.known_sum) = (bytes, Some(making.begin_sum));
        self.set_stride();
        self.tell_renewed();
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
        if !names.is_empty() {
            self.effects.push(Effect::RemoveFiles { names });
        }
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
        self.checkpoints.state = State::Idle;
        self.checkpoints.failure = Some(reason);
        self.checkpoints.retry_at_us = self.now.monotonic_us + RETRY_US;
    }

    fn tell_renewed(&mut self) {
        let checkpoints = &mut self.checkpoints;
        let own = checkpoints.identity.map(|identity| identity.incarnation);
        let is_renewed = checkpoints.runs.iter().all(|run| Some(run.cut.incarnation) == own);
        if !is_renewed || std::mem::replace(&mut checkpoints.has_told_renewed, true) {
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
            false => self.effects.push(Effect::RemoveFiles { names }),
        }
    }

    // --- the stop ---

    /// Step by step with the other cores: begins no unit, has a durable log, makes the last runs.
    fn come_to_rest(&mut self) {
        let is_durable = self.log.as_ref().is_some_and(|log| log.durable() == log.sealed())
            && self.store.log_mut().is_some_and(|buffer| buffer.is_empty());
        let (cores, stop) = (self.outbox.len(), &mut self.checkpoints.stop);
        if !stop.has_told_rest && self.units.is_quiet() {
            stop.has_told_rest = true;
            self.tell_others(false);
            self.on_resting(false);
        } else if !stop.has_told_flushed && stop.resting == cores && is_durable && self.node.is_sealed() {
            stop.has_told_flushed = true;
            self.tell_others(true);
            self.on_resting(true);
        } else if stop.flushed == cores
            && let Some(group) = self.dirty_group()
        {
            self.begin_run(group);
        }
    }

    fn tell_others(&mut self, flushed: bool) {
        for (core, batch) in self.outbox.iter_mut().enumerate() {
            if core != usize::from(self.core.0) {
                batch.controls.push(Control::Resting { flushed });
            }
        }
    }

    /// A core, this one included, came so far.
    pub(crate) fn on_resting(&mut self, flushed: bool) {
        let stop = &mut self.checkpoints.stop;
        match flushed {
            false => stop.resting += 1,
            true => stop.flushed += 1,
        }
        self.put_off.note();
    }

    /// A group whose run lacks something.
    fn dirty_group(&self) -> Option<SlotGroupId> {
        let is_dirty = |run: &&GroupRun| {
            self.store.group(run.group).is_some_and(|group| run.known_sum != Some(group.version_sum()))
        };
        self.checkpoints.runs.iter().find(is_dirty).map(|run| run.group)
    }

    /// Whether a stopping core may stop, as far as runs go. What it leaves undone costs the next start a replay.
    pub(crate) fn has_last_runs(&self) -> bool {
        let has_failed = self.log.as_ref().is_none_or(|log| log.failure().is_some());
        let is_done = self.checkpoints.stop.flushed == self.outbox.len() && self.dirty_group().is_none();
        let waits_in_vain = self.checkpoints.stop.flushed < self.outbox.len() && self.rest_deadline_us().is_none();
        let gives_up = self.checkpoints.failure.is_some() || waits_in_vain;
        has_failed || (self.checkpoints.is_idle() && (is_done || gives_up))
    }

    /// When a stopping core no longer waits for the others, if that is to come.
    pub(crate) fn rest_deadline_us(&self) -> Option<u64> {
        let since_us = self.checkpoints.stop.since_us?;
        Some(since_us + REST_US_MAX).filter(|deadline_us| *deadline_us > self.now.monotonic_us)
    }
}
