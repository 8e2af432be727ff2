//! Who lives in the world of leases: what a manager and a node do with each event.

use std::rc::Rc;

use control::lease::{Grants, Judge, NodeLease, Wish};
use control::*;

use super::world::{Event, Message, World};

/// A manager as one start of it is.
pub struct ManagerPeer {
    pub table: Rc<Table>,
    pub grants: Grants,
    pub judge: Judge,
    /// How much of the log it has obeyed.
    applied: usize,
    /// What it has to obey until it knows that its table is current.
    confirmed: Option<usize>,
    reported: u64,
}

/// A node as one start of it is.
pub struct NodePeer {
    pub table: Rc<Table>,
    pub lease: NodeLease,
    pub incarnation: u64,
}

impl ManagerPeer {
    /// It starts with some table that it had: what it obeyed last need not be there.
    pub fn start(world: &mut World, id: NodeId) -> ManagerPeer {
        let had = world.managers.get(&id).map_or(0, |peer| peer.applied);
        let applied = had - world.rng.below(had.min(4) as u64 + 1) as usize;
        let table = world.log[applied].clone();
        let now = world.clock(id);
        let grants = Grants::start(now, &table, 1);
        let judge = Judge::start(now, &table, world.voters.clone());
        ManagerPeer { table, grants, judge, applied, confirmed: None, reported: 0 }
    }
}

impl NodePeer {
    /// It starts with the table it knew last.
    pub fn start(world: &World, id: NodeId, incarnation: u64) -> NodePeer {
        let table = world.nodes.get(&id).map_or(world.tip.clone(), |peer| peer.table.clone());
        let lease_us = u64::from(table.settings().lease_ms) * 1000;
        NodePeer { lease: NodeLease::new(id, incarnation, world.voters.clone(), lease_us), table, incarnation }
    }
}

impl World {
    pub fn manager_tick(&mut self, id: NodeId) {
        self.obey(id);
        let now = self.clock(id);
        let leader = self.leader;
        let is_told = id == leader || self.are_joined(id, leader);
        if id != leader && is_told && self.rng.chance(1, 10) {
            self.manager(id).judge.set_leading(false);
        }
        let table = self.manager(id).table.clone();
        let lease_us = u64::from(table.settings().lease_ms) * 1000;
        if now - self.manager(id).reported.min(now) >= lease_us / 3 {
            let manager = self.manager(id);
            manager.reported = now;
            let report = manager.grants.report(now, &table);
            self.send(id, leader, Message::Report(report));
        }
        if self.rng.chance(1, 8) {
            let node = NodeId(1 + self.rng.below(4) as u32);
            self.send(id, node, Message::Table(table.clone()));
        }
        for wish in self.manager(id).judge.wishes(now, &table) {
            match wish {
                Wish::Propose { node, action } => {
                    let delay = 1 + self.rng.below(3_000);
                    self.schedule(delay, Event::Agree { by: id, about: node, action });
                }
                Wish::Ask { manager, question } => self.send(id, manager, Message::Question(question)),
            }
        }
        self.tick_again(id);
    }

    /// Obey some of what was agreed, as far as the leader is heard; and know by that whether the table is current.
    fn obey(&mut self, id: NodeId) {
        let (last, leader) = (self.log.len() - 1, self.leader);
        if id != leader && !self.are_joined(id, leader) {
            return;
        }
        let steps = if self.rng.chance(1, 3) { 0 } else { self.rng.below(4) as usize };
        let applied = (self.manager(id).applied + steps).min(last);
        let table = self.log[applied].clone();
        if applied != self.manager(id).applied {
            (1..=4).for_each(|node| self.send(id, NodeId(node), Message::Table(table.clone())));
        }
        let manager = self.manager(id);
        (manager.applied, manager.table) = (applied, table);
        let confirmed = *manager.confirmed.get_or_insert(last);
        if applied >= confirmed {
            manager.grants.set_current();
        }
    }

    pub fn node_tick(&mut self, id: NodeId) {
        let now = self.clock(id);
        let node = self.nodes.get_mut(&id).expect("nodes stay");
        for (manager, renewal) in node.lease.renewals(now) {
            self.send(id, manager, Message::Renewal(renewal));
        }
        if self.nodes[&id].lease.is_over() {
            let incarnation = self.nodes[&id].incarnation + 1;
            let peer = NodePeer::start(self, id, incarnation);
            self.nodes.insert(id, peer);
        }
        if self.are_joined(id, self.leader) && self.rng.chance(1, 4) {
            self.come_back(id);
            self.prove_whole(id);
        }
        self.tick_again(id);
    }

    /// A node that is down says that it is there.
    fn come_back(&mut self, node: NodeId) {
        let known = self.tip.node(node).expect("nodes stay");
        let incarnation = self.nodes[&node].incarnation;
        if known.state == NodeState::Down && known.facts.incarnation < incarnation {
            let (host, port, cores) = (known.facts.host.clone(), known.facts.port, known.facts.cores);
            self.agree(Action::Returned(Comeback { node, incarnation, host, port, cores, takes_address: true }));
        }
    }

    /// The first of a chain has filled a member.
    fn prove_whole(&mut self, first: NodeId) {
        let filling = self.tip.stretches().find_map(|(slots, stretch)| {
            let member = stretch.chain.iter().find(|member| !member.whole)?;
            (stretch.chain.primary()?.node == first).then_some((slots, member.place.node))
        });
        if let Some((slots, node)) = filling {
            let epoch = self.tip.version();
            self.agree(Action::Whole { slots, node, epoch });
        }
        if self.rng.chance(1, 10) {
            for action in plan::fill_up(&self.tip) {
                self.agree(action);
            }
        }
    }

    pub fn deliver(&mut self, from: NodeId, to: NodeId, message: Message) {
        let now = self.clock(to);
        match message {
            Message::Renewal(renewal) => {
                let manager = self.manager(to);
                let table = manager.table.clone();
                let reply = manager.grants.on_renewal(now, &table, renewal);
                self.send(to, from, Message::Reply(reply));
            }
            Message::Question(question) => {
                let manager = self.manager(to);
                let answer = manager.grants.answer(now, &manager.table, question);
                self.send(to, from, Message::Answer(answer));
            }
            Message::Answer(answer) => self.manager(to).judge.on_answer(now, from, answer),
            Message::Report(report) => self.manager(to).judge.on_report(now, from, report),
            Message::Reply(reply) => self.nodes.get_mut(&to).expect("nodes stay").lease.on_reply(from, reply),
            Message::Table(table) => {
                let node = self.nodes.get_mut(&to).expect("nodes stay");
                if table.version() > node.table.version() {
                    node.table = table;
                }
            }
        }
    }
}
