//! Long units: what may log more than a tick does otherwise, so that its write may have to wait for room in the log.
//!
//! In `commit` every reply waits for the log anyway. In `interval` it leaves with its tick, so a request of which that may become
//! untrue has to be known before it runs: from there on replies are held as behind a unit over several cores, until the
//! write was given to the operating system, mostly in the same tick. What is not foreseen makes the segment grow.

use base::Database;
use session::QueuedCommand;
use wire::Arguments;
use wire::registry::{CommandId as Id, CommandSpec};

use crate::owned_request::LongValue;
use crate::shard::Shard;
use crate::unit::UnitWork;

impl Shard {
    /// A request of a connection is about to run here.
    #[inline]
    pub(crate) fn begin_long_request_of(&mut self, index: u32, spec: &CommandSpec, arguments: Arguments<'_>) {
        if !spec.is_write() || !self.foresees_long_units() {
            return;
        }
        let Some(connection) = self.connections.at(index) else { return };
        let database = connection.session.database();
        self.weigh_request(spec, arguments, database);
    }

    /// A request is about to run.
    #[inline]
    pub(crate) fn begin_long_request(&mut self, spec: &CommandSpec, arguments: Arguments<'_>, database: Database) {
        if spec.is_write() && self.foresees_long_units() {
            self.weigh_request(spec, arguments, database);
        }
    }

    /// Whether replies do not wait for the log although there is one.
    #[inline]
    fn foresees_long_units(&self) -> bool {
        !self.tracks && self.log.is_some()
    }

    #[inline]
    fn weigh_request(&mut self, spec: &CommandSpec, arguments: Arguments<'_>, database: Database) {
        let mut bytes = extent(arguments);
        if carries(spec.id) {
            bytes += self.carried_bytes(spec.id, arguments, database);
        }
        if bytes > self.put_off.log_bytes_max() {
            self.begin_unit_group();
        }
    }

    /// A unit on this core alone is about to run.
    pub(crate) fn begin_long_unit(&mut self, work: &UnitWork, database: Database) {
        match work {
            UnitWork::Command(request) => self.begin_long_request(request.spec, request.arguments(), database),
            UnitWork::Exec(exec) if self.foresees_long_units() => {
                let logged = |value: &LongValue| if value.stage.is_none() { value.blocks.len() } else { 0 };
                let of_request = |(command, long): (QueuedCommand<'_>, &[LongValue])| {
                    extent(command.arguments) + long.iter().map(logged).sum::<usize>()
                };
                let brought: usize = exec.commands().map(of_request).sum();
                let carriers = || exec.transaction().commands().filter(|command| carries(command.spec.id));
                let carried = carriers()
                    .map(|command| self.carried_bytes(command.spec.id, command.arguments, database))
                    .max()
                    .map_or(0, |longest| longest + brought);
                // Each may carry what others brought, or carried before.
                if brought + carriers().count() * carried > self.put_off.log_bytes_max() {
                    self.begin_unit_group();
                }
            }
            UnitWork::Exec(_) | UnitWork::Serve { .. } | UnitWork::Watch(_) | UnitWork::Keyspace(_) => {}
        }
    }

    /// Bytes that a request of a command that [`carries`] takes from one key to another, about.
    fn carried_bytes(&self, id: Id, arguments: Arguments<'_>, database: Database) -> usize {
        let sources = if id == Id::Bitop { arguments.from(3.min(arguments.len())) } else { arguments.from(1) };
        let of_key = |name: &[u8]| {
            let key = self.store.key(name, database, placement::slot_of(name));
            match id {
                Id::Lmove | Id::Rpoplpush | Id::Blmove | Id::Brpoplpush => self.store.end_bytes(&key),
                _ => self.store.value_bytes(&key),
            }
        };
        let count = if id == Id::Bitop { sources.len() } else { 1 };
        sources.iter().take(count).map(of_key).max().unwrap_or(0)
    }
}

/// Whether a command logs more than it brings.
#[inline]
fn carries(id: Id) -> bool {
    matches!(
        id,
        Id::Copy
            | Id::Rename
            | Id::Renamenx
            | Id::Move
            | Id::Bitop
            | Id::Lmove
            | Id::Rpoplpush
            | Id::Blmove
            | Id::Brpoplpush
    )
}

/// Bytes from a request's first argument to its last.
#[inline]
fn extent(arguments: Arguments<'_>) -> usize {
    let spans = arguments.spans();
    spans.first().zip(spans.last()).map_or(0, |(first, last)| ((last.start + last.len) - first.start) as usize)
}
