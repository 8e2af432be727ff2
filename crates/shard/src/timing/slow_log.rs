//! SLOWLOG: the latest commands of one core's clients that took long.

use std::collections::VecDeque;

use base::CoreId;
use base::limits::{CORES_MAX, SLOW_ARGUMENT_BYTES, SLOW_ARGUMENTS};
use wire::registry::{CommandId as Id, CommandSpec};
use wire::{Arguments, Reply};

/// What stands in place of a secret.
const REDACTED: &[u8] = b"(redacted)";
/// Settings whose values nobody is to read.
const SECRET_SETTINGS: [&str; 1] = ["requirepass"];

/// A command that took long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlowEntry {
    /// Unique on the node; a later one has a higher id, whichever core it is of.
    pub id: u64,
    /// When it ended, Unix milliseconds.
    pub unix_ms: u64,
    /// How long it took, without its waiting, microseconds.
    pub took_us: u64,
    /// Its words as far as they are kept.
    pub words: Vec<Vec<u8>>,
    /// Address of its client; empty where that is not known any more.
    pub peer: String,
    /// Name of its client, if it has one.
    pub name: Vec<u8>,
}

impl SlowEntry {
    /// The entry of a command whose client is not known yet.
    pub fn new(spec: &CommandSpec, arguments: Arguments<'_>, unix_ms: u64, took_us: u64) -> SlowEntry {
        let kept = if arguments.len() > SLOW_ARGUMENTS { SLOW_ARGUMENTS - 1 } else { arguments.len() };
        let mut words: Vec<Vec<u8>> = (0..kept)
            .map(
                |index| {
                    if is_secret(spec, arguments, index) { REDACTED.to_vec() } else { shortened(&arguments[index]) }
                },
            )
            .collect();
        if kept < arguments.len() {
            words.push(format!("... ({} more arguments)", arguments.len() - kept).into_bytes());
        }
        SlowEntry { unix_ms, took_us, words, ..SlowEntry::default() }
    }

    /// The six fields of Redis.
    pub fn write(&self, reply: &mut Reply<'_>) {
        reply.array(6);
        reply.integer(self.id as i64);
        reply.integer((self.unix_ms / 1000) as i64);
        reply.integer(self.took_us as i64);
        reply.array(self.words.len());
        self.words.iter().for_each(|word| reply.bulk(word));
        reply.bulk(self.peer.as_bytes());
        reply.bulk(&self.name);
    }
}

/// A word as far as it is kept; Redis's words for the rest.
fn shortened(word: &[u8]) -> Vec<u8> {
    match word.len().checked_sub(SLOW_ARGUMENT_BYTES) {
        None | Some(0) => word.to_vec(),
        Some(more) => [&word[..SLOW_ARGUMENT_BYTES], format!("... ({more} more bytes)").as_bytes()].concat(),
    }
}

/// Whether the word at `index` is a password, or may be one.
fn is_secret(spec: &CommandSpec, arguments: Arguments<'_>, index: usize) -> bool {
    match spec.id {
        Id::Auth => index >= 1,
        Id::Hello => index >= 2,
        Id::AclSetuser => index >= 3,
        Id::ConfigSet => {
            let is_secret =
                |name: &[u8]| SECRET_SETTINGS.iter().any(|secret| name.eq_ignore_ascii_case(secret.as_bytes()));
            index >= 3 && index % 2 == 1 && is_secret(&arguments[index - 1])
        }
        _ => false,
    }
}

/// Entries of one core, the latest first.
#[derive(Debug, Default)]
pub struct SlowLog {
    entries: VecDeque<SlowEntry>,
    entries_max: usize,
    moment: u64,
}

impl SlowLog {
    /// Keeps so many from now on.
    pub fn set_entries_max(&mut self, most: usize) {
        self.entries_max = most;
        self.entries.truncate(most);
    }

    /// Keeps an entry, and gives it its id: when it was, and the core.
    pub fn note(&mut self, mut entry: SlowEntry, core: CoreId) {
        self.moment = entry.unix_ms.max(self.moment + 1);
        entry.id = self.moment * CORES_MAX as u64 + u64::from(core.0);
        self.entries.push_front(entry);
        self.entries.truncate(self.entries_max);
    }

    /// All of them.
    pub fn entries(&self) -> impl Iterator<Item = &SlowEntry> {
        self.entries.iter()
    }

    /// Forgets all.
    pub fn reset(&mut self) {
        self.entries.clear();
    }
}
