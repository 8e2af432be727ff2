//! Units that wait for values: with all their groups here, and before anything of them runs.

use base::{ConnectionId, Database};
use session::EncodedReply;
use storage::ColdValue;
use wire::Reply;
use wire::registry::CommandId;

use super::{Who, cold_values};
use crate::hop::UnitId;
use crate::shard::Shard;
use crate::unit::{UnitWork, Waits};

impl Shard {
    /// What a unit's work needs and is not here; all its groups are.
    pub(crate) fn cold_values_of(&mut self, id: ConnectionId, work: &UnitWork) -> Vec<ColdValue> {
        let Some(connection) = self.connections.get_mut(id) else { return Vec::new() };
        let mut database = connection.session.database();
        match work {
            UnitWork::Command(request) => cold_values(&self.store, request.spec, request.arguments(), database),
            UnitWork::Exec(exec) => {
                let mut cold = Vec::new();
                for command in exec.transaction().commands() {
                    if command.spec.id == CommandId::Select {
                        let number = command.arguments.get(1).and_then(wire::number::parse_integer);
                        database = number.map_or(database, |number| Database(number as u8));
                    }
                    cold.extend(cold_values(&self.store, command.spec, command.arguments, database));
                }
                cold.sort_unstable_by_key(|value| (value.group.number(), value.position, value.version));
                cold.dedup();
                cold
            }
            UnitWork::Serve { .. } | UnitWork::Watch(_) | UnitWork::Keyspace(_) => Vec::new(),
        }
    }

    /// A unit whose groups are all here waits if some of its values are not; true if it does not run now.
    pub(crate) fn unit_awaits_values(&mut self, unit: UnitId) -> bool {
        if !self.store.tiers() {
            return false;
        }
        let Some(mut run) = self.units.running.remove(&unit) else { return true };
        self.make_room_for_unit(&run.work);
        let cold =
            if run.awaited.failure.is_some() { Vec::new() } else { self.cold_values_of(run.connection, &run.work) };
        let waits = !cold.is_empty();
        if waits {
            let before = Some(Box::new(std::mem::take(&mut run.awaited)));
            (run.awaited, run.waits) = (self.await_all(cold, Who::Unit(unit), before), Waits::Values);
        }
        self.units.running.insert(unit, run);
        waits
    }

    /// Whether all values that a unit on this core's own groups needs are here.
    pub(crate) fn has_values_of(&mut self, id: ConnectionId, work: &UnitWork) -> bool {
        if !self.store.tiers() {
            return true;
        }
        self.make_room_for_unit(work);
        self.cold_values_of(id, work).is_empty()
    }

    /// The answer of a unit that cannot have its values.
    pub(crate) fn refuse_unit(&mut self, id: ConnectionId, text: &str) -> Option<EncodedReply> {
        let connection = self.connections.get_mut(id)?;
        let mut bytes = Vec::new();
        Reply::new(&mut bytes, connection.session.protocol()).error("IOERR", text);
        Some(bytes.into())
    }
}
