//! Forward: a request whose keys are all on another core goes there, its answer comes back into a gap.

use base::Promise;
use base::limits::OUTPUT_BYTES_MAX;
use commands::{May, Outcome};
use session::{EncodedReply, Ticket};
use wire::registry::{CommandSpec, Family, Flags};
use wire::{Arguments, ErrorCode, LeftOut, Reply, error};

use crate::connection::Stall;
use crate::fetch::Awaited;
use crate::foreign::{Foreign, Reach};
use crate::gather::Answer;
use crate::hop::{HopRequest, Origin};
use crate::keyspace::Shown;
use crate::log_failure::{LOST, NEVER};
use crate::owned_request::OwnedRequest;
use crate::shard::Shard;
use crate::waiters::{Target, Waiter, Who};

/// A forwarded request that waits for lent groups or for the next tick: it did not run yet.
pub struct ParkedHop {
    pub(crate) request: OwnedRequest,
    pub(crate) origin: Origin,
    pub(crate) database: base::Database,
    pub(crate) protocol: wire::Protocol,
    /// The values that it waited for.
    pub(crate) awaited: Option<Box<Awaited>>,
    /// CLIENT UNBLOCK that came meanwhile. Whether it finds the request waiting is known once that ran.
    unblocks: Vec<Unblock>,
}

impl ParkedHop {
    pub(crate) fn new(
        request: OwnedRequest,
        origin: Origin,
        (database, protocol): (base::Database, wire::Protocol),
    ) -> ParkedHop {
        ParkedHop { request, origin, database, protocol, awaited: None, unblocks: Vec::new() }
    }
}

/// A CLIENT UNBLOCK.
#[derive(Clone, Copy)]
pub struct Unblock {
    /// By an error, not by a timeout's reply.
    pub with_error: bool,
    /// Who asked, and its number for the question.
    pub asker: (base::CoreId, u64),
}

impl Shard {
    /// Sends a request to its key's core.
    pub(crate) fn forward(
        &mut self,
        index: u32,
        core: base::CoreId,
        spec: &'static CommandSpec,
        arguments: Arguments<'_>,
    ) {
        let own_core = self.core;
        let blocks = spec.flags.contains(Flags::BLOCKING);
        let Some(connection) = self.connections.at(index) else { return };
        let bytes: usize = arguments.iter().map(<[u8]>::len).sum();
        let batch = &mut self.outbox[usize::from(core.0)];
        let full = connection.output.gaps() >= base::limits::HOPS_PENDING_PER_CONNECTION_MAX || !batch.has_room(bytes);
        if full || (blocks && connection.output.gaps() > 0) {
            return self.stall_and_repeat(index, spec, arguments, Stall::Gaps);
        }
        let ticket = connection.output.reserve().as_u64();
        let origin = connection.origin(own_core, ticket);
        batch.push_request(origin, spec, arguments, connection.session.database(), connection.session.protocol());
        if blocks {
            connection.stall = Stall::RemoteWaiter(core, origin.ticket);
        } else if commands::may_stage(spec.id) {
            // What comes behind it must not come before it.
            connection.stall = Stall::Upload(ticket);
        }
        self.note_hop(spec);
    }

    /// A forwarded request arrived.
    pub(crate) fn on_hop_request(&mut self, request: HopRequest, arguments: Arguments<'_>) {
        if self.stopping {
            return; // The node ends: its clients see their connections end.
        }
        let HopRequest { spec, origin, database, protocol, .. } = request;
        self.run_or_park(ParkedHop::new(OwnedRequest::new(spec, arguments), origin, (database, protocol)));
    }

    /// Runs a request for another core's connection, in its turn.
    pub(crate) fn run_or_park(&mut self, parked: ParkedHop) {
        let waits = !self.parked_hops.is_empty()
            || self.puts_off_hop((parked.origin, parked.request.spec))
            || !self.may_run_hop(&parked.request);
        match waits {
            true => self.parked_hops.push_back(parked),
            false => self.run_parked(parked),
        }
    }

    /// Whether its keys are here, and room for what it brings, or no hope of any.
    pub(crate) fn may_run_hop(&mut self, request: &OwnedRequest) -> bool {
        self.has_keys_of(request) && !self.awaits_memory(request)
    }

    /// Executes a request for another core's connection.
    pub(crate) fn run_forwarded(
        &mut self,
        mut request: OwnedRequest,
        origin: Origin,
        database: base::Database,
        protocol: wire::Protocol,
    ) {
        self.statistics.counters.hops_received += u64::from(origin.core != self.core);
        self.note_hopped(request.spec);
        let (mut bytes, mut long) = (std::mem::take(&mut self.reply_scratch), Vec::new());
        bytes.clear();
        let refusal = if request.spec.is_write() && self.checks_writes { self.write_refusal() } else { None };
        let mut reply = Reply::new(&mut bytes, protocol);
        if let Some(text) = &refusal {
            reply.error("MISCONF", text);
        }
        if refusal.is_some() || self.refuse_forwarded(&request, &mut reply) {
            self.note_hop_reply(request.spec, &bytes);
            self.send_hop_reply(origin, &bytes, Vec::new(), None);
            return self.let_go(request.take_long());
        }
        if request.spec.family == Family::Node {
            return self.run_forwarded_keyspace(&request, origin, (database, protocol));
        }
        self.begin_long_request(request.spec, request.arguments(), database);
        let changes = self.store.changes_from_here();
        let reply = Reply::with_long(&mut bytes, protocol, &mut long);
        let begun = self.start_timing(request.spec);
        // What it asked for may have been refused; then it runs without.
        let has_value = request.long().iter().all(|value| value.stage.is_some());
        let may = May { block: true, stage: self.log.is_some() && has_value };
        match self.run_into(commands::execute, &request, database, may, reply) {
            Outcome::Done => {
                self.stop_timing(begun, Some(Target::Remote(origin, protocol)), request.spec, request.arguments());
                self.note_hop_reply(request.spec, &bytes);
                let until = if self.tracks { self.commitment(changes) } else { None };
                self.send_hop_reply(origin, &bytes, long, until);
                self.let_go(request.take_long());
                if !self.waiters.is_empty() {
                    self.fire_waiters();
                }
            }
            Outcome::Block(block) => self.wait(Target::Remote(origin, protocol), database, request, block),
            Outcome::Stage(first) => {
                self.reply_scratch = bytes;
                let parked = ParkedHop::new(request, origin, (database, protocol));
                if let Some(ParkedHop { request, .. }) = self.stage_parked(parked, first) {
                    self.run_forwarded(request, origin, database, protocol);
                }
                return;
            }
        }
        self.reply_scratch = bytes;
    }

    /// As [`Shard::run_forwarded`], of what asks for some of the keyspace.
    fn run_forwarded_keyspace(
        &mut self,
        request: &OwnedRequest,
        origin: Origin,
        (database, protocol): (base::Database, wire::Protocol),
    ) {
        let mut bytes = Vec::new();
        let changes = self.store.changes_from_here();
        let shown = Shown { protocol, database, door: base::Door::Standalone };
        let begun = self.start_timing(request.spec);
        self.run_keyspace(shown, request.spec, request.arguments(), &mut bytes);
        self.stop_timing(begun, Some(Target::Remote(origin, protocol)), request.spec, request.arguments());
        self.note_hop_reply(request.spec, &bytes);
        let until = if self.tracks { self.commitment(changes) } else { None };
        self.send_hop_reply(origin, &bytes, Vec::new(), until);
    }

    /// Sends an answer to the core that forwarded the request, now or once `until` is committed.
    pub(crate) fn send_hop_reply(&mut self, origin: Origin, bytes: &[u8], long: Vec<LeftOut>, until: Option<Promise>) {
        if until == Some(LOST) || until == Some(NEVER) {
            self.store.let_go(long.into_iter().map(LeftOut::into_blocks));
            if until == Some(LOST) {
                return self.abandon_origin(origin);
            }
            let error = self.unpromised(wire::Protocol::Resp2);
            return self.give_hop_reply(origin, &error, Vec::new());
        }
        if bytes.len() > OUTPUT_BYTES_MAX {
            // On its own core the connection would be closed.
            let mut error = Vec::new();
            wire::error::REPLY_TOO_LONG.write(&mut wire::Reply::new(&mut error, wire::Protocol::Resp2));
            self.store.let_go(long.into_iter().map(LeftOut::into_blocks));
            return self.send_hop_reply(origin, &error, Vec::new(), until);
        }
        match until.filter(|until| !self.horizon.keeps(*until)) {
            Some(until) => {
                let reply = EncodedReply { bytes: bytes.to_vec(), long };
                self.held_replies.push_back((until, origin, reply));
            }
            None => self.give_hop_reply(origin, bytes, long),
        }
    }

    /// To another core, or to a connection of this one whose request took the same way.
    fn give_hop_reply(&mut self, origin: Origin, bytes: &[u8], long: Vec<LeftOut>) {
        match origin.core == self.core {
            true => self.on_hop_reply((origin.connection, origin.ticket), bytes, long),
            false => self.outbox[usize::from(origin.core.0)].push_reply(origin, bytes, long),
        }
    }

    /// Answers whose promise holds leave, as far as the batches take them.
    pub(crate) fn release_hop_replies(&mut self) {
        for (until, origin, reply) in std::mem::take(&mut self.held_replies) {
            let holds = self.horizon.keeps(until);
            if holds && !self.outbox[usize::from(origin.core.0)].is_long() {
                self.give_hop_reply(origin, &reply.bytes, reply.long);
                continue;
            }
            if holds {
                self.put_off.note();
            }
            self.held_replies.push_back((until, origin, reply));
        }
    }

    /// The answer to a request that was forwarded.
    pub(crate) fn on_hop_reply(&mut self, (id, ticket): (base::ConnectionId, u64), bytes: &[u8], long: Vec<LeftOut>) {
        let Some(connection) = self.connections.get_mut(id) else {
            return self.store.let_go(long.into_iter().map(LeftOut::into_blocks));
        };
        connection.output.fill(Ticket::from_u64(ticket), EncodedReply { bytes: bytes.to_vec(), long });
        // What was held behind the gap is in front now: its group may be committed already, or nobody would release it.
        connection.output.release(&self.horizon);
        let goes_on = match connection.stall {
            Stall::RemoteWaiter(_, awaited) | Stall::Upload(awaited) => awaited == ticket,
            Stall::Gaps => connection.output.gaps() == 0,
            _ => false,
        };
        let waited = matches!(connection.stall, Stall::RemoteWaiter(..)) && goes_on;
        let may_start = connection.stall == Stall::Unit && connection.output.gaps() == 0;
        if let Some(code) = ErrorCode::of(bytes).filter(|_| waited)
            && let Some(spec) = connection.session.last_command()
        {
            self.note_failure(spec.id, code);
        }
        self.list_held(id.index);
        if may_start {
            self.gaps_closed(id);
        } else if goes_on {
            self.unstall(id);
        }
        self.list_for_flush(id.index);
    }

    /// A parked request's turn has come.
    pub(crate) fn run_parked(&mut self, mut parked: ParkedHop) {
        if self.is_sealed(parked.request.spec, parked.request.arguments()) {
            return self.parked_hops.push_back(parked);
        }
        match self.foreign(parked.request.spec, parked.request.arguments(), None, Reach::Core) {
            Some(Foreign::Moved(slot, _)) if self.is_expected(slot, Reach::Core) => {
                return self.parked_hops.push_back(parked);
            }
            Some(foreign) => return self.refuse_parked(parked, &foreign),
            None => {}
        }
        if self.store.tiers() {
            let Some(ready) = self.with_values(parked) else { return };
            parked = ready;
        }
        // Its values are here, and stay.
        self.store.hold_values(true);
        self.run_forwarded(parked.request, parked.origin, parked.database, parked.protocol);
        self.store.hold_values(false);
        self.answer_unblocks(parked.origin, parked.unblocks);
    }

    /// A forwarded request is over without having run: who unblocks it hears that it did not wait.
    pub(crate) fn end_parked(&mut self, parked: ParkedHop) {
        self.answer_unblocks(parked.origin, parked.unblocks);
    }

    fn answer_unblocks(&mut self, origin: Origin, unblocks: Vec<Unblock>) {
        unblocks.into_iter().for_each(|unblock| self.unblock_forwarded(origin, unblock));
    }

    /// While it waited, or its value came, its slot went elsewhere.
    fn refuse_parked(&mut self, mut parked: ParkedHop, foreign: &Foreign) {
        self.let_go(parked.request.take_long());
        if !parked.request.spec.flags.contains(Flags::BLOCKING) {
            self.note_rejected(parked.request.spec);
        }
        let target = Target::Remote(parked.origin, parked.protocol);
        let (host, port_shift) = self.place_of_target(target);
        self.answer(target, |reply| foreign.write(reply, (&host, port_shift)));
        self.end_parked(parked);
    }

    /// The client of a forwarded request left.
    pub(crate) fn cancel_forwarded(&mut self, origin: Origin) {
        self.take_forwarded(origin);
        let place = self.parked_hops.iter().position(|parked| parked.origin == origin);
        let parked = place.and_then(|place| self.parked_hops.remove(place));
        if let Some(parked) = parked.or_else(|| self.cancel_waiting_hop(origin)) {
            self.end_parked(parked);
        }
    }

    /// A blocking request of another core waits here no longer; the waiter, if it did not have its answer yet.
    fn take_forwarded(&mut self, origin: Origin) -> Option<Waiter> {
        let is_meant = |who: &Who| matches!(who.target(), Some(Target::Remote(other, _)) if other == origin);
        let waiting = self.waiters.take(is_meant);
        self.track_touched();
        waiting
    }

    /// CLIENT UNBLOCK of a request that another core forwarded: answered with how many were waiting.
    pub(crate) fn unblock_forwarded(&mut self, origin: Origin, unblock: Unblock) {
        if let Some(parked) = self.parked_hops.iter_mut().find(|parked| parked.origin == origin) {
            return parked.unblocks.push(unblock);
        }
        if let Some(parked) = self.waiting_hop(origin) {
            return parked.unblocks.push(unblock);
        }
        let waiter = self.take_forwarded(origin);
        let count = u64::from(waiter.is_some());
        if let Some(waiter) = waiter {
            self.unblock(waiter, unblock.with_error);
        }
        let (core, gather) = unblock.asker;
        self.give_answer((core != self.core).then_some(core), gather, Answer::Count(count));
    }

    /// Answers a waiter that CLIENT UNBLOCK took.
    pub(crate) fn unblock(&mut self, waiter: Waiter, with_error: bool) {
        match waiter.who.target().filter(|_| with_error) {
            Some(target) => self.answer(target, |reply| error::UNBLOCKED.write(reply)),
            None => self.time_out(waiter),
        }
    }
}

#[cfg(test)]
mod tests;
