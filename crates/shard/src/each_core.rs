//! Commands over the keyspace of a node of a cluster, whose cores lend each other nothing: each does its part.
//!
//! ```text
//!  DBSIZE, KEYS, RANDOMKEY, FLUSH* ── Question::Keyspace ──► every core: its part, not while it hands slots over
//!    reply ◄───── all parts are here ◄───── Answer::Part ◄── once its promise holds
//!  SCAN ── hop ──► the core that has the cursor's group
//! ```
//!
//! The parts are not of one moment, like those of the nodes of a cluster.

use std::collections::VecDeque;

use base::{ConnectionId, Database, Promise};
use wire::registry::{CommandId as Id, CommandSpec};
use wire::{Arguments, Reply};

use crate::access::Asker;
use crate::connection::Stall;
use crate::gather::{Answer, Purpose, Question};
use crate::keyspace::{FlushFlaw, scan_group};
use crate::log_failure::{LOST, NEVER};
use crate::owned_request::OwnedRequest;
use crate::shard::Shard;
use crate::waiters::Target;

/// A command of which a core is to do its part.
#[derive(Clone, Debug)]
pub struct PartAsk {
    request: OwnedRequest,
    database: Database,
}

/// A core's part.
#[derive(Clone, Debug)]
pub enum Part {
    /// So many keys.
    Count(u64),
    /// Keys: those that fit, or any one.
    Names(Vec<Vec<u8>>),
    /// Its keys are removed, or not.
    Flushed(Result<(), FlushFlaw>),
    /// What became of it nobody will know.
    Lost,
}

/// The parts that are under way on a core.
#[derive(Default)]
pub(crate) struct Parts {
    /// They wait until slots have been handed over.
    waiting: VecDeque<(Asker, PartAsk)>,
    /// They wait for their promise.
    held: VecDeque<(Promise, Asker, Part)>,
}

impl Parts {
    pub(crate) fn are_held(&self) -> bool {
        !self.held.is_empty()
    }
}

impl Shard {
    /// Writes the error of a command that needs every core's part and is to be one of a transaction; true if there is one.
    pub(crate) fn refuse_keyspace_in_parts(&mut self, index: u32) -> bool {
        if !self.is_split_member() || self.door(index) == base::Door::Cluster {
            return false;
        }
        if let Some(connection) = self.connections.at(index) {
            let text = "commands over all keys are not possible inside MULTI on this port: every core of the node does its part";
            connection.output.reply(connection.session.protocol()).error("ERR", text);
        }
        true
    }

    /// Starts a command over the keyspace where no core lends its part.
    pub(crate) fn start_keyspace_in_parts(&mut self, index: u32, spec: &'static CommandSpec, arguments: Arguments<'_>) {
        if spec.id == Id::Scan {
            let group = scan_group(arguments).and_then(base::SlotGroupId::new);
            let owner = group.map_or(self.core, |group| self.table.group_owner(group));
            return match owner == self.core {
                true => self.start_own_keyspace(index, spec, arguments),
                false => self.forward(index, owner, spec, arguments),
            };
        }
        let Some(connection) = self.connections.at(index) else { return };
        if connection.output.gaps() > 0 {
            // A question overtakes requests that hop.
            return self.stall_and_repeat(index, spec, arguments, Stall::Gaps);
        }
        let database = connection.session.database();
        let ask = PartAsk { request: OwnedRequest::new(spec, arguments), database };
        if spec.is_write() {
            self.note_written_elsewhere(index);
        }
        self.start_gather(index, &Question::Keyspace(Box::new(ask)), Purpose::Keyspace(spec.id));
    }

    /// A core, or this one, asks for this core's part.
    pub(crate) fn on_part_ask(&mut self, asker: Asker, ask: PartAsk) {
        let hands_over = self.membership.as_deref().is_some_and(|membership| membership.seal.is_some());
        match hands_over && ask.request.spec.is_write() {
            true => self.parts.waiting.push_back((asker, ask)),
            false => self.run_part(asker, &ask),
        }
    }

    /// Slots have been handed over, or stay.
    pub(crate) fn run_waiting_parts(&mut self) {
        for (asker, ask) in std::mem::take(&mut self.parts.waiting) {
            self.run_part(asker, &ask);
        }
    }

    fn run_part(&mut self, asker: Asker, PartAsk { request, database }: &PartAsk) {
        let changes = self.store.changes_from_here();
        let (arguments, id) = (request.arguments(), request.spec.id);
        let begun = self.start_timing(request.spec);
        let part = match id {
            Id::Dbsize => Part::Count(self.shown_count(*database)),
            Id::Keys => Part::Names(self.keys(*database, &arguments[1])),
            Id::Randomkey => Part::Names(self.shown_random_key(*database).into_iter().collect()),
            _ => Part::Flushed(self.flush(id, *database, arguments)),
        };
        // Its client is another core's; every part has an entry of its own.
        self.stop_timing(begun, None, request.spec, arguments);
        let until = if self.tracks { self.commitment(changes) } else { None };
        match until {
            Some(LOST | NEVER) => self.give_part(asker, Part::Lost),
            Some(until) => self.parts.held.push_back((until, asker, part)),
            None => self.give_part(asker, part),
        }
        if !self.waiters.is_empty() {
            self.fire_waiters();
        }
    }

    fn give_part(&mut self, (from, gather): Asker, part: Part) {
        self.give_answer(from, gather, Answer::Part(part));
    }

    /// Parts whose promise holds are told.
    pub(crate) fn release_parts(&mut self) {
        for (until, asker, part) in std::mem::take(&mut self.parts.held) {
            match self.horizon.keeps(until) {
                true => self.give_part(asker, part),
                false => self.parts.held.push_back((until, asker, part)),
            }
        }
    }

    /// Promises that will not be kept.
    pub(crate) fn end_held_parts(&mut self) {
        let (kept, lost): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut self.parts.held).into_iter().partition(|(until, ..)| self.horizon.keeps(*until));
        self.parts.held = kept;
        lost.into_iter().for_each(|(_, asker, _)| self.give_part(asker, Part::Lost));
    }

    /// All parts are here.
    pub(crate) fn finish_keyspace_in_parts(&mut self, connection: ConnectionId, id: Id, parts: Vec<Part>) {
        if parts.iter().any(|part| matches!(part, Part::Lost)) {
            return self.abandon(connection);
        }
        let random = self.rng.next_u64();
        self.answer(Target::Local(connection), |reply| write_parts(id, parts, random, reply));
    }
}

fn write_parts(id: Id, parts: Vec<Part>, random: u64, reply: &mut Reply<'_>) {
    let (mut count, mut names, mut flaw) = (0, Vec::new(), None);
    for part in parts {
        match part {
            Part::Count(keys) => count += keys,
            Part::Names(more) => names.extend(more),
            Part::Flushed(result) => flaw = flaw.or(result.err()),
            Part::Lost => {}
        }
    }
    match (id, flaw) {
        (_, Some(flaw)) => flaw.write(reply),
        (Id::Dbsize, None) => reply.integer(count as i64),
        (Id::Keys, None) => {
            reply.array(names.len());
            names.iter().for_each(|name| reply.bulk(name));
        }
        (Id::Randomkey, None) if names.is_empty() => reply.null(),
        (Id::Randomkey, None) => reply.bulk(&names[(random % names.len() as u64) as usize]),
        (_, None) => reply.ok(),
    }
}

#[cfg(test)]
mod tests;
