//! Lend: the side of a core whose slot groups a unit on another core needs.

use std::collections::VecDeque;

use base::SlotGroupId;
use storage::log::LogWriter;
use storage::log::format::Witness;
use storage::{LentPart, SlotGroup};

use crate::hop::{Control, UnitId};
use crate::owned_request::OwnedRequest;
use crate::route::has_all;
use crate::shard::Shard;
use crate::unit::Waits;
use crate::unit_commit::Pending;

/// Room that a core makes for a unit of another one, which does not say what it brings, bytes.
const LENT_BYTES: usize = 4096;

impl Shard {
    /// Grants the waiting requests for groups, oldest first, as far as the groups are at home and free.
    pub(crate) fn try_lends(&mut self) {
        let mut still_waiting = VecDeque::new();
        while let Some((unit, mask, alone)) = self.units.lend_queue.pop_front() {
            if !self.may_take(mask, alone) {
                still_waiting.push_back((unit, mask, alone));
                continue;
            }
            self.units.holder = Some(unit);
            self.bring_back(mask);
            // While they are here: what is evicted is no part of the unit.
            let is_full = self.is_full_for(LENT_BYTES);
            let groups = self.take_groups(mask);
            let uncommitted = self.store.has_uncommitted();
            let refusal = self.write_refusal();
            let control = Control::Lent { unit, groups, uncommitted, is_full, refusal };
            self.outbox[usize::from(unit.runner().0)].controls.push(control);
        }
        self.units.lend_queue = still_waiting;
    }

    /// Whether a unit may have these groups of this core now; not while room is made for a long log group. One that holds and needs no other core's groups waits for
    /// claims; any other one must not, or it and the claim's unit could wait for each other.
    pub(crate) fn may_take(&self, mask: u64, alone: bool) -> bool {
        let has_groups = if alone { has_all(&self.store, mask) } else { self.has_all_at_home(mask) };
        // What they would log waits for room as well, and nothing but this says how much of it there may be.
        let awaits_room = self.log.as_ref().is_some_and(LogWriter::awaits_room);
        self.units.holder.is_none() && has_groups && !awaits_room
    }

    #[expect(clippy::vec_box, reason = "groups stay where they are; only their addresses travel")]
    pub(crate) fn take_groups(&mut self, mask: u64) -> Vec<Box<SlotGroup>> {
        SlotGroupId::all()
            .filter(|group| mask >> group.number() & 1 == 1)
            .map(|group| self.store.take_group(group).expect("the caller saw that it is here"))
            .collect()
    }

    #[expect(clippy::vec_box, reason = "groups stay where they are; only their addresses travel")]
    pub(crate) fn on_return(
        &mut self,
        unit: UnitId,
        groups: Vec<Box<SlotGroup>>,
        part: &LentPart,
        logged: &[Witness],
        confirm: bool,
    ) {
        groups.into_iter().for_each(|group| self.store.insert_group(group));
        // A long part may wait for room: nobody is to see it before.
        if logged.len() > 1 || part.log.record_bytes() > self.put_off.log_bytes_max() {
            self.begin_unit_group();
        } else {
            self.make_log_room(part.log.record_bytes());
        }
        self.store.adopt(&part.touched, part.cleared);
        let ordinal = if part.log.is_empty() { None } else { self.append_part(unit, logged, &part.log) };
        match ordinal {
            Some(ordinal) if logged.len() > 1 => {
                self.units.pending.push_back(Pending { unit, ordinal, answer: None, logged_told: false });
            }
            _ if confirm => {
                let until = self.last_change_ordinal();
                self.units.confirms.push_back((ordinal.unwrap_or(until), unit));
            }
            _ => {}
        }
        self.units.release(unit);
        self.set_aside_again();
        // Waiters look at the groups before these are lent again.
        if !self.waiters.is_empty() {
            self.fire_waiters();
        }
    }

    /// The holder of this core's groups let go: the next one gets them, and who waited for groups goes on.
    pub(crate) fn hand_on(&mut self) {
        while std::mem::take(&mut self.units.freed) {
            if !self.waiters.is_empty() {
                self.fire_waiters();
            }
            self.try_lends();
            self.unpark();
        }
    }

    /// Whether [`Shard::hand_on`] has something to do.
    pub(crate) fn may_hand_on(&self) -> bool {
        self.units.freed
    }

    /// Groups came home: who waited for them goes on.
    pub(crate) fn unpark(&mut self) {
        self.retry_units();
        self.run_parked_hops();
        for id in std::mem::take(&mut self.units.parked) {
            self.unstall(id);
        }
    }

    /// Units that wait for groups, for room in the log, or for the end of a seal, try again.
    pub(crate) fn retry_units(&mut self) {
        let may_run = |waits| waits == Waits::Groups || waits == Waits::Seal && !self.stopping;
        let waits = self.units.running.iter().filter(|(_, run)| may_run(run.waits));
        for unit in waits.map(|(unit, _)| *unit).collect::<Vec<UnitId>>() {
            self.gather_groups(unit);
        }
    }

    /// Whether all groups of a forwarded request are here, and none of its slots is kept still.
    pub(crate) fn has_keys_of(&self, request: &OwnedRequest) -> bool {
        let mut positions = Vec::new();
        let arguments = request.arguments();
        if wire::registry::key_positions(request.spec, arguments, &mut positions).is_err() {
            return true;
        }
        let mut names = positions.iter().filter_map(|position| arguments.get(position.index));
        let is_here = |name: &[u8]| self.store.group(placement::slot_of(name).group()).is_some();
        names.all(is_here) && !self.is_sealed(request.spec, arguments)
    }
}
