//! Publish: a written run waits until no recovery can cut what it has, gets its name, and what it replaces goes.

use base::planted::{Bug, is_planted};
use base::{Effect, LogOrdinal};

use super::change::RunChange;
use super::walk::drop_all;
use super::{Asked, Checkpoints, GroupRun, Life, Making, State, View, is_spoilt};
use crate::log::format::segment_file_name;
use crate::run::format::run_file_name;
use crate::run::{Cut, RunHeader};
use crate::tiering::Note;

impl Checkpoints {
    /// What a recovery may still cut must not be in a run: every unit up to its end has to be decided, and its parts
    /// durable in all logs.
    pub(super) fn settle(&mut self, view: &mut View<'_>) -> Asked {
        // At rest all logs are durable.
        if view.life == Life::Resting || is_planted(Bug::M22RunPublishedUnsettled) {
            return self.publish(view);
        }
        let end = self.walked.iter().filter_map(|making| making.end).max().unwrap_or_default();
        let is_decided = view.first_pending.is_none_or(|pending| pending > end);
        let State::Settling { asked } = &mut self.state else { return Asked::Nothing };
        match is_decided && !std::mem::replace(asked, true) {
            true => Asked::Durability(self.begun),
            false => Asked::Nothing,
        }
    }

    /// All logs are durable as far as they were when [`Asked::Durability`] had this number.
    pub fn on_settled(&mut self, number: u64, view: &mut View<'_>) -> Asked {
        let is_asked = matches!(self.state, State::Settling { asked: true });
        match is_asked && number == self.begun && view.life != Life::Stopping {
            true => self.publish(view),
            false => Asked::Nothing,
        }
    }

    /// Those whose groups were not cleared meanwhile.
    fn publish(&mut self, view: &mut View<'_>) -> Asked {
        let (spoilt, walked): (Vec<Making>, Vec<Making>) =
            std::mem::take(&mut self.walked).into_iter().partition(|making| is_spoilt(making, view.store));
        drop_all(spoilt, view.effects);
        if is_planted(Bug::M10GivenBackTooEarly) {
            let mut names = Vec::new();
            walked.iter().for_each(|making| self.give_back(making.writer.header(), view, &mut names));
            self.pins.remove(names, view.effects);
        }
        let names: Vec<String> = walked.iter().map(|making| making.writer.header().file_name()).collect();
        self.walked = walked;
        if names.is_empty() {
            self.state = State::Idle;
            return Asked::StepAgain;
        }
        self.state = State::Publishing;
        view.effects.push(Effect::PublishRuns { names });
        Asked::Nothing
    }

    /// The runs have their names: what they replace goes.
    pub fn on_runs_published(&mut self, view: &mut View<'_>) -> Asked {
        self.state = State::Idle;
        self.failure = None;
        // One effect for all: a stop publishes the runs of all groups at once, and streets take so many jobs at a time.
        let mut names = Vec::new();
        let published = std::mem::take(&mut self.walked);
        self.note_late(&published, view.log);
        for mut making in published {
            let (header, bytes, keys) = (*making.writer.header(), making.writer.bytes(), making.writer.keys());
            self.published += 1;
            self.published_bytes += bytes;
            match view.store.tiers() && !is_planted(Bug::M29OldRunGoesEarly) {
                true => self.begin_change(&header, making.writer.take_notes(), view, &mut names),
                false => self.give_back(&header, view, &mut names),
            }
            let run = self.run_mut(&header);
            (run.bytes, run.keys, run.known_sum) = (bytes, keys, making.begin_sum);
        }
        self.pins.remove(names, view.effects);
        self.set_stride(view);
        self.renewal().unwrap_or(Asked::StepAgain)
    }

    /// Whether it is to be told now that no run of this log needs an earlier incarnation. Not while files are pinned: other
    /// logs of the node may have been asked later.
    pub(super) fn renewal(&mut self) -> Option<Asked> {
        let is_renewed = self.runs.iter().all(|run| run.cut.incarnation == self.identity.incarnation);
        (is_renewed && !self.pins.is_pinned() && self.earlier.tells_renewal()).then_some(Asked::Renewal)
    }

    /// What the run with this header replaces goes: the run before, and segments that no group needs any more.
    fn give_back(&mut self, header: &RunHeader, view: &mut View<'_>, names: &mut Vec<String>) {
        let run = self.run_mut(header);
        let (old, bytes) = (std::mem::replace(&mut run.cut, header.cut), run.bytes);
        if old != Cut::default() && old != header.cut {
            let name = run_file_name(header.group, old);
            if !self.is_kept((&name, bytes), view) {
                names.push(name);
            }
        }
        self.give_back_segments(view, names);
    }

    /// Whether the file of a run that was replaced waits to be the next one's. Values of a store that tiers may still be read of it.
    fn is_kept(&mut self, old: (&str, u64), view: &View<'_>) -> bool {
        let is_free = view.life == Life::Serving && !view.store.tiers() && !self.pins.is_pinned();
        is_free && self.spares.keep(old, view.log.segment_bytes())
    }

    /// Places mean the run before until they are changed.
    fn begin_change(&mut self, header: &RunHeader, notes: Vec<Note>, view: &mut View<'_>, names: &mut Vec<String>) {
        let old = std::mem::replace(&mut self.run_mut(header).cut, header.cut);
        let old_name = (old != Cut::default() && old != header.cut).then(|| run_file_name(header.group, old));
        self.changes.push(RunChange { group: header.group, cut: header.cut, notes, applied: None, old_name });
        self.give_back_segments(view, names);
    }

    fn give_back_segments(&self, view: &mut View<'_>, names: &mut Vec<String>) {
        let identity = &self.identity;
        let begin = |run: &GroupRun| match run.cut.incarnation == identity.incarnation {
            true => run.cut.begin,
            false => LogOrdinal(0),
        };
        let covered = self.runs.iter().map(begin).min().unwrap_or_default();
        view.log.set_files_max(self.segments_max(view.log));
        while let Some(segment) = view.log.give_back(covered) {
            names.push(segment_file_name(identity.incarnation, identity.core, segment));
        }
    }

    fn run_mut(&mut self, header: &RunHeader) -> &mut GroupRun {
        self.runs.iter_mut().find(|run| run.group == header.group).expect("only own groups get runs")
    }
}
