//! A link: one lane with its socket, and those who wait at its desk. Whoever asks does the work: there is no thread between a
//! caller and the socket.
//!
//! ```text
//!   ask ─► lock: desk ─► something due? ── send, unlocked ──► lock: desk
//!                            │ no
//!                            ▼
//!          nobody reads? ── yes: read, unlocked ─► lock: desk tells everybody ─► own reply? hand the reading on, wake them
//!                        └─ no: sleep until told, or until the reading is handed over
//! ```
//!
//! One lock guards what is here; nobody sends, receives, dials or wakes while holding it. Two roles exclude others meanwhile: who
//! *acts* (sends or dials), and who *reads*. Who gives up a role looks whether somebody still needs one to have it.

use super::chain::Chain;
use super::error::{Error, ServerError};
use super::gathering::{Gatherer, Gathering};
use super::options::Settings;
use super::reply::Reply;
use super::seat::{Answer, Seat, ThreadSeat};
use super::stray::Stray;
use base::limits::{CLIENT_RECEIVE_BYTES, LANE_BATCH_BYTES_MAX};
use base::street::Effect;
use base::{ConnectionId, Slot};
use client::batch::{BatchBounds, BatcherConfig};
use client::cluster::{NodeNumber, RoutingTable};
use client::desk::{NotAsked, Outcome, Verdict};
use client::{Desk, Lane};
use io::clock::monotonic_us;
use io::sleepers::{Beds, Sleepers};
use io::stream::{Received, Stream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Who reads the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    Nobody,
    /// A thread that waits for its reply.
    Caller,
    /// The background thread waits for bytes. If it waits for nobody's in particular, a caller may take over.
    Watch,
    /// The background thread takes them.
    Background,
}

/// What the lock guards.
pub(super) struct State {
    pub desk: Desk<Seat>,
    pub stream: Option<Arc<Stream>>,
    /// The number of the connection is that of its dial.
    pub dials: u32,
    pub reader: Reader,
    /// Somebody sends or dials.
    pub is_acting: bool,
    /// A dial is to be begun, by somebody who may wait for it.
    pub is_to_dial: bool,
    /// What the socket had no room for, and how much of that it took meanwhile.
    pub unsent: Option<(Vec<u8>, usize)>,
    /// Threads that sleep, and in which of their calls; some of them may be gone.
    pub parked: Vec<(Arc<ThreadSeat>, u64)>,
    /// Threads that found no place at the desk: to be woken when there may be one.
    pub crowd: Vec<Seat>,
    /// Requests of tasks and inboxes that are not answered.
    pub driven: usize,
    /// Until when the background thread sleeps unless it is woken, microseconds.
    pub background_until_us: u64,
    /// Why nobody answered last.
    pub failure: String,
    pub is_closed: bool,
    /// Tasks that another one wakes.
    pub chain: Chain,
    /// Whether what is due waits for others.
    pub gathering: Gathering,
    /// Submitted requests that another node is to be asked.
    pub strays: Vec<Stray>,
    /// Who was told something, and is to be woken when the lock is released.
    pub told: Vec<Seat>,
    pub effects: Vec<Effect>,
    pub buffer: Vec<u8>,
}

pub(super) type Locked<'a> = MutexGuard<'a, State>;

/// See the module.
pub(crate) struct Link {
    state: Mutex<State>,
    pub(super) settings: Arc<Settings>,
    /// Threads whose replies others read.
    pub(super) sleepers: Sleepers,
    pub(super) writes: AtomicU64,
    pub(super) reads: AtomicU64,
    pub(super) asked: AtomicU64,
}

/// Who acts, and what he may do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Actor {
    /// May wait for the network.
    Thread,
    /// A task: may not.
    Task,
}

impl Link {
    /// One that lets those in a hurry wait for nobody.
    pub fn new(settings: &Arc<Settings>, seed: u64, hurries: bool) -> Link {
        let bounds = BatchBounds {
            bytes_max: LANE_BATCH_BYTES_MAX,
            in_flight_bytes_max: 2 * LANE_BATCH_BYTES_MAX,
            ..BatchBounds::default()
        };
        let batching = BatcherConfig { policy: settings.policy, bounds, ..BatcherConfig::default() };
        let now_us = monotonic_us();
        let lane = Lane::new(settings.address.clone(), settings.greeting(), batching, (now_us, seed));
        let desk = Desk::new(lane, now_us, u64::try_from(settings.timeout.as_micros()).unwrap_or(u64::MAX));
        let state = State {
            desk,
            stream: None,
            dials: 0,
            reader: Reader::Nobody,
            is_acting: false,
            is_to_dial: false,
            unsent: None,
            parked: Vec::new(),
            crowd: Vec::new(),
            driven: 0,
            background_until_us: 0,
            failure: String::new(),
            is_closed: false,
            chain: Chain::default(),
            gathering: Gathering::new(!hurries),
            strays: Vec::new(),
            told: Vec::new(),
            effects: Vec::new(),
            buffer: Vec::new(),
        };
        Link {
            state: Mutex::new(state),
            settings: Arc::clone(settings),
            sleepers: Sleepers::default(),
            writes: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            asked: AtomicU64::new(0),
        }
    }

    /// Its node's host, for what that says of itself without naming one.
    pub(super) fn host(&self) -> &str {
        let address = &self.settings.address;
        let host = address.rsplit_once(':').map_or(&address[..], |(host, _)| host);
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
    }

    #[inline]
    pub(super) fn lock(&self) -> Locked<'_> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Releases the lock and wakes those who were told something.
    #[inline]
    pub(super) fn release(&self, mut state: Locked<'_>) {
        if state.told.is_empty() {
            return;
        }
        let told = std::mem::take(&mut state.told);
        drop(state);
        let mut beds = Beds::default();
        told.iter().for_each(|seat| seat.wake(&mut beds));
        self.sleepers.wake(beds);
    }

    /// Sends what is due and dials what is wanted, unless somebody else does.
    pub(super) fn act<'a>(&'a self, mut state: Locked<'a>, actor: Actor) -> Locked<'a> {
        while !state.is_acting && state.unsent.is_none() && !state.is_closed {
            if state.is_to_dial {
                if actor == Actor::Task {
                    break;
                }
                state = self.dial(state);
                continue;
            }
            if state.effects.is_empty() {
                let now_us = monotonic_us();
                if state.gathering.holds(now_us) {
                    break;
                }
                let State { desk, effects, dials, .. } = &mut *state;
                desk.act(now_us, u64::from(*dials), effects);
            }
            match state.effects.pop() {
                Some(Effect::Dial { .. }) => state.is_to_dial = true,
                Some(Effect::Send { buffer, .. }) => {
                    state.gathering.end();
                    state = self.send(state, buffer, 0);
                }
                _ => break,
            }
        }
        state
    }

    /// Hands the socket what is there from `from` on.
    pub(super) fn send<'a>(&'a self, mut state: Locked<'a>, buffer: Vec<u8>, from: usize) -> Locked<'a> {
        let Some(stream) = state.stream.clone() else { return state };
        let connection = state.dials;
        state.is_acting = true;
        drop(state);
        self.writes.fetch_add(1, Ordering::Relaxed);
        let sent = stream.send(&buffer[from..]);
        let mut state = self.lock();
        state.is_acting = false;
        if state.dials != connection || state.stream.is_none() {
            return state;
        }
        match sent {
            Ok(count) if from + count == buffer.len() => {
                let State { desk, effects, .. } = &mut *state;
                desk.send_done(buffer, effects);
            }
            Ok(count) => state.unsent = Some((buffer, from + count)),
            Err(_) => self.lose(&mut state),
        }
        state
    }

    fn dial<'a>(&'a self, mut state: Locked<'a>) -> Locked<'a> {
        (state.is_to_dial, state.is_acting) = (false, true);
        self.release(state);
        let settings = &self.settings;
        let stream = Stream::connect(&settings.address, settings.connect_timeout, settings.wait_max());
        let mut state = self.lock();
        state.is_acting = false;
        state.dials += 1;
        let connection = ConnectionId { index: 0, generation: state.dials };
        let is_connected = stream.is_ok() && !state.is_closed;
        match stream {
            Ok(stream) => state.stream = (!state.is_closed).then(|| Arc::new(stream)),
            Err(error) => state.failure = error.to_string(),
        }
        let State { desk, effects, .. } = &mut *state;
        let mut told = Vec::new();
        desk.dialed(monotonic_us(), is_connected.then_some(connection), effects, |seat, outcome| {
            told.push((seat, kind_of(outcome)));
        });
        self.tell_all(&mut state, told);
        state
    }

    /// What came from the socket. `own` needs not to be woken.
    pub(super) fn hear(
        &self,
        state: &mut State,
        connection: u32,
        received: Received,
        bytes: &[u8],
        own: Option<&Arc<ThreadSeat>>,
    ) {
        if state.dials != connection || state.stream.is_none() {
            return;
        }
        let count = match received {
            Received::Bytes(count) => count,
            Received::Nothing => return,
            Received::End => return self.lose(state),
        };
        let State { desk, told, driven, gathering, strays, .. } = state;
        let address = &self.settings.address;
        let verdict = desk.received(monotonic_us(), &bytes[..count], |seat, outcome| {
            let answer = match outcome {
                Outcome::Reply(reply) => {
                    if let Some(stray) = Stray::of(&seat, reply) {
                        strays.push(stray);
                        *driven -= 1;
                        return;
                    }
                    Reply::read(reply)
                }
                Outcome::Refused(error) => Err(refused(address, error)),
                _ => Err(Error::Unknown { address: address.clone() }),
            };
            if !matches!(seat, Seat::Part(..)) {
                gathering.answered();
            }
            settle(seat, answer, (told, driven), own);
        });
        state.told.append(&mut state.crowd);
        // What others asked meanwhile is due: together with what those ask again who are answered now.
        state.begin_to_gather(Gatherer::Thread);
        if verdict == Verdict::End {
            self.lose(state);
        }
    }

    /// The connection is of no use any more.
    pub(super) fn lose(&self, state: &mut State) {
        let Some(stream) = state.stream.take() else { return };
        stream.end();
        state.unsent = None;
        state.effects.clear();
        state.gathering.end();
        let mut told = Vec::new();
        state.desk.closed(monotonic_us(), |seat, outcome| told.push((seat, kind_of(outcome))));
        self.tell_all(state, told);
    }

    /// Tells those whose time is over.
    pub(super) fn expire(&self, state: &mut State) {
        let mut told = Vec::new();
        let verdict = state.desk.expire(monotonic_us(), |seat, outcome| told.push((seat, kind_of(outcome))));
        self.tell_all(state, told);
        if verdict == Verdict::End {
            self.lose(state);
        }
    }

    /// If this node is silent, who waits before it for slots that are another one's goes there. Whether there are submitted requests that
    /// somebody has to send on.
    pub(super) fn desert(&self, now_us: u64, table: &RoutingTable, node: NodeNumber) -> bool {
        let mut state = self.lock();
        if !state.desk.silence().is_long(now_us) {
            return false;
        }
        let is_left = |slot: Slot| table.holder(slot).is_some_and(|holder| holder != node);
        let (mut told, mut sent_on) = (Vec::new(), Vec::new());
        let verdict = state.desk.desert(now_us, is_left, |seat, outcome| match outcome {
            Outcome::Elsewhere(slot) => sent_on.push((seat, slot)),
            other => told.push((seat, kind_of(other))),
        });
        self.tell_all(&mut state, told);
        for (seat, slot) in sent_on {
            // In the words of a node that still spoke: it is followed as any other redirect, so often and not more.
            let holder = table.holder(slot).expect("a slot that was left has a holder");
            let reply = format!("-MOVED {} {}\r\n", slot.number(), table.address(holder));
            let State { told, driven, strays, .. } = &mut *state;
            match Stray::of(&seat, reply.as_bytes()) {
                Some(stray) => {
                    strays.push(stray);
                    *driven -= 1;
                }
                None => settle(seat, Reply::read(reply.as_bytes()), (told, driven), None),
            }
        }
        if verdict == Verdict::End {
            self.lose(&mut state);
        }
        let has_strays = !state.strays.is_empty();
        self.release(state);
        has_strays
    }

    fn tell_all(&self, state: &mut State, outcomes: Vec<(Seat, Kind)>) {
        state.told.append(&mut state.crowd);
        let address = || self.settings.address.clone();
        for (seat, kind) in outcomes {
            let error = match kind {
                Kind::Unreachable => Error::Unreachable { address: address(), reason: state.failure.clone() },
                Kind::Lost => Error::Lost { address: address() },
                Kind::Unknown if state.is_closed => Error::Closed,
                Kind::Unknown => Error::Unknown { address: address() },
                Kind::Late => Error::TimedOut { address: address(), after: self.settings.timeout },
            };
            settle(seat, Err(error), (&mut state.told, &mut state.driven), None);
        }
    }

    /// Nobody needs this link any more.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        self.lose(&mut state);
        let State { desk, told, driven, chain, strays, .. } = &mut *state;
        told.extend(chain.take().into_iter().map(Seat::Task));
        strays.drain(..).for_each(|stray| told.push(stray.end(Err(Error::Closed))));
        desk.dismiss(monotonic_us(), |seat| settle(seat, Err(Error::Closed), (told, driven), None));
        self.release(state);
    }

    /// In words for the caller.
    pub(super) fn refusal(&self, state: &State, why: NotAsked) -> Error {
        let address = self.settings.address.clone();
        match why {
            NotAsked::Full => Error::Full { address },
            NotAsked::Unreachable => Error::Unreachable { address, reason: state.failure.clone() },
        }
    }
}

/// Outcomes that are no reply.
enum Kind {
    Unreachable,
    Lost,
    Unknown,
    Late,
}

fn kind_of(outcome: Outcome<'_>) -> Kind {
    match outcome {
        Outcome::Unreachable => Kind::Unreachable,
        Outcome::Lost => Kind::Lost,
        Outcome::Late => Kind::Late,
        Outcome::Unknown | Outcome::Reply(_) | Outcome::Refused(_) | Outcome::Elsewhere(_) => Kind::Unknown,
    }
}

fn refused(address: &str, reply: &[u8]) -> Error {
    let error = match Reply::read(reply) {
        Err(Error::Server(error)) => error,
        _ => ServerError::new(reply),
    };
    Error::Refused { address: address.to_owned(), error }
}

#[inline]
fn settle(seat: Seat, answer: Answer, (told, driven): (&mut Vec<Seat>, &mut usize), own: Option<&Arc<ThreadSeat>>) {
    seat.put(answer);
    *driven -= usize::from(seat.needs_driver());
    let is_own = matches!((&seat, own), (Seat::Thread(seat), Some(own)) if Arc::ptr_eq(seat, own));
    if !is_own {
        told.push(seat);
    }
}

impl State {
    /// Room for what is received, of whoever reads.
    pub fn take_buffer(&mut self) -> Vec<u8> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(CLIENT_RECEIVE_BYTES, 0);
        buffer
    }
}
