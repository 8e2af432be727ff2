//! Receive: what happened outside, one handler per kind of event.

use base::planted::{Bug, is_planted};
use base::{ConnectionId, CoreId, Door, Entrance, Event, Now, SegmentNumber, Span};
use session::{Opening, Pressure, Session};
use storage::Checkpoints;

use crate::connection::{Connection, Stall};
use crate::hop::{Control, HopBatch};
use crate::shard::Shard;
use crate::unit::Lender;
use crate::waiters::Target;

/// Bytes of one connection that arrived in this tick.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Whose.
    pub connection: ConnectionId,
    /// Where; empty for a connection that only goes on after a stall.
    pub span: Span,
}

impl Shard {
    pub(crate) fn begin(&mut self, now: Now, events: &mut Vec<Event>, hops: &[(CoreId, HopBatch)]) {
        self.statistics.begin_tick();
        self.now = now;
        self.synced_now = false;
        self.hear_of_failed_log(events, hops);
        self.update_tracking();
        self.update_memory();
        self.update_checks();
        self.set_log_bound();
        self.go_on_with_put_off();
        if self.paused_until.is_some_and(|(until_us, _)| until_us <= now.monotonic_us) {
            self.end_pause();
        }
    }

    /// Whether writes have to be asked for before they run.
    pub(crate) fn update_checks(&mut self) {
        self.checks_writes = self.memory.is_limited() || self.store.has_crowd() || self.write_refusal().is_some();
    }

    /// Handles control events; arrivals of bytes are returned for the next stages.
    pub(crate) fn receive(&mut self, events: &mut Vec<Event>) -> Vec<Arrival> {
        let (mut arrivals, mut room) = (std::mem::take(&mut self.arrivals_scratch), None);
        for event in events.drain(..) {
            match event {
                Event::Received { connection, span } => arrivals.push(Arrival { connection, span }),
                Event::SendDone { connection, buffer } => self.on_send_done(connection, buffer),
                Event::Accepted { connection, door: Door::Node, peer, .. } => self.on_link(connection, peer),
                Event::Accepted { connection, door, entrance, peer, local } => {
                    self.on_accepted(connection, (door, entrance), peer, local);
                }
                Event::PeerClosed { connection } => self.on_peer_closing(connection),
                Event::Closed { connection } => self.on_closed(connection),
                Event::LogWritten { .. } | Event::LogSynced { .. } | Event::LogFailed { .. } => {
                    self.on_log_event(event)
                }
                Event::SegmentReady { segment } => self.log_mut("extended").on_segment_ready(segment),
                Event::SegmentFailed { reason, .. } => {
                    self.last_segment_try_us = self.now.monotonic_us;
                    self.end_pin_for_room(&reason);
                    self.log_mut("extended").on_segment_failed(reason);
                }
                Event::RoomReady { segment, bytes } => room = Some(Ok((segment, bytes))),
                Event::RoomFailed { reason } => room = Some(Err(reason)),
                Event::RunWritten { buffer } => self.on_run_written(buffer),
                Event::RunRead { token, read } => self.on_run_read(token, read),
                Event::RunsPublished => self.with_checkpoints(Checkpoints::on_runs_published),
                Event::RunFailed { reason } => {
                    self.end_pin_for_room(&reason);
                    self.with_checkpoints(|runs, view| runs.on_run_failed(reason, view.now));
                }
                Event::Dialed { token, connection } => self.on_dialed(token, connection.ok()),
                Event::FileDurable { token } => self.on_acl_saved(token, None),
                Event::FileFailed { token, reason } => self.on_acl_saved(token, Some(reason)),
                Event::FileRead { token, read } => self.on_acl_read(token, read),
                Event::TickGap(gap) => self.note_gap(gap),
                Event::ShutdownRequested => self.stopping = true,
                Event::ListeningStopped
                | Event::Stilled { .. }
                | Event::HandedOver { .. }
                | Event::Arrived { .. }
                | Event::ArrivalsEnded => unreachable!("a node hands nothing over and takes nothing over"),
            }
        }
        // Behind all others: what fits is written now, unless the log failed.
        if let Some(room) = room {
            self.on_room(room);
        }
        self.set_pace();
        arrivals
    }

    /// Room for a long group was made, or not.
    fn on_room(&mut self, room: Result<(SegmentNumber, u64), String>) {
        // Units that wait with it.
        self.units.freed = true;
        if let Err(reason) = &room {
            self.last_segment_try_us = self.now.monotonic_us;
            self.end_pin_for_room(reason);
        }
        let Some(log) = &mut self.log else { return };
        match room {
            Ok((segment, bytes)) => log.on_room_ready(segment, bytes, &mut self.effects),
            Err(reason) => log.on_room_failed(reason),
        }
    }

    pub(crate) fn log_mut(&mut self, what: &str) -> &mut storage::log::LogWriter {
        match &mut self.log {
            Some(log) => log,
            None => unreachable!("no log was ever asked to be {what}"),
        }
    }

    fn on_accepted(&mut self, id: ConnectionId, (door, entrance): (Door, Entrance), peer: String, local: String) {
        let is_admitted = self.node.admits(&peer);
        let opening = Opening {
            connection: id,
            client_id: self.node.next_client_id(self.core),
            door,
            port_shift: entrance.port_shift,
            peer,
            local,
            now: self.now,
            user: self.node.users.default_user().clone(),
        };
        self.connections.insert(Connection::new(id, Session::new(opening)));
        self.statistics.counters.connections_accepted += 1;
        if !is_admitted {
            self.deny(id);
        }
    }

    /// Tells a client that it may not come in, and closes.
    fn deny(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        self.node.note_refused();
        wire::error::DENIED.write(&mut connection.output.reply(wire::Protocol::Resp2));
        connection.session.set_closing();
        self.list_for_flush(id.index);
    }

    fn on_send_done(&mut self, id: ConnectionId, mut buffer: Vec<u8>) {
        buffer.clear();
        if self.spare_buffers.len() < SPARE_BUFFERS_MAX && buffer.capacity() <= SPARE_BUFFER_BYTES_MAX {
            self.spare_buffers.push(buffer);
        }
        let Some(connection) = self.connections.get_mut(id) else { return self.on_link_sent(id) };
        connection.output.sent();
        if connection.stall == Stall::Output && connection.output.pressure() == Pressure::Ok {
            connection.stall = Stall::None;
            self.resume.push(id);
        }
        if !connection.output.is_empty() || connection.session.is_closing() {
            self.list_for_flush(id.index);
        }
    }

    /// What came before the end is answered, also when both came in one tick: the end of a client that waits for no key
    /// is noted once its requests were served.
    fn on_peer_closing(&mut self, id: ConnectionId) {
        if self.end_link(id) {
            return;
        }
        match self.connections.get_mut(id) {
            Some(connection) if !connection.stall.is_waiter() => self.hung_up.push(id),
            _ => self.on_peer_closed(id),
        }
    }

    /// The ends that waited for this tick's requests: all but those of connections whose last requests still wait.
    pub(crate) fn end_hung_up(&mut self) {
        for id in std::mem::take(&mut self.hung_up) {
            match self.goes_on(id) {
                true => self.hung_up.push(id),
                false => self.on_peer_closed(id),
            }
        }
    }

    /// Whether requests of a connection run later without anything of its client: the tick was full, a value is on the disk,
    /// a reply too long. What waits for a key is not among them: who hung up takes no element off a list.
    fn goes_on(&mut self, id: ConnectionId) -> bool {
        match self.connections.get_mut(id) {
            Some(connection) if connection.session.is_closing() => false,
            // It may have gone on behind the last round of this tick.
            Some(connection) if connection.stall == Stall::None => self.resume.contains(&id),
            Some(connection) => !connection.stall.is_waiter(),
            None => false,
        }
    }

    fn on_peer_closed(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.session.set_closing();
        if connection.stall.is_waiter() {
            // A client that hung up does not take an element off a list later.
            self.forget_waiting(id);
        }
        self.list_for_flush(id.index);
    }

    fn on_closed(&mut self, id: ConnectionId) {
        if self.on_link_closed(id) {
            return;
        }
        self.forget_waiting(id);
        self.end_backup_of(id);
        if let Some(mut connection) = self.connections.remove(id) {
            self.statistics.count_errors(connection.output.errors());
            self.forget_values(connection.awaited.take());
            self.store.let_go(connection.output.into_blocks().chain(connection.input.into_blocks()));
            self.store.let_go(connection.session.into_blocks());
        }
    }

    /// The connection waits for nothing any more, here or on another core; a reply that was owed never comes.
    pub(crate) fn forget_waiting(&mut self, id: ConnectionId) {
        let core = self.core;
        self.waiters.forget(|target| *target == Target::Local(id));
        self.track_touched();
        let Some(connection) = self.connections.get_mut(id) else { return };
        let stall = connection.stall;
        if stall.is_waiter() {
            (connection.stall, connection.abandoned) = (Stall::None, true);
        }
        match stall {
            Stall::RemoteWaiter(owner, ticket) => {
                let origin = connection.origin(core, ticket);
                self.outbox[usize::from(owner.0)].controls.push(Control::Cancel(origin));
            }
            Stall::WideWait(wait) => self.forget_wide_wait(wait),
            Stall::Copies => drop(self.copy_waits.forget(id)),
            _ => {}
        }
    }

    /// Messages of other cores: controls first, then answers, then requests.
    pub(crate) fn take_hops(&mut self, hops: &mut Vec<(CoreId, HopBatch)>) {
        for (from, mut batch) in hops.drain(..) {
            let mut about_requests = Vec::new();
            for control in std::mem::take(&mut batch.controls) {
                match control.follows_requests() {
                    true => about_requests.push(control),
                    false => self.on_control(from, control),
                }
            }
            let mut long = batch.take_long();
            for (reply, bytes) in batch.replies() {
                let long = long.drain(..reply.long_count as usize).collect();
                self.on_hop_reply((reply.connection, reply.ticket), bytes, long);
            }
            for (request, arguments) in batch.requests() {
                self.on_hop_request(request, arguments);
            }
            about_requests.into_iter().for_each(|control| self.on_control(from, control));
        }
    }

    /// A step of a unit arrived from another core.
    pub(crate) fn on_control(&mut self, from: CoreId, control: Control) {
        match control {
            Control::Cancel(origin) => self.cancel_forwarded(origin),
            Control::Upload(upload) => self.on_upload(*upload),
            Control::Unblock { origin, unblock } => self.unblock_forwarded(origin, unblock),
            Control::Interest { wait, database, names } => self.on_interest(wait, database, names),
            Control::Ready { wait, name } => self.on_ready(wait, name),
            Control::Rearm { wait } => self.end_claim(wait),
            Control::Forget { wait } => {
                self.end_interest(wait);
                self.track_touched();
            }
            Control::Lend { unit, groups, alone } => {
                self.units.lend_queue.push_back((unit, groups, alone));
                self.try_lends();
            }
            Control::Lent { unit, groups, uncommitted, is_full, refusal } => {
                self.on_lent(unit, Lender { core: from, groups: 0, uncommitted, is_full, refusal }, groups);
            }
            Control::StoreTakes { bytes } => self.memory.note_store(usize::from(from.0), bytes),
            Control::ProcessTakes { beside } => self.memory.note_beside(beside),
            Control::Return { unit, groups, part, logged, confirm } => {
                self.on_return(unit, groups, &part, &logged, confirm);
            }
            Control::Logged { unit } => self.on_logged(unit, from),
            Control::Committed { unit } => self.units.pending.retain(|pending| pending.unit != unit),
            Control::Ask { gather, question } => self.on_ask(from, gather, question),
            Control::Answer { gather, answer } => self.on_answer(gather, answer),
            Control::Slow { connection, entry } => self.note_slow(Some(connection), *entry),
            Control::Shutdown => self.stopping = true,
            Control::View { node, view } => self.set_view(node, view),
            Control::Lease { until_us } => self.set_lease(until_us),
            Control::AskHeld => self.tell_held(),
            Control::Seal { id } => self.seal(id),
            Control::Release { id } => self.release(id),
            Control::Held { .. }
            | Control::Sealed { .. }
            | Control::Unsealed { .. }
            | Control::Order { .. }
            | Control::Distrusted { .. } => {
                unreachable!("only a manager is told")
            }
            Control::LogFailed { reason } if is_planted(Bug::M61FailureInItsTurn) => self.end_log(&reason),
            // The tick began with it.
            Control::LogFailed { .. } => {}
            Control::Abandon(connection) => self.abandon(connection),
            Control::Renewed => self.on_renewed(),
            Control::Maintenance(notice) => self.on_notice(from, notice),
            Control::MayRun => self.on_permit(),
            Control::Resting { flushed } => self.on_resting(flushed),
            Control::StopGoesOn => self.stop.goes_on(self.now.monotonic_us),
        }
    }
}

/// Output buffers kept for the next replies.
const SPARE_BUFFERS_MAX: usize = 64;
/// Larger ones go back to the allocator.
const SPARE_BUFFER_BYTES_MAX: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use base::{Effect, Machine, TickInput, TickOutput};

    use super::*;
    use crate::{Durability, NodeState, ShardConfig};

    #[test]
    fn a_stranger_is_told_why_and_closed() {
        let table = placement::NodeTable::even([0; 16], 1, "", 1).expect("one core");
        let mut shard = Shard::new(ShardConfig {
            core: CoreId(0),
            table: Arc::new(table),
            seed: 1,
            durability: Durability::Memory,
            log: None,
            node: NodeState::anonymous(),
        });
        let connection = ConnectionId { index: 0, generation: 0 };
        let mut output = TickOutput::default();
        let (peer, local) = ("10.0.0.1:5".to_string(), "10.0.0.2:6379".to_string());
        let mut events =
            vec![Event::Accepted { connection, door: Door::Standalone, entrance: Entrance::default(), peer, local }];
        let input = TickInput { now: Now::default(), received: &[], events: &mut events, hops: &mut Vec::new() };
        shard.tick(input, &mut output);
        // Close waits for the send under way.
        let [Effect::Send { buffer, .. }, Effect::Close { .. }] = &output.effects[..] else {
            panic!("{:?}", output.effects)
        };
        assert!(buffer.starts_with(b"-DENIED "), "{}", buffer.escape_ascii());
    }
}
