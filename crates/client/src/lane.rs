//! A lane: one connection to one node, on which many callers' requests follow one another. It dials, greets, batches, matches
//! replies to requests by their order, and says what became of both when the connection is lost.
//!
//! ```text
//!             push                    batch due                    reply
//!  callers ─────────► batcher ──────────────────────► out ──────────────────► item, request, reply
//!                        │ nobody answers               │ connection lost
//!                        ▼                              ▼
//!                   items that never left          items of unknown fate
//! ```

mod again;
mod replies;

use crate::batch::{Batcher, BatcherConfig, Qos};
use crate::cluster::Silence;
use crate::counts::LaneCounts;
use crate::heard::Greeting;
use crate::out::{Length, Out};
use crate::redial::Redial;
use base::ConnectionId;
use base::planted::{Bug, is_planted};
use base::street::Effect;
use std::collections::VecDeque;
use wire::ReplyScan;

/// Where a lane stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No connection, and nobody asked for one, or it is not time yet to dial again.
    Absent,
    /// An [`Effect::Dial`] is under way.
    Dialing,
    /// Connected; the greeting is not answered.
    Greeting,
    /// Connected, and of no use any more: to be closed.
    Leaving,
    /// Usable.
    Open,
}

/// Too much waits for a lane already: its callers are to wait, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneFull;

/// A request that waits or is out.
#[derive(Clone, Copy)]
struct Asked<T> {
    item: T,
    bytes: u32,
}

impl<T: Copy> Length for Asked<T> {
    #[inline]
    fn bytes(&self) -> usize {
        self.bytes as usize
    }
}

/// One lane. `T` is what the owner needs to know of a request to hand its reply on.
pub struct Lane<T> {
    address: String,
    greeting: Greeting,
    state: State,
    connection: Option<ConnectionId>,
    batcher: Batcher<Asked<T>>,
    out: VecDeque<Out<Asked<T>>>,
    /// What is to be sent behind what is being sent, and for each send that is not done, the first of all included, whether it
    /// is a batch.
    outgoing: VecDeque<Vec<u8>>,
    sends: VecDeque<Option<u64>>,
    counts: LaneCounts,
    /// The beginning of a reply.
    partial: Vec<u8>,
    scan: ReplyScan,
    greeted: Vec<Vec<u8>>,
    redial: Redial,
    silence: Silence,
}

impl<T: Copy> Lane<T> {
    /// A lane to `address` (`host:port`) that nobody has used. `seed` spreads the moments at which lanes dial again.
    pub fn new(address: String, greeting: Greeting, batching: BatcherConfig, (now_us, seed): (u64, u64)) -> Lane<T> {
        Lane {
            address,
            greeting,
            state: State::Absent,
            connection: None,
            batcher: Batcher::new(batching, now_us),
            out: VecDeque::new(),
            outgoing: VecDeque::new(),
            sends: VecDeque::new(),
            counts: LaneCounts::default(),
            partial: Vec::new(),
            scan: ReplyScan::default(),
            greeted: Vec::new(),
            redial: Redial::new(seed),
            silence: Silence::default(),
        }
    }

    /// Where it leads.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Its connection, if it has one.
    pub fn connection(&self) -> Option<ConnectionId> {
        self.connection
    }

    /// Whether requests flow.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// Whether its greeting was sent, or is about to be, and is not answered.
    pub fn is_greeting(&self) -> bool {
        self.state == State::Greeting
    }

    /// The replies to its greeting; empty until it is open.
    pub fn greeted(&self) -> &[Vec<u8>] {
        &self.greeted
    }

    /// Whether nobody answered so short a time ago that it is not dialed: what is pushed now would wait for nothing.
    pub fn is_down(&self, now_us: u64) -> bool {
        self.state == State::Absent && self.redial.waits(now_us)
    }

    /// Requests that wait or are out.
    pub fn owed(&self) -> usize {
        self.batcher.waiting_items() + self.out.iter().map(Out::owed).sum::<usize>()
    }

    /// Whether requests wait or are out.
    #[inline]
    fn owes(&self) -> bool {
        !self.out.is_empty() || self.has_waiting()
    }

    /// How long its node has owed a reply.
    pub fn silence(&self) -> &Silence {
        &self.silence
    }

    /// Whether something waits for the street to have sent what it was handed.
    #[inline]
    pub fn awaits_sent(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Whether the street is still sending something.
    pub fn is_sending(&self) -> bool {
        !self.sends.is_empty()
    }

    /// Whether requests wait to leave.
    #[inline]
    pub fn has_waiting(&self) -> bool {
        self.batcher.waiting_items() > 0
    }

    /// Adds a request.
    ///
    /// # Errors
    /// [`LaneFull`] when too much waits already.
    #[inline]
    pub fn push(&mut self, now_us: u64, caller: u64, qos: Qos, item: T, request: &[u8]) -> Result<(), LaneFull> {
        let asked = Asked { item, bytes: request.len() as u32 };
        let pushed = self.batcher.push(now_us, caller, qos, asked, |bytes| bytes.extend_from_slice(request));
        pushed.map_err(|_| LaneFull)?;
        self.counts.requests += 1;
        self.silence.asked(now_us);
        Ok(())
    }

    /// See [`Batcher::restrain`].
    pub fn restrain(&mut self, work_us: Option<u64>) {
        self.batcher.restrain(work_us);
    }

    /// Whether it is restrained.
    #[inline]
    pub fn is_restrained(&self) -> bool {
        self.batcher.is_restrained()
    }

    /// Whether the restraint keeps it from taking more.
    #[inline]
    pub fn is_held_back(&self) -> bool {
        self.batcher.is_held_back()
    }

    /// What waits and what is out, as work of the node, microseconds as estimated.
    #[inline]
    pub fn work_us(&self) -> u64 {
        self.batcher.work_us()
    }

    /// What waits and what is out: requests, and their bytes.
    #[inline]
    pub fn load(&self) -> (usize, usize) {
        self.batcher.load()
    }

    /// What it counted.
    pub fn counts(&self) -> LaneCounts {
        self.counts
    }

    /// Whether it is to dial, because somebody waits or the owner wants it.
    #[inline]
    pub fn wants_dial(&self, now_us: u64, is_wanted: bool) -> bool {
        let is_due = self.state == State::Absent && !self.redial.waits(now_us);
        is_due && (is_wanted || self.batcher.waiting_items() > 0)
    }

    /// Dials; `token` is the number of the dial.
    pub fn dial(&mut self, token: u64, effects: &mut Vec<Effect>) {
        self.state = State::Dialing;
        effects.push(Effect::Dial { token, address: self.address.clone() });
    }

    /// The dial is over. Without a connection the next one waits, and what waits for this lane is given back: it never left.
    pub fn dialed(&mut self, now_us: u64, connection: Option<ConnectionId>, effects: &mut Vec<Effect>) -> Vec<T> {
        debug_assert_eq!(self.state, State::Dialing, "one dial at a time");
        self.connection = connection;
        self.silence.heard(now_us, self.owes());
        if connection.is_none() {
            self.state = State::Absent;
            self.redial.failed(now_us);
            return self.take_waiting(now_us);
        }
        self.state = State::Greeting;
        self.counts.connections += 1;
        if self.greeting.count == 0 {
            self.open(now_us);
        } else {
            self.send(self.greeting.requests.clone(), None, effects);
        }
        Vec::new()
    }

    fn open(&mut self, now_us: u64) {
        self.state = State::Open;
        self.redial.succeeded();
        self.batcher.reset(now_us);
    }

    /// Hands over the batches that are due.
    #[inline]
    pub fn send_due(&mut self, now_us: u64, effects: &mut Vec<Effect>) {
        while self.state == State::Open {
            let Some(mut batch) = self.batcher.due(now_us) else { break };
            if is_planted(Bug::M14RepliesSwapped)
                && let [one, other, ..] = &mut batch.items[..]
            {
                std::mem::swap(&mut one.item, &mut other.item);
            }
            self.counts.batches_sent += 1;
            self.counts.requests_sent += batch.items.len() as u64;
            self.counts.bytes_sent += batch.bytes.len() as u64;
            let number = self.counts.batches_sent;
            self.out.push_back(Out::new(number, batch.items, batch.ticket));
            self.send(batch.bytes, Some(number), effects);
        }
    }

    fn send(&mut self, bytes: Vec<u8>, batch: Option<u64>, effects: &mut Vec<Effect>) {
        let connection = self.connection.expect("who sends is connected");
        if self.sends.is_empty() {
            effects.push(Effect::Send { connection, buffer: bytes });
        } else {
            self.outgoing.push_back(bytes);
        }
        self.sends.push_back(batch);
    }

    /// The street sent what it was handed last and gives it back as it was.
    pub fn send_done(&mut self, buffer: Vec<u8>, effects: &mut Vec<Effect>) {
        let batch = self.sends.pop_front().expect("a send that is done was under way");
        match batch.and_then(|batch| self.out.iter_mut().find(|out| out.number() == batch)) {
            Some(out) => out.keep(buffer),
            None => self.batcher.recycle(buffer, Vec::new()),
        }
        if let (Some(bytes), Some(connection)) = (self.outgoing.pop_front(), self.connection) {
            effects.push(Effect::Send { connection, buffer: bytes });
        }
    }

    /// The connection is gone. What was out is given back with its bytes, where they are known: whether it was carried out is
    /// not. What had not left waits for the next connection.
    pub fn closed(&mut self, now_us: u64) -> Vec<(T, Option<Vec<u8>>)> {
        if self.state == State::Greeting {
            self.redial.failed(now_us);
        }
        (self.state, self.connection) = (State::Absent, None);
        self.outgoing.clear();
        self.sends.clear();
        self.partial.clear();
        self.scan = ReplyScan::default();
        self.greeted.clear();
        self.batcher.reset(now_us);
        let out = std::mem::take(&mut self.out);
        self.silence.heard(now_us, self.owes());
        out.into_iter().flat_map(Out::lost).map(|(asked, bytes)| (asked.item, bytes)).collect()
    }

    /// Its connection is being closed: nothing is sent on it any more, and what comes waits for the next one.
    pub fn leave(&mut self, now_us: u64) {
        if self.state == State::Greeting {
            self.redial.failed(now_us);
        }
        self.state = State::Leaving;
    }

    /// Whether another request of that class would be taken.
    pub fn has_room(&self, qos: Qos) -> bool {
        self.batcher.has_room(qos)
    }

    /// When it wants to be asked again if nothing happens before.
    pub fn deadline_us(&self, now_us: u64) -> Option<u64> {
        match self.state {
            State::Open => self.batcher.deadline_us(),
            State::Absent if self.batcher.waiting_items() > 0 => Some(self.redial.due_us().max(now_us)),
            _ => None,
        }
    }
}
