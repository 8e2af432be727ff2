//! Commands about the node: what the shard does for them beyond their words.

use base::ConnectionId;
use wire::registry::CommandSpec;
use wire::{Arguments, Reply};

use crate::owned_request::OwnedRequest;
use crate::shard::Shard;
use crate::statistics::CoreCounters;
use crate::transaction::needs_keyspace;
use crate::waiters::Waiter;

impl Shard {
    pub(crate) fn run_node(&mut self, index: u32, spec: &'static CommandSpec, arguments: Arguments<'_>) {
        if needs_keyspace(spec) {
            return self.start_keyspace(index, spec, arguments);
        }
        let Some(connection) = self.connections.at(index) else { return };
        let id = connection.id;
        let counters = [self.counters()];
        let bytes = self.run_node_with(&OwnedRequest::new(spec, arguments), id, &counters);
        let Some(connection) = self.connections.at(index) else { return };
        connection.output.reply(connection.session.protocol()).raw(&bytes);
    }

    /// Runs a node command with the counters of all cores; the reply's bytes.
    pub(crate) fn run_node_with(
        &mut self,
        request: &OwnedRequest,
        id: ConnectionId,
        _counters: &[CoreCounters],
    ) -> Vec<u8> {
        let mut bytes = Vec::new();
        let Some(connection) = self.connections.get_mut(id) else { return bytes };
        let mut reply = Reply::new(&mut bytes, connection.session.protocol());
        reply.error("ERR", &format!("'{}' is not served yet", request.spec.full_name));
        bytes
    }

    pub(crate) fn configure(&mut self, _name: &str, _value: &str) {}

    pub(crate) fn release_durable_waiters(&mut self) {}

    /// A waiter's time is over.
    pub(crate) fn time_out(&mut self, waiter: &Waiter) {
        let random = self.rng.next_u64();
        let protocol = self.protocol_of(waiter.target);
        let mut bytes = Vec::new();
        let mut unit = commands::Unit {
            store: &mut self.store,
            reply: Reply::new(&mut bytes, protocol),
            now_ms: self.now.unix_ms,
            database: waiter.database,
            first_key: None,
            random,
            may_block: false,
        };
        commands::timed_out(waiter.request.spec, waiter.request.arguments(), &mut unit);
        self.deliver(waiter.target, &bytes, None);
    }
}
