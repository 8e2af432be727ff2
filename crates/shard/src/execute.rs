//! Execute: a request whose keys are all here, for its connection, another core, or once it no longer waits.

use base::planted::{Bug, is_planted};
use base::{ConnectionId, Database, Door};
use commands::{May, Outcome, Refused, Unit};
use session::EncodedReply;
use storage::Key;
use wire::registry::CommandSpec;
use wire::{Arguments, Protocol, Reply};

use crate::owned_request::OwnedRequest;
use crate::shard::Shard;
use crate::waiters::Target;

impl Shard {
    /// All the request's keys are here: execute it.
    #[inline]
    pub(crate) fn run_here(
        &mut self,
        index: u32,
        spec: &'static CommandSpec,
        first_key: Option<Key<'_>>,
        arguments: Arguments<'_>,
    ) {
        self.run_refusing(index, spec, (first_key, &[]), arguments);
    }

    /// The same where some of them are not: they are answered by these errors.
    #[inline]
    pub(crate) fn run_refusing(
        &mut self,
        index: u32,
        spec: &'static CommandSpec,
        keys: (Option<Key<'_>>, &[Refused]),
        arguments: Arguments<'_>,
    ) {
        match self.times(spec) {
            false => drop(self.execute_here(index, spec, keys, arguments)),
            true => self.execute_timed(index, spec, keys, arguments),
        }
    }

    /// Apart, so that what is not timed pays for one look at its bit.
    #[inline(never)]
    fn execute_timed(
        &mut self,
        index: u32,
        spec: &'static CommandSpec,
        keys: (Option<Key<'_>>, &[Refused]),
        arguments: Arguments<'_>,
    ) {
        let begun = self.start_timing(spec);
        if let Some(id) = self.execute_here(index, spec, keys, arguments) {
            self.stop_timing(begun, Some(Target::Local(id)), spec, arguments);
        }
    }

    /// The connection that is answered; `None` where it is gone, or waits.
    #[inline]
    fn execute_here(
        &mut self,
        index: u32,
        spec: &'static CommandSpec,
        (first_key, refused): (Option<Key<'_>>, &[Refused]),
        arguments: Arguments<'_>,
    ) -> Option<ConnectionId> {
        let random = self.rng.next_u64();
        self.begin_long_request_of(index, spec, arguments);
        let connection = self.connections.at(index)?;
        let is_asked = self.tracks && (spec.is_write() || !is_planted(Bug::M48ReadsUnasked));
        let mark = is_asked.then(|| connection.output.mark());
        let changes = self.store.changes_from_here();
        let mut unit = Unit {
            store: &mut self.store,
            reply: connection.output.reply(connection.session.protocol()),
            now_ms: self.now.unix_ms,
            database: connection.session.database(),
            several_databases: connection.session.door() == Door::Standalone,
            first_key,
            random,
            may: May { block: true, stage: self.log.is_some() },
            long: &[],
            refused,
        };
        let outcome = commands::execute(spec, arguments, &mut unit);
        let (id, database) = (connection.id, connection.session.database());
        if connection.output.has_long() {
            connection.output.settle_long();
        }
        match outcome {
            Outcome::Done => {}
            Outcome::Block(block) => {
                self.wait(Target::Local(id), database, OwnedRequest::new(spec, arguments), block);
                return None;
            }
            Outcome::Stage(first) => {
                self.stage_for(index, spec, arguments, first);
                return None;
            }
        }
        if let Some(mark) = mark {
            self.hold_if_uncommitted(index, mark, changes);
        }
        if !self.waiters.is_empty() {
            self.fire_waiters();
        }
        Some(id)
    }

    /// Executes a request whose keys are all here, its reply going to `out`.
    pub(crate) fn execute_into(
        &mut self,
        request: &OwnedRequest,
        database: Database,
        protocol: Protocol,
        may: May,
        out: &mut EncodedReply,
    ) -> Outcome {
        self.run_into(commands::execute, request, database, may, out.encoder(protocol))
    }

    /// Runs a request whose keys are all here, for the first time or again.
    pub(crate) fn run_into(
        &mut self,
        run: impl Fn(&'static CommandSpec, Arguments<'_>, &mut Unit<'_>) -> Outcome,
        request: &OwnedRequest,
        database: Database,
        may: May,
        reply: Reply<'_>,
    ) -> Outcome {
        let long = request.long_arguments();
        let mut unit = Unit {
            random: self.rng.next_u64(),
            store: &mut self.store,
            reply,
            now_ms: self.now.unix_ms,
            database,
            // A request of a cluster port comes here only to wait, and what waits names no database.
            several_databases: true,
            first_key: None,
            may,
            long: &long,
            refused: &[],
        };
        run(request.spec, request.arguments(), &mut unit)
    }
}
