//! A small world for leases: managers, nodes and one agreed log, with clocks that run wrong, messages that are late or lost,
//! pauses, restarts and cuts. After every event nobody but one may serve a slot.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use base::Slot;
use base::rng::Rng;
use control::lease::{Answer, Question, Renewal, Reply, Report, Voters};
use control::*;

use super::peers::{ManagerPeer, NodePeer};
use crate::rig::{Rig, newcomer, place, slots};

/// Slots that are looked at: one of each quarter.
pub const SLOTS: [u16; 4] = [1, 5000, 9000, 13000];
/// Managers are told from nodes by their numbers.
pub const FIRST_MANAGER: u32 = 100;

/// What travels.
#[derive(Clone, Debug)]
pub enum Message {
    Renewal(Renewal),
    Reply(Reply),
    Question(Question),
    Answer(Answer),
    Report(Report),
    Table(Rc<Table>),
}

#[derive(Clone, Debug)]
pub enum Event {
    Tick(NodeId),
    Deliver(NodeId, NodeId, Message),
    Agree {
        by: NodeId,
        about: NodeId,
        action: Action,
    },
    /// Somebody who stood still goes on, and may do so before it hears of anything.
    Wake,
    Fault,
}

/// What happened, so that one can see that the worlds are not empty.
#[derive(Clone, Copy, Debug, Default)]
pub struct Met {
    pub fences: u32,
    pub promotions: u32,
    pub returns: u32,
    pub restarts: u32,
    pub served: u64,
}

pub struct World {
    pub rng: Rng,
    pub now: u64,
    pub tip: Rc<Table>,
    pub log: Vec<Rc<Table>>,
    pub leader: NodeId,
    pub managers: BTreeMap<NodeId, ManagerPeer>,
    pub nodes: BTreeMap<NodeId, NodePeer>,
    pub met: Met,
    pub voters: Voters,
    clocks: BTreeMap<NodeId, (u64, u64)>,
    paused: BTreeMap<NodeId, u64>,
    cuts: BTreeSet<(NodeId, NodeId)>,
    queue: BTreeMap<(u64, u64), Event>,
    sequence: u64,
    delay_max: u64,
    faults: bool,
}

impl World {
    pub fn new(seed: u64) -> World {
        let mut rng = Rng::new(seed);
        let managers = if rng.chance(1, 3) { 5 } else { 3 };
        let ids: Vec<NodeId> = (1..=4).chain(FIRST_MANAGER..FIRST_MANAGER + managers).map(NodeId).collect();
        // The worst there is: nodes whose clocks are slow, and managers whose clocks are fast. And all others.
        let is_worst = rng.chance(1, 3);
        let clocks = ids.iter().map(|&id| {
            let worst = if id.0 >= FIRST_MANAGER { 1_050_000 } else { 950_000 };
            let rate = if is_worst { worst } else { 950_000 + rng.below(100_001) };
            (id, (rng.below(1 << 40), rate))
        });
        let clocks = clocks.collect();
        let tip = Rc::new(four_nodes());
        let delay_max = [200, 2_000, 40_000][rng.below(3) as usize];
        let mut world = World {
            now: 1,
            log: vec![tip.clone()],
            tip,
            leader: NodeId(FIRST_MANAGER),
            managers: BTreeMap::new(),
            nodes: BTreeMap::new(),
            met: Met::default(),
            voters: Voters { version: 1, sets: vec![ids[4..].to_vec()] },
            clocks,
            paused: BTreeMap::new(),
            cuts: BTreeSet::new(),
            queue: BTreeMap::new(),
            sequence: 0,
            delay_max,
            faults: true,
            rng,
        };
        for &id in &ids {
            if id.0 >= FIRST_MANAGER {
                let peer = ManagerPeer::start(&mut world, id);
                world.managers.insert(id, peer);
            } else {
                let peer = NodePeer::start(&world, id, 1);
                world.nodes.insert(id, peer);
            }
            world.schedule(1, Event::Tick(id));
        }
        world.set_leader(NodeId(FIRST_MANAGER));
        world.schedule(400_000, Event::Fault);
        world
    }

    /// The clock of a machine, microseconds.
    pub fn clock(&self, id: NodeId) -> u64 {
        let (offset, rate) = self.clocks[&id];
        offset + self.now * rate / 1_000_000
    }

    pub fn schedule(&mut self, delay: u64, event: Event) {
        self.sequence += 1;
        self.queue.insert((self.now + delay, self.sequence), event);
    }

    /// One moment for a machine to act again: soon, at an uneven pace.
    pub fn tick_again(&mut self, id: NodeId) {
        let delay = 4_000 + self.rng.below(12_000);
        self.schedule(delay, Event::Tick(id));
    }

    pub fn is_cut(&self, from: NodeId, to: NodeId) -> bool {
        self.cuts.contains(&(from, to))
    }

    /// Whether two hear each other.
    pub fn are_joined(&self, one: NodeId, other: NodeId) -> bool {
        !self.is_cut(one, other) && !self.is_cut(other, one)
    }

    pub fn send(&mut self, from: NodeId, to: NodeId, message: Message) {
        let is_lost = self.is_cut(from, to) || (self.faults && self.rng.chance(1, 50));
        if is_lost {
            return;
        }
        let delay = 1 + self.rng.below(self.delay_max);
        self.schedule(delay, Event::Deliver(from, to, message));
    }

    /// Run until `until`; `Err` says who served what together.
    pub fn run(&mut self, until: u64) -> Result<(), String> {
        while let Some((&key, _)) = self.queue.first_key_value() {
            if key.0 > until {
                break;
            }
            let event = self.queue.remove(&key).expect("it was looked at");
            self.now = key.0;
            self.happen(event);
            self.judge()?;
        }
        self.now = until;
        Ok(())
    }

    fn happen(&mut self, event: Event) {
        let whose = match &event {
            Event::Tick(id) | Event::Deliver(_, id, _) | Event::Agree { by: id, .. } => Some(*id),
            Event::Wake | Event::Fault => None,
        };
        // Who stands still does what it has to do when it goes on.
        if let Some(until) = whose.and_then(|id| self.paused.get(&id)).copied().filter(|until| *until > self.now) {
            let delay = until - self.now;
            return self.schedule(delay, event);
        }
        match event {
            Event::Tick(id) if id.0 >= FIRST_MANAGER => self.manager_tick(id),
            Event::Tick(id) => self.node_tick(id),
            Event::Deliver(from, to, message) => self.deliver(from, to, message),
            Event::Agree { by, about, action } => {
                let is_agreed = self.leader == by && self.agree(action);
                if !is_agreed {
                    self.manager(by).judge.on_failed(about);
                }
            }
            Event::Wake => {}
            Event::Fault => self.fault(),
        }
    }

    /// Append to the log; whether it changed something.
    pub fn agree(&mut self, action: Action) -> bool {
        let index = self.tip.version() + 1;
        let mut table = (*self.tip).clone();
        let command = Command { id: RequestId { proposer: 1, number: index }, action: action.clone() };
        match table.apply(index, &command) {
            Outcome::Refused(_) => false,
            Outcome::Changed { .. } => {
                self.met.fences += u32::from(matches!(action, Action::Fence { .. }));
                self.met.promotions += u32::from(matches!(action, Action::Promote { .. }));
                self.met.returns += u32::from(matches!(action, Action::Returned(_)));
                self.tip = Rc::new(table);
                self.log.push(self.tip.clone());
                true
            }
        }
    }

    fn set_leader(&mut self, leader: NodeId) {
        self.leader = leader;
        // Who led before learns it a while later, with the next tick of its own that hears of it.
        self.manager(leader).judge.set_leading(true);
    }

    pub fn manager(&mut self, id: NodeId) -> &mut ManagerPeer {
        self.managers.get_mut(&id).expect("managers stay")
    }

    fn fault(&mut self) {
        if !self.faults {
            return;
        }
        let delay = 20_000 + self.rng.below(200_000);
        self.schedule(delay, Event::Fault);
        let everybody: Vec<NodeId> = self.clocks.keys().copied().collect();
        let any = |rng: &mut Rng| everybody[rng.below(everybody.len() as u64) as usize];
        match self.rng.below(14) {
            0..2 => {
                let victim = any(&mut self.rng);
                for other in everybody.into_iter().filter(|other| *other != victim) {
                    let (to, from) = (self.rng.chance(2, 3), self.rng.chance(2, 3));
                    let pairs = [(to, (victim, other)), (from, (other, victim))];
                    self.cuts.extend(pairs.into_iter().filter(|(is_cut, _)| *is_cut).map(|(_, pair)| pair));
                }
            }
            2..4 => self.cuts.clear(),
            4..6 => {
                let (victim, length) = (any(&mut self.rng), 20_000 + self.rng.below(900_000));
                self.paused.insert(victim, self.now + length);
                self.schedule(length, Event::Wake);
            }
            6..8 => self.restart_managers(1),
            8 => {
                let victim = NodeId(1 + self.rng.below(4) as u32);
                let incarnation = self.nodes[&victim].incarnation + 1;
                let peer = NodePeer::start(self, victim, incarnation);
                self.nodes.insert(victim, peer);
            }
            9 => {
                let managers: Vec<NodeId> = self.managers.keys().copied().collect();
                let next = managers[self.rng.below(managers.len() as u64) as usize];
                self.set_leader(next);
            }
            10 | 11 => drop(self.fence_somebody()),
            _ => {
                // Somebody is fenced and does not hear of it, and those who should remember what they granted start again.
                let victim = self.fence_somebody();
                let managers: Vec<NodeId> = self.managers.keys().copied().collect();
                self.cuts.extend(managers.into_iter().map(|manager| (manager, victim)));
                if self.rng.chance(1, 2) {
                    self.restart_managers(3);
                }
            }
        }
    }

    /// Some managers start again, with what they had some moments ago.
    fn restart_managers(&mut self, most: u64) {
        let managers: Vec<NodeId> = self.managers.keys().copied().collect();
        for _ in 0..1 + self.rng.below(most) {
            let victim = managers[self.rng.below(managers.len() as u64) as usize];
            let peer = ManagerPeer::start(self, victim);
            self.managers.insert(victim, peer);
            self.met.restarts += 1;
            if victim == self.leader {
                self.manager(victim).judge.set_leading(true);
            }
        }
    }

    /// An operator fences a node that may well be healthy.
    fn fence_somebody(&mut self) -> NodeId {
        let node = NodeId(1 + self.rng.below(4) as u32);
        let incarnation = self.tip.node(node).expect("nodes stay").facts.incarnation;
        self.agree(Action::Fence { node, incarnation });
        node
    }

    /// No faults any more.
    pub fn heal(&mut self) {
        self.faults = false;
        self.cuts.clear();
        self.paused.clear();
    }

    /// Who serves `slot` at this moment, by what each knows itself.
    pub fn serving(&self, slot: u16) -> Vec<NodeId> {
        let is_standing = |id: &NodeId| self.paused.get(id).is_some_and(|until| *until > self.now);
        let serves = |(id, node): &(&NodeId, &NodePeer)| {
            !is_standing(id)
                && node.table.stretch(Slot::wrapping(slot)).chain.primary().is_some_and(|first| first.node == **id)
                && node.table.lets_serve(**id, node.incarnation)
                && node.lease.may_serve(self.clock(**id))
        };
        self.nodes.iter().filter(serves).map(|(id, _)| *id).collect()
    }

    fn judge(&mut self) -> Result<(), String> {
        for slot in SLOTS {
            let serving = self.serving(slot);
            self.met.served += serving.len() as u64;
            if serving.len() > 1 {
                return Err(format!("at {} slot {slot} is served by {serving:?}", self.now));
            }
        }
        Ok(())
    }
}

/// Four nodes, each first of a quarter, the next one behind.
fn four_nodes() -> Table {
    let mut rig = Rig::founded(newcomer(1, 1, "", "a"), 2);
    for (id, machine) in [(2, "b"), (3, "c"), (4, "d")] {
        rig.done(Action::Join(newcomer(id, 1, "", machine)));
    }
    for quarter in 1..4u16 {
        let (part, to) = (slots(quarter * 4096, quarter * 4096 + 4095), place(u32::from(quarter) + 1, 0));
        rig.done(Action::MoveBegin { slots: part, epoch: rig.table.version(), from: place(1, 0), to });
        rig.fill();
        let id = rig.table.moves()[0].id;
        rig.done(Action::HandOver { id, epoch: rig.table.version() });
        rig.done(Action::MoveEnd { id });
    }
    for quarter in 0..4u16 {
        let (first, second) = (u32::from(quarter) + 1, (u32::from(quarter) + 1) % 4 + 1);
        let part = slots(quarter * 4096, quarter * 4096 + 4095);
        let replace = |rig: &mut Rig, nodes: &[u32]| {
            let (epoch, places) = (rig.table.version(), nodes.iter().map(|&node| place(node, 0)).collect());
            rig.done(Action::Replace { slots: part, epoch, places, counted: true });
            rig.fill();
        };
        if ![first, second].contains(&1) {
            replace(&mut rig, &[first, 1, second]);
        }
        replace(&mut rig, &[first, second]);
    }
    assert_eq!((rig.chain(0), rig.chain(16383)), ("[1.0 2.0]".to_owned(), "[4.0 1.0]".to_owned()));
    rig.table
}
