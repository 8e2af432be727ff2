//! MULTI and WATCH: the requests a connection has queued, and the keys whose change makes EXEC do nothing.

use base::limits;
use base::street::Span;
use base::{Blocks, Database, Slot, Version};
use wire::Arguments;
use wire::registry::CommandSpec;

/// A key as WATCH saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedKey {
    /// The key's bytes.
    pub key: Vec<u8>,
    /// The database it is in.
    pub database: Database,
    /// Its slot, and so its core.
    pub slot: Slot,
    /// Its version then; [`Version::ABSENT`] when it did not exist.
    pub version: Version,
    /// How many keys its slot group had removed then: a key that came and went in between is not absent unchanged.
    pub removal_count: u64,
}

/// One queued request.
#[derive(Clone, Copy, Debug)]
struct Queued {
    spec: &'static CommandSpec,
    first_span: u32,
    span_count: u32,
}

/// A queued request, lent by [`Transaction::commands`].
#[derive(Clone, Copy, Debug)]
pub struct QueuedCommand<'a> {
    /// What to execute.
    pub spec: &'static CommandSpec,
    /// With what.
    pub arguments: Arguments<'a>,
}

/// A long argument of a queued request.
#[derive(Debug)]
pub struct QueuedLong {
    /// The number of the request among the queued ones.
    pub command: usize,
    /// Which of its arguments, which is empty then.
    pub argument: usize,
    /// Its bytes.
    pub blocks: Blocks,
}

/// Requests between MULTI and EXEC: one arena of bytes, so that queueing does not allocate per argument; long ones stay in the
/// blocks in which they came.
#[derive(Debug, Default)]
pub struct Transaction {
    arena: Vec<u8>,
    spans: Vec<Span>,
    queued: Vec<Queued>,
    /// In the order of the requests, and of their arguments.
    long: Vec<QueuedLong>,
    long_bytes: usize,
    /// A request was refused while queueing: EXEC will refuse all.
    spoiled: bool,
    /// Keys watched before MULTI.
    watched: Vec<WatchedKey>,
}

impl Transaction {
    pub(crate) fn new(watched: Vec<WatchedKey>) -> Transaction {
        Transaction { watched, ..Transaction::default() }
    }

    /// Copies a request to the end of the queue, and takes its `long` arguments, which are empty there; `false` when a bound of
    /// [`limits`] is reached.
    pub(crate) fn push(
        &mut self,
        spec: &'static CommandSpec,
        arguments: Arguments<'_>,
        long: &mut Vec<(usize, Blocks)>,
    ) -> bool {
        let bytes: usize = arguments.iter().map(<[u8]>::len).sum();
        let room = limits::TRANSACTION_BYTES_MAX.saturating_sub(self.arena.len());
        let long_bytes: usize = long.iter().map(|(_, blocks)| blocks.len()).sum();
        let long_room = limits::TRANSACTION_LONG_BYTES_MAX.saturating_sub(self.long_bytes);
        if bytes > room || long_bytes > long_room || self.queued.len() >= limits::TRANSACTION_COMMANDS_MAX {
            return false;
        }
        let Ok(first_span) = u32::try_from(self.spans.len()) else { return false };
        let command = self.queued.len();
        self.long_bytes += long_bytes;
        self.long.extend(long.drain(..).map(|(argument, blocks)| QueuedLong { command, argument, blocks }));
        for argument in arguments {
            self.spans.push(Span { start: self.arena.len() as u32, len: argument.len() as u32 });
            self.arena.extend_from_slice(argument);
        }
        self.queued.push(Queued { spec, first_span, span_count: arguments.len() as u32 });
        true
    }

    pub(crate) fn spoil(&mut self) {
        self.spoiled = true;
    }

    /// Whether EXEC will refuse all because one was refused.
    pub fn is_spoiled(&self) -> bool {
        self.spoiled
    }

    /// Memory of the queue, bytes.
    pub fn bytes(&self) -> usize {
        let spans = self.spans.capacity() * size_of::<Span>();
        self.arena.capacity() + spans + self.queued.capacity() * size_of::<Queued>() + self.long_bytes
    }

    /// Gives its long arguments away: to be run with it, or given back a slice at a time.
    pub fn take_long(&mut self) -> Vec<QueuedLong> {
        self.long_bytes = 0;
        std::mem::take(&mut self.long)
    }

    /// Number of queued requests; EXEC replies with as many.
    pub fn len(&self) -> usize {
        self.queued.len()
    }

    /// Whether nothing is queued.
    pub fn is_empty(&self) -> bool {
        self.queued.is_empty()
    }

    /// The queued requests in order.
    pub fn commands(&self) -> impl Iterator<Item = QueuedCommand<'_>> {
        self.queued.iter().map(|queued| self.lend(queued))
    }

    /// The queued request of that number.
    pub fn command(&self, number: usize) -> Option<QueuedCommand<'_>> {
        self.queued.get(number).map(|queued| self.lend(queued))
    }

    fn lend(&self, queued: &Queued) -> QueuedCommand<'_> {
        let first = queued.first_span as usize;
        let spans = &self.spans[first..first + queued.span_count as usize];
        QueuedCommand { spec: queued.spec, arguments: Arguments::new(&self.arena, spans) }
    }

    /// The keys that must not have changed.
    pub fn watched(&self) -> &[WatchedKey] {
        &self.watched
    }
}

const _: () = assert!(limits::TRANSACTION_BYTES_MAX <= u32::MAX as usize);
