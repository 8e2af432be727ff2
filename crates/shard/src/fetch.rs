//! Fetch: requests that need values which are on the disk wait until these are here (`docs/internals/tiering.md`).
//!
//! ```text
//!  request ── a key is cold ──► waits ── ReadRun ···► RunRead ── verified, warm ──► runs again, or in its turn
//!                               │
//!                               ├ a connection: stalls, and repeats its request
//!                               ├ a forwarded request: what its connection sends behind it waits, others pass
//!                               ├ a unit: keeps its groups
//!                               └ a waiter: is deferred
//! ```
//!
//! One read serves all that wait for it. What somebody waits for does not go again until he ran: who needs many values
//! gets all of them, whatever the limit.

mod units;

use std::collections::{BTreeMap, VecDeque};

use base::limits::VALUE_READS_MAX;
use base::{ConnectionId, CoreId, Database, Effect};
use storage::checkpoint::READ_OF_RUN;
use storage::{ColdValue, Key, Store};
use wire::registry::{CommandId, CommandSpec, Family, key_positions};
use wire::{Arguments, Reply};

use crate::connection::Stall;
use crate::forward::ParkedHop;
use crate::hop::{Origin, UnitId};
use crate::owned_request::OwnedRequest;
use crate::shard::Shard;

/// Who waits for a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Connection(ConnectionId),
    Forwarded(CoreId, ConnectionId),
    Unit(UnitId),
    Waiters,
}

/// What somebody waits for.
#[derive(Debug, Default)]
pub(crate) struct Awaited {
    missing: usize,
    /// Values that do not go until he ran.
    kept: Vec<ColdValue>,
    /// Why one of them cannot be had.
    failure: Option<String>,
}

struct Fetch {
    cold: ColdValue,
    who: Vec<Who>,
}

/// Forwarded requests of one connection, the first of which waits for values.
struct WaitingHops {
    awaited: Awaited,
    queue: VecDeque<ParkedHop>,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Fetches {
    count: u64,
    /// By number.
    all: BTreeMap<u64, Fetch>,
    by_value: BTreeMap<(u8, u32, u64), u64>,
    /// Not asked for yet.
    queue: VecDeque<u64>,
    under_way: usize,
    hops: BTreeMap<(u16, u32, u32), WaitingHops>,
    /// The value that cannot be read and why, while the waiters that need it are told.
    unreadable: Option<(ColdValue, String)>,
    /// Requests that waited, since the start.
    pub(crate) waits: u64,
    /// Reads that failed, since the start.
    pub(crate) failures: u64,
}

impl Fetches {
    /// Values asked for and not here.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Forwarded requests that wait.
    pub(crate) fn hops(&self) -> impl Iterator<Item = &ParkedHop> {
        self.hops.values().flat_map(|waiting| &waiting.queue)
    }

    fn add(&mut self, cold: &ColdValue, who: Who) {
        let value = (cold.group.number(), cold.position, cold.version.0);
        let number = *self.by_value.entry(value).or_insert_with(|| {
            self.count += 1;
            self.queue.push_back(self.count);
            self.all.insert(self.count, Fetch { cold: cold.clone(), who: Vec::new() });
            self.count
        });
        if let Some(fetch) = self.all.get_mut(&number) {
            fetch.who.push(who);
        }
    }
}

fn hops_of(origin: CoreId, connection: ConnectionId) -> (u16, u32, u32) {
    (origin.0, connection.index, connection.generation)
}

/// Whether a command may look at the values of its keys, and not only at whether, what and until when they are.
fn needs_values(spec: &CommandSpec, arguments: Arguments<'_>) -> bool {
    use CommandId as Id;
    match spec.id {
        Id::Set => arguments.iter().skip(3).any(|word| {
            let is = |known: &str| word.eq_ignore_ascii_case(known.as_bytes());
            let is_number = word.first().is_some_and(u8::is_ascii_digit);
            !is_number && !["ex", "px", "exat", "pxat", "keepttl", "nx", "xx"].iter().any(|known| is(known))
        }),
        Id::Setnx | Id::Setex | Id::Psetex | Id::Mset | Id::Msetnx => false,
        Id::Del | Id::Unlink | Id::Exists | Id::Type | Id::Touch => false,
        Id::Ttl | Id::Pttl | Id::Expiretime | Id::Pexpiretime => false,
        _ => spec.family == Family::Data,
    }
}

/// The cold values that a command needs.
fn cold_values(store: &Store, spec: &CommandSpec, arguments: Arguments<'_>, database: Database) -> Vec<ColdValue> {
    let mut positions = Vec::new();
    if !needs_values(spec, arguments) || key_positions(spec, arguments, &mut positions).is_err() {
        return Vec::new();
    }
    let names = positions.iter().filter_map(|position| arguments.get(position.index));
    let cold = |name| store.cold_value(&store.key(name, database, placement::slot_of(name)));
    let mut values: Vec<ColdValue> = names.filter_map(cold).collect();
    values.sort_unstable_by_key(|value| (value.group.number(), value.position, value.version));
    values.dedup();
    values
}

impl Shard {
    /// A request whose keys are all here waits if some of their values are not; true if it does not run now.
    pub(crate) fn awaits_values(
        &mut self,
        index: u32,
        spec: &'static CommandSpec,
        first_key: Option<Key<'_>>,
        arguments: Arguments<'_>,
    ) -> bool {
        let Some(connection) = self.connections.at(index) else { return true };
        let (id, database) = (connection.id, connection.session.database());
        let before = connection.awaited.take();
        let is_here = |key: Key<'_>| self.store.cold_value(&key).is_none();
        if spec.keys.len() == 1 && first_key.is_some_and(is_here) && crate::route::is_single_key(spec) {
            return self.ends_with_error(index, before);
        }
        let has_failed = before.as_ref().is_some_and(|awaited| awaited.failure.is_some());
        let cold = if has_failed { Vec::new() } else { cold_values(&self.store, spec, arguments, database) };
        if cold.is_empty() {
            return self.ends_with_error(index, before);
        }
        let awaited = self.await_all(cold, Who::Connection(id), before);
        // It will be counted when it runs.
        self.statistics.counters.commands -= 1;
        self.statistics.calls(spec.id).executed -= 1;
        let Some(connection) = self.connections.at(index) else { return true };
        connection.awaited = Some(Box::new(awaited));
        connection.stall = Stall::Fetch;
        wire::request::encode(arguments, &mut connection.repeat);
        true
    }

    /// The connection waits no longer; whether it cannot have what it waited for, and was told.
    fn ends_with_error(&mut self, index: u32, awaited: Option<Box<Awaited>>) -> bool {
        let Some(text) = awaited.and_then(|awaited| self.end_waiting(*awaited)) else { return false };
        if let Some(connection) = self.connections.at(index) {
            connection.output.reply(connection.session.protocol()).error("IOERR", &text);
        }
        true
    }

    /// He waits for these values. What he waited with `before` stays: else one of his values would go while another one comes, and he
    /// would never have all of them.
    fn await_all(&mut self, cold: Vec<ColdValue>, who: Who, before: Option<Box<Awaited>>) -> Awaited {
        self.fetches.waits += 1;
        for value in &cold {
            self.fetches.add(value, who);
            self.store.keep(value);
        }
        self.ask_for_values();
        let missing = cold.len();
        let kept = cold.into_iter().chain(before.into_iter().flat_map(|awaited| awaited.kept)).collect();
        Awaited { missing, kept, failure: None }
    }

    /// Asks for what was wanted first, as far as more reads may be under way.
    fn ask_for_values(&mut self) {
        while self.fetches.under_way < VALUE_READS_MAX
            && let Some(number) = self.fetches.queue.pop_front()
        {
            let Some(fetch) = self.fetches.all.get(&number) else { continue };
            let (name, offset, bytes) = (fetch.cold.file.clone(), fetch.cold.offset, fetch.cold.bytes as u64);
            self.fetches.under_way += 1;
            self.effects.push(Effect::ReadRun { token: number, name, offset, bytes });
        }
    }

    /// Bytes of a run are here, or cannot be had.
    pub(crate) fn on_run_read(&mut self, token: u64, read: Result<Vec<u8>, String>) {
        if token & READ_OF_RUN != 0 {
            return self.with_checkpoints(|checkpoints, view| checkpoints.on_run_read(token, read, view));
        }
        self.fetches.under_way -= 1;
        let Some(fetch) = self.fetches.all.remove(&token) else { return self.ask_for_values() };
        let Fetch { cold, who } = fetch;
        self.fetches.by_value.remove(&(cold.group.number(), cold.position, cold.version.0));
        let place = format!("{} at offset {}", cold.file, cold.offset);
        let warmed = match read {
            Ok(record) => self.store.warm(&cold, &record).map_err(|words| format!("{place}: {words}")),
            Err(words) => Err(words),
        };
        // A run may have taken the place of the one that was read: who waits looks again.
        let failure = warmed.err().filter(|_| self.store.is_still(&cold));
        self.fetches.failures += u64::from(failure.is_some());
        let failure = failure.map(|words| format!("the value cannot be read, and nothing was dropped: {words}"));
        self.ask_for_values();
        who.into_iter().for_each(|who| self.on_value(who, &cold, failure.as_deref()));
    }

    fn on_value(&mut self, who: Who, cold: &ColdValue, failure: Option<&str>) {
        let awaited = match who {
            Who::Connection(id) => {
                self.connections.get_mut(id).and_then(|connection| connection.awaited.as_deref_mut())
            }
            Who::Forwarded(core, id) => self.fetches.hops.get_mut(&hops_of(core, id)).map(|hops| &mut hops.awaited),
            Who::Unit(unit) => self.units.running.get_mut(&unit).map(|run| &mut run.awaited),
            Who::Waiters => {
                self.fetches.unreadable = failure.map(|words| (cold.clone(), words.to_owned()));
                self.fire_waiters();
                self.fetches.unreadable = None;
                return;
            }
        };
        let Some(awaited) = awaited else { return };
        awaited.missing -= 1;
        if let Some(words) = failure {
            awaited.failure.get_or_insert_with(|| words.to_owned());
        }
        if awaited.missing > 0 {
            return;
        }
        match who {
            Who::Connection(id) => self.unstall(id),
            Who::Forwarded(core, id) => self.go_on_with_hops(hops_of(core, id)),
            Who::Unit(unit) => self.gather_groups(unit),
            Who::Waiters => {}
        }
    }

    /// The values that a connection's first waiting request needs are here: it and those behind it come first.
    fn go_on_with_hops(&mut self, hops: (u16, u32, u32)) {
        let Some(WaitingHops { awaited, mut queue }) = self.fetches.hops.remove(&hops) else { return };
        match queue.front_mut() {
            Some(first) => first.awaited = Some(Box::new(awaited)),
            None => self.release_values(&awaited),
        }
        queue.into_iter().rev().for_each(|parked| self.parked_hops.push_front(parked));
        self.run_parked_hops();
    }

    /// A forwarded request whose turn has come, unless it waits for values, or behind one that does.
    pub(crate) fn with_values(&mut self, mut parked: ParkedHop) -> Option<ParkedHop> {
        let hops = hops_of(parked.origin.core, parked.origin.connection);
        if let Some(waiting) = self.fetches.hops.get_mut(&hops) {
            waiting.queue.push_back(parked);
            return None;
        }
        // Before its values are looked at: room is made of values, but not of those that it waited for.
        let mut bytes = Vec::new();
        let is_refused = self.refuse_forwarded(&parked.request, &mut Reply::new(&mut bytes, parked.protocol));
        let before = parked.awaited.take();
        let has_failed = before.as_ref().is_some_and(|awaited| awaited.failure.is_some());
        let request = &parked.request;
        let cold = match has_failed || is_refused {
            true => Vec::new(),
            false => cold_values(&self.store, request.spec, request.arguments(), parked.database),
        };
        if cold.is_empty() {
            return match before.and_then(|awaited| self.end_waiting(*awaited)) {
                Some(text) => self.refuse_hop(parked, &text),
                None if is_refused => self.refuse_hop_with(parked, &bytes),
                None => Some(parked),
            };
        }
        let awaited = self.await_all(cold, Who::Forwarded(parked.origin.core, parked.origin.connection), before);
        self.fetches.hops.insert(hops, WaitingHops { awaited, queue: VecDeque::from([parked]) });
        None
    }

    fn refuse_hop(&mut self, parked: ParkedHop, text: &str) -> Option<ParkedHop> {
        let mut bytes = Vec::new();
        Reply::new(&mut bytes, parked.protocol).error("IOERR", text);
        self.refuse_hop_with(parked, &bytes)
    }

    fn refuse_hop_with(&mut self, mut parked: ParkedHop, reply: &[u8]) -> Option<ParkedHop> {
        self.send_hop_reply(parked.origin, reply, Vec::new(), None);
        self.let_go(parked.request.take_long());
        self.end_parked(parked);
        None
    }

    /// The forwarded request with this origin, if it waits for values or behind one that does.
    pub(crate) fn waiting_hop(&mut self, origin: Origin) -> Option<&mut ParkedHop> {
        let waiting = self.fetches.hops.get_mut(&hops_of(origin.core, origin.connection))?;
        waiting.queue.iter_mut().find(|parked| parked.origin == origin)
    }

    /// The client of a forwarded request left. What it waits for comes all the same, for those behind it.
    pub(crate) fn cancel_waiting_hop(&mut self, origin: Origin) -> Option<ParkedHop> {
        let waiting = self.fetches.hops.get_mut(&hops_of(origin.core, origin.connection))?;
        let place = waiting.queue.iter().position(|parked| parked.origin == origin)?;
        waiting.queue.remove(place)
    }

    /// The connection waits for no value any more.
    pub(crate) fn forget_values(&mut self, awaited: Option<Box<Awaited>>) {
        awaited.iter().for_each(|awaited| self.release_values(awaited));
    }

    fn release_values(&mut self, awaited: &Awaited) {
        awaited.kept.iter().for_each(|cold| self.store.release(cold));
        if self.store.is_starved() {
            // Writers may wait for no more than this.
            self.put_off.note();
        }
    }

    /// Whether a waiter has to wait for a value before it can look; then it is told. The error that it ends with, if it can
    /// never look.
    pub(crate) fn waiter_awaits_values(&mut self, request: &OwnedRequest, database: Database) -> Result<bool, String> {
        if !self.store.tiers() {
            return Ok(false);
        }
        let cold = cold_values(&self.store, request.spec, request.arguments(), database);
        if let Some((_, words)) = self.fetches.unreadable.as_ref().filter(|(value, _)| cold.contains(value)) {
            return Err(words.clone());
        }
        cold.iter().for_each(|value| self.fetches.add(value, Who::Waiters));
        self.ask_for_values();
        Ok(!cold.is_empty())
    }

    /// The unit runs: what it waited for may go again. The error that it answers with, if it cannot.
    pub(crate) fn end_waiting(&mut self, awaited: Awaited) -> Option<String> {
        self.release_values(&awaited);
        awaited.failure
    }
}

#[cfg(test)]
mod tests;
