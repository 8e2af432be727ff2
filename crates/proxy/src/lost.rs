//! Connections that are gone, and what becomes of the requests that were on them.

use crate::collapse::Ended;
use crate::machine::ProxyMachine;
use crate::seat::{Owed, OwedTo, Role, Whose};
use base::ConnectionId;
use base::planted::{Bug, is_planted};
use base::street::{Effect, Now};

/// Why a seat is of no use that was dialed and greeted in vain.
const ENDED: &str = "it ended the connection before it said anything; one that speaks TLS does so to whom it wants a certificate of: --cert FILE --key FILE";

impl ProxyMachine {
    /// A connection is gone.
    pub(crate) fn closed(&mut self, now: Now, connection: ConnectionId, effects: &mut Vec<Effect>) {
        let role = self.role(connection);
        self.set_role(connection, Role::None);
        match role {
            Role::Caller => self.caller_gone(now, connection, effects),
            Role::Seat(number) => self.seat_lost(now, number, effects),
            Role::Relay(caller) => {
                self.seats.connection_ended();
                if let Some(caller) = self.desk.caller(caller) {
                    caller.relay = None;
                }
                self.abandon(caller, effects);
            }
            Role::Leaving => self.seats.connection_ended(),
            Role::None => {}
        }
    }

    pub(crate) fn caller_gone(&mut self, now: Now, connection: ConnectionId, effects: &mut Vec<Effect>) {
        let Some(mut caller) = self.desk.callers[connection.index as usize].take() else { return };
        effects.extend(caller.relay.take().map(|relay| Effect::Close { connection: relay.upstream }));
        self.leave_group(&mut caller);
        self.note_end();
        for number in [caller.own, caller.proof].into_iter().flatten() {
            self.seats.get(number).is_spoiled = true;
            self.give_up_own(now, number, effects);
        }
    }

    /// A seat lost its connection. Whether what was out was carried out nobody knows: its callers are closed, as their direct
    /// connections would have been. Reads are asked again, before what came later.
    fn seat_lost(&mut self, now: Now, number: usize, effects: &mut Vec<Effect>) {
        self.seats.connection_ended();
        let seat = self.seats.get(number);
        let was_closing = std::mem::replace(&mut seat.is_closing, false);
        seat.forget_label();
        let was_greeting = seat.lane.is_greeting();
        let (whose, node, unknown) = (seat.whose, seat.node, seat.lane.closed(now.monotonic_us));
        self.making_room -= usize::from(was_closing && self.making_room > 0);
        if !was_closing {
            self.want_table(whose, node);
        }
        if was_greeting && !was_closing {
            self.sent_away(now, number);
        }
        let mut again = Vec::new();
        for (owed, request) in unknown {
            let is_harmless = owed.is_read || is_planted(Bug::M13UnknownSentAgain);
            let may_again = is_harmless && matches!(whose, Whose::Shared(_));
            match request.filter(|_| may_again && self.retries.spend()) {
                Some(request) => {
                    self.seats.counts_of(node).retries += 1;
                    again.push((owed.caller_number(), owed, request));
                }
                None => self.fate_unknown(now, number, owed, effects),
            }
        }
        if !again.is_empty() {
            self.seats.get(number).lane.push_first(now.monotonic_us, again, Owed::caller_number);
        }
        match whose {
            Whose::Shared(_) => self.seats.touch(number),
            // What a caller held there is gone with it, as it would be without a proxy.
            Whose::Own(caller) if self.is_bound(caller, number) => self.abandon(caller, effects),
            Whose::Own(_) => self.seats.touch(number),
            Whose::Idle => drop(self.seats.remove(number)),
            Whose::Aside => self.report_lost(number),
        }
        if self.seats.holds(number) {
            self.let_go_on(number);
        }
    }

    /// Somebody took the connection and ended it without a word: nobody's request has left, and nobody's waits for the next time.
    pub(crate) fn sent_away(&mut self, now: Now, number: usize) {
        let seat = self.seats.get(number);
        seat.unreachable = Some(ENDED.to_owned());
        self.routes.avoid(seat.node);
        let error = self.down_error(number);
        self.answer_waiting(now, number, &error);
    }

    /// Nobody knows whether a request was carried out. A part's caller is closed, too, unless it only read: then it hears which
    /// keys it did not get.
    pub(crate) fn fate_unknown(&mut self, now: Now, number: usize, owed: Owed, effects: &mut Vec<Effect>) {
        match owed.to {
            OwedTo::Caller { caller, .. } | OwedTo::Begun { caller } => self.abandon(caller, effects),
            OwedTo::Part { gather, .. } => {
                if !owed.is_read {
                    let caller = self.desk.gathers.caller(gather);
                    self.abandon(caller, effects);
                }
                let error = format!("-ERR the connection to {} was lost\r\n", self.seats.get(number).lane.address());
                self.desk.deliver(Some(now.monotonic_us), owed, error.as_bytes());
            }
            OwedTo::Collapsed { place } => self.desk.collapsed.push((place, Ended::Unknown)),
            OwedTo::Table => self.desk.deliver(None, owed, b""),
            OwedTo::Report | OwedTo::Label | OwedTo::Nobody => {}
        }
    }

    /// Whether the caller's own connection holds something that another one would not.
    fn is_bound(&mut self, connection: ConnectionId, number: usize) -> bool {
        let caller = self.desk.caller(connection);
        caller.is_some_and(|caller| caller.own == Some(number) && (caller.is_held() || caller.held.named))
    }

    /// Closes a caller at once.
    pub(crate) fn abandon(&mut self, connection: ConnectionId, effects: &mut Vec<Effect>) {
        if let Some(caller) = self.desk.caller(connection)
            && !std::mem::replace(&mut caller.is_abandoned, true)
        {
            caller.is_closing = true;
            effects.push(Effect::Close { connection });
        }
    }

    /// A caller's own connection is its own no more.
    pub(crate) fn give_up_own(&mut self, now: Now, number: usize, effects: &mut Vec<Effect>) {
        if self.seats.release(now.monotonic_us, number) {
            return;
        }
        self.remove_seat(now, number, effects);
    }

    /// A seat that nobody wants anything of is gone at once, its connection as soon as it is closed.
    pub(crate) fn remove_seat(&mut self, now: Now, number: usize, effects: &mut Vec<Effect>) {
        self.close_seat(now, number, effects);
        self.dissolve_line(number);
        let seat = self.seats.remove(number);
        if let Some(connection) = seat.lane.connection() {
            self.set_role(connection, Role::Leaving);
        }
    }

    /// Refusals were heard by all that waited; a lane that was opened for one of them only is nobody's.
    pub(crate) fn forget_refusals(&mut self, now: Now, effects: &mut Vec<Effect>) {
        for number in std::mem::take(&mut self.refused) {
            if !self.seats.holds(number) {
                continue;
            }
            self.seats.get(number).refusal = None;
            if let Whose::Shared(group) = self.seats.get(number).whose
                && self.seats.groups.get(group).is_deserted()
                && self.seats.get(number).line.is_empty()
            {
                self.remove_seat(now, number, effects);
            }
        }
    }

    /// A caller that holds something on a connection that did not come about is closed once it has heard so.
    pub(crate) fn end_bound(&mut self, number: usize) {
        if let Whose::Own(caller) = self.seats.get(number).whose
            && self.is_bound(caller, number)
        {
            self.desk.end(caller);
        }
    }
}
