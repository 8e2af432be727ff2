//! Commands about the node: what the shard does for them beyond their words.

use base::{ConnectionId, LogOrdinal, Slot};
use wire::registry::CommandSpec;
use wire::{Arguments, Reply};

use crate::access::AclOrder;
use crate::connection::Stall;
use crate::gather::{Answer, Purpose, Question};
use crate::hop::Control;
use crate::member::Membership;
use crate::node::{ConfigChange, CoreFacts, NodeFacts, NodeOutcome, NodePlan, execute, plan};
use crate::owned_request::OwnedRequest;
use crate::route::{GroupMasks, add_group};
use crate::shard::{Durability, Shard};
use crate::unit::UnitWork;
use crate::waiters::Target;

/// Somebody waits until what was changed so far survives a power cut.
pub(crate) struct DurableAsk {
    until: LogOrdinal,
    gather: u64,
    /// The asking core; `None` is this one.
    from: Option<base::CoreId>,
    answer: Answer,
}

impl Shard {
    pub(crate) fn run_node(&mut self, index: u32, spec: &'static CommandSpec, arguments: Arguments<'_>) {
        let door = self.door(index);
        match plan(spec, door) {
            NodePlan::Keys(_) if spec.is_write() && self.awaits_hand_over_whole(index, spec, arguments) => {}
            NodePlan::Keys(_) => self.start_keyspace(index, spec, arguments),
            NodePlan::Gather => {
                let purpose = Purpose::Node(OwnedRequest::new(spec, arguments));
                self.start_gather(index, &Question::Facts, purpose);
            }
            NodePlan::Here => {
                let cores = [self.facts()];
                let mut bytes = Vec::new();
                let Some(connection) = self.connections.at(index) else { return };
                let id = connection.id;
                let begun = self.start_timing(spec);
                let outcome = self.execute_node(spec, arguments, id, &cores, &mut bytes);
                self.raw_reply(index, &bytes);
                self.on_node_outcome(index, spec, arguments, outcome);
                self.stop_timing(begun, Some(Target::Local(id)), spec, arguments);
            }
        }
    }

    fn raw_reply(&mut self, index: u32, bytes: &[u8]) {
        let Some(connection) = self.connections.at(index) else { return };
        connection.output.reply(connection.session.protocol()).relay(bytes);
    }

    /// Executes a node command from facts, its reply going to `out`.
    pub(crate) fn execute_node(
        &mut self,
        spec: &'static CommandSpec,
        arguments: Arguments<'_>,
        id: ConnectionId,
        cores: &[CoreFacts],
        out: &mut Vec<u8>,
    ) -> NodeOutcome {
        let process = || self.node.process();
        let links = self.membership.as_deref().map(Membership::link_facts).unwrap_or_default();
        let cluster = self.membership.as_deref().map(|membership| membership.facts(self.now, &links));
        let Some(connection) = self.connections.get_mut(id) else { return NodeOutcome::Done };
        let facts = NodeFacts {
            now: self.now,
            door: connection.session.door(),
            core: self.core,
            local: connection.session.local(),
            port_shift: connection.session.port_shift(),
            identity: &self.node.identity,
            process: &process,
            config: &self.node.config,
            users: &self.node.users,
            user: connection.session.user(),
            table: &self.table,
            cluster,
            cores,
        };
        execute(spec, arguments, &facts, &mut Reply::new(out, connection.session.protocol()))
    }

    /// What a node command leaves to do; inside EXEC only what needs nobody else.
    pub(crate) fn on_node_outcome(
        &mut self,
        index: u32,
        spec: &'static CommandSpec,
        arguments: Arguments<'_>,
        outcome: NodeOutcome,
    ) {
        match outcome {
            NodeOutcome::Done => {}
            NodeOutcome::Shutdown => self.shut_down(),
            NodeOutcome::ConfigChanged(changes) => {
                let password = changes.iter().find_map(ConfigChange::password);
                self.tell_all(&Question::Configure(changes));
                if let Some(password) = password {
                    self.start_acl_order(index, AclOrder::DefaultPassword(password));
                }
            }
            NodeOutcome::Acl(request) => self.start_acl(index, request),
            NodeOutcome::ResetStatistics => self.tell_all(&Question::ResetCounters),
            NodeOutcome::WaitDurable { local, timeout_ms } => {
                self.start_durable_wait(index, spec, arguments, local, timeout_ms);
            }
            NodeOutcome::Timing(request) => self.start_timing_request(index, request),
            NodeOutcome::Order(order) => self.start_order(index, order),
            NodeOutcome::WaitCopies(asked) => self.start_copy_wait(index, spec, arguments, asked),
            NodeOutcome::Backup(request) => self.start_backup(index, (spec, arguments), request),
            NodeOutcome::CountKeysInSlot(slot) | NodeOutcome::KeysInSlot { slot, .. } => {
                self.start_on_slot(index, spec, arguments, slot);
            }
            NodeOutcome::MemoryUsage => {
                let reach = self.reach(index);
                if !self.refuse_place_beyond(index, spec, arguments, reach) {
                    self.start_on_slot(index, spec, arguments, placement::slot_of(&arguments[2]));
                }
            }
        }
    }

    /// Starts a command about a slot where its group is.
    fn start_on_slot(&mut self, index: u32, spec: &'static CommandSpec, arguments: Arguments<'_>, slot: Slot) {
        let owner = self.table.owner(slot);
        if self.is_split_member() && owner != self.core {
            return self.forward(index, owner, spec, arguments);
        }
        let mut masks = GroupMasks::new();
        add_group(&mut masks, &self.table, slot);
        self.start_unit(index, masks, UnitWork::Keyspace(OwnedRequest::new(spec, arguments)));
    }

    fn shut_down(&mut self) {
        self.stopping = true;
        for (core, batch) in self.outbox.iter_mut().enumerate() {
            if core != usize::from(self.core.0) {
                batch.controls.push(Control::Shutdown);
            }
        }
    }

    /// Tells every core something that needs no answer.
    pub(crate) fn tell_all(&mut self, question: &Question) {
        let number = self.gathers.open_without_asker(self.outbox.len());
        self.ask_all(number, question);
    }

    fn start_durable_wait(
        &mut self,
        index: u32,
        spec: &'static CommandSpec,
        arguments: Arguments<'_>,
        local: bool,
        timeout_ms: Option<u64>,
    ) {
        let Some(connection) = self.connections.at(index) else { return };
        if connection.output.gaps() > 0 {
            return self.stall_and_repeat(index, spec, arguments, Stall::Gaps);
        }
        let deadline_us =
            timeout_ms.map(|timeout_ms| self.now.monotonic_us.saturating_add(timeout_ms.saturating_mul(1000)));
        self.start_gather_until(index, &Question::Durable, Purpose::Durable { wanted: local }, deadline_us);
    }

    /// A core was asked to say when everything it has changed so far is durable.
    pub(crate) fn on_durable_ask(&mut self, from: Option<base::CoreId>, gather: u64) {
        self.answer_when_durable(from, gather, Answer::Count(1));
    }

    /// Answers once everything that was changed so far is durable.
    pub(crate) fn answer_when_durable(&mut self, from: Option<base::CoreId>, gather: u64, answer: Answer) {
        let until = self.last_change_ordinal();
        let ask = DurableAsk { until, gather, from, answer };
        match self.has_log_failed() {
            true => self.refuse_durable_ask(ask),
            false => self.durable_asks.push(ask),
        }
    }

    /// It never will be.
    pub(crate) fn refuse_durable_ask(&mut self, ask: DurableAsk) {
        let answer = self.not_durable(&ask.answer);
        self.give_answer(ask.from, ask.gather, answer);
    }

    /// Whether somebody waits for a sync, so that it should not wait for its interval. Who waited for one that has just ended is
    /// answered later in this tick, and needs no other.
    pub(crate) fn wants_sync(&self) -> bool {
        let durable = self.log.as_ref().map_or(LogOrdinal(u64::MAX), |log| log.durable());
        let asks = self.durable_asks.iter().any(|ask| ask.until > durable);
        self.durability != Durability::Memory && (asks || self.copy_waits.want_sync(durable))
    }

    /// Answers those whose changes are durable by now.
    pub(crate) fn release_durable_waiters(&mut self) {
        let durable = self.log.as_ref().map_or(LogOrdinal(u64::MAX), |log| log.durable());
        let (done, waiting): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.durable_asks).into_iter().partition(|ask| ask.until <= durable);
        self.durable_asks = waiting;
        for ask in done {
            self.give_answer(ask.from, ask.gather, ask.answer);
        }
    }
}
