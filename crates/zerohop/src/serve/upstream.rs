//! The store: a desk for each node and hurry, which has a lane, and the table that says whose keys are whose.
//!
//! ```text
//!  ask ─► slot of its key ─► holder ─► desk (node, hurry) ─► batch ─► node
//!  told ◄─ answers; or it is to be asked elsewhere ◄─ replies, losses, times that are over
//! ```

use super::ask as handler;
use super::requests::{Answer, AskNumber, Asked};
use crate::client::options::Settings;
use crate::client::request::Request;
use crate::client::{Error, Reply, ServerError};
use base::limits::{HURRY_US_MAX, LANE_BATCH_BYTES_MAX, NODE_SILENT_US_MAX};
use base::rng::mix;
use base::street::Effect;
use base::{ConnectionId, Slot};
use client::batch::{BatchBounds, BatcherConfig};
use client::cluster::{Learning, NodeNumber, Report, RoutingTable, Suspicion, slot_of};
use client::desk::{Ask, NotAsked, Outcome, Verdict};
use client::{Desk, Lane, Qos};
use std::collections::BTreeMap;
use std::time::Duration;

/// Who is told what became of a request to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seat {
    /// A handler's ask.
    Ask(AskNumber),
    /// The question for the table.
    Table,
    /// The question whether a node can be told that another one is silent.
    Suspicion,
    /// Nobody is.
    Nobody,
}

/// Which of the lanes to one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Line {
    /// For who is in no hurry.
    Relaxed,
    /// For who does not stand behind others in their connection.
    Urgent,
    /// For what takes seconds to be answered.
    Aside,
}

impl Line {
    fn of(qos: Qos) -> Line {
        match qos {
            Qos::Single | Qos::Within { us: ..=HURRY_US_MAX } => Line::Urgent,
            Qos::Within { .. } | Qos::Batch => Line::Relaxed,
        }
    }
}

/// What somebody is told.
pub(super) struct Told {
    pub seat: Seat,
    pub answer: Answer,
    /// Length of the reply.
    pub bytes: usize,
    /// Who answered, or did not.
    pub node: NodeNumber,
}

/// A lane's desk.
struct Counter {
    desk: Desk<Seat>,
    node: NodeNumber,
    line: Line,
}

impl Counter {
    /// Whether somebody waits before its node who is to leave it when that is silent for long.
    fn is_watched(&self) -> bool {
        self.line != Line::Aside
    }
}

/// See the module.
pub(super) struct Upstream {
    settings: Settings,
    pub table: RoutingTable,
    pub learning: Learning,
    counters: Vec<Counter>,
    of_nodes: BTreeMap<(NodeNumber, Line), usize>,
    /// Which counter a dial is for; the last dial's number.
    dials: BTreeMap<u64, usize>,
    dials_begun: u64,
    /// Silent nodes are not looked at again before this, microseconds.
    look_us: u64,
    /// The table was learnt since they were.
    is_learnt: bool,
    suspicion: Suspicion,
    /// Those that wait to hear whether who is to be told can be.
    pub(super) reports: Vec<Report>,
    /// What happened and nobody was told yet.
    pub told: Vec<Told>,
    seed: u64,
}

/// What lies at a node of one lane: enough that it never waits for us.
fn bounds() -> BatchBounds {
    BatchBounds {
        bytes_max: LANE_BATCH_BYTES_MAX,
        in_flight_bytes_max: 2 * LANE_BATCH_BYTES_MAX,
        ..BatchBounds::default()
    }
}

fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl Upstream {
    /// Nobody is dialed before something is asked.
    pub fn new(settings: Settings, seed: u64) -> Upstream {
        Upstream {
            table: RoutingTable::new(std::slice::from_ref(&settings.address)),
            learning: Learning::default(),
            counters: Vec::new(),
            of_nodes: BTreeMap::new(),
            dials: BTreeMap::new(),
            dials_begun: 0,
            look_us: 0,
            is_learnt: false,
            suspicion: Suspicion::default(),
            reports: Vec::new(),
            told: Vec::new(),
            settings,
            seed,
        }
    }

    /// How long an ask is waited for that does not say so, microseconds.
    pub fn timeout_us(&self) -> u64 {
        microseconds(self.settings.timeout)
    }

    /// Requests that are not answered.
    pub fn owed(&self) -> usize {
        self.counters.iter().map(|counter| counter.desk.owed()).sum()
    }

    /// Who has a slot, as far as is known; of no slot anybody.
    fn holder(&self, slot: Option<Slot>) -> NodeNumber {
        let seed = || self.table.seeds().next().expect("a server has a store");
        slot.and_then(|slot| self.table.holder(slot))
            .or_else(|| self.table.holders().first().copied())
            .unwrap_or_else(seed)
    }

    /// A member that is not this node, if there is any.
    pub fn other_than(&self, node: NodeNumber) -> NodeNumber {
        self.table.members().find(|&other| other != node).unwrap_or(node)
    }

    fn counter(&mut self, now_us: u64, (node, line): (NodeNumber, Line)) -> usize {
        if let Some(&counter) = self.of_nodes.get(&(node, line)) {
            return counter;
        }
        self.seed = mix(self.seed);
        let batching = BatcherConfig { policy: self.settings.policy, bounds: bounds(), ..BatcherConfig::default() };
        let address = self.table.address(node).to_owned();
        let lane = Lane::new(address, self.settings.greeting(), batching, (now_us, self.seed));
        let desk = Desk::new(lane, now_us, microseconds(self.settings.timeout));
        self.counters.push(Counter { desk, node, line });
        self.of_nodes.insert((node, line), self.counters.len() - 1);
        self.counters.len() - 1
    }

    /// Whether every one of these has room at the lane that it goes to.
    pub fn has_room(&self, asks: &[handler::Ask]) -> bool {
        let is_full = |counter: &Counter| !counter.desk.has_room(Qos::Batch);
        if !self.counters.iter().any(is_full) {
            return true;
        }
        asks.iter().all(|ask| {
            let place = (self.holder_of(&ask.request, ask.plain.is_some()), Line::of(ask.qos));
            self.of_nodes.get(&place).is_none_or(|&counter| !is_full(&self.counters[counter]))
        })
    }

    /// Who has a request's key, as far as is known.
    fn holder_of(&self, request: &Request, is_plain: bool) -> NodeNumber {
        self.holder(request.first_key(is_plain).map(slot_of))
    }

    /// The table was learnt: it may say who has the slots of silent nodes.
    pub fn learnt(&mut self) {
        self.learning.answered();
        self.is_learnt = true;
    }

    /// Asks the holder of the ask's key; or whom a node named, `behind_asking` if only this once. What cannot be asked is told so.
    pub fn ask(&mut self, now_us: u64, number: AskNumber, asked: &mut Asked, sent_to: Option<(NodeNumber, bool)>) {
        let slot = asked.request.first_key(asked.plain.is_some()).map(slot_of);
        let (node, is_asking) = sent_to.unwrap_or_else(|| (self.holder(slot), false));
        let seat = Seat::Ask(number);
        let is_read = match asked.plain.map_or_else(|| asked.request.is_shared_read(), Ok) {
            Ok(is_read) => is_read,
            Err(error) => return self.told.push(Told { seat, answer: Err(error), bytes: 0, node }),
        };
        let (qos, deadline_us) = (asked.qos, asked.deadline_us);
        match asked.request.finish() {
            Ok(request) => {
                let ask = Ask { caller: number.request, qos, is_read, deadline_us, is_asking, slot, request };
                self.put(now_us, (node, Line::of(qos)), ask, seat);
            }
            Err(error) => self.told.push(Told { seat, answer: Err(error), bytes: 0, node }),
        }
    }

    /// Asks a node for the table.
    pub fn ask_for_table(&mut self, now_us: u64, node: NodeNumber) {
        const QUESTION: &[u8] = b"*2\r\n$7\r\nCLUSTER\r\n$5\r\nNODES\r\n";
        let deadline_us = now_us.saturating_add(self.timeout_us());
        let (qos, is_read, is_asking, slot) = (Qos::Batch, true, false, None);
        let ask = Ask { caller: 0, qos, is_read, deadline_us, is_asking, slot, request: QUESTION };
        self.put(now_us, (node, Line::of(qos)), ask, Seat::Table);
    }

    /// Puts an ask to a node by one of its lanes.
    pub(super) fn put(&mut self, now_us: u64, (node, line): (NodeNumber, Line), ask: Ask<'_>, seat: Seat) {
        let counter = self.counter(now_us, (node, line));
        let desk = &mut self.counters[counter].desk;
        let Err(why) = desk.ask_in_any_case(now_us, ask, seat) else { return };
        let address = desk.address().to_owned();
        let error = match why {
            NotAsked::Full => Error::Full { address },
            NotAsked::Unreachable => Error::Unreachable { address, reason: "nobody did a moment ago".to_owned() },
        };
        self.told.push(Told { seat, answer: Err(error), bytes: 0, node });
    }

    /// A dial is over; the counter that has the connection now.
    pub fn dialed(
        &mut self,
        now_us: u64,
        token: u64,
        connection: Option<ConnectionId>,
        effects: &mut Vec<Effect>,
    ) -> usize {
        let counter = self.dials.remove(&token).expect("a dial ends once");
        self.with_desk(counter, |desk, tell| desk.dialed(now_us, connection, effects, tell));
        counter
    }

    /// The kernel took what a counter's lane sent.
    pub fn sent(&mut self, counter: usize, buffer: Vec<u8>, effects: &mut Vec<Effect>) {
        self.counters[counter].desk.send_done(buffer, effects);
    }

    /// Bytes of a counter's node. [`Verdict::End`]: its connection is of no use, and lost already.
    pub fn received(&mut self, now_us: u64, counter: usize, bytes: &[u8]) -> Verdict {
        self.with_desk(counter, |desk, tell| {
            let verdict = desk.received(now_us, bytes, &mut *tell);
            if verdict == Verdict::End {
                desk.closed(now_us, tell);
            }
            verdict
        })
    }

    /// A counter's connection is gone.
    pub fn closed(&mut self, now_us: u64, counter: usize) {
        self.with_desk(counter, |desk, tell| desk.closed(now_us, tell));
    }

    /// Tells those whose time is over; connections of nodes that have said nothing for so long, which are lost by that.
    pub fn expire(&mut self, now_us: u64) -> Vec<ConnectionId> {
        let mut silent = Vec::new();
        for counter in 0..self.counters.len() {
            let desk = &self.counters[counter].desk;
            if desk.expiry_us().is_none_or(|expiry_us| expiry_us > now_us) {
                continue;
            }
            let connection = desk.connection();
            let verdict = self.with_desk(counter, |desk, tell| {
                let verdict = desk.expire(now_us, &mut *tell);
                if verdict == Verdict::End {
                    desk.closed(now_us, tell);
                }
                verdict
            });
            silent.extend(connection.filter(|_| verdict == Verdict::End));
        }
        silent
    }

    /// Lets a desk tell, and notes what it tells.
    fn with_desk<R>(
        &mut self,
        counter: usize,
        act: impl FnOnce(&mut Desk<Seat>, &mut dyn FnMut(Seat, Outcome<'_>)) -> R,
    ) -> R {
        let (Counter { desk, node, .. }, told) = (&mut self.counters[counter], &mut self.told);
        let teller = Teller { node: *node, address: desk.address().to_owned(), after: self.settings.timeout };
        let table = &self.table;
        act(desk, &mut |seat, outcome| told.push(teller.told(seat, outcome, table)))
    }

    /// Nodes that have owed a reply for long: another one is asked who has their slots. Where that is known, who waits before such a node
    /// leaves it; connections on which nobody waits any more, which are lost by that.
    pub fn leave_silent(&mut self, now_us: u64) -> Vec<ConnectionId> {
        let is_silent = |counter: &Counter| counter.is_watched() && counter.desk.silence().is_long(now_us);
        let is_due = now_us >= self.look_us;
        let is_to_look = std::mem::take(&mut self.is_learnt) || is_due;
        if !is_to_look || !self.table.is_cluster() || !self.counters.iter().any(is_silent) {
            return Vec::new();
        }
        if is_due {
            self.look_us = now_us + NODE_SILENT_US_MAX;
        }
        let (mut ended, mut reports) = (Vec::new(), Vec::new());
        let (table, told) = (&self.table, &mut self.told);
        for Counter { desk, node, .. } in self.counters.iter_mut().filter(|counter| is_silent(counter)) {
            if is_due {
                self.learning.doubt(*node, table);
                reports.extend(self.suspicion.report(now_us, *node, desk.silence(), table));
            }
            let teller = Teller { node: *node, address: desk.address().to_owned(), after: self.settings.timeout };
            let mut tell = |seat, outcome: Outcome<'_>| told.push(teller.told(seat, outcome, table));
            let (connection, is_left) =
                (desk.connection(), |slot| table.holder(slot).is_some_and(|holder| holder != *node));
            if desk.desert(now_us, is_left, &mut tell) == Verdict::End {
                desk.closed(now_us, tell);
                ended.extend(connection);
            }
        }
        reports.into_iter().for_each(|report| self.begin_report(now_us, report));
        ended
    }

    /// Batches leave, dials begin.
    pub fn act(&mut self, now_us: u64, effects: &mut Vec<Effect>) {
        for (number, counter) in self.counters.iter_mut().enumerate() {
            let effects_before = effects.len();
            counter.desk.act(now_us, self.dials_begun, effects);
            if effects[effects_before..].iter().any(|effect| matches!(effect, Effect::Dial { .. })) {
                self.dials.insert(self.dials_begun, number);
                self.dials_begun += 1;
            }
        }
    }

    /// Whether something waits for the street to have sent what it was handed.
    pub fn awaits_sent(&self) -> bool {
        self.counters.iter().any(|counter| counter.desk.awaits_sent())
    }

    /// When something is to be done if nothing happens before, microseconds.
    pub fn deadline_us(&self, now_us: u64) -> Option<u64> {
        let silent_us = |counter: &Counter| {
            let due_us = counter.desk.silence().due_us().filter(|_| self.table.is_cluster() && counter.is_watched());
            due_us.map(|due_us| due_us.max(self.look_us))
        };
        let of_desk =
            |counter: &Counter| [counter.desk.deadline_us(now_us), counter.desk.expiry_us(), silent_us(counter)];
        self.counters.iter().flat_map(of_desk).chain([self.learning.deadline_us()]).flatten().min()
    }
}

/// In whose name somebody is told something.
struct Teller {
    node: NodeNumber,
    address: String,
    /// The time of who is late.
    after: Duration,
}

impl Teller {
    fn told(&self, seat: Seat, outcome: Outcome<'_>, table: &RoutingTable) -> Told {
        let bytes = if let Outcome::Reply(reply) = outcome { reply.len() } else { 0 };
        let address = self.address.clone();
        let answer = match outcome {
            Outcome::Reply(reply) => Reply::read(reply),
            Outcome::Unreachable => {
                Err(Error::Unreachable { address, reason: "it could not be connected to".to_owned() })
            }
            Outcome::Refused(error) => Err(refused(address, error)),
            Outcome::Lost => Err(Error::Lost { address }),
            Outcome::Unknown => Err(Error::Unknown { address }),
            Outcome::Late => Err(Error::TimedOut { address, after: self.after }),
            // In the words of a node that still spoke: it is followed as any other redirect, so often and not more.
            Outcome::Elsewhere(slot) => Reply::read(moved(slot, table).as_bytes()),
        };
        Told { seat, answer, bytes, node: self.node }
    }
}

/// What the former holder of a slot says.
fn moved(slot: Slot, table: &RoutingTable) -> String {
    let holder = table.holder(slot).expect("a slot that was left has a holder");
    format!("-MOVED {} {}\r\n", slot.number(), table.address(holder))
}

fn refused(address: String, reply: &[u8]) -> Error {
    let error = match Reply::read(reply) {
        Err(Error::Server(error)) => error,
        _ => ServerError::new(reply),
    };
    Error::Refused { address, error }
}
