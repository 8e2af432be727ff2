//! What the upstream says, and what becomes of its connections.

use crate::caller::Wait;
use crate::desk::Desk;
use crate::identity::ABOUT_STORE;
use crate::line::cost;
use crate::machine::ProxyMachine;
use crate::merge::sends_some_on;
use crate::redirects::{Redirected, sends_on};
use crate::seat::{Owed, OwedTo, Role, Seat, Whose};
use base::ConnectionId;
use base::limits::OUTPUT_PAUSE_BYTES;
use base::planted::{Bug, is_planted};
use base::street::{Effect, Now};
use client::{CommandTable, Heard};
use wire::reply_parse::{Value, parse_reply};

/// What became of a seat while its bytes were looked at.
enum Turn {
    /// Its greeting was answered so.
    Greeted(Vec<Vec<u8>>),
    /// It was refused with this error.
    Refused(Vec<u8>),
    /// It cannot be understood.
    Nonsense,
}

fn has(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|window| window == word)
}

/// Whether all keys of a request, or some of them, have to be asked for elsewhere.
#[inline]
fn sends_keys_on(desk: &Desk, owed: &Owed, reply: &[u8]) -> bool {
    sends_on(reply) || (desk.is_merged(owed) && sends_some_on(reply))
}

impl ProxyMachine {
    /// Bytes of a seat's connection.
    #[inline]
    pub(crate) fn hear(&mut self, now: Now, number: usize, bytes: &[u8], effects: &mut Vec<Effect>) {
        let ProxyMachine { seats, desk, routes, headroom, .. } = self;
        let seat = seats.get(number);
        let (node, whose) = (seat.node, seat.whose);
        seat.used_us = now.monotonic_us;
        let is_cluster = routes.table.is_cluster();
        // What blocks on a caller's own connection is late for no want of room.
        let is_shared = matches!(whose, Whose::Shared(_));
        let (mut turn, mut is_read_only, mut is_label_refused) = (None, false, false);
        let Seat { lane, line, .. } = seat;
        lane.received(now.monotonic_us, bytes, |heard| match heard {
            Heard::Reply { item, request, reply } if is_cluster && sends_keys_on(desk, &item, reply) => {
                let (request, error) = (request.map(<[u8]>::to_vec), reply.to_vec());
                let redirected = Redirected { owed: item, request, error, node, seat: number, whose };
                match sends_on(reply) {
                    true => desk.redirected.push(redirected),
                    false => desk.gather_again(now, redirected),
                }
            }
            Heard::Reply { item, reply, .. } => {
                is_read_only |= reply[0] == b'-' && reply.starts_with(b"-READONLY ");
                let Some(delivered) = desk.deliver_judged(Some(now.monotonic_us), item, reply) else {
                    is_label_refused |= item.to == OwedTo::Label && reply[0] == b'-';
                    return;
                };
                if !line.is_empty() {
                    line.charge(delivered.class, cost(0, reply.len()));
                }
                if let Some(was_kept) = delivered.was_kept.filter(|_| is_shared) {
                    headroom.of(node).answered(was_kept);
                }
            }
            Heard::Greeted(replies) => turn = Some(Turn::Greeted(replies.to_vec())),
            Heard::Refused(error) => turn = Some(Turn::Refused(error.to_vec())),
            Heard::Nonsense => turn = Some(Turn::Nonsense),
        });
        self.met_read_only |= is_read_only;
        if is_label_refused {
            self.labels.refuse(&self.seats.get(number).identity);
        }
        match turn {
            None => {}
            Some(Turn::Greeted(replies)) => self.greeted(number, &replies),
            Some(Turn::Refused(error)) => self.seat_refused(now, number, error, effects),
            Some(Turn::Nonsense) => self.close_seat(now, number, effects),
        }
        if is_planted(Bug::M73SlowReaderHoldsAll)
            && let Some(connection) = self.seats.get(number).lane.connection()
            && self.desk.callers.iter().flatten().any(|caller| caller.output.pending_bytes() > OUTPUT_PAUSE_BYTES)
        {
            effects.push(Effect::PauseReceive { connection });
        }
        self.seats.touch(number);
        self.let_go_on(number);
    }

    /// What the store said of itself, if it was asked: its commands, whether it is a cluster, and who is where.
    fn greeted(&mut self, number: usize, replies: &[Vec<u8>]) {
        let Some((_, [commands, cluster, nodes])) = replies.split_last_chunk::<ABOUT_STORE>() else { return };
        if self.knows_store() {
            return;
        }
        let value = |reply: &[u8]| parse_reply(reply).ok().flatten().map(|(value, _)| value);
        if let Some(table) = value(commands).and_then(|answer| CommandTable::learn(&answer)) {
            (self.table, self.table_is_learnt) = (table, true);
            self.learn_labels();
        }
        let says_no = matches!(value(cluster), Some(Value::Bulk(text) | Value::Verbatim(_, text)) if has(&text, b"cluster_enabled:0"));
        let node = self.seats.get(number).node;
        let host = self.routes.table.host(node).to_owned();
        self.routes.is_known = match value(nodes) {
            _ if says_no => true,
            Some(Value::Bulk(text) | Value::Verbatim(_, text)) => {
                self.routes.table.learn(&String::from_utf8_lossy(&text), &host).is_ok()
            }
            // Who may not ask does not know; a server that has no cluster says so, each in its words.
            Some(Value::Error(text)) => !text.starts_with(b"NOPERM"),
            _ => false,
        };
    }

    /// Those that wait for a seat look again.
    pub(crate) fn let_go_on(&mut self, number: usize) {
        let seat = self.seats.get(number);
        if seat.line.is_empty() {
            return;
        }
        match seat.lane.is_open() && matches!(seat.whose, Whose::Shared(_)) {
            true => self.turns.push(number),
            // Nobody is served, so nobody can be served more than others; one caller's own connection is its alone.
            false => self.dissolve_line(number),
        }
    }

    /// All that wait for a seat go on.
    pub(crate) fn dissolve_line(&mut self, number: usize) {
        for connection in self.seats.get(number).line.take_all() {
            self.desk.leave_line(connection, number);
            self.desk.resumed.push(connection);
        }
    }

    fn seat_refused(&mut self, now: Now, number: usize, error: Vec<u8>, effects: &mut Vec<Effect>) {
        let error = self.as_told_to_callers(error);
        self.answer_waiting(now, number, &error);
        self.seats.get(number).refusal = Some(error);
        self.refused.push(number);
        self.close_seat(now, number, effects);
    }

    /// All that waits on a seat is answered with this error: it never left.
    pub(crate) fn answer_waiting(&mut self, now: Now, number: usize, error: &[u8]) {
        self.seats.get(number).forget_label();
        for owed in self.seats.get(number).lane.take_waiting(now.monotonic_us) {
            self.desk.deliver(None, owed, error);
        }
        self.end_bound(number);
    }

    pub(crate) fn close_seat(&mut self, now: Now, number: usize, effects: &mut Vec<Effect>) {
        let seat = self.seats.get(number);
        if let Some(connection) = seat.lane.connection()
            && !std::mem::replace(&mut seat.is_closing, true)
        {
            seat.lane.leave(now.monotonic_us);
            effects.push(Effect::Close { connection });
        }
    }

    /// A dial is over.
    pub(crate) fn dialed(
        &mut self,
        now: Now,
        token: u64,
        outcome: Result<ConnectionId, String>,
        effects: &mut Vec<Effect>,
    ) {
        let (connection, reason) = match outcome {
            Ok(connection) => (Some(connection), None),
            Err(reason) => (None, Some(reason)),
        };
        let Some(number) = self.seats.dialed(token) else {
            // Who wanted it is gone.
            self.seats.connection_ended();
            return effects.extend(connection.map(|connection| Effect::Close { connection }));
        };
        if let Some(connection) = connection {
            self.set_role(connection, Role::Seat(number));
        }
        let seat = self.seats.get(number);
        let node = seat.node;
        seat.unreachable = reason;
        let failed = seat.lane.dialed(now.monotonic_us, connection, effects);
        if connection.is_none() {
            self.seats.get(number).forget_label();
            self.seats.connection_ended();
            self.routes.avoid(node);
            let whose = self.seats.get(number).whose;
            self.want_table(whose, node);
            let error = self.down_error(number);
            failed.into_iter().for_each(|owed| self.desk.deliver(None, owed, &error));
            self.end_bound(number);
        }
        self.seats.touch(number);
        self.let_go_on(number);
    }

    /// What a request is answered with that would wait for nobody.
    pub(crate) fn down_error(&mut self, number: usize) -> Vec<u8> {
        let seat = self.seats.get(number);
        let (address, reason) = (seat.lane.address(), seat.unreachable.as_deref().unwrap_or_default());
        // One line, whatever the system's words are.
        let reason = reason.replace(['\r', '\n'], " ");
        let reason = if reason.is_empty() { reason } else { format!(" ({reason})") };
        let error = format!(
            "-ERR the store behind this proxy does not answer at {address}{reason}; the request was not carried out\r\n"
        );
        error.into_bytes()
    }

    /// A send is done.
    pub(crate) fn sent(&mut self, connection: ConnectionId, buffer: Vec<u8>, effects: &mut Vec<Effect>) {
        match self.role(connection) {
            Role::Caller => {
                let Some(caller) = self.desk.caller(connection) else { return };
                caller.output.sent();
                if let Some(relay) = caller.relay.as_mut().filter(|relay| relay.is_upstream_paused)
                    && caller.output.pending_bytes() <= OUTPUT_PAUSE_BYTES
                {
                    relay.is_upstream_paused = false;
                    effects.push(Effect::ResumeReceive { connection: relay.upstream });
                }
                if caller.wait == Some(Wait::Room) && caller.may_go_on() {
                    self.desk.resumed.push(connection);
                }
                self.desk.dirty.push(connection);
                self.keep_spare(buffer);
            }
            Role::Seat(number) => {
                self.seats.get(number).lane.send_done(buffer, effects);
                self.seats.touch(number);
            }
            Role::Relay(caller) => {
                let Some(caller) = self.desk.caller(caller) else { return };
                let id = caller.id;
                if let Some(relay) = &mut caller.relay {
                    relay.sent(id, effects);
                }
                self.desk.dirty.push(id);
            }
            Role::None | Role::Leaving => {}
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
        let Some(caller) = self.desk.caller(connection) else { return };
        let Some(bytes) = caller.relay.as_mut().and_then(|relay| relay.down(bytes)) else { return };
        let guard = caller.relay.as_mut().and_then(|relay| relay.guard.as_mut());
        let is_first = match guard.map(|guard| guard.down(bytes)) {
            None => caller.say(bytes),
            Some(Ok(bytes)) => caller.say(&bytes),
            // It would be the caller's to understand, who is told nothing that was not looked at.
            Some(Err(_)) => return effects.push(Effect::Close { connection }),
        };
        let is_slow = caller.output.pending_bytes() > OUTPUT_PAUSE_BYTES;
        if let Some(relay) = caller.relay.as_mut().filter(|relay| is_slow && !relay.is_upstream_paused) {
            relay.is_upstream_paused = true;
            effects.push(Effect::PauseReceive { connection: upstream });
        }
        self.desk.dirty.extend(is_first.then_some(connection));
    }

    /// The other end sends no more.
    pub(crate) fn peer_closed(&mut self, now: Now, connection: ConnectionId, effects: &mut Vec<Effect>) {
        match self.role(connection) {
            Role::Caller => {
                let Some(caller) = self.desk.caller(connection) else { return };
                if caller.order.owes_before(caller.waits_before) {
                    // As its direct connection would, it ends where it waits: an element that came later would be lost with it.
                    return self.abandon(connection, effects);
                }
                caller.has_hung_up = true;
                if caller.end_if_hung_up(effects) {
                    self.desk.dirty.push(connection);
                }
            }
            Role::Seat(number) => {
                if self.seats.get(number).lane.is_greeting() {
                    self.sent_away(now, number);
                }
                self.close_seat(now, number, effects);
            }
            Role::Relay(_) => effects.push(Effect::Close { connection }),
            Role::None | Role::Leaving => {}
        }
    }
}
