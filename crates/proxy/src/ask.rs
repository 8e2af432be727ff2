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
use crate::classes::ClassNumber;
use crate::machine::ProxyMachine;
use crate::seat::{Hurry, Owed, OwedTo};
use base::limits::LONG_REQUEST_BYTES;
use base::planted::{Bug, is_planted};
use base::street::{Effect, Now};
use client::cluster::{NodeNumber, slot_of};
use client::spread::Spread;
use client::{Hold, Known, Way};
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
            let is_relayed = caller.relay.is_some();
            let verdict = self.ask(now, caller, arguments, request, effects);
            self.note_asked(caller, is_relayed, verdict, request.len());
            return verdict;
        }
        let mut whole = std::mem::take(&mut self.scratch);
        whole.clear();
        let long = caller.input.take_long();
        let long: Vec<(usize, Vec<u8>)> = long.into_iter().map(|(index, blocks)| (index, blocks.to_vec())).collect();
        let word = |index: usize, word| long.iter().find(|(at, _)| *at == index).map_or(word, |(_, bytes)| &bytes[..]);
        let words: Vec<&[u8]> = arguments.iter().enumerate().map(|(index, argument)| word(index, argument)).collect();
        encode(words.iter().copied(), &mut whole);
        let is_relayed = caller.relay.is_some();
        let verdict = self.ask_encoded(now, caller, &whole, effects);
        self.note_asked(caller, is_relayed, verdict, whole.len());
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
        let is_relayed = caller.relay.is_some();
        let verdict = self.ask_encoded(now, caller, &whole, effects);
        self.note_asked(caller, is_relayed, verdict, whole.len());
        verdict
    }

    /// A request counts when it is taken; it may have had to wait before. Those of a relay do not.
    #[inline]
    fn note_asked(&mut self, caller: &Caller, is_relayed: bool, verdict: Verdict, bytes: usize) {
        if !is_relayed && !matches!(verdict, Verdict::Wait(_)) {
            self.desk.counts[caller.class.index()].asked(bytes);
        }
    }

    pub(crate) fn ask_encoded(
        &mut self,
        now: Now,
        caller: &mut Caller,
        request: &[u8],
        effects: &mut Vec<Effect>,
    ) -> Verdict {
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
        if self.admission.is_some()
            && let Some(verdict) = self.admit(now, caller, arguments, request, effects)
        {
            return verdict;
        }
        let known = self.table.look_up(name, arguments.get(1));
        if !self.knows_store() && known.is_none_or(|known| known.way != Way::Caller) {
            // The upstream says what it is before anything is done that a guess could do wrong.
            if let Some(wait) = self.await_lane(now, caller) {
                return Verdict::Wait(wait);
            }
        }
        if self.is_of_old_class(caller) {
            return Verdict::Wait(Wait::Answers);
        }
        let is_cluster = self.routes.table.is_cluster();
        if is_cluster && self.is_behind(caller) {
            return Verdict::Wait(Wait::Answers);
        }
        if let Some(verdict) = self.ask_collapsing(now, caller, known, arguments, request) {
            return verdict;
        }
        if is_cluster {
            let spread = known.filter(|_| !caller.held.transaction).map_or(Spread::Key, |known| known.spread);
            if let Some(verdict) = self.ask_several(now, caller, spread, known, arguments, request) {
                return verdict;
            }
            if caller.is_nowhere()
                && let Some(verdict) = self.ask_nowhere(now, caller, known, arguments, request)
            {
                return verdict;
            }
        }
        let node = self.node_of(caller, known, arguments);
        let way = self.way(known, arguments, request);
        if matches!(way, Way::Alone | Way::Held(Hold::Wait))
            && !caller.held.transaction
            && known.is_some_and(|known| known.blocks(arguments))
        {
            return self.ask_blocking(now, caller, (way, node), arguments, request);
        }
        match way {
            Way::Shared if !self.is_bound_to_own(caller) => self.ask_lane(now, caller, node, known, request),
            Way::Shared | Way::Alone => self.ask_own(now, caller, node, request),
            Way::Held(hold) => self.ask_held(now, caller, (hold, node), arguments, request),
            Way::Caller if caller.is_held() => self.ask_caller_held(now, caller, node, arguments, request, effects),
            Way::Caller => self.ask_caller(now, caller, arguments, request, effects),
            // With keys on several nodes there is no connection that all its requests take.
            Way::Hint if self.routes.table.is_cluster() => self.ask_own(now, caller, node, request),
            Way::Hint | Way::Sticky => self.ask_relay(now, caller, node, request, effects),
        }
    }

    /// A request that may have to wait: nobody's, if its client has gone, for whom an element would be taken in vain.
    fn ask_blocking(
        &mut self,
        now: Now,
        caller: &mut Caller,
        (way, node): (Way, NodeNumber),
        arguments: Arguments<'_>,
        request: &[u8],
    ) -> Verdict {
        if caller.has_hung_up {
            caller.is_closing = true;
            return Verdict::Done;
        }
        let verdict = match way {
            Way::Held(hold) => self.ask_held(now, caller, (hold, node), arguments, request),
            _ => self.ask_own(now, caller, node, request),
        };
        if verdict == Verdict::Done {
            caller.waits_before = caller.order.next();
        }
        verdict
    }

    /// Whether requests of the caller are on their way that an older table sent there: one that follows the newer one could be
    /// carried out before them.
    fn is_behind(&self, caller: &mut Caller) -> bool {
        let version = self.routes.table.version();
        let is_behind = caller.table_version != version && caller.order.owed() > 0;
        if !is_behind {
            caller.table_version = version;
        }
        is_behind
    }

    /// Whether everything has to go to the caller's own connection. In a cluster what is watched does not ask for that: other keys are
    /// on other nodes, and a watched one is watched whoever changes it.
    #[inline]
    fn is_bound_to_own(&self, caller: &Caller) -> bool {
        caller.held.transaction || (caller.held.watch && !self.routes.table.is_cluster())
    }

    /// The node that a request goes to: where the caller's transaction is, or its first key, or any.
    #[inline]
    fn node_of(&mut self, caller: &Caller, known: Option<Known>, arguments: Arguments<'_>) -> NodeNumber {
        let stays = caller.held.transaction || known.is_some_and(|known| matches!(known.way, Way::Held(_)));
        if stays
            && caller.is_held()
            && let Some(own) = caller.own
        {
            return self.seats.get(own).node;
        }
        match known.filter(|_| self.routes.table.is_cluster()).and_then(|known| known.key(arguments)) {
            Some(key) => self.routes.holder(slot_of(key), caller),
            None => self.routes.any(caller),
        }
    }

    #[inline]
    pub(crate) fn way(&self, known: Option<Known>, arguments: Arguments<'_>, request: &[u8]) -> Way {
        match known {
            // The upstream refuses what it does not have; whoever did not say what it has may have anything.
            None if self.table_is_learnt => Way::Alone,
            None => Way::Sticky,
            Some(known) if known.way == Way::Shared => {
                let is_alone = request.len() > LONG_REQUEST_BYTES || known.blocks(arguments);
                if is_alone { Way::Alone } else { Way::Shared }
            }
            Some(known) if known.way == Way::Sticky && !known.sticks_with.is_empty() => {
                let first = arguments.get(2);
                let sticks = |word: &&[u8]| first.is_some_and(|first| first.eq_ignore_ascii_case(word));
                if known.sticks_with.iter().any(sticks) { Way::Sticky } else { Way::Alone }
            }
            Some(known) => known.way,
        }
    }

    /// The group of lanes that a caller shares.
    #[inline]
    pub(crate) fn group_of(&mut self, caller: &mut Caller) -> usize {
        match caller.group {
            Some(group) => group,
            None => {
                let group = self.seats.group(&caller.identity, Hurry::of(caller.qos));
                self.seats.groups.get(group).join_caller(caller.id, &caller.whence.peer);
                caller.group = Some(group);
                group
            }
        }
    }

    /// A caller belongs to its group no more.
    pub(crate) fn leave_group(&mut self, caller: &mut Caller) {
        if let Some(group) = caller.group.take() {
            self.seats.groups.get(group).leave_caller(caller.id);
            self.seats.groups.remove_empty(group);
        }
    }

    /// The seat of the lane to a node that a caller shares.
    #[inline]
    pub(crate) fn lane_of(&mut self, now: Now, caller: &mut Caller, node: NodeNumber) -> usize {
        let group = self.group_of(caller);
        let asks = !self.knows_store();
        self.seats.shared(now.monotonic_us, group, self.routes.node(node), asks)
    }

    /// Whether the store said what its commands are, and whether it is a cluster.
    #[inline]
    pub(crate) fn knows_store(&self) -> bool {
        self.table_is_learnt && self.routes.is_known
    }

    /// The wait for a lane that is not open, unless it is down or refuses.
    pub(crate) fn await_lane(&mut self, now: Now, caller: &mut Caller) -> Option<Wait> {
        let node = self.routes.any(caller);
        let number = self.lane_of(now, caller, node);
        let seat = self.seats.get(number);
        if seat.lane.is_open() || seat.lane.is_down(now.monotonic_us) || seat.refusal.is_some() {
            return None;
        }
        self.seats.touch(number);
        Some(self.wait_at(caller, number))
    }

    /// Whether requests for lanes have to wait, for what is on the caller's own connection or because too many are on their way.
    #[inline]
    pub(crate) fn await_lanes(caller: &mut Caller) -> Option<Wait> {
        if caller.place == Place::Own && caller.order.owed() > 0 {
            return Some(Wait::Answers);
        }
        if !caller.has_room() {
            return Some(Wait::Room);
        }
        caller.place = Place::Lanes;
        None
    }

    #[inline]
    pub(crate) fn ask_lane(
        &mut self,
        now: Now,
        caller: &mut Caller,
        node: NodeNumber,
        known: Option<Known>,
        request: &[u8],
    ) -> Verdict {
        if let Some(wait) = ProxyMachine::await_lanes(caller) {
            return Verdict::Wait(wait);
        }
        let number = self.lane_of(now, caller, node);
        self.retries.earn();
        self.push(now, caller, number, known.is_some_and(|known| known.is_read), request)
    }

    /// Hands a request to a seat.
    #[inline]
    pub(crate) fn push(
        &mut self,
        now: Now,
        caller: &mut Caller,
        number: usize,
        is_read: bool,
        request: &[u8],
    ) -> Verdict {
        if self.is_held_back(caller, number) && !self.seats.get(number).lane.is_down(now.monotonic_us) {
            return Verdict::Wait(self.wait_at(caller, number));
        }
        let seat = self.seats.get(number);
        if seat.lane.is_down(now.monotonic_us) {
            let error = self.down_error(number);
            self.answer_now(caller, &error);
            // What it holds there is gone, and what follows would mean something else without it.
            caller.is_closing |= caller.is_held();
            caller.detours = caller.detours.wrapping_add(1);
            return Verdict::Done;
        }
        let to = OwedTo::Caller { caller: caller.id, number: caller.order.next() };
        let owed = Owed {
            to,
            is_read,
            is_bound: caller.is_held(),
            redirects: 0,
            is_asking: false,
            asked_us: now.monotonic_us,
        };
        match seat.lane.push(now.monotonic_us, caller.id.as_u64(), caller.qos, owed, request) {
            Ok(()) => {
                seat.used_us = now.monotonic_us;
                self.note_request(now, number, caller, request.len());
                caller.order.ask();
                self.seats.touch(number);
                Verdict::Done
            }
            Err(_) => Verdict::Wait(self.wait_at(caller, number)),
        }
    }

    /// A caller stands in line for a seat, once.
    pub(crate) fn wait_at(&mut self, caller: &mut Caller, number: usize) -> Wait {
        if caller.line != Some(number) {
            let class = if is_planted(Bug::M70ClassesIgnored) { ClassNumber::DEFAULT } else { caller.class };
            let weight = self.classes.get(class).weight;
            self.seats.get(number).line.join(class, caller.id, weight);
            caller.line = Some(number);
        }
        Wait::Seat(number)
    }

    /// A reply that is made here.
    pub(crate) fn answer_now(&mut self, caller: &mut Caller, reply: &[u8]) {
        let number = caller.order.ask();
        self.desk.counts[caller.class.index()].answered_here(reply.len());
        if caller.answer(number, reply) {
            self.desk.dirty.push(caller.id);
        }
    }
}
