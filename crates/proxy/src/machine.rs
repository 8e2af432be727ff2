//! One core of the proxy: the tick, stage by stage.

use crate::admission::Admission;
use crate::ask::Verdict;
use crate::caller::{Caller, Whence};
use crate::classes::Classes;
use crate::collapse::Collapses;
use crate::counts::ClassCounts;
use crate::desk::Desk;
use crate::headroom::Headrooms;
use crate::identity::Login;
use crate::label::Labels;
use crate::leave::Leave;
use crate::line::Turn;
use crate::redirects::Redirected;
use crate::report::Reports;
use crate::routes::Routes;
use crate::seat::{Owed, Role};
use crate::seats::Seats;
use crate::standing::Word;
use crate::upstream::{Upstream, UpstreamLogin};
use base::limits::SPARE_BUFFERS_MAX;
use base::street::{Effect, Event, Machine, Now, Span, TickInput, TickOutput};
use base::{ConnectionId, CoreId};
use client::{CommandTable, RetryBudget};
use session::{Input, Rest};
use wire::{Arguments, Parsed};

/// One core's callers and connections to the upstream.
pub struct ProxyMachine {
    pub(crate) seats: Seats,
    pub(crate) desk: Desk,
    pub(crate) routes: Routes,
    pub(crate) roles: Vec<(u32, Role)>,
    pub(crate) table: CommandTable,
    /// Whether the upstream itself said which commands it has.
    pub(crate) table_is_learnt: bool,
    /// Seats whose refusal was heard by all that waited for it.
    pub(crate) refused: Vec<usize>,
    /// Seats that may not dial before another connection is gone, and connections that are to go for them.
    pub(crate) starved: Vec<usize>,
    pub(crate) making_room: usize,
    /// Connections that were a caller's own, which has one to another node now.
    pub(crate) given_up: Vec<usize>,
    /// Parts that nobody was asked for: their errors are told when their caller is back in its place.
    pub(crate) later: Vec<(Owed, Vec<u8>)>,
    /// Requests that were sent on to a place that nobody knows, until a fresh table is there.
    pub(crate) held: Vec<Redirected>,
    spare: Vec<Vec<u8>>,
    spans: Vec<Span>,
    pub(crate) scratch: Vec<u8>,
    /// What relaxed lanes leave to those in a hurry and to each other, and lanes whose callers take turns.
    pub(crate) headroom: Headrooms,
    pub(crate) turns: Vec<usize>,
    /// Whose turn it is, at which seat.
    pub(crate) turn: Option<(usize, Turn)>,
    pub(crate) retries: RetryBudget,
    /// Silent nodes that others are told of.
    pub(crate) reports: Reports,
    /// What callers want that do not say, and how often that changed; never 0.
    pub(crate) classes: Classes,
    pub(crate) classes_version: u64,
    /// Writes of which only the newest is sent.
    pub(crate) collapses: Collapses,
    pub(crate) labels: Labels,
    /// Who asked how it stands.
    pub(crate) asked_by: Vec<CoreId>,
    /// A store said that it takes no writes.
    pub(crate) met_read_only: bool,
    /// Something waits behind a send of this tick.
    pub(crate) awaits_sent: bool,
    /// Another process takes over.
    pub(crate) leave: Option<Leave>,
    /// One that this process takes over from has callers left.
    pub(crate) awaits_arrivals: bool,
    /// Numbers of its listeners, and which of ours they are.
    pub(crate) inherited_listeners: Vec<(u16, u16)>,
    pub(crate) is_stopping: bool,
    /// With what connections log in at the store, whoever asks; `None`: as their callers do.
    pub(crate) login: Option<Login>,
    /// Who may come; `None`: the store decides.
    pub(crate) admission: Option<Admission>,
    /// Callers whose user is gone or another one now.
    pub(crate) expelled: Vec<ConnectionId>,
}

impl ProxyMachine {
    /// A core in front of `upstream`, for callers of these classes unless they say otherwise. `seed` spreads the moments at which connections are dialed again.
    pub fn new(upstream: Upstream, classes: Classes, seed: u64) -> ProxyMachine {
        let login = upstream.login.as_ref().map(UpstreamLogin::words);
        ProxyMachine {
            seats: Seats::new(upstream.policy, upstream.connections_max, seed),
            desk: Desk { counts: vec![ClassCounts::default(); classes.all.len()], ..Desk::default() },
            routes: Routes::new(&upstream.seeds()),
            roles: Vec::new(),
            table: CommandTable::own(),
            table_is_learnt: false,
            refused: Vec::new(),
            starved: Vec::new(),
            making_room: 0,
            given_up: Vec::new(),
            later: Vec::new(),
            held: Vec::new(),
            spare: Vec::new(),
            spans: Vec::new(),
            scratch: Vec::new(),
            headroom: Headrooms::default(),
            turns: Vec::new(),
            turn: None,
            retries: RetryBudget::default(),
            reports: Reports::default(),
            classes,
            classes_version: 1,
            collapses: Collapses::default(),
            labels: Labels::default(),
            asked_by: Vec::new(),
            met_read_only: false,
            awaits_sent: false,
            leave: None,
            awaits_arrivals: false,
            inherited_listeners: Vec::new(),
            is_stopping: false,
            login,
            admission: None,
            expelled: Vec::new(),
        }
    }

    /// Of the writes that wait for a key with one of these prefixes, or for any key by callers whose class says so, only the newest is
    /// sent.
    pub fn collapse(&mut self, prefixes: &[Vec<u8>]) {
        self.collapses.set(prefixes, &self.classes);
    }

    /// Takes what happened: bytes of callers become requests on seats, bytes of seats become replies.
    fn receive(&mut self, now: Now, received: &[u8], events: &mut Vec<Event>, effects: &mut Vec<Effect>) {
        for event in events.drain(..) {
            match event {
                Event::Accepted { connection, entrance, peer, local, .. } => {
                    let (listener, since_us) = (entrance.listener, now.monotonic_us);
                    let whence = Whence { peer, local, listener, since_us };
                    let mut caller = Caller::new(connection, whence, entrance.is_sealed);
                    self.welcome(&mut caller);
                    self.seat_caller(caller);
                }
                Event::Received { connection, span } => self.received(now, connection, span.of(received), effects),
                Event::Dialed { token, connection } => self.dialed(now, token, connection, effects),
                Event::SendDone { connection, buffer } => self.sent(connection, buffer, effects),
                Event::PeerClosed { connection } => self.peer_closed(now, connection, effects),
                Event::Closed { connection } => self.closed(now, connection, effects),
                Event::ShutdownRequested => self.is_stopping = true,
                other => self.heed_handover(now, other, effects),
            }
        }
    }

    /// Callers will arrive that came to another process, through listeners that had the first of these numbers and have the second.
    pub fn inherit(&mut self, listeners: Vec<(u16, u16)>) {
        (self.awaits_arrivals, self.inherited_listeners) = (true, listeners);
    }

    /// Whether a store that should be the master said that it takes no writes, since the last question.
    pub(crate) fn take_doubt(&mut self) -> bool {
        std::mem::take(&mut self.met_read_only)
    }

    /// A caller is there.
    pub(crate) fn seat_caller(&mut self, caller: Caller) {
        let connection = caller.id;
        let index = connection.index as usize;
        if self.desk.callers.len() <= index {
            self.desk.callers.resize_with(index + 1, || None);
        }
        self.desk.callers[index] = Some(Box::new(caller));
        self.set_role(connection, Role::Caller);
        self.look_at(connection);
    }

    pub(crate) fn set_role(&mut self, connection: ConnectionId, role: Role) {
        let index = connection.index as usize;
        if self.roles.len() <= index {
            self.roles.resize(index + 1, (0, Role::None));
        }
        self.roles[index] = (connection.generation, role);
    }

    #[inline]
    pub(crate) fn role(&self, connection: ConnectionId) -> Role {
        match self.roles.get(connection.index as usize) {
            Some(&(generation, role)) if generation == connection.generation => role,
            _ => Role::None,
        }
    }

    #[inline]
    fn received(&mut self, now: Now, connection: ConnectionId, bytes: &[u8], effects: &mut Vec<Effect>) {
        match self.role(connection) {
            Role::Caller => self.caller_received(now, connection, bytes, effects),
            Role::Seat(number) => self.hear(now, number, bytes, effects),
            Role::Relay(caller) => self.relay_down(connection, caller, bytes, effects),
            Role::None | Role::Leaving => {}
        }
    }

    #[inline]
    pub(crate) fn caller_received(
        &mut self,
        now: Now,
        connection: ConnectionId,
        bytes: &[u8],
        effects: &mut Vec<Effect>,
    ) {
        let Some(mut caller) = self.desk.callers[connection.index as usize].take() else { return };
        if let Some(relay) = caller.relay.as_mut().filter(|relay| relay.guard.is_none()) {
            relay.up(connection, bytes, effects);
            self.desk.dirty.push(connection);
        } else if caller.is_closing {
            // Nothing more is wanted of it.
        } else if caller.wait.is_some() {
            caller.input.append(bytes);
            caller.pace(effects);
        } else if caller.input.is_empty() {
            let rest = self.decode(now, &mut caller, bytes, effects);
            caller.input.keep(Rest::Received(&bytes[rest..]));
            caller.put_back_long();
        } else if caller.input.append(bytes) {
            self.decode_kept(now, &mut caller, effects);
        }
        self.desk.callers[connection.index as usize] = Some(caller);
    }

    pub(crate) fn decode_kept(&mut self, now: Now, caller: &mut Caller, effects: &mut Vec<Effect>) {
        let bytes = caller.input.take();
        let rest = self.decode(now, caller, &bytes, effects);
        caller.input.keep(Rest::Taken(bytes, rest));
        caller.put_back_long();
    }

    /// Requests out of bytes, until one has to wait; where the first one that did not leave begins.
    #[inline]
    fn decode(&mut self, now: Now, caller: &mut Caller, bytes: &[u8], effects: &mut Vec<Effect>) -> usize {
        let mut spans = std::mem::take(&mut self.spans);
        let mut start = 0;
        while start < bytes.len() && !caller.is_closing {
            spans.clear();
            let limits = Input::parse_limits(!caller.is_guarded || caller.user.is_some());
            match caller.input.next(bytes, start, &mut spans, limits) {
                Parsed::Request { consumed } => {
                    let request = &bytes[start..start + consumed];
                    match self.ask_whole(now, caller, Arguments::new(bytes, &spans), request, effects) {
                        Verdict::Done => start += consumed,
                        Verdict::Wait(wait) => {
                            caller.wait = Some(wait);
                            // One in blocks lies elsewhere, whole.
                            start += if caller.long_request.is_some() { consumed } else { 0 };
                            break;
                        }
                        Verdict::Relayed => start = self.relay_rest(caller, bytes, start + consumed, effects),
                    }
                }
                Parsed::Empty { consumed } => start += consumed,
                Parsed::Quoted { consumed } => {
                    match self.ask_quoted(now, caller, &bytes[start..start + consumed], effects) {
                        Verdict::Done => start += consumed,
                        Verdict::Wait(wait) => {
                            caller.wait = Some(wait);
                            break;
                        }
                        Verdict::Relayed => start = self.relay_rest(caller, bytes, start + consumed, effects),
                    }
                }
                Parsed::Incomplete { .. } => break,
                Parsed::Error(error) => {
                    let mut reply = Vec::new();
                    error.write(&mut wire::Reply::new(&mut reply, caller.identity.reply_protocol()));
                    self.answer_now(caller, &reply);
                    caller.is_closing = true;
                    start = bytes.len();
                }
            }
        }
        self.spans = spans;
        start
    }

    /// What came behind the request that made a caller and its own connection one goes along, unless it has to be looked at; where
    /// what does begins.
    fn relay_rest(&mut self, caller: &mut Caller, bytes: &[u8], start: usize, effects: &mut Vec<Effect>) -> usize {
        let relay = caller.relay.as_mut().expect("it was just made");
        self.desk.dirty.push(caller.id);
        if relay.guard.is_some() {
            return start;
        }
        relay.up(caller.id, &bytes[start..], effects);
        bytes.len()
    }

    /// Replies leave.
    fn reply(&mut self, effects: &mut Vec<Effect>) {
        while let Some(connection) = self.desk.dirty.pop() {
            let spare = &mut self.spare;
            let Some(caller) = self.desk.callers.get_mut(connection.index as usize).and_then(Option::as_deref_mut)
            else {
                continue;
            };
            if caller.id == connection {
                self.awaits_sent |= caller.flush(|| spare.pop().unwrap_or_default(), effects);
                self.look_at(connection);
            }
        }
    }

    pub(crate) fn keep_spare(&mut self, mut buffer: Vec<u8>) {
        if self.spare.len() < SPARE_BUFFERS_MAX {
            buffer.clear();
            self.spare.push(buffer);
        }
    }
}

impl Machine for ProxyMachine {
    type Message = Word;

    fn tick(&mut self, mut input: TickInput<'_, Word>, output: &mut TickOutput<Word>) {
        let (now, effects) = (input.now, &mut output.effects);
        self.take_orders(&mut input);
        self.expel(effects);
        self.lift_restraints(now);
        self.receive(now, input.received, input.events, effects);
        self.seats.touch_due(now.monotonic_us);
        self.follow(now, effects);
        self.learn(now, effects);
        self.resume(now, effects);
        self.release(now, effects);
        self.send(now, effects);
        self.sweep(now, effects);
        self.reply(effects);
        self.tell(now, output);
        let dues_us = [self.seats.deadline_us(now.monotonic_us), self.routes.deadline_us()];
        output.deadline_us = dues_us.into_iter().flatten().min();
        // Who stops waits for its last sends, and would hear of quiet ones only when the grace is over.
        output.quiet_completions = !std::mem::take(&mut self.awaits_sent) && !self.is_stopping;
        self.leave(now, output);
        if self.is_stopping {
            output.effects.push(Effect::Stop);
        }
    }
}
