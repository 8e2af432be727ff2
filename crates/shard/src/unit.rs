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
//!
//! Until a unit is committed it blocks the commit horizon of every core that logged a part: replication's rule, between
//! cores. Replay drops a unit that is not in all its logs, and everything after it, which nobody was told about.

use std::collections::{BTreeMap, VecDeque};

use base::{ConnectionId, CoreId, LogOrdinal, SlotGroupId};
use session::Transaction;
use storage::{LentPart, SlotGroup};

use crate::connection::Stall;
use crate::hop::{Control, UnitId};
use crate::owned_request::OwnedRequest;
use crate::route::{GroupMasks, has_all};
use crate::shard::Shard;
use crate::waiters::Target;

/// What a unit does once everything is here.
pub enum UnitWork {
    /// One command over keys of several cores.
    Command(OwnedRequest),
    /// A transaction.
    Exec(Box<Transaction>),
    /// WATCH: reads versions.
    Watch(OwnedRequest),
    /// A command over the whole keyspace.
    Keyspace(OwnedRequest),
}

/// A unit that gathers its groups.
struct Run {
    connection: ConnectionId,
    work: UnitWork,
    masks: GroupMasks,
    /// How many of `masks` are here.
    here: usize,
    lenders: Vec<Lender>,
    /// It waits for own groups to come home, or for its connection's earlier replies.
    waits: bool,
}

struct Lender {
    core: CoreId,
    groups: u64,
    uncommitted: bool,
}

/// A unit that is logged here and not committed yet.
struct Pending {
    unit: UnitId,
    /// The own log group that holds the part.
    ordinal: LogOrdinal,
    /// Set on the runner.
    answer: Option<Answer>,
    /// The lender told the runner.
    logged_told: bool,
}

struct Answer {
    connection: ConnectionId,
    bytes: Vec<u8>,
    missing: Vec<CoreId>,
    /// Lenders that wait for Committed.
    tell: Vec<CoreId>,
}

/// The state of all units a core takes part in.
#[derive(Default)]
pub struct Units {
    count: u64,
    running: BTreeMap<UnitId, Run>,
    /// The one unit, own or another core's, that has this core's groups now. It has them until its part is in this
    /// core's log, so units that share two cores stand in the same order in both logs.
    holder: Option<UnitId>,
    /// The holder let go: who waits may try again.
    freed: bool,
    lend_queue: VecDeque<(UnitId, u64)>,
    pending: VecDeque<Pending>,
    /// Units without an own part that wait for their lenders.
    waiting: Vec<Pending>,
    /// Lender: tell the runner once this group is committed here.
    confirms: VecDeque<(LogOrdinal, UnitId)>,
    /// Connections that wait for a lent group.
    pub(crate) parked: Vec<ConnectionId>,
}

impl Units {
    fn release(&mut self, unit: UnitId) {
        if self.holder == Some(unit) {
            (self.holder, self.freed) = (None, true);
        }
    }

    /// The first own log group that holds an uncommitted part.
    pub(crate) fn first_pending(&self) -> Option<LogOrdinal> {
        self.pending.front().map(|pending| pending.ordinal)
    }
}

impl Shard {
    /// Starts a unit for a connection; `masks` ascend by core.
    pub(crate) fn start_unit(&mut self, index: u32, masks: GroupMasks, work: UnitWork) {
        let Some(connection) = self.connections.at(index) else { return };
        let (id, gaps) = (connection.id, connection.output.gaps());
        let only_here = match masks[..] {
            [] => true,
            [(core, mask)] => core == self.core && has_all(&self.store, mask),
            _ => false,
        };
        if only_here && gaps == 0 {
            return self.run_local_unit(id, &work);
        }
        connection.stall = Stall::Unit;
        self.units.count += 1;
        let unit = UnitId::new(self.core, self.units.count);
        let waits = gaps > 0;
        let run = Run { connection: id, work, masks, here: 0, lenders: Vec::new(), waits };
        self.units.running.insert(unit, run);
        if !waits {
            self.gather_groups(unit);
        }
    }

    /// Everything is on this core: no other core needs to know.
    fn run_local_unit(&mut self, id: ConnectionId, work: &UnitWork) {
        let changes = self.store.changes();
        let bytes = self.run_work(id, work);
        let until = if self.tracks { self.commitment(changes) } else { None };
        self.deliver_unit(id, &bytes, until);
        if !self.waiters.is_empty() {
            self.fire_waiters();
        }
    }

    fn deliver_unit(&mut self, id: ConnectionId, bytes: &[u8], until: Option<LogOrdinal>) {
        let was_stalled = self.connections.get_mut(id).is_some_and(|connection| connection.stall == Stall::Unit);
        if was_stalled {
            return self.deliver(Target::Local(id), bytes, until);
        }
        let until = until.filter(|until| *until > self.committed);
        // It never stalled: the next request of its window runs at once.
        let Some(connection) = self.connections.get_mut(id) else { return };
        let mark = connection.output.mark();
        connection.output.reply(connection.session.protocol()).raw(bytes);
        if let Some(until) = until {
            connection.output.hold(mark, until);
            if !connection.held_listed && connection.output.is_held() {
                connection.held_listed = true;
                self.held.push(id.index);
            }
        }
        self.list_for_flush(id.index);
    }

    /// Gets one core's groups after the other.
    fn gather_groups(&mut self, unit: UnitId) {
        loop {
            let Some(run) = self.units.running.get_mut(&unit) else { return };
            run.waits = false;
            let Some(&(core, mask)) = run.masks.get(run.here) else { break };
            if core != self.core {
                self.outbox[usize::from(core.0)].controls.push(Control::Lend { unit, groups: mask });
                return;
            }
            if self.units.holder.is_some() || !has_all(&self.store, mask) {
                run.waits = true;
                return;
            }
            run.here += 1;
            self.units.holder = Some(unit);
        }
        self.run_unit(unit);
    }

    fn run_unit(&mut self, unit: UnitId) {
        let run = self.units.running.remove(&unit).expect("the caller has it");
        self.begin_unit_group();
        let changes = self.store.changes();
        let tick_log = self.store.begin_unit();
        let bytes = self.run_work(run.connection, &run.work);
        let own_part = self.store.end_unit(tick_log).filter(|part| !part.is_empty());
        let mut parts = self.store.take_lent();
        let mut cores: Vec<u16> =
            parts.iter().filter(|(_, part)| !part.log.is_empty()).map(|(core, _)| core.0).collect();
        cores.extend(own_part.as_ref().map(|_| self.core.0));
        cores.sort_unstable();
        let own_ordinal = own_part.as_ref().and_then(|part| self.append_part(unit, &cores, part));
        let own_until = if self.log.is_some() { self.commitment(changes) } else { None };
        let mut answer = Answer { connection: run.connection, bytes, missing: Vec::new(), tell: Vec::new() };
        for lender in run.lenders {
            let part = take_part(&mut parts, lender.core);
            let wrote = !part.log.is_empty();
            let confirm = self.log.is_some() && (wrote || lender.uncommitted);
            if confirm {
                answer.missing.push(lender.core);
            }
            if wrote && cores.len() > 1 {
                answer.tell.push(lender.core);
            }
            let groups = self.take_groups(lender.groups);
            let control = Control::Return { unit, groups, part, cores: cores.clone(), confirm };
            self.outbox[usize::from(lender.core.0)].controls.push(control);
        }
        let is_clean = parts.iter().all(|(_, part)| part.log.is_empty());
        assert!(
            is_clean,
            "only a unit changes what was lent for it: a part that nobody logs would undo the whole unit"
        );
        self.units.release(unit);
        self.finish_or_wait(unit, answer, own_ordinal.filter(|_| cores.len() > 1), own_until);
        if !self.waiters.is_empty() {
            self.fire_waiters();
        }
        self.try_lends();
    }

    /// Seals what the tick changed so far: a group that holds a unit's part may be dropped by replay, so nothing that is
    /// acknowledged without waiting for the unit may share it. From here on everything waits, until the unit is
    /// committed.
    fn begin_unit_group(&mut self) {
        let Some(log) = &mut self.log else { return };
        if let Some(buffer) = self.store.log_mut().filter(|buffer| !buffer.is_empty()) {
            log.seal(buffer, self.now, &mut self.effects);
        }
        self.store.track_uncommitted(Some(log.next_ordinal()));
        self.tracks = true;
    }

    fn finish_or_wait(
        &mut self,
        unit: UnitId,
        answer: Answer,
        own_ordinal: Option<LogOrdinal>,
        own_until: Option<LogOrdinal>,
    ) {
        if answer.missing.is_empty() && own_ordinal.is_none() {
            return self.deliver_unit(answer.connection, &answer.bytes, own_until);
        }
        match own_ordinal {
            Some(ordinal) => {
                let pending = Pending { unit, ordinal, answer: Some(answer), logged_told: true };
                self.units.pending.push_back(pending);
            }
            None => {
                let ordinal = own_until.unwrap_or_default();
                self.units.waiting.push(Pending { unit, ordinal, answer: Some(answer), logged_told: true });
            }
        }
    }

    /// Appends one core's part to this tick's group; the group's number.
    fn append_part(&mut self, unit: UnitId, cores: &[u16], part: &storage::log::LogBuffer) -> Option<LogOrdinal> {
        let ordinal = self.log.as_ref()?.next_ordinal();
        let buffer = self.store.log_mut()?;
        if cores.len() > 1 {
            buffer.append_unit(unit.0, cores, part);
        } else {
            buffer.append_all(part);
        }
        Some(ordinal)
    }

    #[expect(clippy::vec_box, reason = "groups stay where they are; only their addresses travel")]
    fn take_groups(&mut self, mask: u64) -> Vec<Box<SlotGroup>> {
        SlotGroupId::all()
            .filter(|group| mask >> group.number() & 1 == 1)
            .map(|group| self.store.take_group(group).expect("the caller saw that it is here"))
            .collect()
    }

    /// A step of a unit arrived from another core.
    pub(crate) fn on_control(&mut self, from: CoreId, control: Control) {
        match control {
            Control::Cancel(origin) => {
                let is_gone = |target: &Target| {
                    matches!(target, Target::Remote(other, _)
                        if other.core == origin.core && other.connection == origin.connection)
                };
                self.waiters.forget(is_gone);
                self.track_touched();
            }
            Control::Lend { unit, groups } => {
                self.units.lend_queue.push_back((unit, groups));
                self.try_lends();
            }
            Control::Lent { unit, groups, uncommitted } => self.on_lent(unit, from, groups, uncommitted),
            Control::Return { unit, groups, part, cores, confirm } => {
                self.on_return(unit, groups, &part, &cores, confirm);
            }
            Control::Logged { unit } => self.on_logged(unit, from),
            Control::Committed { unit } => self.units.pending.retain(|pending| pending.unit != unit),
            Control::Ask { gather, question } => self.on_ask(from, gather, question),
            Control::Answer { gather, answer } => self.on_answer(gather, answer),
            Control::Shutdown => self.stopping = true,
        }
    }

    /// Grants the waiting requests for groups, oldest first, as far as the groups are at home and free.
    fn try_lends(&mut self) {
        let mut still_waiting = VecDeque::new();
        while let Some((unit, mask)) = self.units.lend_queue.pop_front() {
            if self.units.holder.is_some() || !has_all(&self.store, mask) {
                still_waiting.push_back((unit, mask));
                continue;
            }
            self.units.holder = Some(unit);
            let groups = self.take_groups(mask);
            let uncommitted = self.store.has_uncommitted();
            let control = Control::Lent { unit, groups, uncommitted };
            self.outbox[usize::from(unit.runner().0)].controls.push(control);
        }
        self.units.lend_queue = still_waiting;
    }

    #[expect(clippy::vec_box, reason = "groups stay where they are; only their addresses travel")]
    fn on_lent(&mut self, unit: UnitId, from: CoreId, groups: Vec<Box<SlotGroup>>, uncommitted: bool) {
        let mut mask = 0;
        for group in groups {
            mask |= 1 << group.id().number();
            self.store.insert_group(group);
        }
        let run = self.units.running.get_mut(&unit).expect("a unit gathers until it has all");
        run.lenders.push(Lender { core: from, groups: mask, uncommitted });
        run.here += 1;
        self.gather_groups(unit);
    }

    #[expect(clippy::vec_box, reason = "groups stay where they are; only their addresses travel")]
    fn on_return(&mut self, unit: UnitId, groups: Vec<Box<SlotGroup>>, part: &LentPart, cores: &[u16], confirm: bool) {
        groups.into_iter().for_each(|group| self.store.insert_group(group));
        if cores.len() > 1 {
            self.begin_unit_group();
        }
        self.store.adopt(&part.touched, part.cleared);
        let ordinal = if part.log.is_empty() { None } else { self.append_part(unit, cores, &part.log) };
        match ordinal {
            Some(ordinal) if cores.len() > 1 => {
                self.units.pending.push_back(Pending { unit, ordinal, answer: None, logged_told: false });
            }
            _ if confirm => {
                let sealed = self.log.as_ref().map_or(LogOrdinal(0), |log| log.sealed());
                self.units.confirms.push_back((ordinal.unwrap_or(sealed), unit));
            }
            _ => {}
        }
        self.units.release(unit);
        // Waiters look at the groups before these are lent again.
        if !self.waiters.is_empty() {
            self.fire_waiters();
        }
    }

    /// The holder of this core's groups let go: the next one gets them, and who waited for groups goes on.
    pub(crate) fn hand_on(&mut self) {
        while std::mem::take(&mut self.units.freed) {
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
        let home: Vec<UnitId> = self.units.running.iter().filter(|(_, run)| run.waits).map(|(unit, _)| *unit).collect();
        for unit in home {
            let gaps = self.units.running.get(&unit).map(|run| run.connection);
            let gaps = gaps.and_then(|id| self.connections.get_mut(id)).map_or(0, |c| c.output.gaps());
            if gaps == 0 {
                self.gather_groups(unit);
            }
        }
        for (request, origin, database, protocol) in std::mem::take(&mut self.parked_hops) {
            if self.parked_hops.is_empty() && self.has_keys_of(&request) {
                self.run_forwarded(request, origin, database, protocol);
            } else {
                self.parked_hops.push_back((request, origin, database, protocol));
            }
        }
        for id in std::mem::take(&mut self.units.parked) {
            self.unstall(id);
        }
    }

    /// A connection whose earlier replies have all arrived may start the unit it asked for.
    pub(crate) fn gaps_closed(&mut self, id: ConnectionId) {
        let unit = self.units.running.iter().find(|(_, run)| run.waits && run.connection == id).map(|(unit, _)| *unit);
        if let Some(unit) = unit {
            self.gather_groups(unit);
        }
    }

    fn on_logged(&mut self, unit: UnitId, from: CoreId) {
        let pending = self.units.pending.iter_mut().chain(&mut self.units.waiting);
        for answer in pending.filter(|pending| pending.unit == unit).filter_map(|pending| pending.answer.as_mut()) {
            answer.missing.retain(|core| *core != from);
        }
    }

    /// What the log's progress allows: tell runners, finish units, tell lenders. Strictly in the order of this core's
    /// log: replay cuts a chain before an incomplete unit, so a part counts only once everything before it does.
    pub(crate) fn advance_units(&mut self) {
        let logged = self.logged_horizon();
        while let Some(first) = self.units.pending.front_mut().filter(|first| first.ordinal <= logged) {
            let unit = first.unit;
            match &first.answer {
                Some(answer) if answer.missing.is_empty() => self.finish_unit(unit),
                Some(_) => break,
                None => {
                    if !std::mem::replace(&mut first.logged_told, true) {
                        self.outbox[usize::from(unit.runner().0)].controls.push(Control::Logged { unit });
                    }
                    break;
                }
            }
        }
        let is_done = |pending: &Pending| pending.answer.as_ref().is_some_and(|answer| answer.missing.is_empty());
        let done: Vec<UnitId> =
            self.units.waiting.iter().filter(|pending| is_done(pending)).map(|pending| pending.unit).collect();
        for unit in done {
            self.finish_unit(unit);
        }
        // A promise about this core's log holds only once no earlier group can be cut with an incomplete unit.
        let horizon = self.commit_horizon();
        while let Some((_, unit)) = self.units.confirms.pop_front_if(|(ordinal, _)| *ordinal <= horizon) {
            self.outbox[usize::from(unit.runner().0)].controls.push(Control::Logged { unit });
        }
    }

    fn finish_unit(&mut self, unit: UnitId) {
        let of_unit = |pending: &Pending| pending.unit == unit;
        let pending = match self.units.pending.iter().position(of_unit) {
            Some(position) => self.units.pending.remove(position),
            None => self.units.waiting.iter().position(of_unit).map(|position| self.units.waiting.remove(position)),
        };
        let Some(Pending { ordinal, answer: Some(answer), .. }) = pending else { return };
        for core in answer.tell {
            self.outbox[usize::from(core.0)].controls.push(Control::Committed { unit });
        }
        self.deliver_unit(answer.connection, &answer.bytes, (ordinal.0 > 0).then_some(ordinal));
    }

    /// Whether all groups of a forwarded request are here.
    pub(crate) fn has_keys_of(&self, request: &OwnedRequest) -> bool {
        let mut positions = Vec::new();
        let arguments = request.arguments();
        if wire::registry::key_positions(request.spec, arguments, &mut positions).is_err() {
            return true;
        }
        let mut names = positions.iter().filter_map(|position| arguments.get(position.index));
        names.all(|name| self.store.group(placement::slot_of(name).group()).is_some())
    }
}

fn take_part(parts: &mut Vec<(CoreId, LentPart)>, core: CoreId) -> LentPart {
    match parts.iter().position(|(owner, _)| *owner == core) {
        Some(position) => parts.swap_remove(position).1,
        None => LentPart::default(),
    }
}
