//! What the upstream says, and what becomes of its connections.

use crate::caller::{Caller, Wait};
use crate::machine::ProxyMachine;
use crate::seat::{Owed, Role, Whose};
use base::ConnectionId;
use base::limits::OUTPUT_PAUSE_BYTES;
use base::street::{Effect, Now};
use client::{CommandTable, Heard, Qos};
use wire::reply_parse::parse_reply;

/// What became of a seat while its bytes were looked at.
enum Turn {
    /// Its greeting was answered; the last reply.
    Greeted(Option<Vec<u8>>),
    /// It was refused with this error.
    Refused(Vec<u8>),
    /// It cannot be understood.
    Nonsense,
}

/// How long an answer took that is none.
const NEVER_US: u64 = u64::MAX;

/// The reply to a caller's request; who has something to send, and whose wait may be over, is noted.
#[inline]
fn answer(
    callers: &mut [Option<Box<Caller>>],
    (dirty, resumed, done_alone): (&mut Vec<ConnectionId>, &mut Vec<ConnectionId>, &mut Vec<ConnectionId>),
    (connection, number, took_us): (ConnectionId, u64, u64),
    reply: &[u8],
) {
    let Some(caller) = callers.get_mut(connection.index as usize).and_then(Option::as_deref_mut) else { return };
    if caller.id != connection {
        return;
    }
    if let Qos::Within { us } = caller.qos {
        caller.promises.note(took_us <= us);
    }
    if caller.answer(number, reply) {
        dirty.push(connection);
    }
    if caller.wait.is_some() && caller.may_go_on() {
        resumed.push(connection);
    }
    if caller.own.is_some() {
        done_alone.push(connection);
    }
}

impl ProxyMachine {
    /// Bytes of a seat's connection.
    #[inline]
    pub(crate) fn hear(&mut self, now: Now, number: usize, bytes: &[u8], effects: &mut Vec<Effect>) {
        let ProxyMachine { seats, callers, dirty, resumed, done_alone, .. } = self;
        let mut turn = None;
        seats.get(number).lane.received(now.monotonic_us, bytes, |heard| match heard {
            Heard::Reply { item: Owed::Caller { caller, number, asked_us, .. }, reply, .. } => {
                let took_us = now.monotonic_us.saturating_sub(asked_us);
                answer(callers, (dirty, resumed, done_alone), (caller, number, took_us), reply);
            }
            Heard::Reply { item: Owed::Nobody, .. } => {}
            Heard::Greeted(replies) => turn = Some(Turn::Greeted(replies.last().cloned())),
            Heard::Refused(error) => turn = Some(Turn::Refused(error.to_vec())),
            Heard::Nonsense => turn = Some(Turn::Nonsense),
        });
        match turn {
            None => {}
            Some(Turn::Greeted(last)) => self.greeted(last.as_deref()),
            Some(Turn::Refused(error)) => self.seat_refused(now, number, error, effects),
            Some(Turn::Nonsense) => self.close_seat(number, effects),
        }
        self.seats.touch(number);
        self.let_go_on(number);
    }

    fn greeted(&mut self, last: Option<&[u8]>) {
        if self.table_is_learnt {
            return;
        }
        let learnt =
            last.and_then(|reply| parse_reply(reply).ok()?).and_then(|(answer, _)| CommandTable::learn(&answer));
        if let Some(table) = learnt {
            (self.table, self.table_is_learnt) = (table, true);
        }
    }

    /// Those that wait for a seat look again.
    pub(crate) fn let_go_on(&mut self, number: usize) {
        let waiting = std::mem::take(&mut self.seats.get(number).waiting);
        self.resumed.extend(waiting);
    }

    fn seat_refused(&mut self, now: Now, number: usize, error: Vec<u8>, effects: &mut Vec<Effect>) {
        self.answer_waiting(now, number, &error);
        self.seats.get(number).refusal = Some(error);
        self.refused.push(number);
        self.close_seat(number, effects);
    }

    /// All that waits on a seat is answered with this error: it never left.
    fn answer_waiting(&mut self, now: Now, number: usize, error: &[u8]) {
        let ProxyMachine { seats, callers, dirty, resumed, done_alone, .. } = self;
        for owed in seats.get(number).lane.take_waiting(now.monotonic_us) {
            if let Owed::Caller { caller, number, .. } = owed {
                answer(callers, (dirty, resumed, done_alone), (caller, number, NEVER_US), error);
            }
        }
    }

    fn close_seat(&mut self, number: usize, effects: &mut Vec<Effect>) {
        let seat = self.seats.get(number);
        if let Some(connection) = seat.lane.connection()
            && !std::mem::replace(&mut seat.is_closing, true)
        {
            effects.push(Effect::Close { connection });
        }
    }

    /// A dial is over.
    pub(crate) fn dialed(&mut self, now: Now, token: u64, connection: Option<ConnectionId>, effects: &mut Vec<Effect>) {
        let Some(number) = self.seats.dialed(token) else {
            // Who wanted it is gone.
            return effects.extend(connection.map(|connection| Effect::Close { connection }));
        };
        if let Some(connection) = connection {
            self.set_role(connection, Role::Seat(number));
        }
        let seat = self.seats.get(number);
        let failed = seat.lane.dialed(now.monotonic_us, connection, effects);
        let error = self.down_error(number);
        let ProxyMachine { callers, dirty, resumed, done_alone, .. } = self;
        for owed in failed {
            if let Owed::Caller { caller, number, .. } = owed {
                answer(callers, (dirty, resumed, done_alone), (caller, number, NEVER_US), &error);
            }
        }
        self.seats.touch(number);
        self.let_go_on(number);
    }

    /// What a request is answered with that would wait for nobody.
    pub(crate) fn down_error(&mut self, number: usize) -> Vec<u8> {
        let address = self.seats.get(number).lane.address();
        format!("-ERR the store behind this proxy does not answer at {address}; the request was not carried out\r\n")
            .into_bytes()
    }

    /// A send is done.
    pub(crate) fn sent(&mut self, connection: ConnectionId, buffer: Vec<u8>, effects: &mut Vec<Effect>) {
        match self.role(connection) {
            Role::Caller => {
                let Some(caller) = self.caller(connection) else { return };
                caller.output.sent();
                if let Some(relay) = caller.relay.as_mut().filter(|relay| relay.is_upstream_paused)
                    && caller.output.pending_bytes() <= OUTPUT_PAUSE_BYTES
                {
                    relay.is_upstream_paused = false;
                    effects.push(Effect::ResumeReceive { connection: relay.upstream });
                }
                if caller.wait == Some(Wait::Room) && caller.may_go_on() {
                    self.resumed.push(connection);
                }
                self.dirty.push(connection);
                self.keep_spare(buffer);
            }
            Role::Seat(number) => {
                self.seats.get(number).lane.send_done(buffer, effects);
                self.seats.touch(number);
            }
            Role::Relay(caller) => {
                let Some(caller) = self.caller(caller) else { return };
                let id = caller.id;
                if let Some(relay) = &mut caller.relay {
                    relay.sent(id, effects);
                }
                self.dirty.push(id);
            }
            Role::None => {}
        }
    }

    /// Bytes for a caller that the proxy does not look at.
    pub(crate) fn relay_down(
        &mut self,
        upstream: ConnectionId,
        connection: ConnectionId,
        bytes: &[u8],
        effects: &mut Vec<Effect>,
    ) {
        let Some(caller) = self.caller(connection) else { return };
        let Some(bytes) = caller.relay.as_mut().and_then(|relay| relay.down(bytes)) else { return };
        let is_first = caller.say(bytes);
        let is_slow = caller.output.pending_bytes() > OUTPUT_PAUSE_BYTES;
        if let Some(relay) = caller.relay.as_mut().filter(|relay| is_slow && !relay.is_upstream_paused) {
            relay.is_upstream_paused = true;
            effects.push(Effect::PauseReceive { connection: upstream });
        }
        self.dirty.extend(is_first.then_some(connection));
    }

    /// The other end sends no more.
    pub(crate) fn peer_closed(&mut self, connection: ConnectionId, effects: &mut Vec<Effect>) {
        match self.role(connection) {
            Role::Caller => {
                let Some(caller) = self.caller(connection) else { return };
                caller.is_closing = true;
                match &caller.relay {
                    Some(_) => effects.push(Effect::Close { connection }),
                    None => self.dirty.push(connection),
                }
            }
            Role::Seat(number) => self.close_seat(number, effects),
            Role::Relay(_) => effects.push(Effect::Close { connection }),
            Role::None => {}
        }
    }

    /// A connection is gone.
    pub(crate) fn closed(&mut self, now: Now, connection: ConnectionId, effects: &mut Vec<Effect>) {
        let role = self.role(connection);
        self.set_role(connection, Role::None);
        match role {
            Role::Caller => self.caller_gone(now, connection, effects),
            Role::Seat(number) => self.seat_lost(now, number, effects),
            Role::Relay(caller) => {
                if let Some(caller) = self.caller(caller) {
                    caller.relay = None;
                }
                self.abandon(caller, effects);
            }
            Role::None => {}
        }
    }

    fn caller_gone(&mut self, now: Now, connection: ConnectionId, effects: &mut Vec<Effect>) {
        let Some(caller) = self.callers[connection.index as usize].take() else { return };
        effects.extend(caller.relay.map(|relay| Effect::Close { connection: relay.upstream }));
        for number in [caller.own, caller.proof].into_iter().flatten() {
            self.seats.get(number).is_spoiled = true;
            self.give_up_own(now, number, effects);
        }
    }

    /// A seat lost its connection. Whether what was out was carried out nobody knows: its callers are closed, as their direct
    /// connections would have been. Reads are asked again.
    fn seat_lost(&mut self, now: Now, number: usize, effects: &mut Vec<Effect>) {
        let seat = self.seats.get(number);
        seat.is_closing = false;
        let unknown = seat.lane.closed(now.monotonic_us);
        let whose = seat.whose;
        for (owed, request) in unknown {
            let Owed::Caller { caller, is_read, .. } = owed else { continue };
            let again = request.filter(|_| is_read && matches!(whose, Whose::Shared(_)) && self.retries.spend());
            if !again.is_some_and(|request| self.ask_again(now, number, owed, &request)) {
                self.abandon(caller, effects);
            }
        }
        match whose {
            Whose::Shared(_) => self.seats.touch(number),
            // What a caller held there is gone with it, as it would be without a proxy.
            Whose::Own(caller) if self.is_bound(caller, number) => self.abandon(caller, effects),
            Whose::Own(_) => self.seats.touch(number),
            Whose::Idle => drop(self.seats.remove(number)),
        }
        if self.seats.holds(number) {
            self.let_go_on(number);
        }
    }

    /// A read whose reply was lost goes behind what waits.
    fn ask_again(&mut self, now: Now, number: usize, owed: Owed, request: &[u8]) -> bool {
        let Owed::Caller { caller, .. } = owed else { return true };
        let lane = &mut self.seats.get(number).lane;
        lane.push(now.monotonic_us, caller.as_u64(), Qos::Batch, owed, request).is_ok()
    }

    /// Whether the caller's own connection holds something that another one would not.
    fn is_bound(&mut self, connection: ConnectionId, number: usize) -> bool {
        self.caller(connection)
            .is_some_and(|caller| caller.own == Some(number) && (caller.is_held() || caller.held.named))
    }

    /// Closes a caller at once.
    fn abandon(&mut self, connection: ConnectionId, effects: &mut Vec<Effect>) {
        if let Some(caller) = self.caller(connection)
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
        self.close_seat(number, effects);
        let seat = self.seats.remove(number);
        if let Some(connection) = seat.lane.connection() {
            self.set_role(connection, Role::None);
        }
    }
}
