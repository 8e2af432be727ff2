//! Units over several cores: one core runs them, the others lend their slot groups.
//!
//! ```text
//!   runner                                   lender (cores in ascending order, so that no two runners deadlock)
//!   Lend{groups} ───────────────────────────►  all at home, none reserved? hand the boxes over
//!   ◄─────────────────────────────── Lent
//!   … when all are here: execute, each part's records apart …
//!   Return{groups, part} ───────────────────►  append the part under the unit's mark; requests go on
//!   ◄───────────────────────────── Logged      once its log has it
//!   reply · Committed ──────────────────────►  may acknowledge past it
//! ```

use std::collections::{BTreeMap, VecDeque};

use base::{ConnectionId, CoreId, LogOrdinal, Promise};
use storage::log::format::Witness;
use storage::{LentPart, SlotGroup};
use wire::Arguments;
use wire::registry::{CommandSpec, Family};

use crate::connection::Stall;
use crate::exec::Exec;
use crate::fetch::Awaited;
use crate::hop::{Control, UnitId, WaitId};
use crate::owned_request::{LongValue, OwnedRequest};
use crate::route::{GroupMasks, has_all};
use crate::shard::Shard;
use crate::unit_commit::{Answer, Pending};

/// What a unit does once everything is here.
pub enum UnitWork {
    /// One command over keys of several cores; if it blocks, it becomes a wide wait.
    Command(OwnedRequest),
    /// A wide wait was told of a key.
    Serve {
        /// Which.
        wait: WaitId,
        /// The key.
        name: Vec<u8>,
    },
    /// A transaction.
    Exec(Box<Exec>),
    /// WATCH: reads versions.
    Watch(OwnedRequest),
    /// A command over the whole keyspace.
    Keyspace(OwnedRequest),
}

impl UnitWork {
    /// Its long values.
    pub(crate) fn long(&self) -> &[LongValue] {
        match self {
            UnitWork::Exec(exec) => exec.long(),
            UnitWork::Command(_) | UnitWork::Serve { .. } | UnitWork::Watch(_) | UnitWork::Keyspace(_) => &[],
        }
    }
}

/// A unit that gathers its groups.
pub(crate) struct Run {
    pub(crate) connection: ConnectionId,
    pub(crate) work: UnitWork,
    pub(crate) masks: GroupMasks,
    /// How many of `masks` are here.
    pub(crate) here: usize,
    pub(crate) lenders: Vec<Lender>,
    pub(crate) waits: Waits,
    pub(crate) awaited: Awaited,
}

/// What a unit that gathers waits for on its own core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    /// Nothing.
    No,
    /// Its connection's earlier replies; it holds nothing yet.
    Replies,
    /// Groups of this core to come home, or room in the log.
    Groups,
    /// Slots that are kept still for the end of a move; it holds nothing.
    Seal,
    /// Values on the disk.
    Values,
}

impl Waits {
    fn holds_nothing(self) -> bool {
        matches!(self, Waits::Replies | Waits::Seal)
    }
}

pub(crate) struct Lender {
    pub(crate) core: CoreId,
    pub(crate) groups: u64,
    pub(crate) uncommitted: bool,
    pub(crate) is_full: bool,
    pub(crate) refusal: Option<String>,
}

/// The state of all units a core takes part in.
#[derive(Default)]
pub struct Units {
    count: u64,
    pub(crate) running: BTreeMap<UnitId, Run>,
    /// The one unit, own or another core's, that has this core's groups now. It has them until its part is in this
    /// core's log, so units that share two cores stand in the same order in both logs.
    pub(crate) holder: Option<UnitId>,
    /// The holder let go, or the log has room again: who waits may try again.
    pub(crate) freed: bool,
    pub(crate) lend_queue: VecDeque<(UnitId, u64, bool)>,
    pub(crate) pending: VecDeque<Pending>,
    /// Units without an own part that wait for their lenders.
    pub(crate) waiting: Vec<Pending>,
    /// Lender: tell the runner once this group is committed here.
    pub(crate) confirms: VecDeque<(LogOrdinal, UnitId)>,
    /// Connections that wait for a lent group.
    pub(crate) parked: Vec<ConnectionId>,
    /// Why a core that lent groups to the unit that runs now takes no writes.
    pub(crate) lender_refusal: Option<String>,
}

impl Units {
    pub(crate) fn release(&mut self, unit: UnitId) {
        if self.holder == Some(unit) {
            (self.holder, self.freed) = (None, true);
        }
    }

    /// Whether a stopping core has nothing left to do for units: those that hold nothing will never run.
    pub(crate) fn is_quiet(&self) -> bool {
        self.pending.is_empty()
            && self.waiting.is_empty()
            && self.holder.is_none()
            && self.running.values().all(|run| run.waits.holds_nothing())
    }

    /// Long values of those that wait.
    pub(crate) fn long(&self) -> impl Iterator<Item = &LongValue> {
        self.running.values().flat_map(|run| run.work.long())
    }

    /// The node stops: what holds nothing yet will never run.
    pub(crate) fn forget_long(&mut self) {
        self.running.retain(|_, run| !run.waits.holds_nothing() || run.work.long().is_empty());
    }

    /// The first own log group that holds an uncommitted part.
    pub(crate) fn first_pending(&self) -> Option<LogOrdinal> {
        self.pending.front().map(|pending| pending.ordinal)
    }
}

impl Shard {
    /// Starts a unit for a connection; `masks` ascend by core.
    pub(crate) fn start_unit(&mut self, index: u32, masks: GroupMasks, work: UnitWork) {
        let is_alone = masks.iter().all(|(core, _)| *core == self.core);
        debug_assert!(is_alone || self.membership.is_none(), "in a cluster no core lends anything");
        let Some(connection) = self.connections.at(index) else { return };
        let (id, gaps) = (connection.id, connection.output.gaps());
        let only_here = match masks[..] {
            [] => true,
            [(core, mask)] => core == self.core && has_all(&self.store, mask),
            _ => false,
        };
        if only_here && gaps == 0 && !self.awaits_seal(&work) && self.has_values_of(id, &work) {
            return self.run_local_unit(id, work);
        }
        let Some(connection) = self.connections.at(index) else { return };
        connection.stall = Stall::Unit;
        self.units.count += 1;
        let unit = UnitId::new(self.core, self.units.count);
        let waits = if gaps > 0 { Waits::Replies } else { Waits::No };
        let awaited = Awaited::default();
        let run = Run { connection: id, work, masks, here: 0, lenders: Vec::new(), waits, awaited };
        self.units.running.insert(unit, run);
        if waits == Waits::No {
            self.gather_groups(unit);
        }
    }

    /// Starts a unit for a connection that waits, and goes on waiting meanwhile.
    pub(crate) fn start_unit_for_wait(&mut self, id: ConnectionId, masks: GroupMasks, work: UnitWork) {
        self.units.count += 1;
        let unit = UnitId::new(self.core, self.units.count);
        let awaited = Awaited::default();
        let run = Run { connection: id, work, masks, here: 0, lenders: Vec::new(), waits: Waits::No, awaited };
        self.units.running.insert(unit, run);
        self.gather_groups(unit);
    }

    /// Everything is on this core: no other core needs to know.
    fn run_local_unit(&mut self, id: ConnectionId, work: UnitWork) {
        let database = self.connections.get_mut(id).map_or_else(Default::default, |c| c.session.database());
        self.begin_long_unit(&work, database);
        let changes = self.store.changes_from_here();
        self.memory.note_lenders(false);
        let reply = self.run_work(id, &work, &[]);
        self.end_work(work);
        let until = if self.tracks { self.commitment(changes) } else { None };
        if let Some(reply) = reply {
            self.deliver_unit(id, reply, until);
        }
        if !self.waiters.is_empty() {
            self.fire_waiters();
        }
    }

    /// Gets one core's groups after the other.
    pub(crate) fn gather_groups(&mut self, unit: UnitId) {
        if self.units.running.get(&unit).is_some_and(|run| self.awaits_seal(&run.work)) {
            return self.wait_for_seal(unit);
        }
        loop {
            let Some(run) = self.units.running.get_mut(&unit) else { return };
            run.waits = Waits::No;
            let alone = run.masks.len() == 1;
            let Some(&(core, mask)) = run.masks.get(run.here) else { break };
            if core != self.core {
                self.outbox[usize::from(core.0)].controls.push(Control::Lend { unit, groups: mask, alone });
                return;
            }
            let has_groups = self.may_take(mask, alone);
            let run = self.units.running.get_mut(&unit).expect("just seen");
            if !has_groups {
                run.waits = Waits::Groups;
                return;
            }
            run.here += 1;
            self.units.holder = Some(unit);
        }
        if self.log_is_full() {
            return self.put_off_unit(unit);
        }
        if !self.unit_awaits_values(unit) {
            self.run_unit(unit);
        }
    }

    fn wait_for_seal(&mut self, unit: UnitId) {
        let Some(run) = self.units.running.get_mut(&unit) else { return };
        // In a cluster it has groups of this core only.
        (run.waits, run.here) = (Waits::Seal, 0);
        self.units.release(unit);
    }

    /// Whether its keys may be among those that are kept still: what waited for something else looked before that.
    fn awaits_seal(&self, work: &UnitWork) -> bool {
        let has_sealed = |spec: &'static CommandSpec, arguments: Arguments<'_>| {
            // What is not about keys that it names is about all.
            spec.is_write() && (spec.family != Family::Data || self.is_sealed(spec, arguments))
        };
        match work {
            _ if !self.is_any_sealed() => false,
            UnitWork::Command(request) => has_sealed(request.spec, request.arguments()),
            UnitWork::Exec(exec) => exec.commands().any(|(command, _)| has_sealed(command.spec, command.arguments)),
            UnitWork::Keyspace(request) => request.spec.is_write(),
            UnitWork::Serve { .. } => true,
            UnitWork::Watch(_) => false,
        }
    }

    fn put_off_unit(&mut self, unit: UnitId) {
        self.put_off.note();
        if let Some(run) = self.units.running.get_mut(&unit) {
            run.waits = Waits::Groups;
        }
    }

    fn run_unit(&mut self, unit: UnitId) {
        let run = self.units.running.remove(&unit).expect("the caller has it");
        if let Some((_, mask)) = run.masks.iter().find(|(core, _)| *core == self.core) {
            self.bring_back(*mask);
        }
        self.begin_unit_group();
        let changes = self.store.changes_from_here();
        self.memory.note_lenders(run.lenders.iter().any(|lender| lender.is_full));
        let failure = self.end_waiting(run.awaited);
        let tick_log = self.store.begin_unit();
        self.units.lender_refusal = run.lenders.iter().find_map(|lender| lender.refusal.clone());
        self.checks_writes |= self.units.lender_refusal.is_some();
        let reply = match failure {
            Some(text) => self.refuse_unit(run.connection, &text),
            None => self.run_work(run.connection, &run.work, &run.masks),
        };
        self.end_work(run.work);
        self.units.lender_refusal = None;
        let own_part = self.store.end_unit(tick_log).filter(|part| !part.is_empty());
        let mut parts = self.store.take_lent();
        self.put_off.note_sealed(parts.iter().map(|(_, part)| part.log.record_bytes()).sum());
        let mut logged: Vec<Witness> = parts.iter().filter_map(|(core, part)| part.log.witness(core.0)).collect();
        logged.extend(own_part.as_ref().and_then(|part| part.witness(self.core.0)));
        logged.sort_unstable_by_key(|part| part.core);
        let own_ordinal = own_part.as_ref().and_then(|part| self.append_part(unit, &logged, part));
        // Slots of other cores are of none of this one's lanes.
        let own_until = if self.log.is_some() { self.commitment(changes) } else { None };
        let own_until = own_until.map(|promise| Promise::of_all(promise.until));
        let mut answer = Answer { connection: run.connection, reply, missing: Vec::new(), tell: Vec::new() };
        for lender in run.lenders {
            let part = take_part(&mut parts, lender.core);
            let wrote = !part.log.is_empty();
            let confirm = self.log.is_some() && (wrote || lender.uncommitted);
            if confirm {
                answer.missing.push(lender.core);
            }
            if wrote && logged.len() > 1 {
                answer.tell.push(lender.core);
            }
            let groups = self.take_groups(lender.groups);
            let control = Control::Return { unit, groups, part, logged: logged.clone(), confirm };
            self.outbox[usize::from(lender.core.0)].controls.push(control);
        }
        let is_clean = parts.iter().all(|(_, part)| part.log.is_empty());
        assert!(
            is_clean,
            "only a unit changes what was lent for it: a part that nobody logs would undo the whole unit"
        );
        self.units.release(unit);
        let wrote = !logged.is_empty();
        self.finish_or_wait(unit, (answer, wrote), own_ordinal.filter(|_| logged.len() > 1), own_until);
        self.set_aside_again();
        self.fire_waiters();
        self.try_lends();
    }

    /// It ran: what it brought and the store did not take goes a slice at a time.
    pub(crate) fn end_work(&mut self, work: UnitWork) {
        if let UnitWork::Exec(mut exec) = work {
            self.let_go(exec.take_long());
        }
    }

    #[expect(clippy::vec_box, reason = "groups stay where they are; only their addresses travel")]
    pub(crate) fn on_lent(&mut self, unit: UnitId, mut lender: Lender, groups: Vec<Box<SlotGroup>>) {
        for group in groups {
            lender.groups |= 1 << group.id().number();
            self.store.insert_group(group);
        }
        let run = self.units.running.get_mut(&unit).expect("a unit gathers until it has all");
        run.lenders.push(lender);
        run.here += 1;
        self.gather_groups(unit);
    }

    /// A connection whose earlier replies have all arrived may start the unit it asked for.
    pub(crate) fn gaps_closed(&mut self, id: ConnectionId) {
        if self.stopping {
            return;
        }
        let unit = self
            .units
            .running
            .iter()
            .find(|(_, run)| run.waits == Waits::Replies && run.connection == id)
            .map(|(unit, _)| *unit);
        if let Some(unit) = unit {
            self.gather_groups(unit);
        }
    }
}

fn take_part(parts: &mut Vec<(CoreId, LentPart)>, core: CoreId) -> LentPart {
    match parts.iter().position(|(owner, _)| *owner == core) {
        Some(position) => parts.swap_remove(position).1,
        None => LentPart::default(),
    }
}
