//! The clients of a town: they follow redirections, go elsewhere when a node does not answer, and never send twice what may
//! have happened.

use base::Door;
use base::rng::Rng;
use wire::reply_parse::Value;

use super::oracle::{PORT, host_of};
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

/// A client with a connection to each core of each node, when it needs one; in towns whose nodes have several cores perhaps one
/// that knows nothing of cores.
pub(super) fn make(number: usize, draw: &Draw, rng: &mut Rng) -> Client {
    let slowness = if rng.chance(1, 4) { 20 } else { 1 };
    let door = if draw.cores_max > 1 && number % 2 == 1 { Door::Standalone } else { Door::Cluster };
    with_links(number, door, draw, slowness)
}

/// A client of every core of every node.
pub(super) fn with_links(number: usize, door: Door, draw: &Draw, slowness: u64) -> Client {
    let mut client = Client::new(number, Door::Cluster, 0, draw.nodes as u16 * draw.cores_max, slowness);
    for link in &mut client.links {
        (link.core, link.door) = (link.core % draw.cores_max, door);
    }
    client
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
            let Some(place) = self.pick_place(number, &action) else { return };
            self.issue((number, place), action);
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
    fn pick_place(&mut self, number: usize, action: &Action) -> Option<usize> {
        let route = action.first_key().and_then(|key| self.clients[number].routes.get(key)).copied().map(usize::from);
        let open: Vec<usize> = (0..self.clients[number].links.len()).filter(|place| self.is_open(*place)).collect();
        match route.filter(|place| open.contains(place)) {
            Some(place) => Some(place),
            None => (!open.is_empty()).then(|| open[self.rng.below(open.len() as u64) as usize]),
        }
    }

    /// Where a core of a node stands among a client's links.
    pub(super) fn place_of(&self, node: usize, core: u16) -> usize {
        node * usize::from(self.draw.cores_max) + usize::from(core)
    }

    /// The node and the core at that place.
    fn core_at(&self, place: usize) -> (usize, u16) {
        let cores_max = usize::from(self.draw.cores_max);
        (place / cores_max, (place % cores_max) as u16)
    }

    /// Whether the node is up, and has the core.
    fn is_open(&self, place: usize) -> bool {
        let (node, core) = self.core_at(place);
        self.members[node].street.machine(core).is_some()
    }

    /// A new operation, sent to a core that is up.
    pub(super) fn issue(&mut self, (number, place): (usize, usize), action: Action) {
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
        self.send((number, place), self.operations.len() - 1);
    }

    fn send(&mut self, (number, place): (usize, usize), index: usize) {
        let slowness = self.clients[number].slowness;
        let ((node, core), door) = (self.core_at(place), self.clients[number].door());
        let socket = match self.clients[number].links[place].socket {
            Some(socket) => socket,
            None => self.street(node).connect(core, door, slowness),
        };
        let requests = requests(&self.operations[index].action);
        let link = &mut self.clients[number].links[place];
        link.socket = Some(socket);
        link.pending.push_back(Pending { operation: index, replies: requests.len() });
        self.sent[index] += 1;
        let mut bytes = Vec::new();
        requests.iter().for_each(|request| encode(request, &mut bytes));
        self.street(node).write(socket, &bytes);
    }

    /// The client that has this connection to a node, and the place of the link.
    fn client_of(&self, (node, socket): (usize, Socket)) -> Option<(usize, usize)> {
        let places = self.place_of(node, 0)..self.place_of(node + 1, 0);
        let link = |client: &Client| places.clone().find(|place| client.links[*place].socket == Some(socket));
        self.clients.iter().enumerate().find_map(|(number, client)| Some((number, link(client)?)))
    }

    pub(super) fn client_received(&mut self, (node, socket): (usize, Socket), bytes: &[u8]) {
        let Some((number, place)) = self.client_of((node, socket)) else { return };
        match self.clients[number].links[place].receive(bytes) {
            Err(words) => self.violate(words),
            Ok(done) => done.into_iter().for_each(|(index, replies)| self.answered((number, place), index, &replies)),
        }
    }

    fn answered(&mut self, (number, place): (usize, usize), index: usize, replies: &[Value]) {
        let answer = match answer(&self.operations[index].action, replies) {
            Ok(answer) => answer,
            Err(words) => return self.violate(words),
        };
        if let Answer::Refused(words) = &answer
            && let Some(next) = self.next_place((number, place), index, words)
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
    fn next_place(&mut self, (number, place): (usize, usize), index: usize, words: &str) -> Option<usize> {
        let key = self.operations[index].action.first_key().map(str::to_owned);
        let is_last = self.sent[index] >= SENDS_MAX;
        let next = match words.strip_prefix("MOVED ").and_then(|rest| rest.split(' ').nth(1)) {
            Some(address) => {
                self.met.moved += 1;
                self.named_place(number, place, address)?
            }
            None if words.starts_with("CLUSTERDOWN ") => {
                self.met.down += 1;
                let (places, cores) = (self.clients[number].links.len(), usize::from(self.draw.cores_max));
                (place + cores * (1 + self.rng.below(self.members.len() as u64 - 1) as usize)) % places
            }
            None => return None,
        };
        if let Some(key) = key {
            self.clients[number].routes.insert(key, next as u16);
        }
        (!is_last && self.is_open(next)).then_some(next)
    }

    /// Where a redirection leads. Who knows nothing of cores may come to another one of that node; who was redirected within a node
    /// asked for what does not hop.
    fn named_place(&mut self, number: usize, place: usize, address: &str) -> Option<usize> {
        let (host, port) = address.split_once(':')?;
        let node = (0..self.members.len()).find(|number| host_of(*number) == host)?;
        let core = port.parse::<u16>().ok()?.checked_sub(PORT + 1)?;
        let hops = self.clients[number].door() == Door::Standalone && node != self.core_at(place).0;
        let cores = self.members[node].street.core_count();
        let any =
            if hops && cores > 0 && self.rng.chance(1, 2) { self.rng.below(u64::from(cores)) as u16 } else { core };
        (any < self.draw.cores_max).then(|| self.place_of(node, any))
    }

    /// A connection ended: what was not answered may have happened.
    pub(super) fn client_lost(&mut self, (node, socket): (usize, Socket)) {
        let Some((number, place)) = self.client_of((node, socket)) else { return };
        let client = &mut self.clients[number];
        let lost = client.links[place].break_off();
        client.routes.retain(|_, route| usize::from(*route) != place);
        lost.iter().for_each(|&index| client.lose(&self.operations[index], false));
    }

    fn check_patience(&mut self, number: usize) {
        let now_us = self.now_us();
        for place in 0..self.clients[number].links.len() {
            let (node, link) = (self.core_at(place).0, &self.clients[number].links[place]);
            let oldest = link.pending.front().map(|pending| self.operations[pending.operation].invoked_us);
            let (Some(since_us), Some(socket)) = (oldest, link.socket) else { continue };
            if now_us > since_us + PATIENCE_US {
                self.client_lost((node, socket));
                self.street(node).reset(socket);
            }
        }
    }
}
