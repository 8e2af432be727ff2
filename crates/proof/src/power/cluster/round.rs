//! One round of a cluster: the machine starts, its nodes find each other, show what the last cut left, work, and lose their
//! power together.
//!
//! ```text
//!   a start that is cut ─► check, serve, each ─► whole ─► every key read, judged, compared ─► load, moves ─► cut
//! ```

use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use super::super::clock::Clock;
use super::super::console;
use super::super::disk::Lost;
use super::super::guest::Guest;
use super::super::plan::{Promise, Stop};
use super::super::rig::{LOOK_EVERY, LOOKS_MAX, UNPROVEN, well};
use super::Campaign;
use super::plan::{BrokenStart, Plan};
use crate::kill::told::{self, Recovery};
use crate::nemesis::client::{Client, Stage};
use crate::nemesis::copies::compare;
use crate::nemesis::history::Operation;
use crate::nemesis::mover::{self, Moves};
use crate::nemesis::reads::last_reads;
use crate::nemesis::whole::await_whole;

/// Clients that ask all the time.
const CLIENTS: usize = 20;
/// All of them, and the one that reads when it has started.
const CLIENTS_OF_ROUND: usize = CLIENTS + 4;

/// What came of a round, for people.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Requests that were answered.
    pub answered: u64,
    /// Those that were refused, or not answered.
    pub unanswered: u64,
    /// What its cuts took.
    pub lost: Lost,
    /// The cut of a start came before all was whole.
    pub broken_starts: u64,
    /// Clean stops of all nodes that came to their end before the cut.
    pub stops: u64,
    /// Slots that went to and fro.
    pub moves: Moves,
    /// The last of them were on their way when the power failed.
    pub is_move_cut: bool,
}

/// What a start has shown.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// What its nodes told of their recovery.
    pub recovery: Recovery,
    /// Keys that are the same at every member.
    pub compared: usize,
    /// From serving nodes to a whole cluster.
    pub whole_in: Duration,
}

impl Campaign {
    /// One round.
    ///
    /// # Errors
    /// What must not be.
    pub fn planned_round(&mut self, plan: &Plan) -> Result<(Shown, Tally), Vec<String>> {
        let mut tally = Tally::default();
        if let Some(broken) = plan.broken_start {
            tally.broken_starts = u64::from(self.break_start(plan, broken)?);
        }
        let (mut guest, shown) = self.start_and_judge(plan)?;
        self.load_and_cut(plan, &mut guest, &mut tally)?;
        Ok((shown, tally))
    }

    /// Cuts the power of a machine that starts; returns whether its cluster was not whole yet.
    fn break_start(&mut self, plan: &Plan, broken: BrokenStart) -> Result<bool, Vec<String>> {
        let requests = broken.cut.after_requests;
        let mut guest = self.boot(plan, "broken start", (!broken.is_recovered).then_some(requests))?;
        let whole = self.until_whole(&mut guest, || {
            if broken.is_recovered {
                self.rig.disk().cut_after(requests);
            }
        });
        self.rig.disk().cut_now();
        guest.end();
        let whole = whole.map_err(|problem| vec![format!("a start that is cut: {problem}")])?;
        self.is_founded |= whole.is_some();
        well(&guest.output())?;
        self.rig.after_cut(broken.cut)?;
        Ok(whole.is_none())
    }

    /// Starts the machine of the round, and judges what it shows.
    ///
    /// # Errors
    /// What must not be.
    pub fn start_and_judge(&mut self, plan: &Plan) -> Result<(Guest, Shown), Vec<String>> {
        let mut guest = self.boot(plan, "guest", None)?;
        let start = |problem: String| vec![format!("the start: {problem}")];
        let whole_in = self.until_whole(&mut guest, || ()).map_err(start)?;
        let whole_in = whole_in.ok_or_else(|| start("the power failed, and nobody had asked for it".to_owned()))?;
        let output = guest.output();
        well(&output)?;
        let (recovery, mut problems) = self.told(&output);
        self.is_founded = true;
        let keys = self.past.keys();
        let stage = Stage::new(&self.doors, &self.course);
        let reader = CLIENTS + CLIENTS_OF_ROUND * plan.round as usize;
        let unread = self.past.settle(last_reads(Client::new(&stage, reader, plan.client_seed), &keys));
        problems.extend(unread.into_iter().map(|problem| format!("{UNPROVEN}{problem}")));
        problems.extend(self.past.judge());
        let mut shown = Shown { recovery, whole_in, compared: 0 };
        match compare(&self.doors, &keys, 0) {
            Ok((compared, differences)) => {
                shown.compared = compared.keys;
                problems.extend(differences.into_iter().map(|difference| format!("copies: {difference}")));
            }
            Err(problem) => problems.push(format!("{UNPROVEN}copies: {problem}")),
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        self.rig.settle()?;
        Ok((guest, shown))
    }

    fn boot(&mut self, plan: &Plan, what: &str, cut_after: Option<u64>) -> Result<Guest, Vec<String>> {
        self.doors.cores = plan.cores;
        let console = format!("round {} {what}.txt", plan.round);
        let variables = plan.variables(&self.ports(), self.rig.planted.as_deref());
        self.rig.boot(&console, (&variables, &self.forwards()), cut_after)
    }

    /// Waits until all nodes have `recovered`, and then until the cluster is whole, for how long it says, or the power has failed.
    fn until_whole(&self, guest: &mut Guest, recovered: impl FnOnce()) -> Result<Option<Duration>, String> {
        let nodes = self.doors.len();
        let serve = |output: &str| (0..nodes).all(|node| console::of_node(output, node).contains("ready on "));
        if !self.rig.until(guest, serve)? {
            return Ok(None);
        }
        recovered();
        let whole = await_whole(&self.doors, || self.rig.disk().is_cut() || !guest.is_well());
        match whole {
            Ok(whole_in) => Ok(Some(whole_in)),
            Err(_) if self.rig.disk().is_cut() => Ok(None),
            Err(problem) if !guest.is_well() => Err(format!("{problem}: {}", guest.output())),
            Err(problem) => Err(format!("{UNPROVEN}{problem}: {}", guest.output())),
        }
    }

    /// What nodes told of their directories and their recovery, and what is wrong with it.
    fn told(&self, output: &str) -> (Recovery, Vec<String>) {
        let (mut recovery, mut problems) = (Recovery::default(), Vec::new());
        for node in 0..self.doors.len() {
            let output = console::of_node(output, node);
            match console::checked(&output) {
                None if self.is_founded => problems.push(format!("node {node}: the data directory is gone")),
                Some(Err(told)) => problems.push(format!("node {node}: zerohop check: {told}")),
                None | Some(Ok(_)) => {}
            }
            match Recovery::parse(&output) {
                Some(of_node) if self.is_left_clean && of_node.records > 0 => {
                    problems.push(format!("node {node}: {} records were replayed behind a clean stop", of_node.records))
                }
                Some(of_node) => recovery.add(&of_node),
                None => problems.push(format!("node {node} announced no recovery: {output}")),
            }
        }
        (recovery, problems)
    }

    /// Writes and moves until the power fails as planned.
    fn load_and_cut(&mut self, plan: &Plan, guest: &mut Guest, tally: &mut Tally) -> Result<(), Vec<String>> {
        let stage = Stage::new(&self.doors, &self.course);
        let first = CLIENTS_OF_ROUND * plan.round as usize;
        let (promised, history, moves) = thread::scope(|scope| {
            let (stage, seed) = (&stage, plan.client_seed);
            let client = |number| scope.spawn(move || Client::new(stage, number, seed).run());
            let clients: Vec<_> = (first..first + CLIENTS).map(client).collect();
            let mover = plan.moves.then(|| scope.spawn(move || mover::run(stage, seed)));
            let clock = self.wait_for_cut(plan, guest, stage);
            stage.is_over.store(true, Ordering::SeqCst);
            // The disk is dead before the machine: what the machine says in between it does not have from the disk.
            self.rig.disk().cut_now();
            guest.end();
            let moves = mover.map(|mover| mover.join().expect("it does not panic")).unwrap_or_default();
            let history: Vec<Operation> =
                clients.into_iter().flat_map(|client| client.join().expect("it does not panic")).collect();
            (clock, history, moves)
        });
        let output = guest.output();
        let is_stopped =
            (0..self.doors.len()).all(|node| console::ended_with(&console::of_node(&output, node)).is_some());
        (self.is_left_clean, tally.stops) = (is_stopped, u64::from(is_stopped));
        let clock = promised.map_err(|problem| vec![problem])?;
        let promised_us = match plan.promise {
            Promise::Interval if !is_stopped => clock.promised(guest.tick()),
            _ => u64::MAX,
        };
        (tally.moves, tally.is_move_cut) = (moves, moves.ordered > moves.arrived);
        tally.answered = stage.answered.load(Ordering::SeqCst);
        tally.unanswered = history.len() as u64 - tally.answered;
        let mut problems = self.past.add(history, promised_us);
        problems.extend((0..self.doors.len()).filter_map(|node| told::panic(&console::of_node(&output, node))));
        problems.extend(well(&output).err().into_iter().flatten());
        if !problems.is_empty() {
            return Err(problems);
        }
        tally.lost = self.rig.after_cut(plan.cut)?;
        Ok(())
    }

    /// Waits until the load is what is planned, sets the cut up, and waits until it has come.
    fn wait_for_cut(&self, plan: &Plan, guest: &mut Guest, stage: &Stage<'_>) -> Result<Clock<u64>, String> {
        let (mut clock, mut is_set_up, mut ticks_before, mut ordered_before) = (Clock::default(), false, None, None);
        for _ in 0..LOOKS_MAX {
            let now_us = stage.now_us();
            let output = guest.output();
            let tick = console::last_tick(&output);
            clock.look(now_us, tick);
            let ticks = tick - *ticks_before.get_or_insert(tick);
            if self.rig.disk().is_cut() {
                return Ok(clock);
            }
            if !guest.is_well() {
                return match is_set_up && plan.stop.is_some() {
                    true => self.await_stop(guest).map(|()| clock),
                    false => Err(format!("under load: {}", guest.output())),
                };
            }
            let is_due = stage.answered.load(Ordering::SeqCst) >= plan.answered && ticks >= plan.ticks;
            if is_due && !is_set_up {
                let ordered = stage.moves_ordered.load(Ordering::SeqCst);
                let is_ordered = ordered > *ordered_before.get_or_insert(ordered);
                if !plan.moves || is_ordered {
                    self.set_up(plan, guest, stage)?;
                    is_set_up = true;
                }
            }
            thread::sleep(LOOK_EVERY);
        }
        let (answered, ordered) = (&stage.answered, &stage.moves_ordered);
        Err(format!(
            "{UNPROVEN}after minutes {answered:?} requests were answered, {ordered:?} moves ordered: {}",
            guest.output()
        ))
    }

    fn set_up(&self, plan: &Plan, guest: &mut Guest, stage: &Stage<'_>) -> Result<(), String> {
        if plan.stop != Some(Stop::CutBehind) {
            self.rig.disk().cut_after(plan.cut.after_requests);
        }
        if plan.stop.is_some() {
            stage.is_over.store(true, Ordering::SeqCst);
            guest.stop().map_err(|error| format!("asking for a stop: {error}"))?;
        }
        Ok(())
    }

    /// Waits until all nodes have ended as they were asked to, or the power has failed.
    fn await_stop(&self, guest: &Guest) -> Result<(), String> {
        for _ in 0..LOOKS_MAX {
            let output = guest.output();
            let ended: Vec<Option<String>> =
                (0..self.doors.len()).map(|node| console::ended_with(&console::of_node(&output, node))).collect();
            if let Some(status) = ended.iter().flatten().find(|status| *status != "0") {
                return Err(format!("a node ended with {status} when it was asked to stop: {output}"));
            }
            if self.rig.disk().is_cut() || ended.iter().all(Option::is_some) {
                return Ok(());
            }
            thread::sleep(LOOK_EVERY);
        }
        Err(format!("{UNPROVEN}nodes that were asked to stop do not end: {}", guest.output()))
    }
}
