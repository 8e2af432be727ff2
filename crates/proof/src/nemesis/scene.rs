//! What a run is judged in, whatever was done to the cluster: healed, every key read, copies compared, stopped, started, compared again.

use std::io;
use std::path::Path;
use std::process::Command;

use super::client::{Client, Stage};
use super::copies::{Compared, compare};
use super::faults::Fired;
use super::fleet::Fleet;
use super::history::{Operation, quoted, write_lines};
use super::judge::{by_key, judge};
use super::mover::Moves;
use super::reads::last_reads;
use super::run::{Options, Verdict};
use super::tally::{Ends, Met};
use super::whole::await_whole;
use crate::kill::told;

/// What is looked at.
pub(super) const ORDER: &str = "every key's history is one of a single copy";
pub(super) const COPIES: &str = "copies are equal";
pub(super) const STARTED: &str = "the same after a stop and a start";
/// Findings that are told.
const TOLD_MAX: usize = 12;

/// A cluster that is whole, and what it is to be called.
pub(super) struct Scene<'a> {
    pub(super) options: &'a Options,
    pub(super) folder: &'a Path,
    pub(super) fleet: &'a Fleet,
}

/// What was done to it.
pub(super) struct Played {
    pub(super) history: Vec<Operation>,
    pub(super) fired: Vec<Fired>,
    pub(super) moves: Option<Moves>,
    /// Or why it is not whole again.
    pub(super) healed: Result<(), String>,
    /// Keys that are there besides those of the history.
    pub(super) besides: u64,
    /// Why it proves nothing, beside what the history tells.
    pub(super) gaps: Vec<String>,
}

impl Scene<'_> {
    /// Judges it, the last reads added to the history, which is returned. `besides` looks at what else has to be as it was, before and
    /// behind a stop and a start.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub(super) fn judge(
        &self,
        stage: &Stage<'_>,
        played: Played,
        verdict: &mut Verdict,
        besides: impl Fn() -> (&'static str, Vec<String>),
    ) -> io::Result<Vec<Operation>> {
        let Played { mut history, fired, moves, healed, besides: keys_besides, gaps } = played;
        let (seconds, healed_us) = (stage.course.epoch.elapsed().as_secs(), stage.now_us());
        let is_whole = healed.is_ok();
        verdict.checks.push(("it heals", healed.err().into_iter().collect()));
        let keys: Vec<String> = by_key(&history).into_keys().map(str::to_owned).collect();
        if is_whole {
            // Nobody else has this number.
            let reader = || Client::new(stage, self.options.clients(), self.options.seed);
            history.extend(last_reads(reader(), &keys));
            for gate in 0..self.options.gates.len() {
                history.extend(last_reads(reader().through(gate), &keys));
            }
            let (name, mut problems) = besides();
            self.compare_copies(&keys, keys_besides, verdict);
            if verdict.is_good() {
                problems.extend(besides().1);
            }
            if !name.is_empty() {
                verdict.checks.push((name, problems));
            }
        }
        self.write(&history, &fired)?;
        let met = Met { history: &history, fired: &fired, moves, seconds, healed_us };
        self.tell(&met);
        verdict.ok = Ends::of(history.iter()).ok;
        verdict.checks.push((ORDER, judge(&history)));
        verdict.checks.push(("it proves something", gaps.into_iter().chain(met.gaps()).collect()));
        verdict.checks.push(("no process ended or panicked by itself", self.panics()));
        Ok(history)
    }

    /// One line for each check, and what is wrong below it.
    pub(super) fn tell_checks(&self, verdict: &Verdict) {
        for (name, problems) in &verdict.checks {
            println!("  {}  {name}", if problems.is_empty() { "ok    " } else { "FAILED" });
            problems.iter().take(TOLD_MAX).for_each(|problem| println!("          {problem}"));
            if problems.len() > TOLD_MAX {
                println!("          and {} others", problems.len() - TOLD_MAX);
            }
        }
    }

    /// At every member, and at every member again after a clean stop and a start.
    fn compare_copies(&self, keys: &[String], besides: u64, verdict: &mut Verdict) {
        let before = compare(&self.fleet.doors, keys, besides);
        if let Ok((compared, _)) = &before {
            println!("  compared: {} keys in {} slots, {} exist", compared.keys, compared.slots, compared.exist);
        }
        let digests = before.as_ref().ok().map(|(compared, _)| compared.digests.clone());
        verdict.checks.push((COPIES, problems(before)));
        let mut stopped = self.fleet.stop_all();
        stopped.extend((0..self.fleet.len()).filter_map(|node| self.check(node).err()));
        if stopped.is_empty() {
            let again = (0..self.fleet.len())
                .try_for_each(|node| self.fleet.start(node))
                .map_err(|error| error.to_string())
                .and_then(|()| await_whole(&self.fleet.doors, || false).map(drop))
                .and_then(|()| compare(&self.fleet.doors, keys, besides));
            let is_other = |(compared, _): &(Compared, _)| digests.is_some_and(|digests| digests != compared.digests);
            if again.as_ref().is_ok_and(is_other) {
                stopped.push("what was read is another one than before the stop".to_owned());
            }
            stopped.extend(problems(again));
        }
        verdict.checks.push((STARTED, stopped));
    }

    /// `zerohop check` of what a node left.
    fn check(&self, node: usize) -> Result<(), String> {
        let mut command = Command::new(&self.options.zerohop);
        let output = command.arg("check").arg(self.fleet.data(node)).output().map_err(|error| error.to_string())?;
        match output.status.success() {
            true => Ok(()),
            false => Err(format!("check of node {node}: {}", String::from_utf8_lossy(&output.stderr).trim())),
        }
    }

    fn panics(&self) -> Vec<String> {
        let of = |place| {
            let ended = self.fleet.has_ended(place).map(|status| format!("ended by itself: {status}"));
            let panic = told::panic(&self.fleet.output(place));
            let name = self.fleet.name(place);
            ended.into_iter().chain(panic).map(move |what| format!("{name}: {what}"))
        };
        self.fleet.places().flat_map(of).collect()
    }

    fn write(&self, history: &[Operation], fired: &[Fired]) -> io::Result<()> {
        write_lines(&self.folder.join("history.jsonl"), history.iter().map(Operation::line))?;
        let fault = |fired: &Fired| {
            let Fired { step, begun_us, ended_us, has_worked } = fired;
            let (kind, fault) = (format!("{:?}", step.kind), step.fault.to_string());
            format!(
                "{{\"kind\":{},\"fault\":{},\"begun\":{begun_us},\"ended\":{ended_us},\"worked\":{has_worked}}}",
                quoted(&kind),
                quoted(&fault)
            )
        };
        write_lines(&self.folder.join("faults.jsonl"), fired.iter().map(fault))?;
        let Options { seed, nodes, faults_ms, moves, .. } = self.options;
        let run = format!("{{\"seed\":{seed},\"nodes\":{nodes},\"faults_ms\":{faults_ms},\"moves\":{moves}}}");
        write_lines(&self.folder.join("run.json"), std::iter::once(run))
    }

    fn tell(&self, met: &Met<'_>) {
        let (all, during) = (Ends::of(met.history.iter()), met.during_faults());
        println!("  {} requests ok, {} refused, {} unknown in {} s", all.ok, all.refused, all.unknown, met.seconds);
        println!("  during faults: {} ok, {} refused, {} unknown", during.ok, during.refused, during.unknown);
        println!("  not answered: {}", met.reasons());
        for line in met.sums() {
            println!("  {line}");
        }
        let faults: Vec<String> = met.fired.iter().map(|fired| fired.step.fault.to_string()).collect();
        println!("  {} faults: {}", faults.len(), faults.join("; "));
        match met.moves {
            Some(Moves { ordered, arrived, called_off }) => {
                println!("  moves: {ordered} ordered, {arrived} arrived in time, {called_off} called off");
            }
            None => println!("  no moves"),
        }
    }
}

fn problems(result: Result<(Compared, Vec<String>), String>) -> Vec<String> {
    result.map_or_else(|error| vec![error], |(_, differences)| differences)
}
