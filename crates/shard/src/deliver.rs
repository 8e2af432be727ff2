//! Deliver: a reply that was made apart from its connection goes there, and waits for its promise on the way.

use base::{ConnectionId, Promise, Scope};
use session::{EncodedReply, Mark};
use wire::{Protocol, Reply};

use crate::connection::Stall;
use crate::log_failure::{LOST, NEVER};
use crate::run::place_of;
use crate::shard::Shard;
use crate::waiters::Target;

impl Shard {
    /// Holds the reply written since `mark` until what it reveals or promises is committed.
    pub(crate) fn hold_if_uncommitted(&mut self, index: u32, mark: Mark, changes_before: u64) {
        let Some(until) = self.commitment(changes_before) else { return };
        let Some(connection) = self.connections.at(index) else { return };
        match until {
            LOST => return self.abandon_at(index),
            NEVER => {
                let protocol = connection.session.protocol();
                let spent = connection.output.rewind(mark);
                self.store.let_go(spent.into_iter());
                let error = self.unpromised(protocol);
                let Some(connection) = self.connections.at(index) else { return };
                return connection.output.reply(protocol).relay(&error);
            }
            _ => connection.output.hold(mark, until),
        }
        self.list_held(index);
    }

    fn abandon_at(&mut self, index: u32) {
        if let Some(id) = self.connections.at(index).map(|connection| connection.id) {
            self.abandon(id);
        }
    }

    /// What has to hold before a reply may leave; `None` when it depends on nothing.
    pub(crate) fn commitment(&mut self, changes_before: u64) -> Option<Promise> {
        let saw = self.store.take_saw_uncommitted();
        let wrote = self.store.changes() != changes_before;
        if base::planted::is_planted(base::planted::Bug::M1AckBeforeFsync) {
            return None;
        }
        if self.log.is_none() || !(wrote || saw) {
            return None;
        }
        if self.has_log_failed() {
            return Some(if wrote { LOST } else { NEVER });
        }
        // A core on its own has one lane: with one scope, what many requests wait for is one hold.
        let scope = self.membership.as_ref().and_then(|_| self.store.uncommitted_scope()).unwrap_or(Scope::Several);
        let promise = Promise { until: self.last_change_ordinal(), scope };
        (!self.horizon.keeps(promise)).then_some(promise)
    }

    /// Answers a waiter with a reply that depends on no change.
    pub(crate) fn answer(&mut self, target: Target, write: impl FnOnce(&mut Reply<'_>)) {
        let protocol = self.protocol_of(target);
        let mut bytes = Vec::new();
        write(&mut Reply::new(&mut bytes, protocol));
        self.deliver(target, bytes.into(), None);
    }

    /// [`place_of`] a waiter's client; no host of another core's, because in a cluster every node announces one.
    pub(crate) fn place_of_target(&mut self, target: Target) -> (String, i32) {
        let id = match target {
            Target::Local(id) => id,
            Target::Remote(origin, _) => return (String::new(), origin.port_shift),
        };
        let Some(connection) = self.connections.get_mut(id) else { return Default::default() };
        let (host, port_shift) = place_of(&connection.session);
        (host.to_owned(), port_shift)
    }

    /// How to encode a reply for a waiter.
    pub(crate) fn protocol_of(&mut self, target: Target) -> Protocol {
        match target {
            Target::Local(id) => self.connections.get_mut(id).map_or(Protocol::Resp2, |c| c.session.protocol()),
            Target::Remote(_, protocol) => protocol,
        }
    }

    /// Gives a waiter its reply; a local connection goes on.
    pub(crate) fn deliver(&mut self, target: Target, reply: EncodedReply, until: Option<Promise>) {
        match target {
            Target::Remote(origin, _) => self.send_hop_reply(origin, &reply.bytes, reply.long, until),
            Target::Local(id) => {
                self.write_reply(id, reply, until);
                self.unstall(id);
            }
        }
    }

    /// Gives a connection the reply of its unit. If the unit never stalled it, the next request of its window runs at
    /// once.
    pub(crate) fn deliver_unit(&mut self, id: ConnectionId, reply: EncodedReply, until: Option<Promise>) {
        let was_stalled = self.connections.get_mut(id).is_some_and(|connection| connection.stall == Stall::Unit);
        self.write_reply(id, reply, until);
        if was_stalled {
            self.unstall(id);
        }
        self.list_for_flush(id.index);
    }

    /// Writes an encoded reply, held until its promise holds.
    fn write_reply(&mut self, id: ConnectionId, reply: EncodedReply, until: Option<Promise>) {
        self.write_reply_of(id, reply, until);
        self.note_late_reply(id.index);
    }

    fn write_reply_of(&mut self, id: ConnectionId, reply: EncodedReply, until: Option<Promise>) {
        let until = until.filter(|until| !self.horizon.keeps(*until));
        if until == Some(LOST) {
            self.store.let_go(reply.into_blocks());
            return self.abandon(id);
        }
        let Some(connection) = self.connections.get_mut(id) else {
            return self.store.let_go(reply.into_blocks());
        };
        let (mark, protocol) = (connection.output.mark(), connection.session.protocol());
        if until == Some(NEVER) {
            self.store.let_go(reply.into_blocks());
            let error = self.unpromised(protocol);
            let Some(connection) = self.connections.get_mut(id) else { return };
            return connection.output.reply(protocol).relay(&error);
        }
        connection.output.relay(protocol, reply);
        if let Some(until) = until {
            connection.output.hold(mark, until);
            self.list_held(id.index);
        }
    }

    /// The connection's output may wait for a promise: remember it for the commit.
    pub(crate) fn list_held(&mut self, index: u32) {
        let Some(connection) = self.connections.at(index) else { return };
        if !connection.held_listed && connection.output.is_held() {
            connection.held_listed = true;
            self.held.push(index);
        }
    }

    /// The connection goes on with the requests it kept.
    pub(crate) fn unstall(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.stall = Stall::None;
        self.resume.push(id);
        self.list_for_flush(id.index);
        self.note_written_late(id);
    }
}
