//! Connections to other nodes' managers: at most one that is written to for each of them, whoever made it.

use base::limits::MANAGER_FRAME_BYTES_MAX;
use base::{ConnectionId, Effect, NodeId};
use wire::frame::{Opened, open};
use wire::pipe::Pipe;

use crate::message::Message;

/// Before a dial is tried again, microseconds.
const RETRY_US: u64 = 50_000;
/// A connection on which nothing came for so long is closed, microseconds: whoever has something to say to the other end says it
/// several times in a lease.
const SILENCE_US: u64 = 3_000_000;
/// Connections at a time: two with every node, and some whose other end has not said who it is.
const CONNECTIONS_MAX: usize = 2 * base::limits::NODES_MAX + 64;
/// Bytes that wait for one connection; what comes on top is not sent: everything here is asked again.
const WAITING_BYTES_MAX: usize = 2 * MANAGER_FRAME_BYTES_MAX;

struct Peer {
    pipe: Pipe,
    /// Who said hello.
    node: Option<NodeId>,
    /// Where it was dialed; `None`: it came in.
    address: Option<String>,
    /// When something came last.
    heard_us: u64,
}

/// See the module.
#[derive(Default)]
pub struct Peers {
    list: Vec<Peer>,
    /// Dials under way: their number and address.
    dialing: Vec<(u64, String)>,
    /// Addresses that did not answer: not before.
    not_before_us: Vec<(String, u64)>,
    tokens: u64,
    effects: Vec<Effect>,
}

impl Peers {
    /// Somebody connected.
    pub fn on_accepted(&mut self, now_us: u64, id: ConnectionId) {
        self.list.push(Peer { pipe: Pipe::new(id), node: None, address: None, heard_us: now_us });
        if self.list.len() > CONNECTIONS_MAX {
            self.close(id);
        }
    }

    /// Closes connections that are silent, and forgets until when addresses were not to be tried.
    pub fn close_silent(&mut self, now_us: u64) {
        self.not_before_us.retain(|(_, at_us)| *at_us > now_us);
        let is_silent = |peer: &&Peer| now_us.saturating_sub(peer.heard_us) >= SILENCE_US;
        let silent: Vec<ConnectionId> = self.list.iter().filter(is_silent).map(|peer| peer.pipe.id()).collect();
        silent.into_iter().for_each(|id| self.close(id));
    }

    /// Connects to `address`, unless that is done or was tried a moment ago.
    pub fn dial(&mut self, now_us: u64, address: &str) {
        let is_made = self.list.iter().any(|peer| peer.address.as_deref() == Some(address));
        let is_dialing = self.dialing.iter().any(|(_, known)| known == address);
        let is_early = self.not_before_us.iter().any(|(known, at_us)| known == address && now_us < *at_us);
        if is_made || is_dialing || is_early {
            return;
        }
        self.tokens += 1;
        self.dialing.push((self.tokens, address.to_owned()));
        self.effects.push(Effect::Dial { token: self.tokens, address: address.to_owned() });
    }

    /// What became of a dial; the connection, if there is one.
    pub fn on_dialed(&mut self, now_us: u64, token: u64, id: Option<ConnectionId>) -> Option<ConnectionId> {
        let number = self.dialing.iter().position(|(known, _)| *known == token)?;
        let (_, address) = self.dialing.swap_remove(number);
        self.put_off(now_us, &address);
        let id = id?;
        self.list.push(Peer { pipe: Pipe::new(id), node: None, address: Some(address), heard_us: now_us });
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
            peer.pipe.receive(bytes);
        }
    }

    /// The street took what it was given.
    pub fn on_sent(&mut self, id: ConnectionId) {
        if let Some(peer) = self.peer(id) {
            peer.pipe.on_sent();
        }
    }

    /// The connection is gone.
    pub fn on_closed(&mut self, id: ConnectionId) {
        self.list.retain(|peer| peer.pipe.id() != id);
    }

    /// It is of no use any more.
    pub fn close(&mut self, id: ConnectionId) {
        if let Some(peer) = self.peer(id).filter(|peer| !peer.pipe.is_closing()) {
            peer.pipe.close();
            peer.node = None;
            self.effects.push(Effect::Close { connection: id });
        }
    }

    /// `node` speaks on this connection; an older one of it that was made the same way is closed. Whether it came in and wants an
    /// answer.
    pub fn greet(&mut self, id: ConnectionId, node: NodeId) -> bool {
        let is_dialed = |peer: &Peer| peer.address.is_some();
        let way = self.peer(id).map(|peer| is_dialed(peer));
        let older = |peer: &&Peer| peer.pipe.id() != id && peer.node == Some(node) && Some(is_dialed(peer)) == way;
        let older: Vec<ConnectionId> = self.list.iter().filter(older).map(|peer| peer.pipe.id()).collect();
        older.into_iter().for_each(|id| self.close(id));
        if let Some(peer) = self.peer(id) {
            peer.node = Some(node);
        }
        way == Some(false)
    }

    /// Who speaks on a connection.
    pub fn node(&self, id: ConnectionId) -> Option<NodeId> {
        self.list.iter().find(|peer| peer.pipe.id() == id)?.node
    }

    /// Whether there is a connection to `node`.
    pub fn has(&self, node: NodeId) -> bool {
        self.list.iter().any(|peer| peer.node == Some(node))
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
        let mut broken = Vec::new();
        for peer in &mut self.list {
            let id = peer.pipe.id();
            loop {
                let (message, bytes) = match open(peer.pipe.unread(), MANAGER_FRAME_BYTES_MAX) {
                    Opened::Incomplete => break,
                    Opened::Malformed(_) => {
                        broken.push(id);
                        break;
                    }
                    Opened::Whole { kind, body, bytes } => (Message::decode(kind, body), bytes),
                };
                let Ok(message) = message else {
                    broken.push(id);
                    break;
                };
                messages.push((id, message));
                peer.pipe.skip(bytes);
            }
        }
        broken.into_iter().for_each(|id| self.close(id));
        messages
    }

    /// What the street has to do.
    pub fn flush(&mut self, effects: &mut Vec<Effect>) {
        self.list.iter_mut().for_each(|peer| peer.pipe.flush(effects));
        effects.append(&mut self.effects);
    }

    fn peer(&mut self, id: ConnectionId) -> Option<&mut Peer> {
        self.list.iter_mut().find(|peer| peer.pipe.id() == id)
    }
}

fn write(peer: &mut Peer, message: &Message) {
    if peer.pipe.waiting_bytes() <= WAITING_BYTES_MAX && !peer.pipe.is_closing() {
        message.encode(peer.pipe.output());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(index: u32) -> ConnectionId {
        ConnectionId { index, generation: 1 }
    }

    fn closed(peers: &mut Peers) -> Vec<u32> {
        let mut effects = Vec::new();
        peers.flush(&mut effects);
        let close = |effect| if let Effect::Close { connection } = effect { Some(connection.index) } else { None };
        effects.into_iter().filter_map(close).collect()
    }

    fn dialed(peers: &mut Peers, now_us: u64, address: &str, connection: Option<ConnectionId>) -> bool {
        peers.dial(now_us, address);
        let mut effects = Vec::new();
        peers.flush(&mut effects);
        let [Effect::Dial { token, .. }] = effects[..] else { return false };
        peers.on_dialed(now_us, token, connection);
        true
    }

    #[test]
    fn an_address_is_tried_again_after_a_while_and_one_that_was_wakes_nobody() {
        let mut peers = Peers::default();
        assert!(dialed(&mut peers, 0, "a", None));
        assert!(!dialed(&mut peers, RETRY_US - 1, "a", None));
        assert_eq!(peers.deadline_us(1), Some(RETRY_US));
        assert_eq!(peers.deadline_us(RETRY_US), None, "it may be tried now");
        assert!(dialed(&mut peers, RETRY_US, "a", Some(id(1))));
        assert!(!dialed(&mut peers, 10 * RETRY_US, "a", None), "there is a connection");
        peers.on_closed(id(1));
        assert!(dialed(&mut peers, 10 * RETRY_US, "a", None));
    }

    #[test]
    fn a_connection_on_which_nothing_comes_is_closed() {
        let mut peers = Peers::default();
        peers.on_accepted(0, id(1));
        peers.on_accepted(0, id(2));
        peers.greet(id(1), NodeId(7));
        peers.receive(SILENCE_US - 1, id(2), b"");
        peers.close_silent(SILENCE_US - 1);
        assert!(closed(&mut peers).is_empty() && peers.has(NodeId(7)));
        peers.close_silent(SILENCE_US);
        assert!(!peers.has(NodeId(7)), "what closes is no way to anybody");
        assert_eq!(closed(&mut peers), [1]);
    }

    #[test]
    fn a_second_connection_of_a_node_takes_the_place_of_the_first_made_the_same_way() {
        let mut peers = Peers::default();
        for number in 1..=2 {
            peers.on_accepted(0, id(number));
            assert!(peers.greet(id(number), NodeId(7)), "it came in and wants an answer");
        }
        assert_eq!(closed(&mut peers), [1]);
        dialed(&mut peers, 0, "a", Some(id(3)));
        assert!(!peers.greet(id(3), NodeId(7)), "this one has said who it is");
        assert!(closed(&mut peers).is_empty(), "both ends may dial at once, and close neither");
        assert_eq!((peers.nodes(), peers.node(id(1)), peers.node(id(2))), (vec![NodeId(7)], None, Some(NodeId(7))));
    }

    #[test]
    fn connections_and_what_waits_for_them_are_bounded() {
        let mut peers = Peers::default();
        (0..=CONNECTIONS_MAX as u32).for_each(|number| peers.on_accepted(0, id(number)));
        assert_eq!(closed(&mut peers), [CONNECTIONS_MAX as u32]);
        let message = Message::Agreement(vec![0; MANAGER_FRAME_BYTES_MAX / 2]);
        (0..20).for_each(|_| peers.reply(id(0), &message));
        let waiting = peers.peer(id(0)).map_or(0, |peer| peer.pipe.waiting_bytes());
        assert!((WAITING_BYTES_MAX..WAITING_BYTES_MAX + MANAGER_FRAME_BYTES_MAX).contains(&waiting), "{waiting}");
    }

    #[test]
    fn who_sends_no_message_is_closed_and_heard_up_to_there() {
        let mut peers = Peers::default();
        peers.on_accepted(0, id(1));
        let mut bytes = Vec::new();
        Message::Read { number: 5 }.encode(&mut bytes);
        peers.receive(0, id(1), &bytes[..3]);
        assert!(peers.messages().is_empty());
        peers.receive(0, id(1), &bytes[3..]);
        peers.receive(0, id(1), &[0; 64]);
        assert_eq!(peers.messages(), [(id(1), Message::Read { number: 5 })]);
        assert_eq!(closed(&mut peers), [1]);
    }
}
