//! All seats of one core: found by group and node when they are shared, by number otherwise; and the connections that they may have.

use crate::classes::ClassNumber;
use crate::groups::Groups;
use crate::identity::Identity;
use crate::line::Line;
use crate::seat::{Hurry, Owed, Seat, Whose};
use base::ConnectionId;
use base::limits::{self, IDLE_OWN_CONNECTIONS_MAX, LANE_IDLE_US_MAX, NODE_SILENT_US_MAX};
use client::batch::{BatchBounds, BatcherConfig};
use client::cluster::NodeNumber;
use client::{Lane, LaneCounts, PolicyConfig, Qos};
use std::collections::BTreeMap;
use wire::request::encode;

/// What lies at the store of one lane: enough that it never waits for the proxy, and so little that others' requests do not wait
/// long behind it.
fn bounds() -> BatchBounds {
    BatchBounds {
        bytes_max: limits::LANE_BATCH_BYTES_MAX,
        in_flight_bytes_max: 2 * limits::LANE_BATCH_BYTES_MAX,
        ..BatchBounds::default()
    }
}

/// A node that a seat is for.
pub(crate) type Node<'a> = (NodeNumber, &'a str);

/// The seats.
pub(crate) struct Seats {
    policy: PolicyConfig,
    connections_max: usize,
    places: Vec<Option<Seat>>,
    free: Vec<usize>,
    pub groups: Groups,
    idle: Vec<usize>,
    /// Which seat a dial is for.
    dials: BTreeMap<u64, usize>,
    dials_begun: u64,
    /// Seats whose dial or connection counts.
    connections: usize,
    seed: u64,
    /// Those with something to send.
    pub dirty: Vec<usize>,
    /// Those whose lanes want to be looked at when time has passed.
    timed: Vec<usize>,
    /// When connections that nobody uses are looked for next.
    sweep_us: u64,
    /// When it is looked whether a node owes a reply for too long, while any may.
    silence_us: Option<u64>,
    /// By node.
    nodes: Vec<NodeCounts>,
}

/// What is counted of a node beside its lanes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NodeCounts {
    /// Which it is, if something was counted.
    pub node: Option<NodeNumber>,
    /// What lanes counted that are gone.
    pub lanes: LaneCounts,
    pub redirects: u64,
    pub retries: u64,
}

impl Seats {
    /// None yet; at most `connections_max` connections at a time.
    pub fn new(policy: PolicyConfig, connections_max: usize, seed: u64) -> Seats {
        Seats {
            policy,
            connections_max,
            places: Vec::new(),
            free: Vec::new(),
            groups: Groups::default(),
            idle: Vec::new(),
            dials: BTreeMap::new(),
            dials_begun: 0,
            connections: 0,
            seed,
            dirty: Vec::new(),
            timed: Vec::new(),
            sweep_us: LANE_IDLE_US_MAX,
            silence_us: None,
            nodes: Vec::new(),
        }
    }

    /// The seat of that number.
    #[inline]
    pub fn get(&mut self, number: usize) -> &mut Seat {
        self.places[number].as_mut().expect("a seat is given up only when nobody refers to it")
    }

    /// From now on at most so many connections at a time. Those that are too many go when another one is wanted.
    pub fn bound(&mut self, connections_max: usize) {
        self.connections_max = connections_max;
    }

    /// The group of all callers of this identity that are in such a hurry.
    pub fn group(&mut self, identity: &Identity, hurry: Hurry) -> usize {
        self.groups.number(identity, hurry)
    }

    /// The number of a group's seat at a node.
    #[inline]
    pub fn shared(&mut self, now_us: u64, group: usize, node: Node<'_>, asks: bool) -> usize {
        if let Some(number) = self.groups.get(group).seat(node.0) {
            return number;
        }
        let identity = self.groups.get(group).identity.clone();
        let number = self.add(now_us, node, &identity, (Whose::Shared(group), self.policy), asks);
        self.groups.get(group).set_seat(node.0, Some(number));
        number
    }

    /// A seat for a caller alone, whose label is this: one that is open and free, or a new one.
    pub fn own(&mut self, now_us: u64, node: Node<'_>, identity: &Identity, of: (ConnectionId, &[u8])) -> usize {
        let fits = |number: &usize| {
            let seat = self.places[*number].as_ref()?;
            (seat.node == node.0 && !seat.is_closing && seat.identity == *identity).then_some(seat)
        };
        let (caller, label) = of;
        // One that was this caller's before need not be told that it is.
        let was_its = |number: &usize| fits(number).is_some_and(|seat| seat.label == label);
        let place = self.idle.iter().position(was_its);
        match place.or_else(|| self.idle.iter().position(|number| fits(number).is_some())) {
            Some(place) => {
                let number = self.idle.swap_remove(place);
                self.get(number).whose = Whose::Own(caller);
                number
            }
            None => self.add(now_us, node, identity, (Whose::Own(caller), PolicyConfig::Immediate), false),
        }
    }

    /// A new seat for a report.
    pub fn aside(&mut self, now_us: u64, node: Node<'_>, identity: &Identity) -> usize {
        self.add(now_us, node, identity, (Whose::Aside, PolicyConfig::Immediate), false)
    }

    /// A new seat for this caller alone, which shows what the store makes of its login.
    pub fn proof(
        &mut self,
        now_us: u64,
        node: Node<'_>,
        identity: &Identity,
        caller: ConnectionId,
        asks: bool,
    ) -> usize {
        self.add(now_us, node, identity, (Whose::Own(caller), PolicyConfig::Immediate), asks)
    }

    fn add(
        &mut self,
        now_us: u64,
        (node, address): Node<'_>,
        identity: &Identity,
        (whose, policy): (Whose, PolicyConfig),
        asks: bool,
    ) -> usize {
        self.seed = base::rng::mix(self.seed);
        let batching = BatcherConfig { policy, bounds: bounds(), ..BatcherConfig::default() };
        let lane: Lane<Owed> = Lane::new(address.to_owned(), identity.greeting(asks), batching, (now_us, self.seed));
        let seat = Seat {
            lane,
            node,
            identity: identity.clone(),
            whose,
            line: Line::default(),
            class: ClassNumber::DEFAULT,
            refusal: None,
            unreachable: None,
            is_named: false,
            label: Vec::new(),
            label_due_us: 0,
            is_spoiled: false,
            is_closing: false,
            is_dirty: false,
            has_timer: false,
            used_us: now_us,
        };
        match self.free.pop() {
            Some(number) => {
                self.places[number] = Some(seat);
                number
            }
            None => {
                self.places.push(Some(seat));
                self.places.len() - 1
            }
        }
    }

    /// Its caller needs it no more. Whether it is kept for another one; otherwise it is to be closed.
    pub fn release(&mut self, now_us: u64, number: usize) -> bool {
        let room = self.idle.len() < IDLE_OWN_CONNECTIONS_MAX;
        let seat = self.get(number);
        let is_as_new = seat.lane.is_open() && !seat.is_spoiled && !seat.is_closing && seat.lane.owed() == 0;
        if !room || !is_as_new {
            return false;
        }
        if std::mem::replace(&mut seat.is_named, false) {
            let mut words = Vec::new();
            encode([b"CLIENT".as_slice(), b"SETNAME", b""], &mut words);
            if seat.lane.push(now_us, 0, Qos::Batch, Owed::NOBODY, &words).is_err() {
                return false;
            }
            self.touch(number);
        }
        let seat = self.get(number);
        (seat.whose, seat.used_us) = (Whose::Idle, now_us);
        self.idle.push(number);
        true
    }

    /// Nobody refers to it any more.
    pub fn remove(&mut self, number: usize) -> Seat {
        let seat = self.places[number].take().expect("a seat is given up once");
        self.counts_of(seat.node).lanes += seat.lane.counts();
        self.idle.retain(|&idle| idle != number);
        self.dials.retain(|_, &mut dialed| dialed != number);
        self.timed.retain(|&timed| timed != number);
        if let Whose::Shared(group) = seat.whose {
            self.groups.get(group).set_seat(seat.node, None);
            self.groups.remove_empty(group);
        }
        self.free.push(number);
        seat
    }

    /// Whether one more connection may be dialed.
    pub fn may_dial(&self) -> bool {
        self.connections < self.connections_max
    }

    /// The number of a dial that is about to begin.
    pub fn next_dial(&self) -> u64 {
        self.dials_begun
    }

    /// It has begun, for this seat.
    pub fn dial_began(&mut self, number: usize) {
        self.dials.insert(self.dials_begun, number);
        self.dials_begun += 1;
        self.connections += 1;
    }

    /// Which seat the dial was for, if anybody still wants it.
    pub fn dialed(&mut self, token: u64) -> Option<usize> {
        self.dials.remove(&token)
    }

    /// A dial that failed, or a connection, is gone.
    pub fn connection_ended(&mut self) {
        self.connections -= 1;
    }

    /// Something is to be done for it before the tick ends.
    #[inline]
    pub fn touch(&mut self, number: usize) {
        let seat = self.get(number);
        if !std::mem::replace(&mut seat.is_dirty, true) {
            self.dirty.push(number);
        }
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Seat> {
        self.places.iter().flatten()
    }

    /// What is counted of a node beside its lanes.
    pub fn counts_of(&mut self, node: NodeNumber) -> &mut NodeCounts {
        if self.nodes.len() <= node.index() {
            self.nodes.resize(node.index() + 1, NodeCounts::default());
        }
        let counts = &mut self.nodes[node.index()];
        counts.node = Some(node);
        counts
    }

    /// All of that.
    pub fn counts_of_nodes(&self) -> &[NodeCounts] {
        &self.nodes
    }

    /// Whether there is one of that number.
    pub fn holds(&self, number: usize) -> bool {
        self.places[number].is_some()
    }

    /// It was looked at: whether it has to be again when time has passed.
    #[inline]
    pub fn note_timer(&mut self, now_us: u64, number: usize) {
        let seat = self.get(number);
        if !seat.has_timer && seat.lane.deadline_us(now_us).is_some() {
            seat.has_timer = true;
            self.timed.push(number);
        }
    }

    /// Those whose batches or dials have become due are to be looked at.
    pub fn touch_due(&mut self, now_us: u64) {
        for number in std::mem::take(&mut self.timed) {
            self.get(number).has_timer = false;
            match self.get(number).lane.deadline_us(now_us) {
                Some(deadline_us) if deadline_us <= now_us => self.touch(number),
                _ => self.note_timer(now_us, number),
            }
        }
    }

    /// When the next of them wants to be looked at.
    pub fn deadline_us(&self, now_us: u64) -> Option<u64> {
        let of_timed = |&number: &usize| self.places[number].as_ref().and_then(|seat| seat.lane.deadline_us(now_us));
        let sweep_us = (self.connections > 0).then_some(self.sweep_us);
        self.timed.iter().filter_map(of_timed).chain(sweep_us).chain(self.silence_us).min()
    }

    /// Something was sent that a node may never answer.
    #[inline]
    pub fn await_silence(&mut self, now_us: u64) {
        self.silence_us.get_or_insert(now_us + NODE_SILENT_US_MAX);
    }

    /// Whether it is time to look whether a node is silent. It is looked again as long as anything is owed.
    pub fn looks_for_silence(&mut self, now_us: u64) -> bool {
        if self.silence_us.is_none_or(|due_us| due_us > now_us) {
            return false;
        }
        let shared = self.all().filter(|seat| matches!(seat.whose, Whose::Shared(_)));
        let due_us = shared.filter_map(|seat| seat.lane.silence().due_us()).min();
        self.silence_us = due_us.map(|due_us| if due_us <= now_us { now_us + NODE_SILENT_US_MAX } else { due_us });
        due_us.is_some_and(|due_us| due_us <= now_us)
    }

    /// The shared seats at nodes that have owed a reply for too long, the one that did so for longest first.
    pub fn silent(&self, now_us: u64) -> Vec<usize> {
        let is_silent = |seat: &Seat| matches!(seat.whose, Whose::Shared(_)) && seat.lane.silence().is_long(now_us);
        let seats = self.places.iter().enumerate().filter_map(|(number, seat)| Some((number, seat.as_ref()?)));
        let mut silent: Vec<(u64, usize)> = seats
            .filter(|(_, seat)| is_silent(seat))
            .map(|(number, seat)| (seat.lane.silence().us(now_us), number))
            .collect();
        silent.sort_unstable_by_key(|&(us, number)| (std::cmp::Reverse(us), number));
        silent.into_iter().map(|(_, number)| number).collect()
    }

    /// The seat whose connection may make room for another one: of those at rest the one that was used last longest ago.
    pub fn least_recently_used(&self) -> Option<usize> {
        let at_rest = self.places.iter().enumerate().filter_map(|(number, seat)| Some((number, seat.as_ref()?)));
        at_rest.filter(|(_, seat)| seat.is_at_rest()).min_by_key(|(_, seat)| seat.used_us).map(|(number, _)| number)
    }

    /// Once in a while: seats at rest that nobody used for a long time, and shared ones without a connection or a caller.
    pub fn unused(&mut self, now_us: u64) -> Vec<usize> {
        if now_us < self.sweep_us {
            return Vec::new();
        }
        self.sweep_us = now_us + LANE_IDLE_US_MAX / 4;
        (0..self.places.len()).filter(|&number| self.is_unused(now_us, number)).collect()
    }

    fn is_unused(&mut self, now_us: u64, number: usize) -> bool {
        let Some(seat) = self.places[number].as_ref() else { return false };
        if now_us.saturating_sub(seat.used_us) < LANE_IDLE_US_MAX {
            return false;
        }
        match seat.whose {
            Whose::Shared(group) if seat.lane.connection().is_none() => {
                seat.lane.owed() == 0 && seat.line.is_empty() && self.groups.get(group).is_deserted()
            }
            _ => seat.is_at_rest(),
        }
    }
}
