//! Append, commit, reply: what the tick changed becomes a log group, and replies leave when their promise holds.

use base::limits::OUTPUT_UNAUTHENTICATED_MAX;
use base::planted::{Bug, is_planted};
use base::{Effect, Lanes, LogOrdinal, TickOutput};
use session::Pressure;
use storage::log::LogWriter;

use crate::connection::Stall;
use crate::hop::HopBatch;
use crate::shard::{Durability, LIMITS_INTERVAL_US, SYNC_INTERVAL_US, Shard};

/// Records that wait for the sync under way before they are written all the same, bytes.
const WAITING_RECORD_BYTES_MAX: usize = 1 << 20;
/// Bytes of long values that leave in one tick, of all connections. More waits for the next one.
const LONG_REPLY_BYTES: usize = 256 << 10;
/// The same where others are beside.
const LONG_REPLY_BYTES_IN_COMPANY: usize = LONG_REPLY_BYTES / LATE_PART;
/// Sends of one tick, and bytes after which there are no more: each costs a system call, or its part of one, and a sync ends the
/// waiting of every connection at once. With 500 connections and 16 requests ahead epoll had ticks of 3 ms behind a sync
/// (`cargo x bench gaps`).
const SENDS_PER_TICK_MAX: usize = 64;
/// To close a connection costs twice as much: 128 of them took 1.6 ms.
const SENDS_OF_CLOSE: usize = 2;
const SENT_BYTES_PER_TICK_MAX: usize = 512 << 10;
/// In durability `commit` so many parts of so many of what may leave leave in the tick that hears of a finished sync, before the
/// next one begins; the rest leave while it is under way, and have a core that would find nothing to do find requests then.
const PARTS_BEFORE_SYNC: (usize, usize) = (3, 5);
/// Of these a tick that took long already sends one part in so many.
const LATE_PART: usize = 4;

impl Shard {
    /// Seals what was changed into a log group and asks for its write and sync.
    pub(crate) fn append(&mut self) {
        let wants_sync = self.wants_sync() || self.uploads_want_sync() || self.wants_early_sync();
        let gathers = self.gathers();
        if self.has_log_failed() {
            return self.drop_unsealed();
        }
        let Some(log) = &mut self.log else { return };
        if self.stopping
            && let Some(buffer) = self.store.log_mut().filter(|_| !self.node.is_sealed())
        {
            buffer.append_seal();
            self.node.set_sealed();
        }
        // In durability `commit` records that cannot be synced yet gain nothing from being written now: they become one
        // group, one write and one sync with all that arrives while the disk is busy.
        let waits_for_disk = self.durability == Durability::Commit && log.is_syncing() && !self.stopping;
        let waiting_bytes_max = WAITING_RECORD_BYTES_MAX.min(self.put_off.log_bytes_max());
        let must_seal = |bytes: usize| !(waits_for_disk || gathers) || bytes >= waiting_bytes_max;
        if let Some(buffer) =
            self.store.log_mut().filter(|buffer| !buffer.is_empty() && must_seal(buffer.record_bytes()))
        {
            log.seal_or_wait(buffer, self.now, self.tracks, &mut self.effects);
        }
        if log.wants_retry() && self.now.monotonic_us >= self.last_segment_try_us + SYNC_INTERVAL_US {
            log.retry_segment(&mut self.effects);
        }
        let due = match self.durability {
            Durability::Memory => false,
            Durability::Commit => !gathers,
            Durability::Interval if self.stopping || wants_sync => true,
            Durability::Interval => self.now.monotonic_us >= self.last_sync_us + SYNC_INTERVAL_US,
        };
        if due && !log.is_syncing() && log.given() > log.durable() {
            self.last_sync_us = self.now.monotonic_us;
            log.sync(&mut self.effects);
        }
    }

    /// Durability `commit`, in the tick that hears of a finished sync: most replies leave first, and the requests
    /// they bring about share the next sync, one tick later, with what waits (docs/internals/tick.md).
    fn gathers(&self) -> bool {
        self.synced_now && self.durability == Durability::Commit && !self.stopping
    }

    /// Something waits for the next tick's sync.
    fn is_gathering(&self) -> bool {
        self.gathers()
            && (self.store.has_unsealed() || self.log.as_ref().is_some_and(|log| log.given() > log.durable()))
    }

    /// How many of so many sends may leave before the sync that this tick leaves to the next one.
    fn sends_before_sync(&self, sends: usize) -> usize {
        let (parts, of) = PARTS_BEFORE_SYNC;
        if self.gathers() { (sends * parts).div_ceil(of) } else { sends }
    }

    /// The highest group whose promise holds on this core alone once this tick's effects are done in order.
    fn own_horizon(&self) -> LogOrdinal {
        let logged = self.logged_horizon();
        match self.units.first_pending() {
            Some(pending) => logged.min(LogOrdinal(pending.0.saturating_sub(1))),
            None => logged,
        }
    }

    /// The same with all copies: the least of all lanes.
    pub(crate) fn commit_horizon(&self) -> LogOrdinal {
        let followers =
            self.membership.as_deref().map_or(LogOrdinal(u64::MAX), |membership| membership.links.horizon(0));
        self.own_horizon().min(followers)
    }

    /// Looks how far promises hold now.
    pub(crate) fn advance_horizon(&mut self) {
        let own = self.own_horizon();
        self.horizon_moved |= match self.membership.as_deref().map(|membership| &membership.links) {
            Some(links) => self.horizon.advance(links.lanes(), |lane| own.min(links.horizon(lane))),
            None => self.horizon.advance(&Lanes::default(), |_| own),
        };
    }

    /// The log group of the last change, whether sealed or still to be.
    pub(crate) fn last_change_ordinal(&self) -> LogOrdinal {
        let pending = self.store.has_unsealed();
        match &self.log {
            None => LogOrdinal(0),
            Some(log) if pending => log.next_ordinal(),
            Some(log) => log.sealed(),
        }
    }

    /// Highest group that is as durable as promised on this core alone.
    pub(crate) fn logged_horizon(&self) -> LogOrdinal {
        let Some(log) = &self.log else { return LogOrdinal(u64::MAX) };
        if self.durability == Durability::Commit { log.durable() } else { log.given() }
    }

    /// Releases what waited for promises that hold now.
    pub(crate) fn commit(&mut self) {
        if !self.durable_asks.is_empty() {
            self.release_durable_waiters();
        }
        self.release_copy_waits();
        if self.log.is_none() {
            return;
        }
        self.advance_units();
        self.advance_horizon();
        if !self.horizon_moved && self.held_replies.is_empty() && !self.parts.are_held() {
            return;
        }
        // A write failed: the street withholds everything. Without a lease somebody else may serve already.
        if (self.stopping && self.has_log_failed()) || !self.has_lease() {
            return;
        }
        self.release_hop_replies();
        self.release_parts();
        if !std::mem::take(&mut self.horizon_moved) {
            return;
        }
        let horizon = &self.horizon;
        self.store.commit(|lane| horizon.of_lane(lane));
        for index in std::mem::take(&mut self.held) {
            let Some(connection) = self.connections.at(index) else { continue };
            connection.output.release(&self.horizon);
            connection.held_listed = connection.output.is_held();
            if connection.held_listed {
                self.held.push(index);
            }
            self.list_for_flush(index);
        }
    }

    /// One send per connection; closes those that are done.
    pub(crate) fn reply(&mut self, output: &mut TickOutput<HopBatch>) {
        output.effects.append(&mut self.effects);
        let mut flush = std::mem::take(&mut self.flush);
        let part = if self.is_late() { LATE_PART } else { 1 };
        let mut long_budget = if self.has_company() { LONG_REPLY_BYTES_IN_COMPANY } else { LONG_REPLY_BYTES / part };
        let sends_max = self.sends_before_sync(flush.len()).min(SENDS_PER_TICK_MAX / part);
        let (mut sends, mut sent_bytes) = (0, 0);
        for index in flush.drain(..) {
            let is_enough = sends >= sends_max || sent_bytes >= SENT_BYTES_PER_TICK_MAX / part;
            if is_enough && !self.stopping {
                self.flush.push(index);
                continue;
            }
            let Some(connection) = self.connections.at(index) else { continue };
            connection.flush_listed = false;
            if !connection.output.errors().is_empty() {
                self.statistics.count_errors(&connection.output.take_errors());
            }
            let (spare, budget_before) = (&mut self.spare_buffers, long_budget);
            if let Some(buffer) = connection.output.take_sendable(&mut long_budget, || spare.pop().unwrap_or_default())
            {
                self.statistics.counters.output_bytes += buffer.len() as u64;
                (sends, sent_bytes) = (sends + 1, sent_bytes + buffer.len());
                output.effects.push(Effect::Send { connection: connection.id, buffer });
            } else if connection.output.wants_budget() {
                connection.flush_listed = true;
                self.flush.push(index);
            }
            if long_budget < budget_before {
                self.store.let_go(connection.output.take_spent().into_iter());
                // What was held behind a long reply may be in front now, and its group committed already.
                if connection.output.release(&self.horizon) && !connection.output.is_sending() {
                    connection.flush_listed = true;
                    self.flush.push(index);
                }
                if !connection.held_listed && connection.output.is_held() {
                    connection.held_listed = true;
                    self.held.push(index);
                }
            }
            match connection.output.pressure() {
                Pressure::Ok => {}
                Pressure::Pause if connection.stall == Stall::None => connection.stall = Stall::Output,
                Pressure::Pause => {}
                Pressure::Close => connection.session.set_closing(),
            }
            let is_stranger = !connection.session.is_authenticated();
            let overflow = connection.output.pressure() == Pressure::Close
                || (is_stranger && connection.output.pending_bytes() > OUTPUT_UNAUTHENTICATED_MAX);
            let done = connection.session.is_closing() && connection.output.is_empty();
            if (done || overflow || connection.abandoned) && !connection.close_asked {
                connection.close_asked = true;
                sends += SENDS_OF_CLOSE;
                if !(is_planted(Bug::M30ConnectionsKept) && connection.id.generation % 8 == 7) {
                    output.effects.push(Effect::Close { connection: connection.id });
                }
            }
        }
        if self.flush.is_empty() {
            self.flush = flush;
        } else {
            self.put_off.note();
        }
    }

    /// Hands the batches for other cores over.
    pub(crate) fn send_hops(&mut self, output: &mut TickOutput<HopBatch>) {
        output.hops.extend(self.take_for_manager());
        output.hops.append(&mut self.beside);
        if self.outbox.len() == 1 {
            return;
        }
        for (core, batch) in self.outbox.iter_mut().enumerate() {
            if !batch.is_empty() {
                output.hops.push((base::CoreId(core as u16), std::mem::take(batch)));
            }
        }
    }

    /// When to tick again if nothing happens.
    pub(crate) fn schedule(&mut self, output: &mut TickOutput<HopBatch>) {
        self.statistics.end_tick();
        let log = self.log.as_ref().filter(|log| log.failure().is_none());
        let unsynced = self.durability == Durability::Interval
            && log.is_some_and(|log| log.given() > log.durable() && !log.is_syncing());
        let deadlines = [
            self.waiters.next_deadline_us(),
            self.wide_waits.next_deadline_us(),
            self.gathers.next_deadline_us(),
            self.pins.until_us(),
            unsynced.then_some(self.last_sync_us + SYNC_INTERVAL_US),
            self.expiry_due_us(),
            self.paused_until.map(|(until_us, _)| until_us),
            self.has_limits().then_some(self.last_limits_us + LIMITS_INTERVAL_US),
            log.filter(|log| log.wants_retry()).map(|_| self.last_segment_try_us + SYNC_INTERVAL_US),
            self.maintenance_deadline_us(),
            self.links_deadline_us(),
            self.copy_waits.next_deadline_us(),
        ];
        output.deadline_us = match self.stopping {
            true => self.rest_deadline_us(),
            false => deadlines.into_iter().flatten().min(),
        };
        output.more = self.is_gathering()
            || (self.store.has_garbage() && !self.stopping)
            || !self.resume.is_empty()
            || self.may_hand_on()
            || self.links_have_more()
            || self.put_off.is_noted();
        output.quiet_completions = !self.stopping && self.flush.is_empty();
        let log_is_safe =
            self.log.as_ref().is_none_or(|log| log.failure().is_some() || (self.node.is_sealed() && log.is_settled()));
        if self.stopping && log_is_safe && self.has_last_runs() {
            output.effects.push(Effect::Stop);
        }
    }

    /// The connection has output, or has to be closed.
    #[inline]
    pub(crate) fn list_for_flush(&mut self, index: u32) {
        let Some(connection) = self.connections.at(index) else { return };
        if !connection.flush_listed {
            connection.flush_listed = true;
            self.flush.push(index);
        }
    }

    /// Changes are tracked until committed while that takes longer than a tick, or will never come.
    pub(crate) fn update_tracking(&mut self) {
        let promises_more = self.durability == Durability::Commit || self.membership.is_some();
        let awaits_room = self.log.as_ref().is_some_and(LogWriter::has_waiting);
        let is_slow = promises_more || awaits_room || self.units.first_pending().is_some();
        self.tracks = self.log.is_some() && (is_slow || self.has_log_failed());
        let ordinal = self.log.as_ref().filter(|_| self.tracks).map(|log| log.next_ordinal());
        self.store.track_uncommitted(ordinal);
    }

    pub(crate) fn track_touched(&mut self) {
        self.store.track_touched(!self.waiters.is_empty());
    }
}

#[cfg(test)]
mod tests;
