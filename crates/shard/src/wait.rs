//! Blocked requests: they wait here until one of their keys changes.

use base::Database;
use commands::{Block, May, Outcome, Unit};
use session::EncodedReply;
use wire::{Arguments, Protocol, Reply};

use crate::connection::Stall;
use crate::owned_request::OwnedRequest;
use crate::shard::Shard;
use crate::waiters::{Target, Waiter, Who};

/// How soon an overdue waiter looks again for a lent group, microseconds; a loan takes about a round trip.
const LENT_RETRY_US: u64 = 200;

impl Shard {
    /// A blocking command waits for its keys.
    pub(crate) fn wait(&mut self, target: Target, database: Database, request: OwnedRequest, block: Block) {
        let hashes =
            block.keys.iter().map(|name| self.store.key(name, database, placement::slot_of(name)).hash).collect();
        let deadline_us = self.deadline_us(&block);
        // What it saw it tells nobody before it runs again.
        self.store.take_saw_uncommitted();
        if let Some(text) = self.write_refusal().filter(|_| self.has_log_failed()) {
            return self.answer(target, |reply| reply.error("MISCONF", &text));
        }
        if self.waiters.len() >= base::limits::WAITERS_MAX {
            return self.answer(target, |reply| reply.error("BUSY", "too many blocked clients on this core"));
        }
        if let Target::Local(id) = target
            && let Some(connection) = self.connections.get_mut(id)
        {
            connection.stall = Stall::Waiter;
        }
        self.waiters.insert(Waiter { who: Who::Request { request, target }, database, hashes }, deadline_us);
        self.track_touched();
    }

    /// When to give up, on the monotonic clock.
    pub(crate) fn deadline_us(&self, block: &Block) -> Option<u64> {
        let wait_us = |at_ms: u64| at_ms.saturating_sub(self.now.unix_ms).saturating_mul(1000);
        block.deadline_ms.map(|at_ms| self.now.monotonic_us.saturating_add(wait_us(at_ms)))
    }

    /// Runs the waiters of the keys that changed, until a round changes nothing.
    pub(crate) fn fire_waiters(&mut self) {
        let mut touched = Vec::new();
        let mut deferred = self.waiters.take_deferred();
        loop {
            touched.clear();
            let all = self.store.take_touched(&mut touched);
            if touched.is_empty() && !all && deferred.is_empty() {
                break;
            }
            // Together: one that was deferred may be younger than one whose key only now changed.
            let mut ids = self.waiters.touched(&touched, all);
            ids.append(&mut deferred);
            ids.into_iter().for_each(|id| self.fire(id));
        }
        self.track_touched();
    }

    fn fire(&mut self, id: u64) {
        if self.log_is_full() {
            self.put_off.note();
            return self.waiters.defer(id);
        }
        let Some(waiter) = self.waiters.get(id) else { return };
        let Who::Request { request, target } = &waiter.who else { return self.claim(id) };
        let (target, database, request) = (*target, waiter.database, request.clone());
        let protocol = match target {
            Target::Local(connection) => self.connections.get_mut(connection).map(|c| c.session.protocol()),
            Target::Remote(_, protocol) => Some(protocol),
        };
        let Some(protocol) = protocol else { return };
        if !self.has_keys_of(&request) {
            return self.waiters.defer(id);
        }
        match self.waiter_awaits_values(&request, database) {
            Ok(false) => {}
            Ok(true) => return self.waiters.defer(id),
            Err(words) => {
                self.waiters.remove(id);
                return self.answer(target, |reply| reply.error("IOERR", &words));
            }
        }
        let mut reply = EncodedReply::default();
        self.begin_long_request(request.spec, request.arguments(), database);
        let changes = self.store.changes_from_here();
        let begun = self.start_timing(request.spec);
        let outcome = self.run_into(commands::resume, &request, database, May::BLOCK, reply.encoder(protocol));
        if outcome == Outcome::Done {
            self.stop_timing(begun, Some(target), request.spec, request.arguments());
            self.waiters.remove(id);
            let until = if self.tracks { self.commitment(changes) } else { None };
            self.deliver(target, reply, until);
        }
    }

    /// A waiter's time is over. If a group that its answer needs is lent, it has until that is back.
    pub(crate) fn time_out(&mut self, waiter: Waiter) {
        let Who::Request { request, target } = &waiter.who else {
            unreachable!("a wide wait's deadline is its home's")
        };
        if !self.has_keys_of(request) {
            return self.waiters.insert(waiter, Some(self.now.monotonic_us + LENT_RETRY_US));
        }
        let (target, protocol) = (*target, self.protocol_of(*target));
        let mut bytes = Vec::new();
        let changes = self.store.changes_from_here();
        self.write_timeout(request, waiter.database, protocol, &mut bytes);
        let until = if self.tracks { self.commitment(changes) } else { None };
        self.deliver(target, bytes.into(), until);
    }

    /// Writes what a request answers whose time is over.
    pub(crate) fn write_timeout(
        &mut self,
        request: &OwnedRequest,
        database: Database,
        protocol: Protocol,
        out: &mut Vec<u8>,
    ) {
        let time_out = |spec, arguments: Arguments<'_>, unit: &mut Unit<'_>| {
            commands::timed_out(spec, arguments, unit);
            Outcome::Done
        };
        self.run_into(time_out, request, database, May::NOTHING, Reply::new(out, protocol));
    }
}
