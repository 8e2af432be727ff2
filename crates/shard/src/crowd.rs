//! Copies where there is no room (`docs/internals/memory.md`): a follower says so, and who writes there is refused by its first, or makes
//! room at both.
//!
//! ```text
//!   follower  above its limit, nobody to evict ──► room: none ──► first   writes of these slots: a key of theirs goes, or OOM
//!             below it ──────────────────────────► room: some ──► first   as before
//! ```

use placement::slot_of;
use storage::Room;
use wire::registry::{CommandSpec, Family, Flags, key_positions};
use wire::{Arguments, ErrorReply, error};

use crate::shard::Shard;
use crate::unit::UnitWork;

impl Shard {
    /// Whether some follower has no room.
    pub fn has_crowd(&self) -> bool {
        self.store.has_crowd()
    }

    /// What followers said since the last tick.
    pub(crate) fn note_crowd(&mut self) {
        let Some(membership) = self.membership.as_deref_mut() else { return };
        let crowded = membership.links.crowded();
        if crowded != membership.crowded {
            self.store.set_crowded(|index| crowded.as_ref().map_or(0, |slots| slots.word(index)));
            membership.crowded = crowded;
            self.update_checks();
        }
    }

    /// Whether a request takes memory where some copy's node has none.
    pub(crate) fn crowds(&self, spec: &CommandSpec, arguments: Arguments<'_>) -> bool {
        self.store.has_crowd()
            && spec.flags.contains(Flags::DENYOOM)
            && slots_of(spec, arguments).any(|slot| self.store.is_crowded(slot))
    }

    /// As [`Shard::crowds`], of a unit.
    pub(crate) fn unit_crowds(&self, work: &UnitWork) -> bool {
        match work {
            _ if !self.store.has_crowd() => false,
            UnitWork::Command(request) => self.crowds(request.spec, request.arguments()),
            UnitWork::Exec(exec) => exec.commands().any(|(command, _)| self.crowds(command.spec, command.arguments)),
            UnitWork::Serve { .. } | UnitWork::Watch(_) | UnitWork::Keyspace(_) => false,
        }
    }

    /// A request that crowds, or none, runs.
    pub(crate) fn take_room_in_copies(&mut self, crowds: bool, bytes: usize) {
        if crowds {
            self.store.take_room_in_copies(bytes);
        }
    }

    /// Whether nothing makes room for `bytes` where the copies are.
    pub(crate) fn copies_are_full_for(&mut self, bytes: usize) -> bool {
        loop {
            let gone = self.store.evicted();
            match self.store.make_room_in_copies(bytes) {
                Room::Enough => {
                    self.store.take_room_in_copies(bytes);
                    return false;
                }
                Room::Refused | Room::Run => return true,
                // Nothing found: the unit is not to wait for it.
                Room::Later if self.store.evicted() == gone => return false,
                Room::Later => {}
            }
        }
    }

    /// The error of a request that takes memory where there is none.
    pub(crate) fn out_of_memory(&self, crowds: bool) -> ErrorReply {
        if crowds && !self.store.lacks_room() { error::COPIES_OUT_OF_MEMORY } else { error::OUT_OF_MEMORY }
    }
}

/// Slots of a request's keys.
pub(crate) fn slots_of(spec: &CommandSpec, arguments: Arguments<'_>) -> impl Iterator<Item = base::Slot> {
    let mut positions = Vec::new();
    if spec.family != Family::Data || key_positions(spec, arguments, &mut positions).is_err() {
        // It gets its own error, and changes nothing.
        positions.clear();
    }
    positions.into_iter().filter_map(move |position| arguments.get(position.index)).map(slot_of)
}
