//! ACL LOG: the latest refusals.

use std::collections::VecDeque;

use base::Now;
use base::limits::{ACL_LOG_ENTRIES_MAX, ACL_LOG_TEXT_BYTES_MAX};
use wire::Reply;

/// How long the same refusal is counted instead of being listed again, milliseconds; Redis's time.
const SAME_MS: u64 = 60_000;
/// Among how many of the latest the same one is looked for; Redis's number.
const LOOKED_AT: usize = 10;

/// What was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A name with its password.
    Auth,
    /// A command.
    Command,
    /// A key.
    Key,
    /// A channel.
    Channel,
}

impl Reason {
    fn name(self) -> &'static str {
        match self {
            Reason::Auth => "auth",
            Reason::Command => "command",
            Reason::Key => "key",
            Reason::Channel => "channel",
        }
    }
}

/// Where it was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// On its own.
    Toplevel,
    /// Between MULTI and the end of EXEC.
    Multi,
}

/// A refusal, and how often it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// What was refused.
    pub reason: Reason,
    /// Where.
    pub context: Context,
    /// The command or key, or AUTH or HELLO as it was spelled.
    pub object: Vec<u8>,
    /// To whom.
    pub user: Vec<u8>,
    /// The latest such connection, as CLIENT INFO shows it.
    pub client: Vec<u8>,
    /// Unix milliseconds of the first time.
    pub created_ms: u64,
    /// Of the latest.
    pub updated_ms: u64,
    /// How often.
    pub count: u64,
    /// Unique on the node.
    pub id: u64,
}

impl LogEntry {
    fn is_same(&self, other: &LogEntry) -> bool {
        self.reason == other.reason
            && self.context == other.context
            && self.object == other.object
            && self.user == other.user
            && other.updated_ms.saturating_sub(self.updated_ms) <= SAME_MS
    }

    /// The ten fields of Redis.
    pub fn write(&self, now: Now, reply: &mut Reply<'_>) {
        let context: &[u8] = if self.context == Context::Multi { b"multi" } else { b"toplevel" };
        reply.map(10);
        reply.bulk(b"count");
        reply.integer(self.count as i64);
        for (field, value) in [
            (&b"reason"[..], self.reason.name().as_bytes()),
            (b"context", context),
            (b"object", &self.object),
            (b"username", &self.user),
        ] {
            reply.bulk(field);
            reply.bulk(value);
        }
        reply.bulk(b"age-seconds");
        reply.double(now.unix_ms.saturating_sub(self.updated_ms) as f64 / 1000.0);
        reply.bulk(b"client-info");
        reply.bulk(&self.client);
        for (field, number) in [
            (&b"entry-id"[..], self.id),
            (b"timestamp-created", self.created_ms),
            (b"timestamp-last-updated", self.updated_ms),
        ] {
            reply.bulk(field);
            reply.integer(number as i64);
        }
    }
}

/// Refusals of one core, the latest first.
#[derive(Debug, Default)]
pub struct AclLog {
    entries: VecDeque<LogEntry>,
    count: u64,
}

impl AclLog {
    /// Lists a refusal, or counts it where the same one is listed. It is given its id: number and core.
    pub fn note(&mut self, mut entry: LogEntry, core: base::CoreId) {
        entry.object.truncate(ACL_LOG_TEXT_BYTES_MAX);
        entry.user.truncate(ACL_LOG_TEXT_BYTES_MAX);
        let same = self.entries.iter().take(LOOKED_AT).position(|known| known.is_same(&entry));
        match same.and_then(|place| self.entries.remove(place)) {
            Some(known) => {
                (entry.count, entry.id, entry.created_ms) = (known.count + 1, known.id, known.created_ms);
            }
            None => {
                entry.id = self.count * base::limits::CORES_MAX as u64 + u64::from(core.0);
                self.count += 1;
            }
        }
        self.entries.push_front(entry);
        self.entries.truncate(ACL_LOG_ENTRIES_MAX);
    }

    /// All of them.
    pub fn entries(&self) -> impl Iterator<Item = &LogEntry> {
        self.entries.iter()
    }

    /// Forgets all.
    pub fn reset(&mut self) {
        self.entries.clear();
    }
}
