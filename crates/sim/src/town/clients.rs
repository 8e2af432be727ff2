//! The clients of a town: they follow redirections, go elsewhere when a node does not answer, and never send twice what may
//! have happened.

use base::Door;
use base::rng::Rng;
use wire::reply_parse::Value;

use super::oracle::host_of;
use super::{Draw, Item, Phase, Town};
use crate::client::{Client, Pending};
use crate::history::{Action, Answer, Operation, answer, encode, requests};
use crate::network::Socket;
use crate::workload;

/// How long a client waits for a reply before it gives up the connection, microseconds.
const PATIENCE_US: u64 = 1_500_000;
/// How long clients go on in the hope of an answer, microseconds.
const WORK_US_MAX: u64 = 60_000_000;
/// How often an operation is sent, as long as it is only refused.
const SENDS_MAX: u32 = 5;

/// A client with a connection to each node, when it needs one.
pub(super) fn make(number: usize, draw: &Draw, rng: &mut Rng) -> Client {
    Client::new(number, Door::Cluster, 0, draw.nodes as u16, if rng.chance(1, 4) { 20 } else { 1 })
}

impl Town {
    pub(super) fn client_turn(&mut self, number: usize) {
        let pause_us = 1 + self.rng.below(self.draw.swarm.think_us_max + 300);
        self.agenda.after(pause_us, Item::Client(number));
        self.check_patience(number);
        if self.phase != Phase::Working || number >= self.draw.swarm.clients {
            return;
        }
        if self.is_enough() && !self.must_go_on() {
            return self.begin_healing();
        }
        // Only so that somebody sees what goes wrong.
        if self.is_enough() && !self.rng.chance(1, 8) {
            return;
        }
        let burst = 1 + self.rng.below(self.draw.swarm.pipeline_max);
        for _ in 0..burst {
            if self.clients[number].pending() as u64 >= self.draw.swarm.pipeline_max {
                return;
            }
            let action = workload::next(&mut self.clients[number], &self.draw.swarm, &mut self.rng);
            let Some(node) = self.pick_node(number, &action) else { return };
            self.issue((number, node), action);
            self.issued += 1;
        }
    }

    fn is_enough(&self) -> bool {
        let is_answered = self.ok * 2 >= self.wish.steps || self.now_us() > WORK_US_MAX;
        self.issued >= self.wish.steps && is_answered
    }

    fn must_go_on(&self) -> bool {
        !self.troubles.are_over()
    }

    /// Where a request of a client goes: where its key was last time, or anywhere.
    fn pick_node(&mut self, number: usize, action: &Action) -> Option<usize> {
        let route = action.first_key().and_then(|key| self.clients[number].routes.get(key)).copied().map(usize::from);
        let up: Vec<usize> = (0..self.members.len()).filter(|node| self.members[*node].street.is_up()).collect();
        match route.filter(|node| up.contains(node)) {
            Some(node) => Some(node),
            None => (!up.is_empty()).then(|| up[self.rng.below(up.len() as u64) as usize]),
        }
    }

    /// A new operation, sent to a node that is up.
    pub(super) fn issue(&mut self, (number, node): (usize, usize), action: Action) {
        self.moment += 1;
        self.sent.push(0);
        self.operations.push(Operation {
            client: number,
            action,
            invoked: self.moment,
            returned: u64::MAX,
            invoked_us: self.now_us(),
            returned_us: u64::MAX,
            answer: Answer::None,
        });
        self.send((number, node), self.operations.len() - 1);
    }

    fn send(&mut self, (number, node): (usize, usize), index: usize) {
        let slowness = self.clients[number].slowness;
        let socket = match self.clients[number].links[node].socket {
            Some(socket) => socket,
            None => self.street(node).connect(0, Door::Cluster, slowness),
        };
        let requests = requests(&self.operations[index].action);
        let link = &mut self.clients[number].links[node];
        link.socket = Some(socket);
        link.pending.push_back(Pending { operation: index, replies: requests.len() });
        self.sent[index] += 1;
        let mut bytes = Vec::new();
        requests.iter().for_each(|request| encode(request, &mut bytes));
        self.street(node).write(socket, &bytes);
    }

    fn client_of(&self, (node, socket): (usize, Socket)) -> Option<usize> {
        self.clients.iter().position(|client| client.links[node].socket == Some(socket))
    }

    pub(super) fn client_received(&mut self, (node, socket): (usize, Socket), bytes: &[u8]) {
        let Some(number) = self.client_of((node, socket)) else { return };
        match self.clients[number].links[node].receive(bytes) {
            Err(words) => self.violate(words),
            Ok(done) => done.into_iter().for_each(|(index, replies)| self.answered((number, node), index, &replies)),
        }
    }

    fn answered(&mut self, (number, node): (usize, usize), index: usize, replies: &[Value]) {
        let answer = match answer(&self.operations[index].action, replies) {
            Ok(answer) => answer,
            Err(words) => return self.violate(words),
        };
        if let Answer::Refused(words) = &answer
            && let Some(next) = self.next_node((number, node), index, words)
        {
            return self.send((number, next), index);
        }
        self.moment += 1;
        self.ok += u64::from(matches!(answer, Answer::Reply(_)));
        let now_us = self.now_us();
        let operation = &mut self.operations[index];
        (operation.returned, operation.returned_us, operation.answer) = (self.moment, now_us, answer);
        self.clients[number].learn(operation);
    }

    /// Where an operation that was refused is sent next, if it is.
    fn next_node(&mut self, (number, node): (usize, usize), index: usize, words: &str) -> Option<usize> {
        let key = self.operations[index].action.first_key().map(str::to_owned);
        let is_last = self.sent[index] >= SENDS_MAX;
        let next = match words.strip_prefix("MOVED ").and_then(|rest| rest.split([' ', ':']).nth(1)) {
            Some(host) => {
                self.met.moved += 1;
                (0..self.members.len()).find(|number| host_of(*number) == host)?
            }
            None if words.starts_with("CLUSTERDOWN ") => {
                self.met.down += 1;
                (node + 1 + self.rng.below(self.members.len() as u64 - 1) as usize) % self.members.len()
            }
            None => return None,
        };
        if let Some(key) = key {
            self.clients[number].routes.insert(key, next as u16);
        }
        (!is_last && self.members[next].street.is_up()).then_some(next)
    }

    /// A connection ended: what was not answered may have happened.
    pub(super) fn client_lost(&mut self, (node, socket): (usize, Socket)) {
        let Some(number) = self.client_of((node, socket)) else { return };
        let client = &mut self.clients[number];
        let lost = client.links[node].break_off();
        client.routes.retain(|_, route| usize::from(*route) != node);
        lost.iter().for_each(|&index| client.lose(&self.operations[index], false));
    }

    fn check_patience(&mut self, number: usize) {
        let now_us = self.now_us();
        for node in 0..self.members.len() {
            let link = &self.clients[number].links[node];
            let oldest = link.pending.front().map(|pending| self.operations[pending.operation].invoked_us);
            let (Some(since_us), Some(socket)) = (oldest, link.socket) else { continue };
            if now_us > since_us + PATIENCE_US {
                self.client_lost((node, socket));
                self.street(node).reset(socket);
            }
        }
    }
}
