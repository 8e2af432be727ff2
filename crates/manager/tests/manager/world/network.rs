//! Connections between nodes: bytes in order, delayed, held back by cuts, and broken by deaths and resets.
//!
//! ```text
//!  dial ─► knock ─► accepted         send ─► queue ─► arrive, one at a time; a way that is cut keeps them
//!    ◄──── dialed ◄──┘               end dead: broken for the other one, if that can be told
//! ```

use std::collections::VecDeque;

use base::{ConnectionId, Door, Entrance, Event};

use super::{Input, Item, World};
use crate::swarm::node_at;

/// Bytes on a way above which the sender waits.
const WAY_BYTES_MAX: usize = 64 * 1024;
/// How long a dial takes that nobody answers, microseconds.
const NOBODY_US: u64 = 300_000;

/// One end of a connection.
#[derive(Clone, Copy)]
struct End {
    id: usize,
    life: u64,
    connection: ConnectionId,
    is_open: bool,
}

enum Parcel {
    Bytes(Vec<u8>),
    /// The other end sends no more.
    Last,
}

/// What is on its way to one end.
#[derive(Default)]
struct Way {
    parcels: VecDeque<Parcel>,
    bytes: usize,
    /// Parcels whose time had come when the way was cut.
    held: usize,
    /// The sender waits to be told that it may send again.
    is_full: bool,
    last_us: u64,
}

/// A connection.
pub struct Link {
    ends: [End; 2],
    /// To the end of the same number.
    ways: [Way; 2],
}

impl World {
    // --- dialing ---

    pub(super) fn dial(&mut self, id: usize, token: u64, address: &str) {
        let (life, delay_us) = (self.nodes[id].life, self.way_us());
        let to = node_at(address, self.nodes.len());
        self.plan(delay_us, Item::Knock { id, life, token, to });
    }

    pub(super) fn on_knock(&mut self, id: usize, life: u64, token: u64, to: Option<(usize, u16)>) {
        let back_us = self.way_us();
        let is_there = to.is_some_and(|(to, port)| self.nodes[to].port == port);
        let to = to.map(|(to, _)| to);
        let to = to.filter(|to| !self.is_cut(id, *to) && !self.is_cut(*to, id));
        let Some(to) = to.filter(|to| is_there && self.nodes[*to].running.is_some()) else {
            let is_refused = to.is_some_and(|to| !self.nodes[to].is_without_power);
            let delay_us = if is_refused { back_us } else { NOBODY_US };
            return self.plan(delay_us, Item::Dialed { id, life, token, link: None });
        };
        let (from, other) = (self.end(id, life), self.end(to, self.nodes[to].life));
        let connection = other.connection;
        self.links.push(Link { ends: [from, other], ways: Default::default() });
        let link = Some(self.links.len() - 1);
        let (peer, local) = (format!("10.0.0.{}:1", id + 1), String::new());
        let accepted = Event::Accepted { connection, door: Door::Node, entrance: Entrance::default(), peer, local };
        self.tell(to, other.life, Input::Event(accepted));
        self.plan(back_us, Item::Dialed { id, life, token, link });
    }

    fn end(&mut self, id: usize, life: u64) -> End {
        let index = self.links.len() as u32;
        End { id, life, connection: ConnectionId { index, generation: 1 }, is_open: true }
    }

    pub(super) fn on_dialed(&mut self, id: usize, life: u64, token: u64, link: Option<usize>) {
        let connection =
            link.map(|link| self.links[link].ends[0].connection).ok_or_else(|| String::from("nobody answers"));
        self.tell(id, life, Input::Event(Event::Dialed { token, connection }));
    }

    // --- sending ---

    /// The link of a connection of a node, and which end of it the node is.
    fn link_of(&self, id: usize, connection: ConnectionId) -> Option<(usize, usize)> {
        let (link, life) = (connection.index as usize, self.nodes[id].life);
        let ends = &self.links.get(link)?.ends;
        let own = ends.iter().position(|end| (end.id, end.life) == (id, life))?;
        Some((link, own))
    }

    pub(super) fn send(&mut self, id: usize, connection: ConnectionId, buffer: Vec<u8>) {
        let (life, delay_us) = (self.nodes[id].life, self.way_us());
        self.witness(&buffer);
        if connection.index == u32::MAX {
            self.answer_operator(id, connection, &buffer);
            return self.tell(id, life, Input::Event(Event::SendDone { connection, buffer }));
        }
        let Some((link, own)) = self.link_of(id, connection).filter(|(link, own)| self.links[*link].ends[*own].is_open)
        else {
            return;
        };
        self.post(link, 1 - own, Parcel::Bytes(buffer), delay_us);
        let way = &mut self.links[link].ways[1 - own];
        way.is_full = way.bytes > WAY_BYTES_MAX;
        if !way.is_full {
            self.tell(id, life, Input::Event(Event::SendDone { connection, buffer: Vec::new() }));
        }
    }

    fn post(&mut self, link: usize, to: usize, parcel: Parcel, delay_us: u64) {
        let now_us = self.agenda.now_us();
        let way = &mut self.links[link].ways[to];
        way.bytes += if let Parcel::Bytes(bytes) = &parcel { bytes.len() } else { 0 };
        way.parcels.push_back(parcel);
        way.last_us = way.last_us.max(now_us + delay_us);
        let delay_us = way.last_us - now_us;
        self.plan(delay_us, Item::Arrive { link, to });
    }

    pub(super) fn on_arrive(&mut self, link: usize, to: usize) {
        let [one, two] = self.links[link].ends;
        let (from, end) = if to == 0 { (two, one) } else { (one, two) };
        if self.is_cut(from.id, end.id) || self.nodes[end.id].is_without_power {
            self.links[link].ways[to].held += 1;
            return;
        }
        let way = &mut self.links[link].ways[to];
        let Some(parcel) = way.parcels.pop_front() else { return };
        way.bytes -= if let Parcel::Bytes(bytes) = &parcel { bytes.len() } else { 0 };
        let goes_on = way.is_full && way.bytes <= WAY_BYTES_MAX;
        way.is_full &= !goes_on;
        if goes_on {
            let done = Event::SendDone { connection: from.connection, buffer: Vec::new() };
            self.tell(from.id, from.life, Input::Event(done));
        }
        if !end.is_open || self.nodes[end.id].life != end.life || self.nodes[end.id].running.is_none() {
            // Nobody has such a connection there: the sender is told, if it can be.
            if !self.is_cut(end.id, from.id) {
                self.break_end(link, 1 - to);
            }
            return;
        }
        match parcel {
            Parcel::Bytes(bytes) => self.tell(end.id, end.life, Input::Bytes(end.connection, bytes)),
            Parcel::Last => {
                self.tell(end.id, end.life, Input::Event(Event::PeerClosed { connection: end.connection }));
            }
        }
    }

    // --- ends ---

    pub(super) fn close(&mut self, id: usize, connection: ConnectionId) {
        let delay_us = self.way_us();
        let Some((link, own)) = self.link_of(id, connection) else {
            // An operator's.
            let life = self.nodes[id].life;
            return self.tell(id, life, Input::Event(Event::Closed { connection }));
        };
        if self.break_end(link, own) {
            self.post(link, 1 - own, Parcel::Last, delay_us);
        }
    }

    /// An end is told that its connection is gone, once.
    fn break_end(&mut self, link: usize, own: usize) -> bool {
        let end = &mut self.links[link].ends[own];
        if !std::mem::take(&mut end.is_open) {
            return false;
        }
        let End { id, life, connection, .. } = *end;
        self.tell(id, life, Input::Event(Event::Closed { connection }));
        true
    }

    fn break_both(&mut self, link: usize) {
        for own in 0..2 {
            self.break_end(link, own);
        }
    }

    /// A process is gone: the system closes what it had, if it is still there itself.
    pub(super) fn close_all(&mut self, id: usize, life: u64, has_power: bool) {
        for link in 0..self.links.len() {
            for own in 0..2 {
                let end = &mut self.links[link].ends[own];
                if (end.id, end.life) == (id, life) && std::mem::take(&mut end.is_open) && has_power {
                    let delay_us = self.way_us();
                    self.post(link, 1 - own, Parcel::Last, delay_us);
                }
            }
        }
    }

    /// Some connections of a node break at both ends.
    pub(super) fn reset_some(&mut self, id: usize) {
        for link in 0..self.links.len() {
            let ends = self.links[link].ends;
            if ends.iter().any(|end| end.id == id) && ends.iter().any(|end| end.is_open) && self.rng.chance(1, 2) {
                self.coverage.resets += 1;
                self.break_both(link);
            }
        }
    }

    /// What was held back goes on, or its connection is given up.
    pub(super) fn release(&mut self) {
        for link in 0..self.links.len() {
            for to in 0..2 {
                let held = std::mem::take(&mut self.links[link].ways[to].held);
                if held > 0 && self.rng.chance(1, 3) {
                    self.break_both(link);
                }
                for _ in 0..held {
                    let delay_us = self.way_us();
                    self.plan(delay_us, Item::Arrive { link, to });
                }
            }
        }
    }

    fn way_us(&mut self) -> u64 {
        let delay_us = 20 + self.rng.below(self.swarm.delay_us_max);
        if !self.peace && self.rng.chance(1, 100) { delay_us * 10 } else { delay_us }
    }

    pub(super) fn is_cut(&self, from: usize, to: usize) -> bool {
        self.cut.contains(&(from, to))
    }
}
