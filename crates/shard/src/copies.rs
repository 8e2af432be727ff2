//! WAIT and WAITAOF in a cluster: who waits until so many followers have what his connection wrote.
//!
//! ```text
//!  SET k ─► slot of k, log group ─┐ kept with the connection
//!  WAIT n ────────────────────────┴─► links: the least copies over these slots ─► n? reply · fewer: wait for news, or the time
//! ```

use base::{ConnectionId, LogOrdinal};
use placement::SlotSet;
use replica::Depth;
use wire::registry::CommandSpec;
use wire::{Arguments, Reply};

use crate::connection::Stall;
use crate::crowd::slots_of;
use crate::foreign::Foreign;
use crate::node::CopiesAsked;
use crate::route::Hint;
use crate::shard::Shard;
use crate::waiters::Target;

/// What a connection wrote.
#[derive(Default)]
pub struct Written {
    slots: SlotSet,
    /// Its changes are in this log group at the latest.
    until: LogOrdinal,
    /// It wrote on other cores as well, which know more of that.
    is_elsewhere: bool,
}

/// A connection that waits for copies.
struct CopyWait {
    connection: ConnectionId,
    asked: CopiesAsked,
    slots: Option<SlotSet>,
    until: LogOrdinal,
    is_elsewhere: bool,
    deadline_us: Option<u64>,
}

/// See the module. One per connection at most.
#[derive(Default)]
pub(crate) struct CopyWaits {
    all: Vec<CopyWait>,
    /// What was known when they were looked at last: news of the links, and how far the own log is synced.
    seen: (u64, LogOrdinal),
}

impl CopyWaits {
    /// When the next one gives up, microseconds.
    pub(crate) fn next_deadline_us(&self) -> Option<u64> {
        self.all.iter().filter_map(|wait| wait.deadline_us).min()
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether nobody waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether one of them waits for a sync of the own log, which is durable so far.
    pub(crate) fn want_sync(&self, durable: LogOrdinal) -> bool {
        self.all.iter().any(|wait| wait.asked.local == Some(true) && wait.until > durable)
    }

    /// A connection waits no longer; whether it did.
    pub(crate) fn forget(&mut self, connection: ConnectionId) -> bool {
        let before = self.all.len();
        self.all.retain(|wait| wait.connection != connection);
        self.all.len() < before
    }
}

impl Shard {
    /// Notes the slots that a request is about to write, in a cluster: WAIT asks for them.
    #[inline]
    pub(crate) fn note_written(
        &mut self,
        index: u32,
        spec: &'static CommandSpec,
        arguments: Arguments<'_>,
        hint: Option<Hint>,
    ) {
        if !spec.is_write() || self.membership.is_none() {
            return;
        }
        let until = self.log.as_ref().map_or(LogOrdinal(0), |log| log.next_ordinal());
        let Some(connection) = self.connections.at(index) else { return };
        let written = connection.written.get_or_insert_default();
        written.until = until;
        let mut note = |slot| match self.table.owner(slot) == self.core {
            true => written.slots.insert(slot),
            false => written.is_elsewhere = true,
        };
        match hint {
            Some(Hint { slot, .. }) => note(slot),
            None => slots_of(spec, arguments).for_each(note),
        }
    }

    /// As [`Shard::note_written`], of what writes to the whole keyspace.
    pub(crate) fn note_written_everywhere(&mut self, index: u32) {
        let Some(membership) = self.membership.as_deref() else { return };
        let until = self.log.as_ref().map_or(LogOrdinal(0), |log| log.next_ordinal());
        let served = membership.links.served();
        let Some(connection) = self.connections.at(index) else { return };
        let written = connection.written.get_or_insert_default();
        (written.until, written.slots) = (until, written.slots.union(served));
    }

    /// As [`Shard::note_written`], of what writes on every core of the node.
    pub(crate) fn note_written_elsewhere(&mut self, index: u32) {
        if let Some(connection) = self.connections.at(index) {
            connection.written.get_or_insert_default().is_elsewhere = true;
        }
    }

    /// A request that waited has run: what it wrote is in the present log group at the latest.
    pub(crate) fn note_written_late(&mut self, id: ConnectionId) {
        let until = self.last_change_ordinal();
        let connection = self.connections.get_mut(id);
        if let Some(written) = connection.and_then(|connection| connection.written.as_deref_mut()) {
            written.until = until;
        }
    }

    /// A connection asks for copies of what it wrote, and waits for them if need be.
    pub(crate) fn start_copy_wait(
        &mut self,
        index: u32,
        spec: &'static CommandSpec,
        arguments: Arguments<'_>,
        asked: CopiesAsked,
    ) {
        let waiting = self.waiters.len() + self.copy_waits.len();
        let Some(connection) = self.connections.at(index) else { return };
        if connection.output.gaps() > 0 {
            return self.stall_and_repeat(index, spec, arguments, Stall::Gaps);
        }
        let (id, protocol) = (connection.id, connection.session.protocol());
        let wait = self.copy_wait_of(id, asked);
        let mut bytes = Vec::new();
        if !self.answers_copies(&wait, false, &mut Reply::new(&mut bytes, protocol)) {
            if waiting < base::limits::WAITERS_MAX {
                if let Some(connection) = self.connections.at(index) {
                    connection.stall = Stall::Copies;
                }
                return self.copy_waits.all.push(wait);
            }
            Reply::new(&mut bytes, protocol).error("BUSY", "too many blocked clients on this core");
        }
        if let Some(connection) = self.connections.at(index) {
            connection.output.reply(protocol).relay(&bytes);
        }
    }

    /// Inside MULTI nobody waits: how things stand.
    pub(crate) fn write_copies(&mut self, id: ConnectionId, asked: CopiesAsked, reply: &mut Reply<'_>) {
        let wait = self.copy_wait_of(id, asked);
        self.answers_copies(&wait, true, reply);
    }

    fn copy_wait_of(&mut self, id: ConnectionId, asked: CopiesAsked) -> CopyWait {
        let newest = self.last_change_ordinal();
        let written = self.connections.get_mut(id).and_then(|connection| connection.written.as_deref());
        // A request that failed has no part in the group that it would have had one in.
        let until = written.map_or(LogOrdinal(0), |written| written.until.min(newest));
        let slots = written.map(|written| written.slots.clone());
        let is_elsewhere = written.is_some_and(|written| written.is_elsewhere);
        let deadline_us = asked.timeout_ms.map(|ms| self.now.monotonic_us.saturating_add(ms.saturating_mul(1000)));
        CopyWait { connection: id, asked, slots, until, is_elsewhere, deadline_us }
    }

    /// Writes the answer if there are enough copies, or `is_over`; whether it did.
    fn answers_copies(&self, wait: &CopyWait, is_over: bool, reply: &mut Reply<'_>) -> bool {
        let Some(membership) = self.membership.as_deref() else { unreachable!("only members of a cluster wait") };
        if !self.has_lease() {
            Foreign::Down.write(reply, ("", 0));
            return true;
        }
        if wait.is_elsewhere {
            reply.error(
                "ERR",
                "WAIT on this port does not know of the copies of what other cores of the node wrote: connect to the port of \
                 the key's instance, which CLUSTER SLOTS names",
            );
            return true;
        }
        if membership.links.served().is_empty() {
            reply.error("ERR", "WAIT cannot be used with replica instances: this one serves no slot");
            return true;
        }
        let depth = if wait.asked.local.is_some() { Depth::Synced } else { Depth::Promised };
        let copies = membership.links.copies(wait.slots.as_ref(), wait.until, depth);
        let is_durable = self.log.as_ref().is_some_and(|log| log.failure().is_none() && log.durable() >= wait.until);
        let is_enough = copies >= wait.asked.replicas && (is_durable || wait.asked.local != Some(true));
        if is_enough || is_over {
            if wait.asked.local.is_some() {
                reply.array(2);
                reply.integer(i64::from(is_durable));
            }
            reply.integer(copies as i64);
        }
        is_enough || is_over
    }

    /// The stage: those who have enough copies by now, and those whose time is over.
    pub(crate) fn release_copy_waits(&mut self) {
        if self.copy_waits.all.is_empty() || self.stopping {
            return;
        }
        let news = self.membership.as_deref().map_or(0, |membership| membership.links.news());
        let seen = (news, self.log.as_ref().map_or(LogOrdinal(0), |log| log.durable()));
        let has_news = std::mem::replace(&mut self.copy_waits.seen, seen) != seen;
        let now_us = self.now.monotonic_us;
        let mut waiting = Vec::new();
        for wait in std::mem::take(&mut self.copy_waits.all) {
            let is_over = wait.deadline_us.is_some_and(|deadline_us| deadline_us <= now_us);
            if !(is_over || has_news) || !self.end_copy_wait(&wait, is_over) {
                waiting.push(wait);
            }
        }
        self.copy_waits.all = waiting;
    }

    fn end_copy_wait(&mut self, wait: &CopyWait, is_over: bool) -> bool {
        let target = Target::Local(wait.connection);
        let (mut bytes, protocol) = (Vec::new(), self.protocol_of(target));
        let is_answered = self.answers_copies(wait, is_over, &mut Reply::new(&mut bytes, protocol));
        if is_answered {
            self.deliver(target, bytes.into(), None);
        }
        is_answered
    }

    /// The own log takes nothing any more: nobody waits for it.
    pub(crate) fn end_copy_waits(&mut self) {
        for wait in std::mem::take(&mut self.copy_waits.all) {
            self.end_copy_wait(&wait, true);
        }
    }

    /// CLIENT UNBLOCK of a connection that waits for copies.
    pub(crate) fn unblock_copy_wait(&mut self, id: ConnectionId, with_error: bool) -> u64 {
        let Some(at) = self.copy_waits.all.iter().position(|wait| wait.connection == id) else { return 0 };
        let wait = self.copy_waits.all.swap_remove(at);
        match with_error {
            true => self.answer(Target::Local(id), |reply| wire::error::UNBLOCKED.write(reply)),
            false => drop(self.end_copy_wait(&wait, true)),
        }
        1
    }
}
