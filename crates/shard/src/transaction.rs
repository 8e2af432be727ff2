//! The work of a unit: one command over several cores, EXEC, WATCH, or a command over the whole keyspace.

#[cfg(test)]
mod tests;

use base::{ConnectionId, CoreId, Door};
use commands::{May, Outcome};
use session::{Buffers, ConnectionContext, ConnectionOutcome, EncodedReply, QueuedCommand, Transaction, WatchedKey};
use storage::SlotGroup;
use wire::error::{self, ErrorReply};
use wire::registry::{CommandSpec, Family, key_positions};
use wire::{Arguments, ErrorCode, Protocol, Reply};

use crate::exec::Exec;
use crate::foreign::Reach;
use crate::keyspace::Shown;
use crate::memory::taken_by_owned;
use crate::node::{NodeOutcome, NodePlan, plan};
use crate::owned_request::{LongValue, OwnedRequest};
use crate::route::{GroupMasks, add_group, all_groups};
use crate::run::place_of;
use crate::shard::Shard;
use crate::unit::UnitWork;
use crate::waiters::Target;

impl Shard {
    pub(crate) fn start_watch(&mut self, index: u32, spec: &'static CommandSpec, arguments: Arguments<'_>) {
        let mut masks = GroupMasks::new();
        self.add_keys(spec, arguments, &mut masks);
        self.start_unit(index, masks, UnitWork::Watch(OwnedRequest::new(spec, arguments)));
    }

    pub(crate) fn start_exec(&mut self, index: u32, transaction: Box<Transaction>) {
        let mut masks = GroupMasks::new();
        for watched in transaction.watched() {
            add_group(&mut masks, &self.table, watched.slot);
        }
        let door = self.door(index);
        for command in transaction.commands() {
            match command.spec.family {
                Family::Data => self.add_keys(command.spec, command.arguments, &mut masks),
                Family::Node if needs_keyspace(command.spec) => masks = self.whole_keyspace(door),
                Family::Node | Family::Connection => {}
            }
        }
        masks.sort_unstable_by_key(|(core, _)| *core);
        for command in transaction.commands() {
            match needs_keyspace(command.spec) && command.spec.is_write() {
                true => self.note_written_everywhere(index),
                false => self.note_written(index, command.spec, command.arguments, None),
            }
        }
        let exec = Exec::new(transaction);
        let is_alone = masks.iter().all(|(core, _)| *core == self.core);
        if is_alone && self.log.is_some() && !exec.long().is_empty() {
            return self.upload_for_exec(index, masks, exec);
        }
        self.start_unit(index, masks, UnitWork::Exec(Box::new(exec)));
    }

    /// All groups that a door shows: of every core that lends its own, or of this instance.
    pub(crate) fn whole_keyspace(&self, door: Door) -> GroupMasks {
        let mut masks = all_groups(&self.table);
        if door == Door::Cluster || self.is_split_member() {
            masks.retain(|(core, _)| *core == self.core);
        }
        masks
    }

    fn add_keys(&self, spec: &'static CommandSpec, arguments: Arguments<'_>, masks: &mut GroupMasks) {
        let mut positions = Vec::new();
        // A request that contradicts itself gets its own error and touches nothing.
        if key_positions(spec, arguments, &mut positions).is_err() {
            return;
        }
        for name in positions.iter().filter_map(|position| arguments.get(position.index)) {
            add_group(masks, &self.table, placement::slot_of(name));
        }
        masks.sort_unstable_by_key(|(core, _)| *core);
    }

    /// Runs a unit's work; all its groups, those of `masks`, are here. The reply; `None` when the connection is
    /// gone or waits.
    pub(crate) fn run_work(
        &mut self,
        id: ConnectionId,
        work: &UnitWork,
        masks: &[(CoreId, u64)],
    ) -> Option<EncodedReply> {
        // What it needs is here, and stays.
        self.store.hold_values(true);
        let request = match work {
            UnitWork::Command(request) | UnitWork::Keyspace(request) => Some(request),
            UnitWork::Serve { .. } | UnitWork::Watch(_) | UnitWork::Exec(_) => None,
        };
        let begun = request.and_then(|request| self.start_timing(request.spec));
        let reply = self.run_held_work(id, work, masks);
        if let Some(request) = request.filter(|_| reply.is_some()) {
            self.stop_timing(begun, Some(Target::Local(id)), request.spec, request.arguments());
        }
        self.store.hold_values(false);
        reply
    }

    fn run_held_work(&mut self, id: ConnectionId, work: &UnitWork, masks: &[(CoreId, u64)]) -> Option<EncodedReply> {
        let mut reply = EncodedReply::default();
        let connection = self.connections.get_mut(id)?;
        let (protocol, database) = (connection.session.protocol(), connection.session.database());
        match work {
            UnitWork::Command(request) => {
                let taken = [(request.spec, taken_by_owned(request))];
                if let Some(text) = self.write_refusal().filter(|_| request.spec.is_write()) {
                    reply.encoder(protocol).error("MISCONF", &text);
                } else if self.unit_lacks_memory(&taken, (self.has_own(masks), self.unit_crowds(work))) {
                    self.out_of_memory(self.unit_crowds(work)).write(&mut reply.encoder(protocol));
                } else if let Outcome::Block(block) =
                    self.execute_into(request, database, protocol, May::BLOCK, &mut reply)
                {
                    return self.begin_wide_wait(id, request, block, masks);
                }
            }
            UnitWork::Serve { wait, name } => return self.serve_wide_wait(*wait, name),
            UnitWork::Watch(request) => self.watch(id, request, &mut reply.bytes),
            UnitWork::Exec(exec) => {
                let taken = exec.taken();
                let writes = taken.iter().any(|(spec, _)| spec.is_write());
                if let Some(text) = self.write_refusal().filter(|_| writes) {
                    error::exec_refused(&mut reply.encoder(protocol), "MISCONF", &text);
                } else if self.unit_lacks_memory(&taken, (self.has_own(masks), self.unit_crowds(work))) {
                    let ErrorReply { code, text } = self.out_of_memory(self.unit_crowds(work));
                    error::exec_refused(&mut reply.encoder(protocol), code, text);
                } else {
                    self.exec(id, exec, protocol, &mut reply);
                }
            }
            UnitWork::Keyspace(request) => {
                let shown = Shown { protocol, database, door: self.door(id.index) };
                self.run_keyspace(shown, request.spec, request.arguments(), &mut reply.bytes);
            }
        }
        Some(reply)
    }

    /// Whether a unit over these groups changes the own ones; none are named where all are at home.
    fn has_own(&self, masks: &[(CoreId, u64)]) -> bool {
        masks.is_empty() || masks.iter().any(|(core, _)| *core == self.core)
    }

    fn watch(&mut self, id: ConnectionId, request: &OwnedRequest, bytes: &mut Vec<u8>) {
        let now_ms = self.now.unix_ms;
        let Some(connection) = self.connections.get_mut(id) else { return };
        let database = connection.session.database();
        for name in request.arguments().from(1).iter() {
            let slot = placement::slot_of(name);
            let key = self.store.key(name, database, slot);
            let version = self.store.version(&key, now_ms);
            let removal_count = self.store.group(slot.group()).map_or(0, SlotGroup::removal_count);
            let Some(connection) = self.connections.get_mut(id) else { return };
            let key = name.to_vec();
            connection.session.watch(WatchedKey { key, database, slot, version, removal_count });
        }
        let Some(connection) = self.connections.get_mut(id) else { return };
        Reply::new(bytes, connection.session.protocol()).ok();
    }

    fn exec(&mut self, id: ConnectionId, exec: &Exec, protocol: Protocol, out: &mut EncodedReply) {
        let transaction = exec.transaction();
        if transaction.watched().iter().any(|watched| self.has_changed(watched)) {
            return out.encoder(protocol).null_array();
        }
        let door = self.door(id.index);
        let is_write = || transaction.commands().any(|command| command.spec.is_write());
        let keeps_to_one_slot = door == Door::Cluster || (self.writes_one_slot() && is_write());
        if keeps_to_one_slot && has_several_slots(transaction) {
            return error::CROSS_SLOT.write(&mut out.encoder(protocol));
        }
        let foreign = |command: QueuedCommand<'_>| self.foreign(command.spec, command.arguments, None, Reach::Core);
        if let Some(foreign) = transaction.commands().find_map(foreign) {
            let Some(connection) = self.connections.get_mut(id) else { return };
            return foreign.write(&mut out.encoder(protocol), place_of(&connection.session));
        }
        out.encoder(protocol).array(transaction.len());
        self.keep_if_answered(id, 0, out);
        for (command, long) in exec.commands() {
            let start = out.bytes.len();
            let begun = self.start_timing(command.spec);
            self.exec_one(id, transaction, (command, long), out);
            self.stop_timing(begun, Some(Target::Local(id)), command.spec, command.arguments);
            if let Some(code) = ErrorCode::of(&out.bytes[start..]) {
                self.statistics.count_error(code);
                self.note_failure(command.spec.id, code);
            }
            self.keep_if_answered(id, start, out);
        }
    }

    /// Drops the reply that begins at `start` while CLIENT REPLY is off, in EXEC as behind it: as in Redis the array then has
    /// fewer elements than it says, or elements and no head.
    fn keep_if_answered(&mut self, id: ConnectionId, start: usize, out: &mut EncodedReply) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        match connection.session.is_answered() {
            true => connection.output.set_muted(false),
            // The store has what it let go of in this unit until a later tick: no value goes with the reply.
            false => out.truncate(start),
        }
    }

    fn exec_one(
        &mut self,
        id: ConnectionId,
        transaction: &Transaction,
        (QueuedCommand { spec, arguments }, long): (QueuedCommand<'_>, &[LongValue]),
        out: &mut EncodedReply,
    ) {
        self.note_command(spec.id);
        if self.denies_queued(id, spec, arguments, &mut out.bytes) {
            return;
        }
        let Some(connection) = self.connections.get_mut(id) else { return };
        let (protocol, database) = (connection.session.protocol(), connection.session.database());
        let several_databases = connection.session.door() == base::Door::Standalone;
        match spec.family {
            Family::Data => {
                let mut unit = commands::Unit {
                    random: self.rng.next_u64(),
                    store: &mut self.store,
                    reply: out.encoder(protocol),
                    now_ms: self.now.unix_ms,
                    database,
                    several_databases,
                    first_key: None,
                    may: May::NOTHING,
                    long: &LongValue::as_arguments(long),
                    refused: &[],
                };
                commands::execute(spec, arguments, &mut unit);
            }
            Family::Connection => {
                let buffers = Buffers { running: Some(transaction), ..Buffers::default() };
                let context = ConnectionContext { now: self.now, users: &self.node.users, buffers };
                let mut reply = out.encoder(protocol);
                let start = reply.len();
                let outcome = connection.session.execute(spec, arguments, &context, &mut reply);
                if reply.len() == start && !matches!(outcome, ConnectionOutcome::Done) {
                    return reply
                        .error("ERR", &format!("'{}' over all cores is not possible inside MULTI", spec.full_name));
                }
                match outcome {
                    ConnectionOutcome::AuthFailed(failure) => self.note_auth_failure(id, failure),
                    outcome => self.start_gather_for(id.index, outcome),
                }
            }
            Family::Node if needs_keyspace(spec) => {
                let shown = Shown { protocol, database, door: connection.session.door() };
                self.run_keyspace(shown, spec, arguments, &mut out.bytes);
            }
            Family::Node => {
                let cores = [self.facts()];
                let start = out.bytes.len();
                let outcome = self.execute_node(spec, arguments, id, &cores, &mut out.bytes);
                if let NodeOutcome::WaitCopies(asked) = outcome {
                    return self.write_copies(id, asked, &mut out.encoder(protocol));
                }
                if outcome != NodeOutcome::Done && out.bytes.len() == start {
                    let text = format!("'{}' is not possible inside MULTI", spec.full_name);
                    return out.encoder(protocol).error("ERR", &text);
                }
                // What is answered at once needs nobody's answer either.
                self.on_node_outcome(id.index, spec, arguments, outcome);
            }
        }
    }

    /// Whether a watched key is not what it was. An absent key that may have come and gone counts as changed.
    fn has_changed(&mut self, watched: &WatchedKey) -> bool {
        let key = self.store.key(&watched.key, watched.database, watched.slot);
        let version = self.store.version(&key, self.now.unix_ms);
        let group = self.store.group(watched.slot.group());
        version != watched.version
            || (version == base::Version::ABSENT
                && group.is_none_or(|group| group.may_have_removed(&key, watched.removal_count)))
    }
}

/// Whether the keys of the queued commands are in more than one slot.
pub(crate) fn has_several_slots(transaction: &Transaction) -> bool {
    let mut positions = Vec::new();
    let mut first = None;
    transaction.commands().any(|command| {
        positions.clear();
        if command.spec.family != Family::Data
            || key_positions(command.spec, command.arguments, &mut positions).is_err()
        {
            return false;
        }
        let mut names = positions.iter().filter_map(|position| command.arguments.get(position.index));
        names.any(|name| {
            let slot = placement::slot_of(name);
            *first.get_or_insert(slot) != slot
        })
    })
}

/// Whether a node command reads or changes the whole keyspace.
pub(crate) fn needs_keyspace(spec: &CommandSpec) -> bool {
    matches!(plan(spec, Door::Standalone), NodePlan::Keys(_))
}
