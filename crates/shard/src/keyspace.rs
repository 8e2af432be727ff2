//! Commands over the whole keyspace; a unit has brought every slot group that the connection's door shows.

#[cfg(test)]
mod tests;

use base::{Database, Door, SLOT_GROUP_COUNT, SlotGroupId};
use storage::ScanCursor;
use wire::number::parse_integer;
use wire::registry::{CommandId as Id, CommandSpec};
use wire::{Arguments, ErrorReply, Protocol, Reply, error};

use crate::owned_request::OwnedRequest;
use crate::shard::Shard;
use crate::unit::UnitWork;

/// What somebody is shown of the keyspace, and how.
#[derive(Clone, Copy)]
pub(crate) struct Shown {
    pub protocol: Protocol,
    pub database: Database,
    pub door: Door,
}

impl Shard {
    /// Starts a command over the keyspace. SCAN needs one core's groups at a time; the others need them all.
    pub(crate) fn start_keyspace(&mut self, index: u32, spec: &'static CommandSpec, arguments: Arguments<'_>) {
        let door = self.door(index);
        if self.is_split_member() && door == Door::Standalone {
            return self.start_keyspace_in_parts(index, spec, arguments);
        }
        self.start_own_keyspace(index, spec, arguments);
    }

    /// As [`Shard::start_keyspace`], with what this core has or is lent.
    pub(crate) fn start_own_keyspace(&mut self, index: u32, spec: &'static CommandSpec, arguments: Arguments<'_>) {
        if spec.is_write() {
            self.note_written_everywhere(index);
        }
        let door = self.door(index);
        let mut masks = self.whole_keyspace(door);
        if spec.id == Id::Scan {
            let group = scan_group(arguments).unwrap_or(0).max(self.first_group(door));
            masks.retain(|(_, mask)| mask >> group & 1 == 1);
        }
        self.start_unit(index, masks, UnitWork::Keyspace(OwnedRequest::new(spec, arguments)));
    }

    /// Runs it; the groups are here.
    pub(crate) fn run_keyspace(
        &mut self,
        shown: Shown,
        spec: &'static CommandSpec,
        arguments: Arguments<'_>,
        bytes: &mut Vec<u8>,
    ) {
        // Groups that were lent for another unit are not part of what an instance shows.
        let lent = if shown.door == Door::Cluster { self.store.set_lent_aside() } else { Vec::new() };
        self.run_on_shown_keyspace(shown, spec, arguments, bytes);
        lent.into_iter().for_each(|group| self.store.insert_group(group));
    }

    fn run_on_shown_keyspace(
        &mut self,
        Shown { protocol, database, door }: Shown,
        spec: &'static CommandSpec,
        arguments: Arguments<'_>,
        bytes: &mut Vec<u8>,
    ) {
        let mut reply = Reply::new(bytes, protocol);
        match spec.id {
            Id::Dbsize => reply.integer(self.shown_count(database) as i64),
            Id::Flushdb | Id::Flushall => match self.flush(spec.id, database, arguments) {
                Ok(()) => reply.ok(),
                Err(flaw) => flaw.write(&mut reply),
            },
            Id::Randomkey => match self.shown_random_key(database) {
                Some(name) => reply.bulk(&name),
                None => reply.null(),
            },
            Id::Keys => {
                let names = self.keys(database, &arguments[1]);
                reply.array(names.len());
                names.iter().for_each(|name| reply.bulk(name));
            }
            Id::ClusterCountkeysinslot | Id::ClusterGetkeysinslot => self.slot_keys(arguments, &mut reply),
            Id::MemoryUsage => self.memory_usage(database, arguments, &mut reply),
            _ => self.scan(database, door, arguments, &mut reply),
        }
    }

    /// CLUSTER COUNTKEYSINSLOT and GETKEYSINSLOT; the slot and the count were checked before.
    fn slot_keys(&mut self, arguments: Arguments<'_>, reply: &mut Reply<'_>) {
        let number = |index| arguments.get(index).and_then(parse_integer);
        let slot = number(2).and_then(|number| base::Slot::new(number as u16)).expect("checked before");
        let Some(most) = number(3) else {
            let count = self.store.group(slot.group()).map_or(0, |group| group.keys_in_slot(slot));
            return reply.integer(i64::from(count));
        };
        let names = self.store.keys_in_slot(slot, Database(0), most.max(0) as usize);
        reply.array(names.len());
        names.iter().for_each(|name| reply.bulk(name));
    }

    fn memory_usage(&mut self, database: Database, arguments: Arguments<'_>, reply: &mut Reply<'_>) {
        if let Err(flaw) = check_samples(arguments.from(3)) {
            return flaw.write(reply);
        }
        let name = &arguments[2];
        let key = self.store.key(name, database, placement::slot_of(name));
        match self.store.key_bytes(&key, self.now.unix_ms) {
            Some(bytes) => reply.integer(bytes as i64),
            None => reply.null(),
        }
    }

    pub(crate) fn flush(&mut self, id: Id, database: Database, arguments: Arguments<'_>) -> Result<(), FlushFlaw> {
        let is_mode = |word: &[u8]| word.eq_ignore_ascii_case(b"sync") || word.eq_ignore_ascii_case(b"async");
        match (arguments.len(), arguments.get(1)) {
            (1, _) => {}
            (2, Some(word)) if is_mode(word) => {}
            _ => return Err(FlushFlaw::Syntax),
        }
        if let Some(text) = self.write_refusal() {
            return Err(FlushFlaw::Refused(text));
        }
        self.clear_shown((id == Id::Flushdb).then_some(database));
        Ok(())
    }

    /// The names that fit a pattern, sorted.
    pub(crate) fn keys(&mut self, database: Database, pattern: &[u8]) -> Vec<Vec<u8>> {
        let mut names: Vec<Vec<u8>> = Vec::new();
        let mut cursor = Some(ScanCursor(0));
        while let Some(from) = cursor {
            let bounds = (usize::MAX, SLOT_GROUP_COUNT);
            cursor = self.store.scan(from, bounds, database, self.now.unix_ms, |record| {
                if wire::glob::matches(pattern, record.key, false) && self.shows(record.key) {
                    names.push(record.key.to_vec());
                }
            });
        }
        // A walk may show an entry twice; KEYS does not.
        names.sort_unstable();
        names.dedup();
        names
    }

    fn scan(&mut self, database: Database, door: Door, arguments: Arguments<'_>, reply: &mut Reply<'_>) {
        let Some(scan) = commands::scan::parse(arguments, reply) else { return };
        // A new scan through a node of a cluster begins where the node's own groups do.
        let from = ScanCursor(scan.cursor.max(u64::from(self.first_group(door)) << 32));
        let mut names: Vec<Vec<u8>> = Vec::new();
        let end = self.end_of_core(from);
        let most = usize::try_from(scan.count).unwrap_or(usize::MAX);
        let next = self.store.scan(from, (most, end), database, self.now.unix_ms, |record| {
            if scan.filter.shows(&record) && self.shows(record.key) {
                names.push(record.key.to_vec());
            }
        });
        let more_cores = door == Door::Standalone && end < SLOT_GROUP_COUNT;
        let next = next.or(more_cores.then_some(ScanCursor(u64::from(end) << 32)));
        reply.array(2);
        reply.bulk(next.map_or(0, |cursor| cursor.0).to_string().as_bytes());
        reply.array(names.len());
        names.iter().for_each(|name| reply.bulk(name));
    }

    /// The first group that the door shows.
    fn first_group(&self, door: Door) -> u8 {
        let masks = self.whole_keyspace(door);
        masks.iter().map(|(_, mask)| mask.trailing_zeros() as u8).min().unwrap_or(0)
    }

    /// The group after the last one of the core that owns the cursor's group.
    fn end_of_core(&self, cursor: ScanCursor) -> u8 {
        let group = group_of(cursor);
        let owner = self.table.group_owner(group);
        let mine = SlotGroupId::all().filter(|group| self.table.group_owner(*group) == owner);
        mine.map(|group| group.number() + 1).max().unwrap_or(SLOT_GROUP_COUNT)
    }
}

/// Why nothing was removed.
#[derive(Clone, Debug)]
pub enum FlushFlaw {
    /// The words.
    Syntax,
    /// No write is taken now: why.
    Refused(String),
}

impl FlushFlaw {
    pub(crate) fn write(&self, reply: &mut Reply<'_>) {
        match self {
            FlushFlaw::Syntax => error::SYNTAX.write(reply),
            FlushFlaw::Refused(text) => reply.error("MISCONF", text),
        }
    }
}

/// `[SAMPLES count]...`: nothing is estimated from samples here, but a word that means nothing is no request.
fn check_samples(options: Arguments<'_>) -> Result<(), ErrorReply> {
    for index in (0..options.len()).step_by(2) {
        let count = options.get(index + 1).filter(|_| options[index].eq_ignore_ascii_case(b"samples"));
        if parse_integer(count.ok_or(error::SYNTAX)?).ok_or(error::NOT_INTEGER)? < 0 {
            return Err(error::SYNTAX);
        }
    }
    Ok(())
}

fn group_of(cursor: ScanCursor) -> SlotGroupId {
    let number = (cursor.0 >> 32).min(u64::from(SLOT_GROUP_COUNT) - 1) as u8;
    SlotGroupId::new(number).expect("bounded above")
}

/// The slot group that a SCAN's cursor stands in; `None` for a cursor that is no number.
pub(crate) fn scan_group(arguments: Arguments<'_>) -> Option<u8> {
    let cursor = std::str::from_utf8(arguments.get(1)?).ok()?.parse().ok()?;
    Some(group_of(ScanCursor(cursor)).number())
}
