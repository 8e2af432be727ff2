//! Calls: how often each command ran, was refused before that, or ran and was answered with an error, as Redis counts it.
//!
//! ```text
//!  gate refuses ──────────────────► rejected
//!  run: executed + 1 ─► answered at once, or late to who waits for it ─► an error? failed; of REFUSALS: rejected, executed - 1
//!       └─ hops: counted and judged where it runs; what blocks waits where its connection is, and is counted there
//! ```

use session::Gate;
use wire::ErrorCode;
use wire::registry::{CommandId, CommandSpec, Flags, Resolved};

use crate::shard::Shard;

/// The codes of requests that did not run.
const REFUSALS: [&str; 7] = ["NOAUTH", "NOPERM", "MOVED", "CROSSSLOT", "CLUSTERDOWN", "OOM", "MISCONF"];

impl Shard {
    #[inline]
    pub(crate) fn note_command(&mut self, id: CommandId) {
        self.statistics.counters.commands += 1;
        self.statistics.calls(id).executed += 1;
    }

    /// A request that began here runs on another core.
    pub(crate) fn note_hop(&mut self, spec: &CommandSpec) {
        self.statistics.counters.hops_sent += 1;
        if !spec.flags.contains(Flags::BLOCKING) {
            self.statistics.calls(spec.id).take_back();
        }
    }

    /// A request that began on another core runs here.
    pub(crate) fn note_hopped(&mut self, spec: &CommandSpec) {
        self.statistics.counters.commands += 1;
        self.statistics.calls(spec.id).executed += u64::from(!spec.flags.contains(Flags::BLOCKING));
    }

    /// A request that began on another core was answered.
    pub(crate) fn note_hop_reply(&mut self, spec: &CommandSpec, reply: &[u8]) {
        if let Some(code) = ErrorCode::of(reply).filter(|_| !spec.flags.contains(Flags::BLOCKING)) {
            self.note_failure(spec.id, code);
        }
    }

    /// An error was written while a request was looked at.
    #[cold]
    pub(crate) fn note_error(&mut self, resolved: Resolved, gate: Gate, code: ErrorCode) {
        let (Resolved::Command(spec) | Resolved::WrongArity(spec)) = resolved else { return };
        match gate {
            Gate::Run(_) => self.note_failure(spec.id, code),
            Gate::Queue(_) | Gate::Refused | Gate::Denied(..) => self.note_rejected(spec),
        }
    }

    /// As [`Shard::note_rejected`], of what wrote its error to its connection.
    pub(crate) fn note_rejected_at(&mut self, index: u32, spec: &CommandSpec) {
        if self.connections.at(index).and_then(|connection| connection.output.take_last_error()).is_some() {
            self.note_rejected(spec);
        }
    }

    /// A request was refused that was not counted before.
    pub(crate) fn note_rejected(&mut self, spec: &CommandSpec) {
        self.statistics.calls(spec.id).rejected += 1;
    }

    /// A connection that waited was answered: whether with an error.
    pub(crate) fn note_late_reply(&mut self, index: u32) {
        let Some(connection) = self.connections.at(index) else { return };
        let Some(code) = connection.output.take_last_error() else { return };
        if let Some(spec) = connection.session.last_command() {
            self.note_failure(spec.id, code);
        }
    }

    /// A request that was counted when it began was answered with an error.
    #[cold]
    pub(crate) fn note_failure(&mut self, id: CommandId, code: ErrorCode) {
        let calls = self.statistics.calls(id);
        if REFUSALS.contains(&code.as_str()) {
            calls.take_back();
            calls.rejected += 1;
        } else {
            calls.failed += 1;
        }
    }
}

#[cfg(test)]
mod tests;
