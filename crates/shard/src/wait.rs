//! Blocked requests: they wait here until one of their keys changes.

use base::Database;
use commands::{Block, Outcome};
use wire::Reply;

use crate::connection::Stall;
use crate::owned_request::OwnedRequest;
use crate::shard::Shard;
use crate::waiters::{Target, Waiter};

/// How soon an overdue waiter looks again for a lent group, microseconds; a loan takes about a round trip.
const LENT_RETRY_US: u64 = 200;

impl Shard {
    /// A blocking command waits for its keys.
    pub(crate) fn wait(&mut self, target: Target, database: Database, request: OwnedRequest, block: Block) {
        let hashes =
            block.keys.iter().map(|name| self.store.key(name, database, placement::slot_of(name)).hash).collect();
        let deadline_us = block.deadline_ms.map(|at_ms| {
            self.now.monotonic_us.saturating_add(at_ms.saturating_sub(self.now.unix_ms).saturating_mul(1000))
        });
        if self.waiters.len() >= base::limits::WAITERS_MAX {
            return self.answer(target, |reply| reply.error("BUSY", "too many blocked clients on this core"));
        }
        if let Target::Local(id) = target
            && let Some(connection) = self.connections.get_mut(id)
        {
            connection.stall = Stall::Waiter;
        }
        self.waiters.insert(Waiter { request, target, database, hashes }, deadline_us);
        self.track_touched();
    }

    /// Runs the waiters of the keys that changed, until a round changes nothing.
    pub(crate) fn fire_waiters(&mut self) {
        let mut touched = Vec::new();
        for id in self.waiters.take_deferred() {
            self.fire(id);
        }
        loop {
            touched.clear();
            let all = self.store.take_touched(&mut touched);
            if touched.is_empty() && !all {
                break;
            }
            for id in self.waiters.touched(&touched, all) {
                self.fire(id);
            }
        }
        self.track_touched();
    }

    fn fire(&mut self, id: u64) {
        let Some(waiter) = self.waiters.get(id) else { return };
        let (target, database, request) = (waiter.target, waiter.database, waiter.request.clone());
        let protocol = match target {
            Target::Local(connection) => self.connections.get_mut(connection).map(|c| c.session.protocol()),
            Target::Remote(_, protocol) => Some(protocol),
        };
        let Some(protocol) = protocol else { return };
        if self.log_is_full() {
            self.put_off.note();
            return self.waiters.defer(id);
        }
        if !self.has_keys_of(&request) {
            return self.waiters.defer(id);
        }
        let mut bytes = Vec::new();
        let changes = self.store.changes();
        let outcome = self.run_into(commands::resume, &request, database, (protocol, true), &mut bytes);
        if outcome == Outcome::Done {
            self.waiters.remove(id);
            let until = if self.tracks { self.commitment(changes) } else { None };
            self.deliver(target, &bytes, until);
        }
    }

    /// A waiter's time is over. If a group that its answer needs is lent, it has until that is back.
    pub(crate) fn time_out(&mut self, waiter: Waiter) {
        if !self.has_keys_of(&waiter.request) {
            return self.waiters.insert(waiter, Some(self.now.monotonic_us + LENT_RETRY_US));
        }
        let random = self.rng.next_u64();
        let protocol = self.protocol_of(waiter.target);
        let mut bytes = Vec::new();
        let changes = self.store.changes();
        let mut unit = commands::Unit {
            store: &mut self.store,
            reply: Reply::new(&mut bytes, protocol),
            now_ms: self.now.unix_ms,
            database: waiter.database,
            several_databases: true,
            first_key: None,
            random,
            may_block: false,
        };
        commands::timed_out(waiter.request.spec, waiter.request.arguments(), &mut unit);
        let until = if self.tracks { self.commitment(changes) } else { None };
        self.deliver(waiter.target, &bytes, until);
    }
}
