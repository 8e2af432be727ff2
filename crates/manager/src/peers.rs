//! Connections to other nodes' managers: at most one that is written to for each of them, whoever made it.

use std::collections::BTreeSet;

use base::limits::MANAGER_FRAME_BYTES_MAX;
use base::{ConnectionId, Effect, InstanceName, NodeId};
use wire::frame::Opened;
use wire::line::{Line, bound_unproven};
use wire::trust::{Distrust, Distrusted, Greeted, MANAGER, Party, Purpose, Speaker, Token};

use crate::message::Message;

/// Before a dial is tried again, microseconds.
const RETRY_US: u64 = 50_000;
/// A connection on which nothing came for so long is closed, microseconds: whoever has something to say to the other end says it
/// several times in a lease.
const SILENCE_US: u64 = 3_000_000;
/// Connections at a time: two with every node, and some whose other end has not proved who it is.
const CONNECTIONS_MAX: usize = 2 * base::limits::NODES_MAX + 64;
/// Bytes that wait for one connection; what comes on top is not sent: everything here is asked again.
const WAITING_BYTES_MAX: usize = 2 * MANAGER_FRAME_BYTES_MAX;
/// What another node may connect for.
const PURPOSES: &[Purpose] = &[Purpose::Managers, Purpose::Enlist];

struct Peer {
    line: Line,
    /// Who has proved that it has the token.
    party: Option<Party>,
    /// Who speaks here: it has said which process of its node it is, and no other one is known.
    node: Option<NodeId>,
    /// When something came last.
    heard_us: u64,
}

/// A dial under way.
struct Dial {
    token: u64,
    address: String,
    /// Who is wanted; `None`: whoever lets a newcomer in.
    node: Option<NodeId>,
}

/// See the module.
pub struct Peers {
    list: Vec<Peer>,
    speaker: Speaker,
    /// This node, once it is one.
    me: Option<NodeId>,
    distrusted: Distrusted,
    dialing: Vec<Dial>,
    /// Addresses that did not answer: not before.
    not_before_us: Vec<(String, u64)>,
    /// Nodes that were spoken with, and are not any more: whether they still listen is not known.
    lost: BTreeSet<NodeId>,
    /// Who does not.
    refusing: Vec<NodeId>,
    tokens: u64,
    effects: Vec<Effect>,
}

impl Peers {
    /// Of a node that has the cluster's token; all chance is the seed's.
    pub fn new(token: &Token, seed: u64) -> Peers {
        Peers {
            list: Vec::new(),
            speaker: Speaker::new(token, seed),
            me: None,
            distrusted: Distrusted::default(),
            dialing: Vec::new(),
            not_before_us: Vec::new(),
            lost: BTreeSet::new(),
            refusing: Vec::new(),
            tokens: 0,
            effects: Vec::new(),
        }
    }

    /// As this one it speaks from now on; as a newcomer it dials, and is spoken to by nobody.
    pub fn set_name(&mut self, cluster: [u8; 16], me: Party) {
        self.me = Some(me.name.node).filter(|node| node.0 != 0);
        self.speaker.set_name(cluster, me);
    }

    /// Somebody connected.
    pub fn on_accepted(&mut self, now_us: u64, id: ConnectionId, address: String) {
        let line = Line::accepted(now_us, id, address, PURPOSES);
        self.list.push(Peer { line, party: None, node: None, heard_us: now_us });
        if self.list.len() > CONNECTIONS_MAX || self.me.is_none() {
            self.close(id);
        }
        bound_unproven(self.list.iter_mut().map(|peer| &mut peer.line));
    }

    /// Closes connections that are silent, and forgets until when addresses were not to be tried.
    pub fn close_silent(&mut self, now_us: u64) {
        self.not_before_us.retain(|(_, at_us)| *at_us > now_us);
        let is_silent = |peer: &&Peer| now_us.saturating_sub(peer.heard_us) >= SILENCE_US;
        let silent: Vec<ConnectionId> = self.list.iter().filter(is_silent).map(|peer| peer.line.id()).collect();
        silent.into_iter().for_each(|id| self.close(id));
    }

    /// Connects to `address`, where `node` is, unless that is done or was tried a moment ago.
    pub fn dial(&mut self, now_us: u64, address: &str, node: Option<NodeId>) {
        let is_to = |line: &Line| !line.came_in() && !line.is_closing() && line.address() == address;
        let is_made = self.list.iter().any(|peer| is_to(&peer.line));
        let is_dialing = self.dialing.iter().any(|known| known.address == address);
        if is_made || is_dialing || self.not_before_us(now_us, address).is_some() {
            return;
        }
        self.tokens += 1;
        self.dialing.push(Dial { token: self.tokens, address: address.to_owned(), node });
        self.effects.push(Effect::Dial { token: self.tokens, address: address.to_owned() });
    }

    /// Until when `address` is not tried again, because it was a moment ago.
    pub fn not_before_us(&self, now_us: u64, address: &str) -> Option<u64> {
        let its = self.not_before_us.iter().find(|(known, _)| known == address);
        its.map(|(_, at_us)| *at_us).filter(|at_us| now_us < *at_us)
    }

    /// What became of a dial; the connection, if there is one.
    pub fn on_dialed(&mut self, now_us: u64, token: u64, id: Option<ConnectionId>) -> Option<ConnectionId> {
        let number = self.dialing.iter().position(|known| known.token == token)?;
        let Dial { address, node, .. } = self.dialing.swap_remove(number);
        self.put_off(now_us, &address);
        let Some(id) = id else {
            let lost = node.filter(|node| self.lost.remove(node) && !self.has(*node));
            self.refusing.extend(lost);
            return None;
        };
        if node.is_none() && self.me.is_some() {
            // It was let in meanwhile.
            self.effects.push(Effect::Close { connection: id });
            return None;
        }
        let purpose = if node.is_some() { Purpose::Managers } else { Purpose::Enlist };
        let to = InstanceName { node: node.unwrap_or(NodeId(0)), core: MANAGER };
        let line = Line::dialed(now_us, (id, address), &mut self.speaker, (purpose, to));
        self.list.push(Peer { line, party: None, node: None, heard_us: now_us });
        Some(id)
    }

    fn put_off(&mut self, now_us: u64, address: &str) {
        self.not_before_us.retain(|(known, at_us)| known != address && *at_us > now_us);
        self.not_before_us.push((address.to_owned(), now_us + RETRY_US));
    }

    /// When the next address may be tried again; one that may be already was, if anybody wanted it.
    pub fn deadline_us(&self, now_us: u64) -> Option<u64> {
        self.not_before_us.iter().map(|(_, at_us)| *at_us).filter(|at_us| *at_us > now_us).min()
    }

    /// Bytes came.
    pub fn receive(&mut self, now_us: u64, id: ConnectionId, bytes: &[u8]) {
        if let Some(peer) = self.peer(id) {
            peer.heard_us = now_us;
            peer.line.receive(bytes);
        }
    }

    /// The street took what it was given.
    pub fn on_sent(&mut self, id: ConnectionId) {
        if let Some(peer) = self.peer(id) {
            peer.line.on_sent();
        }
    }

    /// The connection is gone.
    pub fn on_closed(&mut self, id: ConnectionId) {
        self.lost.extend(self.node(id));
        self.list.retain(|peer| peer.line.id() != id);
    }

    /// It is of no use any more.
    pub fn close(&mut self, id: ConnectionId) {
        if let Some(peer) = self.peer(id).filter(|peer| !peer.line.is_closing()) {
            peer.line.close();
            let node = peer.node.take();
            self.lost.extend(node);
            self.effects.push(Effect::Close { connection: id });
        }
    }

    /// Connections to a node are of no use any more.
    pub fn close_node(&mut self, node: NodeId) {
        let its = self.list.iter().filter(|peer| peer.node == Some(node));
        its.map(|peer| peer.line.id()).collect::<Vec<_>>().into_iter().for_each(|id| self.close(id));
    }

    /// Goes on with all handshakes: whose other end has proved itself now.
    pub fn greetings(&mut self, now_us: u64) -> Vec<(ConnectionId, Greeted)> {
        let speaker = &mut self.speaker;
        let greet = |peer: &mut Peer| {
            let greeted = peer.line.greet(now_us, speaker)?;
            peer.party = Some(greeted.from).filter(|_| greeted.purpose == Purpose::Managers);
            Some((peer.line.id(), greeted))
        };
        self.list.iter_mut().filter(|peer| peer.line.awaits_proof()).filter_map(greet).collect()
    }

    /// `node` speaks on this connection; an older one of it that was made the same way is closed.
    pub fn greet(&mut self, id: ConnectionId, node: NodeId) {
        let way = self.peer(id).map(|peer| peer.line.came_in());
        let older = |peer: &&Peer| peer.line.id() != id && peer.node == Some(node) && Some(peer.line.came_in()) == way;
        let older: Vec<ConnectionId> = self.list.iter().filter(older).map(|peer| peer.line.id()).collect();
        older.into_iter().for_each(|id| self.close(id));
        if let Some(peer) = self.peer(id) {
            peer.node = Some(node);
        }
    }

    /// Says something to a node for the last time.
    pub fn dismiss(&mut self, node: NodeId, message: &Message) {
        self.send(node, message);
        self.close_node(node);
    }

    /// Closes what is not believed any more; `true`: somebody who was dialed has not this node's token.
    pub fn end_distrusted(&mut self) -> bool {
        let mut is_other_token = false;
        for peer in &mut self.list {
            let Some(why) = peer.line.take_distrust() else { continue };
            is_other_token |= why == Distrust::NoProof && !peer.line.came_in();
            self.distrusted.note(peer.line.address(), why);
            peer.node = None;
            self.effects.push(Effect::Close { connection: peer.line.id() });
        }
        is_other_token
    }

    /// What whoever runs the node is to be told of that now.
    pub fn poll_distrusted(&mut self, now_us: u64) -> Option<String> {
        self.distrusted.poll(now_us)
    }

    /// Who was dialed on a connection, and has not proved anything yet.
    pub fn unproven(&self, id: ConnectionId) -> Option<&str> {
        let peer = self.list.iter().find(|peer| peer.line.id() == id)?;
        (!peer.line.came_in() && !peer.line.is_proven() && !peer.line.is_closing()).then(|| peer.line.address())
    }

    /// Who has proved on a connection that it is a manager which has the token.
    pub fn party(&self, id: ConnectionId) -> Option<Party> {
        self.list.iter().find(|peer| peer.line.id() == id)?.party
    }

    /// Who speaks on a connection.
    pub fn node(&self, id: ConnectionId) -> Option<NodeId> {
        self.list.iter().find(|peer| peer.line.id() == id)?.node
    }

    /// Whether there is a connection to `node`.
    pub fn has(&self, node: NodeId) -> bool {
        self.list.iter().any(|peer| peer.node == Some(node))
    }

    /// Who was spoken with, and is not any more.
    pub fn lost(&mut self) -> Vec<NodeId> {
        let list = &self.list;
        self.lost.retain(|node| !list.iter().any(|peer| peer.node == Some(*node)));
        self.lost.iter().copied().collect()
    }

    /// Who was lost, and does not listen any more where it was.
    pub fn take_refusing(&mut self) -> Vec<NodeId> {
        std::mem::take(&mut self.refusing)
    }

    /// All who can be written to.
    pub fn nodes(&self) -> Vec<NodeId> {
        let mut nodes: Vec<NodeId> = self.list.iter().filter_map(|peer| peer.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// Sends to a node; what cannot be sent is lost, as on any network.
    pub fn send(&mut self, node: NodeId, message: &Message) {
        if let Some(peer) = self.list.iter_mut().find(|peer| peer.node == Some(node)) {
            write(peer, message);
        }
    }

    /// Sends on a connection.
    pub fn reply(&mut self, id: ConnectionId, message: &Message) {
        if let Some(peer) = self.peer(id) {
            write(peer, message);
        }
    }

    /// All messages that are here whole. A connection that brings something else is closed.
    pub fn messages(&mut self) -> Vec<(ConnectionId, Message)> {
        let mut messages = Vec::new();
        for peer in &mut self.list {
            let id = peer.line.id();
            loop {
                let (message, bytes) = match peer.line.frame(MANAGER_FRAME_BYTES_MAX) {
                    Opened::Incomplete => break,
                    Opened::Malformed(_) => {
                        peer.line.end(Distrust::Frame);
                        break;
                    }
                    Opened::Whole { kind, body, bytes } => (Message::decode(kind, body), bytes),
                };
                let Ok(message) = message else {
                    peer.line.end(Distrust::Frame);
                    break;
                };
                messages.push((id, message));
                peer.line.skip(bytes);
            }
        }
        messages
    }

    /// What the street has to do.
    pub fn flush(&mut self, effects: &mut Vec<Effect>) {
        self.list.iter_mut().for_each(|peer| peer.line.flush(effects));
        effects.append(&mut self.effects);
    }

    fn peer(&mut self, id: ConnectionId) -> Option<&mut Peer> {
        self.list.iter_mut().find(|peer| peer.line.id() == id)
    }
}

fn write(peer: &mut Peer, message: &Message) {
    if peer.line.is_proven() && peer.line.waiting_bytes() <= WAITING_BYTES_MAX {
        peer.line.send(|out| message.encode(out));
    }
}

#[cfg(test)]
mod tests;
