//! How a life begins: what a node reads, and how it comes to its cluster.

use manager::identity::Identity;
use manager::{Entry, Files, Manager, Start};
use wire::trust::Token;

use super::cores::Core;
use super::{Item, Running, World};
use crate::judge::Judged;
use crate::swarm::address;

impl World {
    pub(super) fn start(&mut self, id: usize, life: u64) -> Judged {
        let calm_us = 50_000;
        if self.nodes[id].life != life || self.nodes[id].running.is_some() {
            return Ok(());
        }
        let files = Files::NAMES.map(|name| self.nodes[id].disk.read(name));
        let [identity, log, snapshot] = files;
        let known = identity.as_deref().map(Identity::decode).transpose();
        let known = known.map_err(|words| format!("{id} does not know itself: {words}"))?;
        let Some(entry) = self.entry(id, known.as_ref()) else {
            // Nobody to join yet.
            self.plan(calm_us, Item::Start { id, life });
            return Ok(());
        };
        self.wander(id, known.as_ref());
        let now_us = self.agenda.now_us();
        let node = &mut self.nodes[id];
        node.incarnation += 1;
        node.is_without_power = false;
        node.number = known.as_ref().map(|known| known.node);
        node.known = known;
        node.stored_at_us = now_us;
        let newcomer = self.swarm.newcomer(id, node.port, node.incarnation << 16);
        let files = Files { identity, log, snapshot };
        let start = Start { entry, newcomer, files, seed: self.rng.next_u64() };
        let manager = Manager::new(start, self.swarm.cores).map_err(|words| format!("{id} does not start: {words}"))?;
        let cores = (0..self.swarm.cores).map(|_| Core::default()).collect();
        let running =
            Running { manager, cores, inbox: Vec::new(), is_tick_planned: false, wake_us: None, idle: (now_us, 0) };
        self.nodes[id].running = Some(running);
        self.note(format_args!("{id} starts, life {life}"));
        self.plan_tick(id);
        Ok(())
    }

    /// A node starts at another port now and then: when all are where the newest table has them, and the managers that it knows where it
    /// knows them. So there are never two of whom each looks for the other one where that is not, and nobody else knows better.
    fn wander(&mut self, id: usize, known: Option<&Identity>) {
        if !self.swarm.wanders || self.peace || self.rng.chance(2, 3) {
            return;
        }
        let Some(table) = self.judge.newest().filter(|table| table.is_created()) else { return };
        let is_found = |node: &super::Node| {
            let facts = node.number.and_then(|number| table.node(number)).map(|known| known.facts.port);
            let is_in = node.known.is_some() || node.running.is_none();
            is_in && facts.is_none_or(|port| port == node.port)
        };
        let is_where_known = |known: &Identity| {
            let port = |number: &base::NodeId| known.table.node(*number).map(|node| node.facts.port);
            let now = |number: &base::NodeId| {
                self.nodes.iter().find(|node| node.number == Some(*number)).map(|node| node.port)
            };
            known.voters.all().iter().all(|number| port(number) == now(number))
        };
        let may = known.map_or(id > 0, |known| known.table.is_created() && is_where_known(known));
        if may && self.nodes.iter().all(is_found) {
            self.nodes[id].port += 16;
            self.coverage.wandered += 1;
            let port = self.nodes[id].port;
            self.note(format_args!("{id} is at port {port} from now on"));
        }
    }

    /// How a node comes to its cluster, as who starts it says.
    fn entry(&mut self, id: usize, known: Option<&Identity>) -> Option<Entry> {
        if known.is_some_and(|known| known.table.is_created()) {
            return Some(Entry::Resume);
        }
        if id == 0 {
            let mut name = || std::array::from_fn(|_| self.rng.next_u64() as u8);
            let (cluster, token) = (name(), Token::new(name()));
            let (settings, relaxed) = (self.swarm.settings(), self.swarm.relaxed);
            return Some(Entry::Found { cluster, token, settings, relaxed, others: Vec::new() });
        }
        let token = self.nodes[0].known.as_ref().filter(|known| known.table.is_created())?.token;
        let mut addresses: Vec<String> = (1..self.swarm.nodes)
            .filter(|other| *other != id && self.nodes[*other].number.is_some() && self.rng.chance(1, 3))
            .map(|other| address(other, self.nodes[other].port))
            .collect();
        addresses.push(address(0, self.nodes[0].port));
        Some(Entry::Join { addresses, token })
    }
}
