//! What a seed draws for slots that go to and fro, and how a round goes: an order, somebody who dies in a phase of the move, whole again.

use std::thread;
use std::time::{Duration, Instant};

use base::rng::Rng;
use rustix::process::Signal;

use super::super::client::Stage;
use super::super::doors::Door;
use super::super::faults::Fired;
use super::super::fleet::Fleet;
use super::super::plan::{Fault, Kind, Step};
use super::super::standing::{Slots, Standing};
use super::super::whole::await_whole;
use super::barrage::Field;
use crate::reply::Reply;

/// How long a move may take to begin, or to come to its next phase, until the round is tried again.
const PHASE_WITHIN: Duration = Duration::from_secs(20);
/// How long orders are given again until one is obeyed: chains have to be whole, and others' moves over.
const ORDERED_WITHIN: Duration = Duration::from_secs(60);
/// How often a round is tried until its fault met the move in its phase, and slots are ordered until they have arrived.
const TRIES_MAX: usize = 6;
/// Requests that one client sends in a second at most while slots move, and between two rounds: histories are kept and judged.
const PACE_OF_MOVES: u64 = 5000;
const PACE_BETWEEN: u64 = 400;
const LOOK_EVERY: Duration = Duration::from_millis(1);
const PAUSE: Duration = Duration::from_millis(50);

/// Whom something happens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whom {
    Source,
    Target,
    Leader,
    /// The second of the source's chain.
    Second,
}

/// Where a move is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It was just agreed on.
    Ordered,
    /// The target is being filled.
    Filling,
    /// The target has everything, or serves already.
    HandingOver,
}

/// What a round has besides a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Round {
    Calm,
    Cancel,
    Kill(Whom, Phase),
    /// It stands still for three leases.
    Stop(Whom, Phase),
}

/// The most telling first: a run of few rounds takes these.
const ROUNDS: [Round; 16] = [
    Round::Kill(Whom::Source, Phase::Filling),
    Round::Kill(Whom::Target, Phase::HandingOver),
    Round::Cancel,
    Round::Kill(Whom::Leader, Phase::HandingOver),
    Round::Kill(Whom::Target, Phase::Filling),
    Round::Kill(Whom::Source, Phase::HandingOver),
    Round::Stop(Whom::Source, Phase::HandingOver),
    Round::Kill(Whom::Leader, Phase::Filling),
    Round::Kill(Whom::Second, Phase::Filling),
    Round::Stop(Whom::Target, Phase::HandingOver),
    Round::Kill(Whom::Second, Phase::HandingOver),
    Round::Cancel,
    Round::Kill(Whom::Source, Phase::Ordered),
    Round::Kill(Whom::Target, Phase::Ordered),
    Round::Kill(Whom::Leader, Phase::Ordered),
    Round::Stop(Whom::Source, Phase::Filling),
];

/// So many rounds in an order of chance; the first one is calm, and so is what is more than there are others.
pub(super) fn draw(rng: &mut Rng, count: usize) -> Vec<Round> {
    let mut rounds: Vec<Round> = ROUNDS.into_iter().take(count.saturating_sub(1)).collect();
    rounds.resize(count.saturating_sub(1), Round::Calm);
    for index in (1..rounds.len()).rev() {
        rounds.swap(index, rng.below(index as u64 + 1) as usize);
    }
    rounds.insert(0, Round::Calm);
    rounds
}

/// What came of all rounds.
#[derive(Clone, Debug, Default)]
pub(super) struct Moved {
    pub(super) fired: Vec<Fired>,
    /// Times that all slots came to another node.
    pub(super) arrived: u64,
    pub(super) called_off: u64,
    /// Windows without a fault, from an order until it was obeyed: when they began and ended, microseconds of the run.
    pub(super) calm: Vec<(u64, u64)>,
    /// What did not happen, so that the run proves nothing.
    pub(super) gaps: Vec<String>,
}

/// Does the rounds.
pub(super) struct Rounds<'a> {
    pub(super) fleet: &'a Fleet,
    pub(super) stage: &'a Stage<'a>,
    pub(super) field: &'a Field,
    pub(super) slots: Slots,
    pub(super) lease_ms: u64,
    pub(super) rng: Rng,
    pub(super) moved: Moved,
}

impl Rounds<'_> {
    /// One after the other; whole in between.
    ///
    /// # Errors
    /// When it does not become whole, or slots do not arrive at all.
    pub(super) fn run(&mut self, rounds: &[Round]) -> Result<(), String> {
        for round in rounds {
            let begun = Instant::now();
            self.round(*round)?;
            println!("  {round:?}: {} ms until it was whole again", begun.elapsed().as_millis());
        }
        Ok(())
    }

    fn round(&mut self, round: Round) -> Result<(), String> {
        for _ in 0..TRIES_MAX {
            let (source, target) = self.order()?;
            self.field.set_pace(PACE_OF_MOVES);
            let ordered_us = self.stage.now_us();
            let has_met = match round {
                Round::Calm => true,
                Round::Cancel => self.cancel(),
                Round::Kill(whom, phase) | Round::Stop(whom, phase) => {
                    let is_kill = matches!(round, Round::Kill(..));
                    self.harm(whom, phase, (source, target), is_kill)?
                }
            };
            if matches!(round, Round::Calm | Round::Cancel) {
                self.await_end();
            }
            let moved_us = self.stage.now_us();
            self.field.set_pace(PACE_BETWEEN);
            let has_arrived = self.settle(target)?;
            if round == Round::Calm && has_arrived {
                self.moved.calm.push((ordered_us, moved_us));
            }
            // Where the fault ended the move the slots go now.
            if !has_arrived {
                self.arrive()?;
            }
            if has_met {
                return Ok(());
            }
        }
        self.moved.gaps.push(format!("it proves nothing: {round:?} met no move in {TRIES_MAX} tries"));
        Ok(())
    }

    /// Orders the slots to another node until that is obeyed: from whom, to whom.
    fn order(&mut self) -> Result<(usize, usize), String> {
        let begun = Instant::now();
        let mut why = String::new();
        while begun.elapsed() < ORDERED_WITHIN {
            let standing = Standing::of_any(self.stage.doors);
            let source = standing.as_ref().and_then(|standing| standing.server(self.slots));
            if let (Some(standing), Some(source)) = (standing, source) {
                // Away from the chain, so that everything has to be sent.
                let is_free =
                    |node: &usize| !standing.chain(self.slots.0).iter().any(|(place, _)| *place == Some(*node));
                let others = (1..self.fleet.len()).map(|step| (source + step) % self.fleet.len());
                let target = others.clone().find(is_free).or(others.clone().next());
                let target = target.expect("there are several nodes");
                match self.ask_to_move(source, target) {
                    Ok(()) => return Ok((source, target)),
                    Err(text) => why = text,
                }
            }
            thread::sleep(PAUSE);
        }
        Err(format!("no order to move slots was obeyed in {} s: {why}", ORDERED_WITHIN.as_secs()))
    }

    fn ask_to_move(&self, source: usize, target: usize) -> Result<(), String> {
        let doors = self.stage.doors;
        let name = doors.told(Door::of_core(target, 0), &["CLUSTER", "MYID"]).ok_or("it does not say who it is")?;
        let (first, last) = (self.slots.0.to_string(), self.slots.1.to_string());
        let words = ["CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", &first, &last, "NODE", &name];
        match doors.ask(Door::of_core(source, 0), &words) {
            Ok(Reply::Status(_)) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    }

    fn cancel(&mut self) -> bool {
        let doors = self.stage.doors;
        let all = (0..doors.len()).map(|node| doors.ask(Door::of_core(node, 0), &["CLUSTER", "CANCELSLOTMIGRATIONS"]));
        let called_off = all.filter(|told| matches!(told, Ok(Reply::Status(_)))).count() > 0;
        self.moved.called_off += u64::from(called_off);
        called_off
    }

    /// Waits for the phase, harms, waits a while and makes it good again; whether the move was there, in that phase or just behind.
    fn harm(&mut self, whom: Whom, phase: Phase, ends: (usize, usize), is_kill: bool) -> Result<bool, String> {
        let Some((standing, is_met)) = self.await_phase(phase, ends) else { return Ok(false) };
        let second = standing.chain(self.slots.0).get(1).and_then(|(place, _)| *place);
        let node = match whom {
            Whom::Source => Some(ends.0),
            Whom::Target => Some(ends.1),
            Whom::Leader => standing.leader,
            Whom::Second => second,
        };
        let Some(node) = node else { return Ok(false) };
        let begun_us = self.stage.now_us();
        let (fault, kind, has_worked) = match is_kill {
            true => (Fault::Kill { node }, Kind::Kill, self.fleet.kill(node)),
            false => (Fault::Stop { node }, Kind::StopForThreeLeases, self.fleet.signal(node, Signal::STOP)),
        };
        let hold_ms = if is_kill { 100 + self.rng.below(2 * self.lease_ms) } else { 3 * self.lease_ms };
        thread::sleep(Duration::from_millis(hold_ms));
        match is_kill {
            true => self.fleet.start(node).map_err(|error| error.to_string())?,
            false => drop(self.fleet.signal(node, Signal::CONT)),
        }
        let ended_us = self.stage.now_us();
        let step = Step { kind, fault, begin_ms: begun_us / 1000, end_ms: ended_us / 1000 };
        self.moved.fired.push(Fired { step, begun_us, ended_us, has_worked });
        Ok(is_met)
    }

    /// How things stand once the move is in that phase; whether it was still under way.
    fn await_phase(&mut self, phase: Phase, (_, target): (usize, usize)) -> Option<(Standing, bool)> {
        // Somewhere in the filling, which takes a while.
        let later = Duration::from_millis(if phase == Phase::Filling { self.rng.below(150) } else { 0 });
        let (begun, mut has_begun) = (Instant::now(), false);
        while begun.elapsed() < PHASE_WITHIN {
            let Some(standing) = Standing::of_any(self.stage.doors) else { continue };
            let is_moving = standing.on_its_way(self.slots) == Some(target);
            has_begun |= is_moving;
            let chain = standing.chain(self.slots.0);
            let is_filled = chain.iter().any(|(place, is_whole)| *place == Some(target) && *is_whole);
            let has_arrived = standing.server(self.slots) == Some(target);
            match phase {
                _ if has_arrived => return Some((standing, phase == Phase::HandingOver)),
                Phase::Ordered if is_moving => return Some((standing, true)),
                Phase::Filling if is_moving && !is_filled && begun.elapsed() >= later => return Some((standing, true)),
                Phase::HandingOver if is_moving && is_filled => return Some((standing, true)),
                _ if has_begun && !is_moving => return Some((standing, false)),
                _ => thread::sleep(LOOK_EVERY),
            }
        }
        None
    }

    /// Waits until no slots are on their way, or it takes too long: then what follows says so.
    fn await_end(&self) {
        let begun = Instant::now();
        while begun.elapsed() < PHASE_WITHIN {
            let is_over = |standing: &Standing| standing.on_its_way(self.slots).is_none();
            if Standing::of_any(self.stage.doors).as_ref().is_some_and(is_over) {
                return;
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Waits until everything is whole; whether the slots are where they were to go.
    fn settle(&mut self, target: usize) -> Result<bool, String> {
        await_whole(self.stage.doors, || false)?;
        let server = Standing::of_any(self.stage.doors).and_then(|standing| standing.server(self.slots));
        let has_arrived = server == Some(target);
        self.moved.arrived += u64::from(has_arrived);
        Ok(has_arrived)
    }

    /// Moves the slots without any harm, until they have moved.
    fn arrive(&mut self) -> Result<(), String> {
        for _ in 0..TRIES_MAX {
            let (_, target) = self.order()?;
            if self.settle(target)? {
                return Ok(());
            }
        }
        Err(format!("slots did not arrive in {TRIES_MAX} moves that nobody harmed"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twenty_rounds_have_every_kind_and_few_the_first_ones() {
        for seed in 0..50 {
            let all = draw(&mut Rng::new(seed), 20);
            assert_eq!((all.len(), all[0]), (20, Round::Calm));
            assert!(ROUNDS.iter().all(|round| all.contains(round)), "seed {seed}");
            let few = draw(&mut Rng::new(seed), 5);
            assert!(few.len() == 5 && ROUNDS[..4].iter().all(|round| few.contains(round)), "seed {seed}");
        }
    }
}
