//! Walk: from a slot group to a file, a slice per step.

use base::planted::{Bug, is_planted};
use base::{Effect, SlotGroupId};

use super::{Asked, Checkpoints, Life, Making, SLICE_BYTES, SLICE_WORK, State, View};
use crate::run::{Cut, RunHeader, RunWriter, Slice};

/// Records of one slice where no client waits, bytes.
const STOP_SLICE_BYTES: usize = 1 << 20;
impl Checkpoints {
    /// Begins where nothing is changed and not sealed: the run has exactly the log groups up to now, and maybe later ones.
    pub(super) fn begin_run(&mut self, id: SlotGroupId, view: &mut View<'_>) {
        let Some(group) = view.store.group(id).filter(|_| !view.store.has_unsealed()) else { return };
        let Some(begin) = (view.begin)(view.store, view.log.sealed()) else { return };
        let header = RunHeader {
            store_id: self.identity.store_id,
            group: id,
            core: self.identity.core,
            cut: Cut { incarnation: self.identity.incarnation, begin },
        };
        // The log did not grow since its last one: it would be the same, under the same name.
        if self.runs.iter().any(|run| run.group == id && run.cut == header.cut) {
            return;
        }
        let (writer, bytes) = RunWriter::begin(header, view.store.tiers());
        // Behind an earlier begin the log has what the run has, too, and a start would read it.
        let is_last = begin == view.log.sealed();
        let (begin_sum, clears) = (is_last.then(|| group.change_sum()), group.clears());
        self.begun += 1;
        view.store.note_run_begun();
        // A run that the memory limit asked for is not one of the log's turns.
        let due_bytes = self.is_run_due(view.log, view.now).then_some(self.due_at_bytes);
        if due_bytes.is_some() {
            self.set_next_turn(view.log);
        }
        let making = Making { writer, begin_sum, clears, due_bytes, offset: bytes.len() as u64, end: None };
        let recycle = self.spares.take();
        view.effects.push(Effect::WriteRun { name: header.file_name(), offset: 0, bytes, recycle });
        self.state = State::Walking { making: Box::new(making), writing: true };
    }

    /// One slice; behind the last one the end.
    pub(super) fn walk(&mut self, view: &mut View<'_>) -> Asked {
        let slice_bytes = match view.life {
            _ if is_planted(Bug::M26SynchronisedMaintenance) => usize::MAX,
            Life::Stopping | Life::Resting => STOP_SLICE_BYTES,
            // The caller had less work to give than was wanted, none maybe: the next step comes with the next tick.
            Life::Serving => (self.slice_bytes * view.work as usize).div_ceil(SLICE_WORK as usize),
        };
        if slice_bytes == 0 {
            return Asked::Nothing;
        }
        let end = view.last_change();
        let State::Walking { making, .. } = &mut self.state else { return Asked::Nothing };
        // While the group is lent it waits.
        let Some(group) = view.store.group(making.writer.header().group) else { return Asked::Nothing };
        let slice = match making.writer.has_walked() {
            false => {
                making.writer.set_long_bytes_max(view.long_bytes_max);
                making.writer.slice(group, slice_bytes, std::mem::take(&mut self.buffer))
            }
            true => {
                making.end = Some(end);
                Slice::Bytes(making.writer.finish(group, end))
            }
        };
        view.store.give_up(making.writer.take_spent().into_iter());
        match slice {
            Slice::Bytes(bytes) if bytes.is_empty() => return Asked::StepAgain,
            Slice::Bytes(bytes) => self.write_slice(bytes, view),
            Slice::Reads => self.read_cold(view),
        }
        Asked::Nothing
    }

    pub(super) fn write_slice(&mut self, bytes: Vec<u8>, view: &mut View<'_>) {
        let State::Walking { making, writing } = &mut self.state else { return };
        let (name, offset) = (making.writer.header().file_name(), making.offset);
        making.offset += bytes.len() as u64;
        *writing = true;
        self.written_bytes += bytes.len() as u64;
        self.limits.bucket.take(bytes.len() as u64, view.now.monotonic_us);
        view.effects.push(Effect::WriteRun { name, offset, bytes, recycle: None });
    }

    /// A slice, or the end, is written.
    pub fn on_run_written(&mut self, buffer: Vec<u8>) {
        // The larger one is kept: a run begins with a few bytes. That of a long list is not.
        if buffer.capacity() > self.buffer.capacity() && buffer.capacity() <= 4 * SLICE_BYTES {
            self.buffer = buffer;
        }
        match &mut self.state {
            State::Walking { writing, .. } => *writing = false,
            _ => unreachable!("one write is under way at most, and it is waited for"),
        }
    }

    /// A run is written. Where the next one is due already, it settles together with this one.
    pub(super) fn end_walk(&mut self, view: &mut View<'_>, is_due: bool) -> Asked {
        if let State::Walking { making, .. } = std::mem::take(&mut self.state) {
            self.walked.push(*making);
        }
        match view.life {
            Life::Resting => self.begin_last_run(view),
            Life::Serving if is_due && self.settles_with_more(view) => self.begin_due_run(view),
            Life::Serving | Life::Stopping => {}
        }
        if self.makes_none() { self.end_walks() } else { Asked::Nothing }
    }

    /// Whether what is written settles together with one more: that has been due for a while, because settling takes long. All
    /// of it is a segment at most, and up to a run more where half a round is late: what waits is on the disk beside the runs
    /// before, but there to catch up is worth more.
    fn settles_with_more(&self, view: &View<'_>) -> bool {
        let (runs, bytes) =
            (self.walked.len() as u64, self.walked.iter().map(|making| making.writer.bytes()).sum::<u64>());
        let is_late = self.backlog_bytes(view.log) > self.round_bytes() / 2;
        let more_bytes = if is_late { 1 } else { bytes / runs.max(1) };
        bytes + more_bytes <= view.log.segment_bytes()
            && (self.is_clean_run_due(view)
                || self.is_quiet_run_due(view)
                || self.backlog_bytes(view.log) > self.pace.stride_bytes / 2)
    }

    /// What is written settles.
    pub(super) fn end_walks(&mut self) -> Asked {
        if !self.walked.is_empty() {
            self.state = State::Settling { asked: false };
        }
        Asked::StepAgain
    }

    /// The run under way is not wanted.
    pub(super) fn drop_run(&mut self, view: &mut View<'_>) -> Asked {
        if let State::Walking { making, .. } = std::mem::take(&mut self.state) {
            view.effects.push(Effect::DropRuns { names: vec![making.writer.header().file_name()] });
            view.store.give_up(making.writer.into_garbage());
        }
        self.end_walks()
    }

    /// No run that is not published is wanted.
    pub(super) fn drop_runs(&mut self, view: &mut View<'_>) -> Asked {
        drop_all(std::mem::take(&mut self.walked), view.effects);
        self.drop_run(view)
    }
}

/// Runs that are written and will not be published, in one effect: a street takes so many jobs at once.
pub(super) fn drop_all(walked: Vec<Making>, effects: &mut Vec<Effect>) {
    let names: Vec<String> = walked.iter().map(|making| making.writer.header().file_name()).collect();
    if !names.is_empty() {
        effects.push(Effect::DropRuns { names });
    }
}
