//! What goes wrong, and the peace after it.

use base::Event;
use control::{Action, Command, RequestId};
use manager::message::Message;

use super::{Input, Item, World};
use crate::judge::Judged;
use crate::swarm::rarely;

/// Under what an operator proposes.
const OPERATOR: u64 = 1 << 61;
/// How long a node is away at most, microseconds.
const AWAY_US_MAX: u64 = 2_500_000;

impl World {
    pub(super) fn on_trouble(&mut self) {
        if self.peace {
            return;
        }
        let pause_us = 20_000 + self.rng.below(self.swarm.between_ms_max * 1000);
        self.plan(pause_us, Item::Trouble);
        if self.swarm.calm_start && !self.is_calm_over() {
            return;
        }
        let id = self.rng.below(self.nodes.len() as u64) as usize;
        match self.rng.below(10) {
            0 | 1 if self.swarm.cuts => self.cut_some(id),
            2 => self.mend(),
            3 if self.swarm.pauses => self.pause(id),
            4 if self.swarm.crashes => self.crash_some(id),
            5 if self.swarm.crashes => self.crash(id),
            6 if self.swarm.resets => self.reset_some(id),
            7 => self.fence_by_cut(id),
            8 | 9 if self.swarm.orders => self.order_some(id),
            _ => {}
        }
    }

    pub(super) fn is_troubled(&self) -> bool {
        !self.peace && (self.is_disturbed || !self.swarm.calm_start)
    }

    /// Every node is in, and every chain as it shall be: from then on there is trouble.
    fn is_calm_over(&mut self) -> bool {
        self.is_disturbed |= self.unsettled().is_none();
        self.is_disturbed
    }

    /// One node, or it and others at the same moment.
    fn crash_some(&mut self, id: usize) {
        self.crash(id);
        if self.rng.chance(1, 3) {
            let also: Vec<usize> = (0..self.nodes.len()).filter(|_| self.rng.chance(1, 2)).collect();
            also.into_iter().for_each(|id| self.crash(id));
        }
    }

    fn crash(&mut self, id: usize) {
        if self.nodes[id].running.is_some() {
            let power = self.rng.chance(1, 2);
            let away_us = 5_000 + rarely(&mut self.rng, 2, (200_000, AWAY_US_MAX));
            self.die(id, power, away_us);
        }
    }

    pub(super) fn on_darken(&mut self, id: usize, life: u64) {
        if self.nodes[id].life == life && self.nodes[id].running.is_some() {
            let away_us = 5_000 + self.rng.below(AWAY_US_MAX);
            self.die(id, true, away_us);
        }
    }

    /// A life ends, and another one begins after a while.
    pub(super) fn die(&mut self, id: usize, power: bool, away_us: u64) {
        let now_us = self.agenda.now_us();
        let life = self.nodes[id].life;
        let node = &mut self.nodes[id];
        node.running = None;
        node.life += 1;
        node.paused_until_us = 0;
        node.is_without_power = power;
        if power {
            let is_torn = node.disk.cut_power(&mut self.rng);
            self.coverage.torn += u64::from(is_torn);
            self.coverage.power_cuts += 1;
            let offset_us = 1 + self.rng.below(2_000_000);
            self.nodes[id].clock.boot(now_us, offset_us);
        } else {
            node.disk.kill(&mut self.rng);
            self.coverage.kills += 1;
        }
        self.close_all(id, life, !power);
        self.note(format_args!("{id} dies, power {power}"));
        let life = self.nodes[id].life;
        self.plan(away_us, Item::Start { id, life });
    }

    /// One way, one node in one direction or both, or one half from the other.
    fn cut_some(&mut self, id: usize) {
        let others: Vec<usize> = (0..self.nodes.len()).filter(|other| *other != id).collect();
        match self.rng.below(5) {
            0 => {
                let other = others[self.rng.below(others.len() as u64) as usize];
                self.cut.insert((id, other));
            }
            1 => self.cut.extend(others.iter().map(|other| (id, *other))),
            2 => self.cut.extend(others.iter().map(|other| (*other, id))),
            3 => self.cut.extend(others.iter().flat_map(|other| [(id, *other), (*other, id)])),
            _ => {
                let is_there: Vec<bool> = self.nodes.iter().map(|_| self.rng.chance(1, 2)).collect();
                let all = 0..self.nodes.len();
                let pairs = all.clone().flat_map(|from| all.clone().map(move |to| (from, to)));
                self.cut.extend(pairs.filter(|(from, to)| is_there[*from] != is_there[*to]));
            }
        }
        self.coverage.partitions += 1;
        let cut = format!("{:?}", self.cut);
        self.note(format_args!("cut {cut}"));
    }

    /// A node is fenced and hears of nothing; some managers, who should remember what they granted, may start again meanwhile.
    fn fence_by_cut(&mut self, id: usize) {
        if !self.swarm.cuts {
            return;
        }
        self.fence(id);
        self.cut.extend((0..self.nodes.len()).filter(|other| *other != id).map(|other| (other, id)));
        self.coverage.partitions += 1;
        if self.swarm.crashes && self.rng.chance(1, 2) {
            let others: Vec<usize> =
                (0..self.nodes.len()).filter(|other| *other != id && self.nodes[*other].running.is_some()).collect();
            for other in others {
                if self.rng.chance(2, 3) {
                    let away_us = 1_000 + self.rng.below(100_000);
                    self.die(other, false, away_us);
                }
            }
        }
    }

    /// An operator asks everybody to fence a node that may well be healthy; who leads does it.
    fn fence(&mut self, id: usize) {
        let Some(known) = self.judge.newest().zip(self.nodes[id].number).and_then(|(table, node)| table.node(node))
        else {
            return;
        };
        let action = Action::Fence { node: known.id(), incarnation: known.facts.incarnation };
        self.note(format_args!("{id} is fenced by an operator"));
        self.asked += 1;
        let number = self.asked;
        let command = Command { id: RequestId { proposer: OPERATOR, number }, action };
        for to in 0..self.nodes.len() {
            if let Some(known) = self.nodes[to].known.clone() {
                self.ask(to, &known, number, Message::Propose { number, command: command.clone() });
            }
        }
    }

    fn mend(&mut self) {
        self.cut.clear();
        self.note(format_args!("no way is cut"));
        self.release();
    }

    fn pause(&mut self, id: usize) {
        let length_us = if self.rng.chance(1, 3) { 20_000 } else { 300_000 } + self.rng.below(1_500_000);
        self.stand_still(id, length_us);
    }

    /// Nothing of a node goes on for a while.
    pub(super) fn stand_still(&mut self, id: usize, length_us: u64) {
        let until_us = self.agenda.now_us() + length_us;
        let (life, node) = (self.nodes[id].life, &mut self.nodes[id]);
        if node.running.is_none() || node.paused_until_us >= self.agenda.now_us() {
            return;
        }
        node.paused_until_us = until_us;
        self.coverage.pauses += 1;
        self.note(format_args!("{id} stands still until {until_us}"));
        self.plan(length_us, Item::Resume { id, life });
    }

    pub(super) fn on_resume(&mut self, id: usize, life: u64) -> Judged {
        if !self.is_awake(id, life) {
            return Ok(());
        }
        // In which order its threads go on is chance: the cores may answer before they hear anything.
        self.judge_serving()?;
        if self.rng.chance(1, 2) {
            self.hear_all(id, life)?;
        } else {
            for core in 0..self.swarm.cores {
                let delay_us = self.rng.below(5_000);
                self.plan(delay_us, Item::Told { id, life, core: base::CoreId(core) });
            }
        }
        self.plan_tick(id);
        Ok(())
    }

    /// From now on nothing goes wrong, and everybody comes back.
    pub(super) fn on_peace(&mut self) {
        self.peace = true;
        self.peace_us = self.agenda.now_us();
        self.note(format_args!("peace"));
        self.mend();
        for id in 0..self.nodes.len() {
            let life = self.nodes[id].life;
            self.plan(0, Item::Start { id, life });
            self.nodes[id].paused_until_us = self.nodes[id].paused_until_us.min(self.peace_us);
            self.plan(0, Item::Resume { id, life });
        }
        self.plan(0, Item::Look);
    }

    /// The oldest write of a node is done, or fails.
    pub(super) fn on_stored(&mut self, id: usize, life: u64) {
        if self.nodes[id].life != life {
            return;
        }
        let fails = !self.peace && self.rng.below(10_000) < self.swarm.failed_writes_of_10000;
        if fails {
            let token = self.nodes[id].disk.fail(&mut self.rng);
            self.coverage.failed_writes += 1;
            self.note(format_args!("{id}'s write fails"));
            self.tell(id, life, Input::Event(Event::FileFailed { token, reason: "the disk is full".to_owned() }));
            // Somebody looks after it some time.
            let delay_us = 100_000 + self.rng.below(AWAY_US_MAX);
            self.plan(delay_us, Item::Bury { id, life });
            return;
        }
        let token = self.nodes[id].disk.complete();
        self.tell(id, life, Input::Event(Event::FileDurable { token }));
    }

    pub(super) fn on_bury(&mut self, id: usize, life: u64) {
        if self.nodes[id].life == life && self.nodes[id].running.is_some() {
            self.die(id, false, 100_000);
        }
    }
}
