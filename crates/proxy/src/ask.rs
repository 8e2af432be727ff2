//! Which connection a request goes to, and whether it may go now.
//!
//! ```text
//!   request ─► what the upstream says of its command ─┬─ shared ──► the lane of the caller's identity
//!                                                     ├─ alone ───► its own connection, given back afterwards
//!                                                     ├─ held ────► its own connection, as long as that holds something
//!                                                     ├─ caller ──► answered here
//!                                                     └─ sticky ──► its own connection becomes one with it
//! ```
//!
//! Requests of one caller run in its order: it goes from lanes to its own connection and back only when nothing is owed to it.

use crate::caller::{Caller, Place, Wait};
use crate::machine::ProxyMachine;
use crate::relay::Relay;
use crate::seat::{Hurry, Owed, Role};
use base::limits::LONG_REQUEST_BYTES;
use base::street::{Effect, Now};
use client::{Hold, Known, Qos, Way};
use wire::request::{encode, unquote_inline};
use wire::{Arguments, ParseLimits, Parsed, parse};

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is on its way, or answered.
    Done,
    /// Not yet.
    Wait(Wait),
    /// From here on bytes go to and fro unread; this request went first.
    Relayed,
}

impl ProxyMachine {
    /// A request as it came. What is not an array becomes one, and arguments in blocks are put in their place.
    #[inline]
    pub(crate) fn ask_whole(
        &mut self,
        now: Now,
        caller: &mut Caller,
        arguments: Arguments<'_>,
        request: &[u8],
        effects: &mut Vec<Effect>,
    ) -> Verdict {
        if request[0] == b'*' && !caller.input.has_long() {
            return self.ask(now, caller, arguments, request, effects);
        }
        let mut whole = std::mem::take(&mut self.scratch);
        whole.clear();
        let long = caller.input.take_long();
        let long: Vec<(usize, Vec<u8>)> = long.into_iter().map(|(index, blocks)| (index, blocks.to_vec())).collect();
        let word = |index: usize, word| long.iter().find(|(at, _)| *at == index).map_or(word, |(_, bytes)| &bytes[..]);
        let words: Vec<&[u8]> = arguments.iter().enumerate().map(|(index, argument)| word(index, argument)).collect();
        encode(words.iter().copied(), &mut whole);
        let verdict = self.ask_encoded(now, caller, &whole, effects);
        if matches!(verdict, Verdict::Wait(_)) && !long.is_empty() {
            caller.long_request = Some(whole);
        } else {
            self.scratch = whole;
        }
        verdict
    }

    /// An inline request with quotes.
    pub(crate) fn ask_quoted(
        &mut self,
        now: Now,
        caller: &mut Caller,
        line: &[u8],
        effects: &mut Vec<Effect>,
    ) -> Verdict {
        let (mut text, mut spans) = (Vec::new(), Vec::new());
        if let Err(error) = unquote_inline(line, &mut text, &mut spans) {
            let mut reply = Vec::new();
            error.write(&mut wire::Reply::new(&mut reply, caller.identity.reply_protocol()));
            self.answer_now(caller, &reply);
            caller.is_closing = true;
            return Verdict::Done;
        }
        let mut whole = Vec::new();
        let words: Vec<&[u8]> = Arguments::new(&text, &spans).iter().collect();
        encode(words.iter().copied(), &mut whole);
        self.ask_encoded(now, caller, &whole, effects)
    }

    fn ask_encoded(&mut self, now: Now, caller: &mut Caller, request: &[u8], effects: &mut Vec<Effect>) -> Verdict {
        let mut spans = Vec::new();
        let parsed = parse(request, 0, &mut spans, &ParseLimits::AUTHENTICATED);
        assert!(matches!(parsed, Parsed::Request { .. }), "what was just encoded is a request");
        self.ask(now, caller, Arguments::new(request, &spans), request, effects)
    }

    /// A request, as an array.
    #[inline]
    fn ask(
        &mut self,
        now: Now,
        caller: &mut Caller,
        arguments: Arguments<'_>,
        request: &[u8],
        effects: &mut Vec<Effect>,
    ) -> Verdict {
        let name = arguments.get(0).expect("a request has a first word");
        let known = self.table.look_up(name, arguments.get(1));
        if !self.table_is_learnt && known.is_none_or(|known| known.way != Way::Shared && known.way != Way::Caller) {
            // The upstream is asked before anything is done that a guess could do wrong.
            if let Some(wait) = self.await_lane(now, caller) {
                return Verdict::Wait(wait);
            }
        }
        match self.way(known, arguments, request) {
            Way::Shared if !caller.is_held() => self.ask_lane(now, caller, known, request),
            Way::Shared | Way::Alone => self.ask_own(now, caller, request),
            Way::Held(hold) => self.ask_held(now, caller, hold, request),
            // Inside a transaction they are queued, and change who the connection is when it runs.
            Way::Caller if caller.is_held() => self.ask_relay(now, caller, request, effects),
            Way::Caller => self.ask_caller(now, caller, arguments, request, effects),
            Way::Sticky => self.ask_relay(now, caller, request, effects),
        }
    }

    #[inline]
    fn way(&self, known: Option<Known>, arguments: Arguments<'_>, request: &[u8]) -> Way {
        match known {
            // The upstream refuses what it does not have; whoever did not say what it has may have anything.
            None if self.table_is_learnt => Way::Alone,
            None => Way::Sticky,
            Some(known) if known.way == Way::Shared => {
                let blocks = |word: &[u8]| arguments.iter().any(|argument| argument.eq_ignore_ascii_case(word));
                let is_alone = request.len() > LONG_REQUEST_BYTES || known.blocks_with.is_some_and(blocks);
                if is_alone { Way::Alone } else { Way::Shared }
            }
            Some(known) => known.way,
        }
    }

    /// The seat of the lane that a caller shares.
    #[inline]
    pub(crate) fn lane_of(&mut self, now_us: u64, caller: &mut Caller) -> usize {
        match caller.lane {
            Some(number) => number,
            None => {
                let number = self.seats.shared(now_us, &caller.identity, Hurry::of(caller.qos), !self.table_is_learnt);
                caller.lane = Some(number);
                number
            }
        }
    }

    /// The wait for a lane that is not open, unless it is down or refuses.
    fn await_lane(&mut self, now: Now, caller: &mut Caller) -> Option<Wait> {
        let number = self.lane_of(now.monotonic_us, caller);
        let seat = self.seats.get(number);
        if seat.lane.is_open() || seat.lane.is_down(now.monotonic_us) || seat.refusal.is_some() {
            return None;
        }
        seat.waiting.push(caller.id);
        self.seats.touch(number);
        Some(Wait::Seat(number))
    }

    #[inline]
    fn ask_lane(&mut self, now: Now, caller: &mut Caller, known: Option<Known>, request: &[u8]) -> Verdict {
        if caller.place == Place::Own && caller.order.owed() > 0 {
            return Verdict::Wait(Wait::Answers);
        }
        if !caller.has_room() {
            return Verdict::Wait(Wait::Room);
        }
        caller.place = Place::Lanes;
        let number = self.lane_of(now.monotonic_us, caller);
        self.push(now, caller, number, known.is_some_and(|known| known.is_read), request)
    }

    /// Hands a request to a seat.
    #[inline]
    fn push(&mut self, now: Now, caller: &mut Caller, number: usize, is_read: bool, request: &[u8]) -> Verdict {
        let seat = self.seats.get(number);
        if seat.lane.is_down(now.monotonic_us) {
            let error = self.down_error(number);
            self.answer_now(caller, &error);
            return Verdict::Done;
        }
        let owed = Owed::Caller { caller: caller.id, number: caller.order.next(), is_read, asked_us: now.monotonic_us };
        match seat.lane.push(now.monotonic_us, caller.id.as_u64(), caller.qos, owed, request) {
            Ok(()) => {
                caller.order.ask();
                self.seats.touch(number);
                Verdict::Done
            }
            Err(_) => {
                seat.waiting.push(caller.id);
                Verdict::Wait(Wait::Seat(number))
            }
        }
    }

    /// The seat of the caller's own connection, and whether a request may go there now.
    fn own_of(&mut self, now_us: u64, caller: &mut Caller) -> Result<usize, Verdict> {
        if caller.place == Place::Lanes && caller.order.owed() > 0 {
            return Err(Verdict::Wait(Wait::Answers));
        }
        if !caller.has_room() {
            return Err(Verdict::Wait(Wait::Room));
        }
        let number = match caller.own {
            Some(number) => number,
            None => {
                let number = self.seats.own(now_us, &caller.identity, caller.id);
                caller.own = Some(number);
                number
            }
        };
        Ok(number)
    }

    /// A request for the caller's own connection.
    pub(crate) fn ask_own(&mut self, now: Now, caller: &mut Caller, request: &[u8]) -> Verdict {
        let number = match self.own_of(now.monotonic_us, caller) {
            Ok(number) => number,
            Err(verdict) => return verdict,
        };
        caller.place = Place::Own;
        let verdict = self.push(now, caller, number, false, request);
        if caller.order.owed() == 0 {
            self.done_alone.push(caller.id);
        }
        verdict
    }

    fn ask_held(&mut self, now: Now, caller: &mut Caller, hold: Hold, request: &[u8]) -> Verdict {
        if matches!(hold, Hold::Wait | Hold::Named | Hold::Begin) {
            let number = match self.own_of(now.monotonic_us, caller) {
                Ok(number) => number,
                Err(verdict) => return verdict,
            };
            self.prepare(now, caller, number, hold);
        }
        let verdict = self.ask_own(now, caller, request);
        if verdict == Verdict::Done {
            caller.note(hold);
        }
        verdict
    }

    /// What has to be said on an own connection first. Replies to it are nobody's; where there is no room for it, there is none for
    /// the request either.
    fn prepare(&mut self, now: Now, caller: &Caller, number: usize, hold: Hold) {
        let mut words = Vec::new();
        match hold {
            // What it waits for is what was written before its connection's last command.
            Hold::Wait if !caller.is_held() => encode([b"PING".as_slice()], &mut words),
            // Whoever asks there how it is called hears it, inside a transaction too.
            Hold::Named | Hold::Begin if !caller.name.is_empty() && !self.seats.get(number).is_named => {
                self.seats.get(number).is_named = true;
                encode([b"CLIENT".as_slice(), b"SETNAME", &caller.name], &mut words);
            }
            _ => return,
        }
        let seat = self.seats.get(number);
        seat.lane.push(now.monotonic_us, caller.id.as_u64(), Qos::Batch, Owed::Nobody, &words).ok();
    }

    /// The caller and its own connection become one.
    pub(crate) fn ask_relay(
        &mut self,
        now: Now,
        caller: &mut Caller,
        request: &[u8],
        effects: &mut Vec<Effect>,
    ) -> Verdict {
        if caller.order.owed() > 0 {
            return Verdict::Wait(Wait::Answers);
        }
        let number = match self.own_of(now.monotonic_us, caller) {
            Ok(number) => number,
            Err(verdict) => return verdict,
        };
        let seat = self.seats.get(number);
        if !seat.lane.is_open() {
            let problem = match &seat.refusal {
                Some(error) => Some(error.clone()),
                None if seat.lane.is_down(now.monotonic_us) => Some(self.down_error(number)),
                None => None,
            };
            if let Some(error) = problem {
                self.answer_now(caller, &error);
                return Verdict::Done;
            }
            self.seats.get(number).waiting.push(caller.id);
            self.seats.touch(number);
            return Verdict::Wait(Wait::Seat(number));
        }
        caller.own = None;
        let seat = self.seats.remove(number);
        let upstream = seat.lane.connection().expect("an open lane has a connection");
        self.set_role(upstream, Role::Relay(caller.id));
        let mut relay = Relay::new(upstream, seat.lane.is_sending());
        // In a transaction it would be one of its commands, and was said before.
        if !caller.name.is_empty() && !caller.held.transaction && !seat.is_named {
            // Nobody waits for this reply: it would come before the first one that somebody does.
            relay.skip_first();
            let mut words = Vec::new();
            encode([b"CLIENT".as_slice(), b"SETNAME", &caller.name], &mut words);
            relay.up(caller.id, &words, effects);
        }
        relay.up(caller.id, request, effects);
        caller.relay = Some(relay);
        Verdict::Relayed
    }

    /// A reply that is made here.
    pub(crate) fn answer_now(&mut self, caller: &mut Caller, reply: &[u8]) {
        let number = caller.order.ask();
        if caller.answer(number, reply) {
            self.dirty.push(caller.id);
        }
    }
}
