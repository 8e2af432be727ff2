//! Commands over the whole keyspace; a unit has brought every slot group that the connection's door shows.

use base::{ConnectionId, Database, Door, SLOT_GROUP_COUNT, SlotGroupId};
use storage::ScanCursor;
use wire::registry::{CommandId as Id, CommandSpec};
use wire::{Arguments, Reply, error};

use crate::owned_request::OwnedRequest;
use crate::shard::Shard;
use crate::unit::UnitWork;

impl Shard {
    /// Starts a command over the keyspace. SCAN needs one core's groups at a time; the others need them all.
    pub(crate) fn start_keyspace(&mut self, index: u32, spec: &'static CommandSpec, arguments: Arguments<'_>) {
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
        id: ConnectionId,
        spec: &'static CommandSpec,
        arguments: Arguments<'_>,
        bytes: &mut Vec<u8>,
    ) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let door = connection.session.door();
        // Groups that were lent for another unit are not part of what an instance shows.
        let lent = if door == Door::Cluster { self.store.set_lent_aside() } else { Vec::new() };
        self.run_on_shown_keyspace(id, spec, arguments, bytes);
        lent.into_iter().for_each(|group| self.store.insert_group(group));
    }

    fn run_on_shown_keyspace(
        &mut self,
        id: ConnectionId,
        spec: &'static CommandSpec,
        arguments: Arguments<'_>,
        bytes: &mut Vec<u8>,
    ) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let (protocol, database, door) =
            (connection.session.protocol(), connection.session.database(), connection.session.door());
        let mut reply = Reply::new(bytes, protocol);
        match spec.id {
            Id::Dbsize => reply.integer(self.shown_count(database) as i64),
            Id::Flushdb | Id::Flushall => self.flush(spec.id, database, arguments, &mut reply),
            Id::Randomkey => match self.shown_random_key(database) {
                Some(name) => reply.bulk(&name),
                None => reply.null(),
            },
            Id::Keys => self.keys(database, &arguments[1], &mut reply),
            Id::ClusterCountkeysinslot | Id::ClusterGetkeysinslot => self.slot_keys(arguments, &mut reply),
            Id::MemoryUsage => self.memory_usage(database, &arguments[2], &mut reply),
            _ => self.scan(database, door, arguments, &mut reply),
        }
    }

    /// CLUSTER COUNTKEYSINSLOT and GETKEYSINSLOT; the slot and the count were checked before.
    fn slot_keys(&mut self, arguments: Arguments<'_>, reply: &mut Reply<'_>) {
        let number = |index| arguments.get(index).and_then(wire::number::parse_integer);
        let slot = number(2).and_then(|number| base::Slot::new(number as u16)).expect("checked before");
        let Some(most) = number(3) else {
            let count = self.store.group(slot.group()).map_or(0, |group| group.keys_in_slot(slot));
            return reply.integer(i64::from(count));
        };
        let names = self.store.keys_in_slot(slot, Database(0), most.max(0) as usize);
        reply.array(names.len());
        names.iter().for_each(|name| reply.bulk(name));
    }

    fn memory_usage(&mut self, database: Database, name: &[u8], reply: &mut Reply<'_>) {
        let key = self.store.key(name, database, placement::slot_of(name));
        match self.store.key_bytes(&key, self.now.unix_ms) {
            Some(bytes) => reply.integer(bytes as i64),
            None => reply.null(),
        }
    }

    fn flush(&mut self, id: Id, database: Database, arguments: Arguments<'_>, reply: &mut Reply<'_>) {
        let is_mode = |word: &[u8]| word.eq_ignore_ascii_case(b"sync") || word.eq_ignore_ascii_case(b"async");
        match (arguments.len(), arguments.get(1)) {
            (1, _) => {}
            (2, Some(word)) if is_mode(word) => {}
            _ => return error::SYNTAX.write(reply),
        }
        if let Some(text) = self.write_refusal() {
            return reply.error("MISCONF", &text);
        }
        self.clear_shown((id == Id::Flushdb).then_some(database));
        reply.ok();
    }

    fn keys(&mut self, database: Database, pattern: &[u8], reply: &mut Reply<'_>) {
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
        reply.array(names.len());
        names.iter().for_each(|name| reply.bulk(name));
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

fn group_of(cursor: ScanCursor) -> SlotGroupId {
    let number = (cursor.0 >> 32).min(u64::from(SLOT_GROUP_COUNT) - 1) as u8;
    SlotGroupId::new(number).expect("bounded above")
}

/// The slot group that a SCAN's cursor stands in; `None` for a cursor that is no number.
fn scan_group(arguments: Arguments<'_>) -> Option<u8> {
    let cursor = std::str::from_utf8(arguments.get(1)?).ok()?.parse().ok()?;
    Some(group_of(ScanCursor(cursor)).number())
}
