//! Execute: one request, from the gate to its reply, or to where it has to go first.

use base::{Blocks, Door};
use session::{ConnectionContext, ConnectionOutcome, Gate, Pressure, Session, Transaction};
use storage::log::LogWriter;
use wire::registry::{CommandId, CommandSpec, Family, Resolved};
use wire::{Arguments, error};

use crate::access::buffers_of;
use crate::connection::Stall;
use crate::foreign::Reach;
use crate::memory::taken_by;
use crate::owned_request::OwnedRequest;
use crate::route::{Asking, Hint, Route, route};
use crate::shard::Shard;
use crate::transaction::{has_several_slots, needs_keyspace};
use crate::unit::UnitWork;
use crate::waiters::Target;
use crate::window::{Decoded, WindowRequest};

impl Shard {
    /// Runs one request of the window; true when its connection has to wait with what follows.
    #[inline]
    pub(crate) fn run_request(&mut self, request: &WindowRequest, arguments: Arguments<'_>) -> bool {
        let index = request.connection;
        let tick_is_full = self.tick_is_full();
        let Some(connection) = self.connections.at(index) else { return false };
        if connection.stall != Stall::None || connection.session.is_closing() {
            return false;
        }
        let resolved = match request.decoded {
            Decoded::Request(_) if tick_is_full => {
                self.put_off_request(index, arguments);
                return true;
            }
            Decoded::Request(Resolved::Command(spec)) if self.pace.holds(spec) => {
                self.hold_writer(index, arguments);
                return true;
            }
            Decoded::Request(resolved) => resolved,
            Decoded::Malformed(error) => {
                error.write(&mut connection.output.reply(connection.session.protocol()));
                connection.session.set_closing();
                self.list_for_flush(index);
                return false;
            }
        };
        let pending_bytes = connection.output.pending_bytes();
        let gate = connection.session.gate(resolved, arguments, &mut connection.output);
        self.list_for_flush(index);
        match gate {
            Gate::Run(spec) => self.run(index, spec, request.hint, arguments),
            Gate::Queue(spec) => self.queue(index, spec, arguments, Vec::new()),
            Gate::Refused => self.let_go_of_discarded(index),
            Gate::Denied(spec, denial, context) => {
                self.on_denied(index, spec, arguments, (denial, context));
                self.let_go_of_discarded(index);
            }
        }
        let Some(connection) = self.connections.at(index) else { return false };
        if let Some(code) = connection.output.take_last_error() {
            self.note_error(resolved, gate, code);
        }
        let Some(connection) = self.connections.at(index) else { return false };
        let reply_bytes = connection.output.pending_bytes().saturating_sub(pending_bytes);
        let looks_at_time = self.put_off.note_work((request.end - request.start) as usize, reply_bytes);
        if connection.stall == Stall::None && connection.output.pressure() != Pressure::Ok {
            // What is behind a long reply waits until that has left.
            connection.stall = Stall::Output;
        }
        let stalled = connection.stall != Stall::None;
        if looks_at_time {
            self.look_at_time();
        }
        stalled
    }

    #[inline]
    fn run(&mut self, index: u32, spec: &'static CommandSpec, hint: Option<Hint>, arguments: Arguments<'_>) {
        self.note_command(spec.id);
        if let Some((_, writes_only)) = self.paused_until
            && self.pauses(index, spec, arguments, writes_only)
        {
            return;
        }
        match spec.family {
            Family::Data => self.run_data(index, spec, hint, arguments),
            Family::Connection => self.run_connection(index, spec, arguments),
            Family::Node => self.run_node(index, spec, arguments),
        }
    }

    /// A request inside MULTI, with its `long` arguments: refused now if it can never run, queued otherwise.
    pub(crate) fn queue(
        &mut self,
        index: u32,
        spec: &'static CommandSpec,
        arguments: Arguments<'_>,
        mut long: Vec<(usize, Blocks)>,
    ) {
        let bytes = taken_by(arguments) + long.iter().map(|(_, blocks)| blocks.len()).sum::<usize>();
        let refusal = self.refuses_to_queue(index, bytes)
            || (spec.family == Family::Data && self.refuse_place(index, spec, arguments))
            || (needs_keyspace(spec) && self.refuse_keyspace_in_parts(index));
        if let Some(connection) = self.connections.at(index) {
            if refusal {
                connection.session.spoil();
            } else {
                let reply = &mut connection.output.reply(connection.session.protocol());
                connection.session.queue(spec, arguments, &mut long, reply);
            }
        }
        self.store.let_go(long.into_iter().map(|(_, blocks)| blocks));
    }

    /// Writes the error of a request that can never run here, whatever its turn; true if there is one.
    pub(crate) fn refuse_place(&mut self, index: u32, spec: &'static CommandSpec, arguments: Arguments<'_>) -> bool {
        self.refuse_place_beyond(index, spec, arguments, Reach::Core)
    }

    /// As [`Shard::refuse_place`], of a request that may hop so far.
    pub(crate) fn refuse_place_beyond(
        &mut self,
        index: u32,
        spec: &'static CommandSpec,
        arguments: Arguments<'_>,
        reach: Reach,
    ) -> bool {
        if self.membership.is_some() && self.refuse_foreign(index, spec, arguments, reach) {
            return true;
        }
        let Some(asking) = self.asking(index, spec) else { return true };
        let place = (self.core, &*self.table, &self.store);
        let place = route(spec, arguments, None, asking, place, &mut self.route_scratch);
        self.refuse(index, spec, &place)
    }

    /// Writes the error of a request that does not belong here; true if there is one.
    pub(crate) fn refuse(&mut self, index: u32, spec: &'static CommandSpec, place: &Route<'_>) -> bool {
        let refusal = self.write_refusal().filter(|_| spec.is_write());
        let is_split_member = self.is_split_member();
        let Some(connection) = self.connections.at(index) else { return true };
        let mut reply = connection.output.reply(connection.session.protocol());
        match *place {
            Route::Moved(slot) => {
                let endpoint = self.table.moved(slot);
                let (local_host, port_shift) = place_of(&connection.session);
                error::moved(&mut reply, slot, endpoint.host_or(local_host), endpoint.port_shifted(port_shift));
            }
            Route::CrossSlot => error::CROSS_SLOT.write(&mut reply),
            Route::Spread if is_split_member => error::CROSS_SLOT.write(&mut reply),
            Route::KeyTooLong => {
                reply.error("ERR", &format!("key is too long (limit: {} bytes)", base::limits::KEY_BYTES_MAX));
            }
            _ => match refusal {
                Some(text) => reply.error("MISCONF", &text),
                None => return false,
            },
        }
        true
    }

    /// Why no write is taken now.
    pub(crate) fn write_refusal(&self) -> Option<String> {
        if let Some(reason) = self.node.log_failure() {
            let fix = "repair the disk and restart the node";
            return Some(format!("writes are refused because the log failed: {reason}; {fix}"));
        }
        if let Some(reason) = self.log.as_ref().and_then(LogWriter::refusal) {
            let fix = "free room on its disk, a restart is not needed";
            return Some(format!("writes are refused until there is room for the log: {reason}; {fix}"));
        }
        self.units.lender_refusal.clone()
    }

    #[inline]
    fn run_data(&mut self, index: u32, spec: &'static CommandSpec, hint: Option<Hint>, arguments: Arguments<'_>) {
        if hint.is_none() && spec.id == CommandId::ZhMget && self.door(index) == Door::Cluster {
            return self.run_several_slots(index, spec, arguments);
        }
        if self.membership.is_some()
            && (self.refuse_unless_copy(index, spec, arguments, hint) || self.awaits_hand_over(index, spec, arguments))
        {
            return;
        }
        self.note_written(index, spec, arguments, hint);
        let Some(asking) = self.asking(index, spec) else { return };
        let place = (self.core, &*self.table, &self.store);
        let place = route(spec, arguments, hint, asking, place, &mut self.route_scratch);
        match place {
            Route::Here(first_key) if !self.checks_writes && !self.store.tiers() => {
                self.run_here(index, spec, first_key, arguments);
            }
            _ if self.refuse(index, spec, &place) => {}
            Route::Here(_) if self.checks_writes && self.lacks_memory(index, spec, arguments) => {}
            Route::Here(first_key) if self.store.tiers() && self.awaits_values(index, spec, first_key, arguments) => {}
            Route::Here(first_key) => self.run_here(index, spec, first_key, arguments),
            Route::Parked => self.stall_and_repeat(index, spec, arguments, Stall::Parked),
            Route::Hop(core) => self.forward(index, core, spec, arguments),
            Route::Spread => {
                let masks = self.route_scratch.masks.clone();
                let work = UnitWork::Command(OwnedRequest::new(spec, arguments));
                self.start_unit(index, masks, work);
            }
            Route::Moved(_) | Route::CrossSlot | Route::KeyTooLong => unreachable!("refused above"),
        }
    }

    /// The connection waits, and this request runs again first when it goes on.
    pub(crate) fn stall_and_repeat(
        &mut self,
        index: u32,
        _spec: &'static CommandSpec,
        arguments: Arguments<'_>,
        stall: Stall,
    ) {
        let Some(connection) = self.connections.at(index) else { return };
        connection.stall = stall;
        wire::request::encode(arguments, &mut connection.repeat);
        if stall == Stall::Parked {
            let id = connection.id;
            self.units.parked.push(id);
        }
    }

    /// A cluster client is told about slots before anything else, as in Redis.
    fn refuse_slots(&mut self, index: u32, spec: &'static CommandSpec, arguments: Arguments<'_>) -> bool {
        if spec.id == CommandId::Watch {
            return self.refuse_watch(index, spec, arguments);
        }
        let Some(connection) = self.connections.at(index) else { return true };
        let is_refused = |transaction: &Transaction| transaction.is_spoiled() && has_several_slots(transaction);
        if spec.id == CommandId::Exec && connection.session.transaction().is_some_and(is_refused) {
            connection.session.drop_transaction();
            error::CROSS_SLOT.write(&mut connection.output.reply(connection.session.protocol()));
            self.let_go_of_discarded(index);
            return true;
        }
        false
    }

    fn refuse_watch(&mut self, index: u32, spec: &'static CommandSpec, arguments: Arguments<'_>) -> bool {
        let is_refused = self.refuse_place(index, spec, arguments);
        if let Some(connection) = self.connections.at(index).filter(|_| is_refused) {
            connection.session.spoil();
        }
        is_refused
    }

    fn run_connection(&mut self, index: u32, spec: &'static CommandSpec, arguments: Arguments<'_>) {
        if self.door(index) == Door::Cluster && self.refuse_slots(index, spec, arguments) {
            return;
        }
        if spec.id == CommandId::Watch && self.is_split_member() && self.refuse_watch(index, spec, arguments) {
            return;
        }
        if spec.id == CommandId::Readonly {
            self.note_copy_reader();
        }
        let begun = self.start_timing(spec);
        let Some(connection) = self.connections.at(index) else { return };
        let context = ConnectionContext { now: self.now, users: &self.node.users, buffers: buffers_of(connection) };
        let id = connection.id;
        let mut reply = connection.output.reply(connection.session.protocol());
        let outcome = connection.session.execute(spec, arguments, &context, &mut reply);
        self.stop_timing(begun, Some(Target::Local(id)), spec, arguments);
        self.let_go_of_discarded(index);
        match outcome {
            ConnectionOutcome::Done | ConnectionOutcome::Close => {}
            ConnectionOutcome::AuthFailed(failure) => self.note_auth_failure(id, failure),
            ConnectionOutcome::Watch => self.start_watch(index, spec, arguments),
            ConnectionOutcome::Exec(transaction) => self.start_exec(index, transaction),
            outcome => self.start_gather_for(index, outcome),
        }
    }

    /// Long arguments that were queued by a connection and will not run.
    fn let_go_of_discarded(&mut self, index: u32) {
        if let Some(connection) = self.connections.at(index) {
            self.store.let_go(connection.session.take_discarded());
        }
    }

    /// How the connection may name keys of such a request; `None` when it is gone.
    #[inline]
    pub(crate) fn asking(&mut self, index: u32, spec: &'static CommandSpec) -> Option<Asking> {
        let writes_one_slot = spec.is_write() && self.writes_one_slot();
        let session = &self.connections.at(index)?.session;
        let (door, database) = (session.door(), session.database());
        Some(Asking { door, database, one_slot: door == Door::Cluster || writes_one_slot })
    }

    /// Whether what writes keeps to one slot at every door: other slots may have other followers, and if this node is lost they
    /// go on with as much as each of them has.
    pub(crate) fn writes_one_slot(&self) -> bool {
        let view = self.membership.as_deref().and_then(|membership| membership.links.view());
        view.is_some_and(|view| view.keeps_copies())
    }

    /// The door decides the personality.
    pub(crate) fn door(&mut self, index: u32) -> Door {
        self.connections.at(index).map_or(Door::Standalone, |connection| connection.session.door())
    }
}

/// The host by which a client reached this node, for what is not announced, and what its ports are shifted by.
pub(crate) fn place_of(session: &Session) -> (&str, i32) {
    let address = session.local();
    (address.rsplit_once(':').map_or(address, |(host, _)| host), session.port_shift())
}
