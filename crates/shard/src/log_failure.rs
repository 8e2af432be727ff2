//! A failed sync: the node's log takes nothing any more, and everything that waited for it ends.
//!
//! ```text
//!   LogFailed ─► this core ── LogFailed ──► every other core          once, for the whole node
//!                  ├ replies that are held, here and for others: their connections are closed, the outcome is unknown
//!                  ├ clients that wait for a key: an error, no key changes any more
//!                  └ who asks what is durable: nothing that is not so already
//!   from then on   writes are refused · reads go on, but for what was not committed: an error
//! ```
//!
//! A tick hears of it before anything else, so that it is before or behind whatever the tick executes, and never in between.
//! All cores, because a unit over several of them is undecided for ever when one log takes it and another does not, and
//! nobody may hear of what came behind it; and no run may be published while one log is not durable.
//!
//! A failed write is another matter: the street withholds what that tick promised, and the process ends.

use std::collections::VecDeque;

use base::planted::{Bug, is_planted};
use base::{ConnectionId, CoreId, Event, LogOrdinal, Promise};
use wire::{Protocol, Reply};

use crate::connection::Connection;
use crate::gather::Answer;
use crate::hop::{Control, HopBatch, Origin};
use crate::shard::Shard;
use crate::timing;

/// The log group of what a reply saw and no log group will ever have: instead of the reply there is an error.
pub(crate) const NEVER: Promise = Promise::of_all(LogOrdinal(u64::MAX));
/// The same of what a request changed: nobody knows what becomes of that, so its connection is closed.
pub(crate) const LOST: Promise = Promise::of_all(LogOrdinal(u64::MAX - 1));

impl Shard {
    /// The first that a tick hears of, whichever tick it is told in: records of what was executed before would go with this failure,
    /// and their replies, which nothing holds in durability `interval`, would leave all the same.
    pub(crate) fn hear_of_failed_log(&mut self, events: &mut Vec<Event>, hops: &[(CoreId, HopBatch)]) {
        if is_planted(Bug::M61FailureInItsTurn) {
            return;
        }
        if let Some(place) = events.iter().position(|event| matches!(event, Event::LogFailed { .. })) {
            let is_of_log = |event: &mut Event| {
                matches!(event, Event::LogWritten { .. } | Event::LogSynced { .. } | Event::LogFailed { .. })
            };
            let heard: Vec<Event> = events.extract_if(..=place, is_of_log).collect();
            heard.into_iter().for_each(|event| self.on_log_event(event));
        }
        if let Some(reason) = hops.iter().find_map(|(_, batch)| batch.log_failure()) {
            self.end_log(reason);
        }
    }

    /// What became of a write or a sync.
    pub(crate) fn on_log_event(&mut self, event: Event) {
        match event {
            Event::LogWritten { ordinal, buffer } => {
                self.log_mut("written").on_log_written(ordinal);
                if let Some(next) = self.store.log_mut() {
                    next.reuse(buffer);
                }
            }
            Event::LogSynced { ordinal } => {
                self.synced_unix_ms = self.now.unix_ms;
                self.synced_now = true;
                let took_us = self.now.monotonic_us.saturating_sub(self.last_sync_us);
                self.timing.note_event(timing::Event::LogSync, self.now.unix_ms, took_us);
                self.log_mut("synced").on_log_synced(ordinal);
            }
            Event::LogFailed { reason } => self.on_log_failed(reason),
            _ => unreachable!("not about the log"),
        }
    }

    /// The street wrote or synced in vain.
    fn on_log_failed(&mut self, reason: String) {
        let Some(log) = &self.log else { unreachable!("no log was ever asked for anything") };
        if log.given() > log.written() {
            // The street has withheld the replies of a failed write: nobody here is served any more.
            self.stopping = true;
            self.note_log_failure(&reason);
            return;
        }
        for (core, batch) in self.outbox.iter_mut().enumerate() {
            if core != usize::from(self.core.0) {
                batch.controls.push(Control::LogFailed { reason: reason.clone() });
            }
        }
        self.end_log(&reason);
    }

    /// This core's log failed, or another one's: see the module.
    pub(crate) fn end_log(&mut self, reason: &str) {
        // What is promised by now leaves.
        self.commit();
        self.note_log_failure(reason);
        if is_planted(Bug::M35HeldForEver) {
            return;
        }
        self.drop_unsealed();
        self.end_held();
        self.end_durable_asks();
        self.end_copy_waits();
        self.end_waits();
    }

    fn note_log_failure(&mut self, reason: &str) {
        // Also in this tick: what it would log is written nowhere any more.
        self.checks_writes = true;
        if let Some(log) = &mut self.log {
            log.on_log_failed(reason.to_string());
        }
        self.node.note_log_failure(reason);
        self.update_tracking();
        self.set_log_bound();
    }

    /// Whether the log takes nothing any more, until the next start.
    #[inline]
    pub(crate) fn has_log_failed(&self) -> bool {
        self.log.as_ref().is_some_and(|log| log.failure().is_some())
    }

    /// Records that no group will have. Nobody was told of them, and nobody will be.
    pub(crate) fn drop_unsealed(&mut self) {
        if let Some(buffer) = self.store.log_mut() {
            *buffer = storage::log::LogBuffer::default();
        }
    }

    /// Replies that wait for a group which will not be committed.
    pub(crate) fn end_held(&mut self) {
        let horizon = &self.horizon;
        let is_held = |connection: &&Connection| connection.output.is_held_beyond(horizon);
        let mut ended: Vec<ConnectionId> = self.connections.iter().filter(is_held).map(|held| held.id).collect();
        for pending in self.units.pending.iter_mut().chain(&mut self.units.waiting) {
            let Some(answer) = &mut pending.answer else { continue };
            // Without a reply its connection waits for a key, and is told.
            ended.extend(answer.reply.take().map(|_| answer.connection));
        }
        ended.into_iter().for_each(|id| self.abandon(id));
        let held = std::mem::take(&mut self.held_replies).into_iter();
        let (leaving, lost): (VecDeque<_>, VecDeque<_>) = held.partition(|(until, ..)| self.horizon.keeps(*until));
        self.held_replies = leaving;
        for (_, origin, reply) in lost {
            self.abandon_origin(origin);
            self.store.let_go(reply.into_blocks());
        }
        self.end_held_parts();
    }

    /// The connection of a request that has no answer is closed, on whatever core.
    pub(crate) fn abandon_origin(&mut self, origin: Origin) {
        match origin.core == self.core {
            true => self.abandon(origin.connection),
            false => self.outbox[usize::from(origin.core.0)].controls.push(Control::Abandon(origin.connection)),
        }
    }

    /// The connection is closed: nobody can say what became of a request of it. What may leave leaves first.
    pub(crate) fn abandon(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.session.set_closing();
        connection.abandoned = true;
        // Whatever comes to hold before it is closed: nobody knows whether what was asked for counts.
        connection.output.cut();
        self.list_for_flush(id.index);
    }

    fn end_durable_asks(&mut self) {
        for ask in std::mem::take(&mut self.durable_asks) {
            self.refuse_durable_ask(ask);
        }
    }

    /// What an asker is told who wants to know that all of this core is durable.
    pub(crate) fn not_durable(&self, answer: &Answer) -> Answer {
        match answer {
            Answer::Pinned(_) => Answer::Pinned(Err(self.write_refusal().unwrap_or_default())),
            _ => Answer::Count(0),
        }
    }

    /// Nobody changes a key any more.
    fn end_waits(&mut self) {
        let Some(text) = self.write_refusal() else { return };
        while let Some(target) = self.waiters.take_request() {
            self.answer(target, |reply| reply.error("MISCONF", &text));
        }
        self.track_touched();
        self.end_wide_waits(&text);
    }

    /// The error that stands for a reply which tells what was not committed when the log failed.
    pub(crate) fn unpromised(&self, protocol: Protocol) -> Vec<u8> {
        let reason = self.node.log_failure().unwrap_or_default();
        let text = format!(
            "the log failed: {reason}; what this would show was written just then, and may be gone after a restart; repair the \
             disk and restart the node"
        );
        let mut bytes = Vec::new();
        Reply::new(&mut bytes, protocol).error("MISCONF", &text);
        bytes
    }
}

#[cfg(test)]
mod tests;
