//! Connections of links: made, accepted, proved, closed.

use base::ConnectionId;
use wire::frame::Frame;
use wire::line::{Line, bound_unproven};
use wire::trust::{Greeted, Purpose};

use super::{Contact, Links};
use crate::peer::{Peer, Side};

/// Before a connection that broke, or was not made, is tried again, microseconds.
const RETRY_US: u64 = 50_000;
/// What another node may connect for.
const PURPOSES: &[Purpose] = &[Purpose::Link];

impl Links {
    /// Whether a connection is one of a link.
    #[inline]
    pub fn knows(&self, id: ConnectionId) -> bool {
        !self.peers.is_empty() && self.peers.iter().any(|peer| peer.id() == id)
    }

    /// Somebody connected from `address`.
    pub fn on_accepted(&mut self, id: ConnectionId, address: String, now_us: u64) {
        self.peers.push(Peer::new(Line::accepted(now_us, id, address, PURPOSES), Side::Unknown));
        bound_unproven(self.peers.iter_mut().map(|peer| &mut peer.line));
    }

    /// What became of a dial.
    pub fn on_dialed(&mut self, token: u64, connection: Option<ConnectionId>, now_us: u64) {
        let number = self.leads.iter().position(|(_, contact)| *contact == Contact::Dialing { token });
        let (Some(number), Some(view)) = (number, &self.view) else {
            // The link is gone meanwhile.
            let Some(id) = connection else { return };
            self.peers.push(Peer::new(Line::accepted(now_us, id, String::new(), PURPOSES), Side::Unknown));
            return self.let_go(id);
        };
        let (lead, contact) = &mut self.leads[number];
        let Some(id) = connection else {
            *contact = Contact::None { at_us: now_us + RETRY_US };
            return;
        };
        *contact = Contact::Greeting { connection: id };
        let whom = (Purpose::Link, lead.to());
        let line = Line::dialed(now_us, (id, view.link_address(lead.to())), &mut self.speaker, whom);
        self.peers.push(Peer::new(line, Side::Lead(number)));
    }

    /// The street took what was to be sent.
    pub fn on_sent(&mut self, id: ConnectionId) {
        if let Some(peer) = self.peers.iter_mut().find(|peer| peer.id() == id) {
            peer.line.on_sent();
        }
    }

    /// The other end sends no more.
    pub fn on_peer_closed(&mut self, id: ConnectionId) {
        self.closing.push(id);
    }

    /// A connection is gone.
    pub fn on_closed(&mut self, id: ConnectionId, now_us: u64) {
        self.peers.retain(|peer| peer.id() != id);
        for (_, contact) in &mut self.leads {
            if contact.connection() == Some(id) {
                *contact = Contact::None { at_us: now_us + RETRY_US };
            }
        }
    }

    /// Bytes of a connection.
    pub fn receive(&mut self, id: ConnectionId, bytes: &[u8]) {
        if let Some(peer) = self.peers.iter_mut().find(|peer| peer.id() == id) {
            peer.line.receive(bytes);
        }
    }

    /// Goes on with all handshakes.
    pub fn greet(&mut self, now_us: u64) {
        for peer in self.peers.iter_mut().filter(|peer| peer.line.awaits_proof()) {
            let Some(Greeted { from, .. }) = peer.line.greet(now_us, &mut self.speaker) else { continue };
            peer.from = Some(from.name);
            if let (Side::Lead(number), Some(view)) = (peer.side, &self.view) {
                peer.send(&Frame::Hello { life: self.leads[number].0.life(), table: view.version() });
            }
        }
    }

    /// What is not believed any more is closed. What whoever runs the node is to be told of that now.
    pub fn end_distrusted(&mut self, now_us: u64) -> Option<String> {
        for peer in &mut self.peers {
            let Some(why) = peer.line.take_distrust() else { continue };
            self.distrusted.note(peer.line.address(), why);
            self.closing.push(peer.id());
        }
        self.distrusted.poll(now_us)
    }

    /// How many connections of other nodes were not believed.
    pub fn distrusted(&self) -> u64 {
        self.distrusted.count()
    }
}
