//! A town: nodes, pipes, clients, and a manager that is always right.

mod fills;
mod harm;
mod moves;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use base::rng::Rng;
use base::{
    ConnectionId, CoreId, Database, Door, Effect, Entrance, Event, InstanceName, Machine, NodeId, Now, Slot, Span,
    TickInput, TickOutput,
};
use placement::{Chain, ClusterView, NodePlace, NodeTable};
use storage::log::LogIdentity;
use wire::trust::Token;

use crate::hop::{Control, HopBatch};
use crate::{Durability, NodeState, Shard, ShardConfig};

const CLUSTER: [u8; 16] = [5; 16];
const CLIENTS: usize = 6;
const KEYS: u64 = 12;
/// Node n, from 1, listens from here on.
const PORT: u16 = 1000;

/// One direction of a connection between two nodes.
struct Pipe {
    to: (usize, ConnectionId),
    bytes: VecDeque<u8>,
    /// The sender's buffer, until all is under way.
    is_closed: bool,
}

struct Node {
    shard: Shard,
    is_up: bool,
    /// It lost its lease and nobody tells it.
    is_zombie: bool,
    /// Whether its disk is not full.
    has_room: bool,
    events: Vec<Event>,
    received: Vec<u8>,
    hops: Vec<(CoreId, HopBatch)>,
    connections: u32,
    /// Outgoing bytes by connection.
    pipes: BTreeMap<ConnectionId, Pipe>,
    replies: BTreeMap<ConnectionId, Vec<u8>>,
    /// What the disk will say, and when.
    disk: VecDeque<(u64, Event)>,
    /// What its manager was told.
    told: Vec<Control>,
}

/// A client with at most one request under way, on connections of its own.
#[derive(Default)]
struct Client {
    at: usize,
    connections: BTreeMap<usize, ConnectionId>,
    asked: Option<(usize, Asked)>,
    count: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Append { key: u64, token: u64 },
    Get { key: u64 },
}

/// What a world met.
#[derive(Default, Debug)]
pub struct Met {
    pub acknowledged: u64,
    pub kills: u64,
    pub zombies: u64,
    pub cuts: u64,
    pub moved: u64,
    pub refused_by_lease: u64,
    pub waits_for_room: u64,
    pub refused_for_room: u64,
    pub harmed: u64,
}

/// See the module.
pub struct Town {
    rng: Rng,
    now_us: u64,
    unix_ms: u64,
    nodes: Vec<Node>,
    clients: Vec<Client>,
    view: Arc<ClusterView>,
    /// Views on their way to nodes.
    views: VecDeque<(usize, Arc<ClusterView>)>,
    /// By key: tokens that were acknowledged, with the count of those before that were acknowledged when each was asked.
    acknowledged: BTreeMap<u64, Vec<u64>>,
    asked: BTreeMap<u64, Vec<u64>>,
    /// By key: the longest value that was read, which nothing may take back.
    read: BTreeMap<u64, Vec<u8>>,
    /// One of so many values that are appended is longer than a segment; 0: none.
    long_of: u64,
    /// One of so many deliveries is not what was sent; 0: none.
    harm_of: u64,
    /// How many members a chain is to have by the tables that are told.
    pub chain_length: usize,
    pub met: Met,
}

/// Bytes of a segment where long values are appended.
const SEGMENT_BYTES: u64 = 4096;

impl Town {
    /// So many nodes; the first three share the slots.
    pub fn new(count: usize, seed: u64) -> Town {
        let nodes: Vec<Node> = (0..count).map(node).collect();
        let clients = (0..CLIENTS).map(|_| Client::default()).collect();
        let places = (0..count).map(place).collect();
        let third = |number: usize| Slot::wrapping(number as u16 * 16384 / count as u16);
        let chain =
            |number: usize| Chain { epoch: 1, members: vec![name(number), name((number + 1) % count)], whole: 1 };
        let stretches = (0..count).map(|number| (third(number), chain(number))).collect();
        let view = Arc::new(ClusterView::new(CLUSTER, 1, places, stretches));
        let views = (0..count).map(|number| (number, Arc::clone(&view))).collect();
        let mut town = Town {
            rng: Rng::new(seed),
            now_us: 1,
            unix_ms: 1_000_000,
            nodes,
            clients,
            view,
            views,
            acknowledged: BTreeMap::new(),
            asked: BTreeMap::new(),
            read: BTreeMap::new(),
            long_of: 0,
            harm_of: 0,
            chain_length: 2,
            met: Met::default(),
        };
        (0..count).for_each(|number| town.give_lease(number, u64::MAX));
        town
    }

    /// As [`Town::new`]; segments are short, and one of so many values is longer than a segment.
    pub fn with_long_values(count: usize, seed: u64, long_of: u64) -> Town {
        let mut town = Town { long_of, ..Town::new(count, seed) };
        town.nodes.iter_mut().for_each(|node| node.shard.set_segment_bytes(SEGMENT_BYTES));
        town
    }

    /// As [`Town::new`]; somebody sits between the nodes, who changes one of so many deliveries.
    pub fn with_harm(count: usize, seed: u64, harm_of: u64) -> Town {
        Town { harm_of, ..Town::new(count, seed) }
    }

    /// From now on what is sent arrives.
    pub fn stop_harm(&mut self) {
        self.harm_of = 0;
    }

    /// Keys that followers were sent when they were filled.
    pub fn sent_keys(&self) -> u64 {
        self.nodes.iter().map(|node| node.shard.fills().sent_keys).sum()
    }

    /// Connections between nodes that were not believed, by all of them.
    pub fn distrusted(&self) -> u64 {
        self.nodes.iter().map(|node| node.shard.distrusted()).sum()
    }

    fn give_lease(&mut self, number: usize, until_us: u64) {
        self.tell(number, Control::Lease { until_us });
    }

    fn tell_view(&mut self, number: usize, view: Arc<ClusterView>) {
        self.tell(number, Control::View { node: NodeId(number as u32 + 1), view });
    }

    fn tell(&mut self, number: usize, control: Control) {
        let mut batch = HopBatch::default();
        batch.controls.push(control);
        self.nodes[number].hops.push((CoreId(0), batch));
    }

    /// The node's lease is over now.
    pub fn end_lease(&mut self, node: NodeId) {
        self.give_lease(node.0 as usize - 1, self.now_us);
    }

    /// The last version that a node has of a key's slot.
    pub fn sequence(&self, number: usize, key: &[u8]) -> u64 {
        self.nodes[number].shard.store().sequence(placement::slot_of(key)).0.0
    }

    /// So many steps of anything.
    pub fn go_on(&mut self, steps: usize) -> Result<(), String> {
        for _ in 0..steps {
            match self.rng.below(1000) {
                0..=9 if self.is_whole() => self.lose_one(),
                10..=12 => self.cut(),
                13..=300 => self.client_turn(),
                301..=600 => self.deliver(),
                _ => self.tick_any(),
            }
            self.look_at_replies()?;
        }
        Ok(())
    }

    /// Without trouble until nothing is under way.
    pub fn settle(&mut self) -> Result<(), String> {
        for _ in 0..4_000 {
            while self.deliver_one(usize::MAX) {}
            while let Some((number, view)) = self.views.pop_front() {
                self.tell_view(number, view);
            }
            for number in 0..self.nodes.len() {
                self.tick(number);
            }
            self.look_at_replies()?;
        }
        let is_waiting = |client: &Client| {
            client.asked.is_some_and(|(number, _)| self.nodes[number].is_up && !self.nodes[number].is_zombie)
        };
        match self.clients.iter().any(is_waiting) {
            true => Err("a client waits for ever".to_owned()),
            false => Ok(()),
        }
    }

    fn is_good(&self, number: usize) -> bool {
        self.nodes[number].is_up && !self.nodes[number].is_zombie
    }

    /// Whether every slot has two copies, so that one may be lost.
    fn is_whole(&self) -> bool {
        let held: Vec<_> = self.nodes.iter().map(|node| node.shard.held()).collect();
        let version = Some(self.view.version());
        let mut good = (0..self.nodes.len()).filter(|number| self.is_good(*number));
        let all_know = good.all(|number| self.nodes[number].shard.table_version() == version);
        all_know
            && self.view.slots().all(|(slot, chain)| {
                let [first, second, ..] = chain.members[..] else { return false };
                let held = &held[first.node.0 as usize - 1];
                held.iter().any(|held| held.to == second && held.slots.contains(slot))
            })
    }

    /// A node dies, or goes on without anybody hearing of it; the manager waits for its lease and names others.
    fn lose_one(&mut self) {
        let good: Vec<usize> = (0..self.nodes.len()).filter(|number| self.is_good(*number)).collect();
        let lost = good[self.rng.below(good.len() as u64) as usize];
        let connections: Vec<ConnectionId> = self.nodes[lost].pipes.keys().copied().collect();
        connections.into_iter().for_each(|connection| self.cut_connection(lost, connection));
        if self.rng.chance(1, 2) {
            self.met.kills += 1;
            self.nodes[lost].is_up = false;
        } else {
            self.met.zombies += 1;
            self.nodes[lost].is_zombie = true;
            self.end_lease(NodeId(lost as u32 + 1));
        }
        let count = self.nodes.len();
        let version = self.view.version() + 1;
        let others: Vec<usize> = good.into_iter().filter(|number| *number != lost).collect();
        let mut stretches: Vec<(Slot, Chain)> = Vec::new();
        for (slot, chain) in self.view.slots() {
            let mut members: Vec<InstanceName> =
                chain.members.iter().copied().filter(|member| *member != name(lost)).collect();
            let replacement = others.iter().map(|number| name(*number)).find(|name| !members.contains(name));
            if members.len() < 2 {
                members.extend(replacement);
            }
            let epoch = if members == chain.members { chain.epoch } else { version };
            let chain = Chain { epoch, members, whole: 1 };
            if stretches.last().is_none_or(|(_, last)| *last != chain) {
                stretches.push((slot, chain));
            }
        }
        let places = (0..count).map(place).collect();
        self.view = Arc::new(ClusterView::new(CLUSTER, version, places, stretches));
        for number in 0..count {
            self.views.push_back((number, Arc::clone(&self.view)));
        }
    }

    fn cut(&mut self) {
        let number = self.rng.below(self.nodes.len() as u64) as usize;
        let connections: Vec<ConnectionId> = self.nodes[number].pipes.keys().copied().collect();
        if !connections.is_empty() {
            self.met.cuts += 1;
            let connection = connections[self.rng.below(connections.len() as u64) as usize];
            self.cut_connection(number, connection);
        }
    }

    fn cut_connection(&mut self, number: usize, connection: ConnectionId) {
        let Some(pipe) = self.nodes[number].pipes.remove(&connection) else { return };
        let (other, other_end) = pipe.to;
        self.nodes[other].pipes.remove(&other_end);
        self.nodes[number].events.push(Event::Closed { connection });
        self.nodes[other].events.push(Event::Closed { connection: other_end });
    }

    // --- clients ---

    fn client_turn(&mut self) {
        let number = self.rng.below(CLIENTS as u64) as usize;
        if self.clients[number].asked.is_some_and(|(at, _)| self.nodes[at].is_up && !self.nodes[at].is_zombie) {
            return;
        }
        let key = self.rng.below(KEYS);
        if self.rng.chance(1, 8) {
            // A client with an old table.
            self.clients[number].at = self.rng.below(self.nodes.len() as u64) as usize;
        } else if let Some(first) = self.view.first(placement::slot_of(&key_name(key))) {
            self.clients[number].at = first.node.0 as usize - 1;
        }
        let at = self.clients[number].at;
        if !self.nodes[at].is_up {
            return;
        }
        self.clients[number].count += 1;
        let token = self.clients[number].count * 100 + number as u64;
        let (asked, request) = match self.rng.chance(1, 3) {
            true => (Asked::Get { key }, command(&[b"GET", &key_name(key)])),
            false => {
                self.asked.entry(key).or_default().push(token);
                let is_long = self.long_of > 0 && self.rng.chance(1, self.long_of);
                let width = if is_long { 2 * SEGMENT_BYTES as usize } else { 0 };
                let text = format!("{token:0width$},");
                (Asked::Append { key, token }, command(&[b"APPEND", &key_name(key), text.as_bytes()]))
            }
        };
        self.clients[number].asked = Some((at, asked));
        let connection = self.connection_of(number, at);
        self.write(at, connection, &request);
    }

    fn connection_of(&mut self, client: usize, at: usize) -> ConnectionId {
        if let Some(connection) = self.clients[client].connections.get(&at) {
            return *connection;
        }
        let connection = self.nodes[at].accept(Door::Cluster);
        self.clients[client].connections.insert(at, connection);
        connection
    }

    pub fn write(&mut self, at: usize, connection: ConnectionId, bytes: &[u8]) {
        let node = &mut self.nodes[at];
        let span = Span { start: node.received.len() as u32, len: bytes.len() as u32 };
        node.received.extend_from_slice(bytes);
        node.events.push(Event::Received { connection, span });
    }

    /// One request of a client of its own, and the reply.
    pub fn ask(&mut self, at: usize, request: &[u8]) -> Vec<u8> {
        let connection = self.nodes[at].accept(Door::Cluster);
        for piece in request.chunks(1 << 20) {
            self.write(at, connection, piece);
            self.tick(at);
        }
        for _ in 0..1000 {
            if let Some(reply) = self.nodes[at].replies.remove(&connection) {
                return reply;
            }
            self.tick(at);
        }
        panic!("no reply");
    }

    /// Many requests of one client to node 1, whose follower's disk is full for a while: the most that this one has not
    /// written, bytes, and how many were answered before and behind that.
    pub fn flood_a_full_follower(&mut self, requests: usize) -> (u64, [usize; 2]) {
        self.settle().expect("nothing is wrong yet");
        self.nodes[1].has_room = false;
        let key = (0..).map(key_name).find(|key| self.view.first(placement::slot_of(key)) == Some(name(0)));
        let key = key.expect("it serves some");
        let request = command(&[b"APPEND", &key, &[b'0'; 3 * SEGMENT_BYTES as usize]]);
        let connection = self.nodes[0].accept(Door::Cluster);
        let mut unwritten_bytes_max = 0;
        let mut answered = [0; 2];
        for (phase, answered) in answered.iter_mut().enumerate() {
            for round in 0..20_000 {
                if phase == 0 && round < requests {
                    self.write(0, connection, &request);
                }
                while self.deliver_one(usize::MAX) {}
                self.tick(0);
                self.tick(1);
                let log = self.nodes[1].shard.log.as_ref().expect("it has one");
                unwritten_bytes_max = unwritten_bytes_max.max(log.unsynced_bytes());
            }
            let replies = self.nodes[0].replies.remove(&connection).unwrap_or_default();
            *answered = replies.iter().filter(|byte| **byte == b':').count();
            self.nodes[1].has_room = true;
        }
        (unwritten_bytes_max, answered)
    }

    fn look_at_replies(&mut self) -> Result<(), String> {
        for number in 0..CLIENTS {
            let Some((at, asked)) = self.clients[number].asked else { continue };
            let Some(connection) = self.clients[number].connections.get(&at).copied() else { continue };
            let Some(reply) = self.nodes[at].replies.remove(&connection) else { continue };
            self.clients[number].asked = None;
            match (reply[0], asked) {
                (b'-', _) if reply.starts_with(b"-MOVED") => self.met.moved += 1,
                (b'-', _) if reply.starts_with(b"-CLUSTERDOWN") => self.met.refused_by_lease += 1,
                (b'-', _) if reply.starts_with(b"-MISCONF") => self.met.refused_for_room += 1,
                (b':', Asked::Append { key, token }) => {
                    self.met.acknowledged += 1;
                    self.acknowledged.entry(key).or_default().push(token);
                }
                (b'$' | b'_', Asked::Get { key }) => self.note_read(key, &reply)?,
                _ => return Err(format!("an unexpected reply: {}", reply.escape_ascii())),
            }
        }
        Ok(())
    }

    /// A read has everything that was acknowledged before... or read before: values only grow.
    fn note_read(&mut self, key: u64, reply: &[u8]) -> Result<(), String> {
        let value = bulk(reply);
        let longest = self.read.entry(key).or_default();
        let (shorter, longer) = if value.len() < longest.len() { (&value, &*longest) } else { (&*longest, &value) };
        if !longer.starts_with(shorter) {
            let (one, two) = (shorter.escape_ascii(), longer.escape_ascii());
            return Err(format!("key {key} was read as {one} and as {two}"));
        }
        if value.len() > longest.len() {
            *longest = value;
        }
        Ok(())
    }

    /// What is there at the end: everything that was acknowledged or read, nothing twice; followers have the same.
    pub fn judge(&mut self) -> Result<(), String> {
        for key in 0..KEYS {
            let slot = placement::slot_of(&key_name(key));
            let first = self.view.first(slot).ok_or("nobody serves a slot")?.node.0 as usize - 1;
            let reply = self.ask(first, &command(&[b"GET", &key_name(key)]));
            self.note_read(key, &reply)?;
            let value = bulk(&reply);
            if value.len() < self.read[&key].len() {
                return Err(format!("key {key} lost what was read"));
            }
            let tokens: Vec<u64> =
                String::from_utf8(value).unwrap().split_terminator(',').map(|token| token.parse().unwrap()).collect();
            let mut once = tokens.clone();
            once.sort_unstable();
            once.dedup();
            if once.len() != tokens.len() {
                return Err(format!("key {key} has a token twice: {tokens:?}"));
            }
            let acknowledged = self.acknowledged.get(&key).cloned().unwrap_or_default();
            if let Some(lost) = acknowledged.iter().find(|token| !tokens.contains(token)) {
                return Err(format!(
                    "key {key} lost the acknowledged {lost}: it has {tokens:?}; {}",
                    reply.escape_ascii()
                ));
            }
            let asked = self.asked.get(&key).cloned().unwrap_or_default();
            if let Some(strange) = tokens.iter().find(|token| !asked.contains(token)) {
                return Err(format!("key {key} has {strange}, which nobody wrote"));
            }
        }
        self.compare_copies()
    }

    fn compare_copies(&self) -> Result<(), String> {
        for key in 0..KEYS {
            let slot = placement::slot_of(&key_name(key));
            let members = &self.view.chain(slot).members;
            let copies: Vec<_> =
                members.iter().map(|member| self.nodes[member.node.0 as usize - 1].copy(key)).collect();
            if copies.iter().any(|copy| *copy != copies[0]) {
                return Err(format!("key {key} differs between {members:?}: {copies:?}"));
            }
        }
        Ok(())
    }

    // --- the street ---

    fn tick_any(&mut self) {
        if self.rng.chance(1, 3)
            && let Some((number, view)) = self.views.pop_front()
        {
            self.tell_view(number, view);
        }
        let number = self.rng.below(self.nodes.len() as u64) as usize;
        self.tick(number);
    }

    /// Some bytes of some pipe arrive.
    fn deliver(&mut self) {
        let most = 1 + self.rng.below(40_000) as usize;
        self.deliver_one(most);
    }

    fn deliver_one(&mut self, most: usize) -> bool {
        let ready: Vec<(usize, ConnectionId)> = self
            .nodes
            .iter()
            .enumerate()
            .flat_map(|(number, node)| node.pipes.iter().map(move |(id, pipe)| (number, *id, pipe)))
            .filter(|(_, _, pipe)| !pipe.bytes.is_empty() || pipe.is_closed)
            .map(|(number, id, _)| (number, id))
            .collect();
        if ready.is_empty() {
            return false;
        }
        let (number, id) = ready[self.rng.below(ready.len() as u64) as usize];
        let pipe = self.nodes[number].pipes.get_mut(&id).expect("it is ready");
        if pipe.bytes.is_empty() {
            self.cut_connection(number, id);
            return true;
        }
        let count = most.min(pipe.bytes.len()).min(1 << 16);
        let mut bytes: Vec<u8> = pipe.bytes.drain(..count).collect();
        let (to, connection) = pipe.to;
        if self.harm_of > 0 && self.rng.chance(1, self.harm_of) {
            self.met.harmed += 1;
            harm::harm(&mut self.rng, &mut bytes);
        }
        let pipe = self.nodes[number].pipes.get_mut(&id).expect("it is ready");
        if pipe.bytes.is_empty() {
            self.nodes[number].events.push(Event::SendDone { connection: id, buffer: Vec::new() });
        }
        self.write(to, connection, &bytes);
        true
    }

    pub fn tick(&mut self, number: usize) {
        self.now_us += 500;
        let delay_us = self.rng.below(5_000);
        let node = &mut self.nodes[number];
        if !node.is_up {
            node.events.clear();
            return;
        }
        while let Some((_, event)) = node.disk.pop_front_if(|(at_us, _)| *at_us <= self.now_us) {
            node.events.push(event);
        }
        let (mut events, received, mut hops) =
            (std::mem::take(&mut node.events), std::mem::take(&mut node.received), std::mem::take(&mut node.hops));
        let now = Now { monotonic_us: self.now_us, unix_ms: self.unix_ms };
        let mut output = TickOutput::default();
        let input = TickInput { now, received: &received, events: &mut events, hops: &mut hops };
        node.shard.tick(input, &mut output);
        let told = std::mem::take(&mut output.hops).into_iter().flat_map(|(_, batch)| batch.controls);
        node.told.extend(told);
        output.effects.into_iter().for_each(|effect| self.perform(number, effect, delay_us));
    }

    fn perform(&mut self, number: usize, effect: Effect, delay_us: u64) {
        let at_us = self.now_us + delay_us;
        let node = &mut self.nodes[number];
        match effect {
            Effect::WriteLog { bytes, ordinal, .. } => {
                node.disk.push_back((0, Event::LogWritten { ordinal, buffer: bytes }))
            }
            Effect::ExtendSegment { segment, bytes } => {
                self.met.waits_for_room += 1;
                let is_there = node.has_room && !self.rng.chance(1, 16);
                let reason = || Event::RoomFailed { reason: "disk full".to_owned() };
                let event = if is_there { Event::RoomReady { segment, bytes } } else { reason() };
                node.disk.push_back((at_us, event));
            }
            Effect::CreateSegment { segment, .. } => node.disk.push_back((0, Event::SegmentReady { segment })),
            Effect::SyncLog { ordinal, .. } => node.disk.push_back((at_us, Event::LogSynced { ordinal })),
            Effect::WriteRun { bytes, .. } => node.disk.push_back((0, Event::RunWritten { buffer: bytes })),
            Effect::PublishRuns { .. } => node.disk.push_back((at_us, Event::RunsPublished)),
            Effect::RemoveFiles { .. } | Effect::DropRuns { .. } | Effect::KeepFreedMemory(_) => {}
            Effect::PauseReceive { .. } | Effect::ResumeReceive { .. } => {}
            Effect::Send { connection, buffer } => match node.pipes.get_mut(&connection) {
                Some(pipe) => pipe.bytes.extend(buffer),
                None => {
                    node.replies.entry(connection).or_default().extend(&buffer);
                    node.events.push(Event::SendDone { connection, buffer });
                }
            },
            Effect::Dial { token, address } => self.dial(number, token, &address),
            Effect::Close { connection } => match node.pipes.get_mut(&connection) {
                Some(pipe) => pipe.is_closed = true,
                None => node.events.push(Event::Closed { connection }),
            },
            other => panic!("{other:?}"),
        }
    }

    fn dial(&mut self, number: usize, token: u64, address: &str) {
        let port: u16 = address.rsplit_once(':').unwrap().1.parse().unwrap();
        let to = usize::from(port - PORT - 10_001) / 10;
        if !self.nodes[to].is_up {
            self.nodes[number].events.push(Event::Dialed { token, connection: Err(String::from("nobody answers")) });
            return;
        }
        let (near, far) = (self.nodes[number].next_connection(), self.nodes[to].accept(Door::Node));
        let pipe = |to| Pipe { to, bytes: VecDeque::new(), is_closed: false };
        self.nodes[number].pipes.insert(near, pipe((to, far)));
        self.nodes[to].pipes.insert(far, pipe((number, near)));
        self.nodes[number].events.push(Event::Dialed { token, connection: Ok(near) });
    }
}

impl Node {
    fn next_connection(&mut self) -> ConnectionId {
        self.connections += 1;
        ConnectionId { index: self.connections, generation: 0 }
    }

    fn accept(&mut self, door: Door) -> ConnectionId {
        let connection = self.next_connection();
        let (peer, local) = ("127.0.0.1:5".to_owned(), "127.0.0.1:6".to_owned());
        self.events.push(Event::Accepted { connection, door, entrance: Entrance::default(), peer, local });
        connection
    }

    /// What it has of a key: version and value.
    fn copy(&self, key: u64) -> Option<(u64, Vec<u8>)> {
        self.copy_of(&key_name(key))
    }

    fn copy_of(&self, name: &[u8]) -> Option<(u64, Vec<u8>)> {
        let store = self.shard.store();
        let found = store.key(name, Database(0), placement::slot_of(name));
        let group = store.group(found.group())?;
        let record = group.record(group.find(&found)?);
        let storage::Value::String { text, .. } = record.value else { return None };
        Some((record.version.0, text.pieces(0..text.len()).flatten().copied().collect()))
    }
}

fn node(number: usize) -> Node {
    let table = Arc::new(NodeTable::even([number as u8; 16], 1, "", 1).unwrap());
    let mut shard = Shard::new(ShardConfig {
        core: CoreId(0),
        table,
        seed: 7,
        durability: if number.is_multiple_of(2) { Durability::Interval } else { Durability::Commit },
        log: Some(LogIdentity { store_id: [number as u8; 16], incarnation: 1, core: 0, cores: 1 }),
        node: NodeState::anonymous(),
    });
    shard.join(number as u64, &Token::new([7; 16]));
    Node {
        shard,
        is_up: true,
        is_zombie: false,
        has_room: true,
        events: Vec::new(),
        received: Vec::new(),
        hops: Vec::new(),
        connections: 0,
        pipes: BTreeMap::new(),
        replies: BTreeMap::new(),
        disk: VecDeque::new(),
        told: Vec::new(),
    }
}

fn name(number: usize) -> InstanceName {
    InstanceName { node: NodeId(number as u32 + 1), core: CoreId(0) }
}

fn place(number: usize) -> NodePlace {
    NodePlace {
        node: NodeId(number as u32 + 1),
        host: "10.0.0.1".to_owned(),
        port: PORT + number as u16 * 10,
        cores: 1,
        is_up: true,
        incarnation: 1,
    }
}

fn key_name(key: u64) -> Vec<u8> {
    format!("key:{key}").into_bytes()
}

fn command(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// The value of a reply to GET.
fn bulk(reply: &[u8]) -> Vec<u8> {
    let Some(end) = reply.windows(2).position(|pair| pair == b"\r\n") else { return Vec::new() };
    match reply.starts_with(b"$-1") {
        true => Vec::new(),
        false => reply[end + 2..reply.len() - 2].to_vec(),
    }
}
