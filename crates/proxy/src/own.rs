//! A caller's own connection: for what must not share one.

use crate::ask::Verdict;
use crate::caller::{Caller, Place, Wait};
use crate::label;
use crate::machine::ProxyMachine;
use crate::relay::Relay;
use crate::seat::{Owed, OwedTo, Role};
use base::street::{Effect, Now};
use client::cluster::NodeNumber;
use client::{Hold, Qos};
use wire::Arguments;
use wire::request::encode;

impl ProxyMachine {
    /// The seat of the caller's own connection, and whether a request may go there now.
    fn own_of(&mut self, now: Now, caller: &mut Caller, node: NodeNumber) -> Result<usize, Verdict> {
        if caller.place == Place::Lanes && caller.order.owed() > 0 {
            return Err(Verdict::Wait(Wait::Answers));
        }
        if !caller.has_room() {
            return Err(Verdict::Wait(Wait::Room));
        }
        if self.routes.table.is_cluster() && !caller.is_held() && caller.order.owed() > 0 {
            // One after the other: each may have to go to another node.
            return Err(Verdict::Wait(Wait::Answers));
        }
        if let Some(number) = caller.own {
            if self.seats.get(number).node == node || caller.is_held() {
                return Ok(number);
            }
            self.seats.get(number).is_spoiled |= std::mem::take(&mut caller.held.named);
            self.given_up.push(number);
        }
        let of = (caller.id, &label::of_caller(caller)[..]);
        let number = self.seats.own(now.monotonic_us, self.routes.node(node), &caller.identity, of);
        caller.own = Some(number);
        if caller.held.transaction {
            self.label_new(now, caller, number);
            self.say_name(now, caller, number);
            // It was begun before anybody knew where.
            self.say(now, number, OwedTo::Begun { caller: caller.id }, &[b"MULTI"]);
            // What it did to itself is not for others.
            self.seats.get(number).is_spoiled |= !caller.queued.is_empty();
            for request in std::mem::take(&mut caller.queued) {
                self.say_encoded(now, number, OwedTo::Nobody, &request);
            }
        }
        Ok(number)
    }

    /// A request for the caller's own connection.
    pub(crate) fn ask_own(&mut self, now: Now, caller: &mut Caller, node: NodeNumber, request: &[u8]) -> Verdict {
        let number = match self.own_of(now, caller, node) {
            Ok(number) => number,
            Err(verdict) => return verdict,
        };
        caller.place = Place::Own;
        self.label_own(now, caller, number);
        let verdict = self.push(now, caller, number, false, request);
        if caller.order.owed() == 0 {
            self.desk.done_alone.push(caller.id);
        }
        verdict
    }

    pub(crate) fn ask_held(
        &mut self,
        now: Now,
        caller: &mut Caller,
        (hold, node): (Hold, NodeNumber),
        arguments: Arguments<'_>,
        request: &[u8],
    ) -> Verdict {
        if hold == Hold::Begin && arguments.len() == 1 && self.routes.table.is_cluster() && !caller.is_held() {
            return self.begin_nowhere(caller);
        }
        if hold == Hold::End && arguments.len() == 1 && caller.held.doomed && arguments[0].eq_ignore_ascii_case(b"exec")
        {
            return self.give_up_transaction(now, caller);
        }
        if caller.described.is_some() && caller.order.owed() > 0 {
            return Verdict::Wait(Wait::Answers);
        }
        if matches!(hold, Hold::Wait | Hold::Named | Hold::Described | Hold::Begin) {
            let number = match self.own_of(now, caller, node) {
                Ok(number) => number,
                Err(verdict) => return verdict,
            };
            self.label_own(now, caller, number);
            self.prepare(now, caller, number, hold);
        }
        let verdict = self.ask_own(now, caller, node, request);
        // Those with too many arguments or none are refused, and change nothing; but EXEC ends what there is in any case.
        let is_exec = arguments[0].eq_ignore_ascii_case(b"exec");
        let is_refused = match hold {
            Hold::End if is_exec => false,
            Hold::Begin | Hold::End | Hold::Unwatch => arguments.len() > 1,
            Hold::Watch => arguments.len() == 1,
            Hold::Wait | Hold::Named | Hold::Described => false,
        };
        if verdict == Verdict::Done && matches!(hold, Hold::Named | Hold::Described) {
            self.note_described(now, caller, arguments);
        }
        if verdict == Verdict::Done && !is_refused {
            match hold {
                Hold::End if is_exec && arguments.len() > 1 => caller.abort_transaction(),
                Hold::End => caller.end_transaction(is_exec),
                _ => caller.note(hold),
            }
        }
        verdict
    }

    /// Says something of the proxy's own on a seat.
    pub(crate) fn say(&mut self, now: Now, number: usize, to: OwedTo, words: &[&[u8]]) {
        let mut request = Vec::new();
        encode(words.iter().copied(), &mut request);
        self.say_encoded(now, number, to, &request);
    }

    fn say_encoded(&mut self, now: Now, number: usize, to: OwedTo, request: &[u8]) {
        let owed = Owed { to, ..Owed::NOBODY };
        self.seats.get(number).lane.push_again(now.monotonic_us, 0, Qos::Batch, owed, request);
        self.seats.touch(number);
    }

    /// What has to be said on an own connection first.
    fn prepare(&mut self, now: Now, caller: &Caller, number: usize, hold: Hold) {
        match hold {
            // What it waits for is what was written before its connection's last command.
            Hold::Wait if !caller.is_held() => self.say(now, number, OwedTo::Nobody, &[b"PING"]),
            Hold::Named | Hold::Described | Hold::Begin => self.say_name(now, caller, number),
            _ => {}
        }
    }

    /// Whoever asks there how it is called hears it, inside a transaction too.
    fn say_name(&mut self, now: Now, caller: &Caller, number: usize) {
        if !caller.name.is_empty() && !std::mem::replace(&mut self.seats.get(number).is_named, true) {
            self.say(now, number, OwedTo::Nobody, &[b"CLIENT", b"SETNAME", &caller.name]);
        }
    }

    /// The caller and its own connection become one.
    pub(crate) fn ask_relay(
        &mut self,
        now: Now,
        caller: &mut Caller,
        node: NodeNumber,
        request: &[u8],
        effects: &mut Vec<Effect>,
    ) -> Verdict {
        if caller.order.owed() > 0 {
            return Verdict::Wait(Wait::Answers);
        }
        let number = match self.own_of(now, caller, node) {
            Ok(number) => number,
            Err(verdict) => return verdict,
        };
        let seat = self.seats.get(number);
        if !seat.lane.is_open() || seat.lane.owed() > 0 {
            let problem = match &seat.refusal {
                Some(error) => Some(error.clone()),
                None if seat.lane.is_down(now.monotonic_us) => Some(self.down_error(number)),
                None => None,
            };
            if let Some(error) = problem {
                self.answer_now(caller, &error);
                return Verdict::Done;
            }
            self.seats.touch(number);
            return Verdict::Wait(self.wait_at(caller, number));
        }
        let label = self.label_for(now, caller, number).filter(|_| !caller.held.transaction);
        caller.own = None;
        let seat = self.seats.remove(number);
        let upstream = seat.lane.connection().expect("an open lane has a connection");
        self.set_role(upstream, Role::Relay(caller.id));
        let mut relay = Relay::new(upstream, seat.lane.is_sending());
        if let Some(label) = label {
            relay.skip_line();
            relay.up(caller.id, &label::request(&label), effects);
        }
        // In a transaction it would be one of its commands, and was said before.
        if !caller.name.is_empty() && !caller.held.transaction && !seat.is_named {
            // Nobody waits for this reply: it would come before the first one that somebody does.
            relay.skip_line();
            let mut words = Vec::new();
            encode([b"CLIENT".as_slice(), b"SETNAME", &caller.name], &mut words);
            relay.up(caller.id, &words, effects);
        }
        if caller.is_guarded {
            let guard = relay.guard.insert(Box::default());
            guard.is_in_transaction = caller.held.transaction;
            if caller.held.doomed {
                // The store does not know that yet.
                let refused = guard.refuse(Vec::new());
                relay.up(caller.id, &refused, effects);
            }
        }
        relay.up(caller.id, request, effects);
        caller.relay = Some(relay);
        Verdict::Relayed
    }
}
