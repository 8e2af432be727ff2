//! The commit of units over several cores: their parts in the logs, and when a unit counts.
//!
//! Until a unit is committed it blocks the commit horizon of every core that logged a part: replication's rule, between
//! cores. Replay drops a unit that is not in all its logs, and everything after it, which nobody was told about.

use base::{ConnectionId, CoreId, LogOrdinal, Promise};
use session::EncodedReply;
use storage::log::format::Witness;

use crate::hop::{Control, UnitId};
use crate::log_failure::{LOST, NEVER};
use crate::shard::Shard;

/// A unit that is logged here and not committed yet.
pub(crate) struct Pending {
    pub(crate) unit: UnitId,
    /// The own log group that holds the part.
    pub(crate) ordinal: LogOrdinal,
    /// Set on the runner.
    pub(crate) answer: Option<Answer>,
    /// The lender told the runner.
    pub(crate) logged_told: bool,
}

pub(crate) struct Answer {
    pub(crate) connection: ConnectionId,
    /// `None` when a wide wait goes on.
    pub(crate) reply: Option<EncodedReply>,
    pub(crate) missing: Vec<CoreId>,
    /// Lenders that wait for Committed.
    pub(crate) tell: Vec<CoreId>,
}

impl Shard {
    /// Seals what the tick changed so far: a group that holds a unit's part may be dropped by replay, so nothing that is
    /// acknowledged without waiting for the unit may share it. From here on everything waits, until the unit is
    /// committed.
    pub(crate) fn begin_unit_group(&mut self) {
        self.seal_group();
        let Some(log) = &self.log else { return };
        self.store.track_uncommitted(Some(log.next_ordinal()));
        self.tracks = true;
    }

    /// Appends one core's part to this tick's group; the group's number.
    pub(crate) fn append_part(
        &mut self,
        unit: UnitId,
        logged: &[Witness],
        part: &storage::log::LogBuffer,
    ) -> Option<LogOrdinal> {
        let ordinal = self.log.as_ref()?.next_ordinal();
        let buffer = self.store.log_mut()?;
        if logged.len() > 1 {
            buffer.append_unit(unit.0, logged, part);
        } else {
            buffer.append_all(part);
        }
        Some(ordinal)
    }

    pub(crate) fn finish_or_wait(
        &mut self,
        unit: UnitId,
        (answer, wrote): (Answer, bool),
        own_ordinal: Option<LogOrdinal>,
        own_until: Option<Promise>,
    ) {
        let waits = !answer.missing.is_empty() || own_ordinal.is_some();
        if self.has_log_failed() && (waits || own_until.is_some()) {
            // Whoever of its cores logs it, not all of them do.
            let until = if wrote { LOST } else { NEVER };
            if let Some(reply) = answer.reply {
                self.deliver_unit(answer.connection, reply, Some(until));
            }
            return;
        }
        if answer.missing.is_empty() && own_ordinal.is_none() {
            if let Some(reply) = answer.reply {
                self.deliver_unit(answer.connection, reply, own_until);
            }
            return;
        }
        match own_ordinal {
            Some(ordinal) => {
                let pending = Pending { unit, ordinal, answer: Some(answer), logged_told: true };
                self.units.pending.push_back(pending);
            }
            None => {
                let ordinal = own_until.map_or(LogOrdinal(0), |promise| promise.until);
                self.units.waiting.push(Pending { unit, ordinal, answer: Some(answer), logged_told: true });
            }
        }
    }

    pub(crate) fn on_logged(&mut self, unit: UnitId, from: CoreId) {
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
        if let Some(reply) = answer.reply {
            self.deliver_unit(answer.connection, reply, (ordinal.0 > 0).then_some(Promise::of_all(ordinal)));
        }
    }
}
