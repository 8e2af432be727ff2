//! One slot group: 256 consecutive slots with their index, heap, lists and sequences, in one box that can change cores.
//!
//! Everything a key of these slots has in memory is reachable from here and from nowhere else. That is what lets a unit
//! over several cores run on one of them: the others lend their groups by moving the box.

mod check;

use base::{CoreId, Slot, SlotGroupId, Version};
use types::{Change, Expiry, Kind, List};

use crate::heap::{Heap, HeapFull, Location};
use crate::index::{Index, Place};
use crate::key::Key;
use crate::record::Header;

/// What a value is, borrowed from the group.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// A string's bytes; `raw` once it was changed in place.
    String {
        /// The bytes.
        bytes: &'a [u8],
        /// Changed in place before; only `OBJECT ENCODING` tells.
        raw: bool,
    },
    /// A list, never empty.
    List(&'a List),
}

impl Value<'_> {
    /// Its type.
    pub fn kind(&self) -> Kind {
        match self {
            Value::String { .. } => Kind::String,
            Value::List(_) => Kind::List,
        }
    }
}

/// A key's record, borrowed from the group.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// The key's name.
    pub key: &'a [u8],
    /// Sequence of its last write.
    pub version: Version,
    /// Absolute Unix milliseconds.
    pub expire_at_ms: Option<u64>,
    /// What it holds.
    pub value: Value<'a>,
}

/// Where a key's record was found; valid until the next change of the group.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    place: Place,
    location: Location,
}

/// How many keys and expiring keys a database has in a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatabaseCount {
    /// Keys, expired ones that nobody touched yet included.
    pub keys: u64,
    /// Keys with an expiry.
    pub expiring: u64,
}

/// See the module.
pub struct SlotGroup {
    id: SlotGroupId,
    /// The core whose log its changes go to, whoever runs them.
    pub(crate) owner: CoreId,
    pub(crate) index: Index,
    pub(crate) heap: Heap,
    lists: Vec<Option<Box<List>>>,
    lists_free: Vec<u32>,
    sequences: Box<[Sequences]>,
    databases: [DatabaseCount; base::limits::DATABASE_COUNT as usize],
    list_bytes: usize,
    scratch: Vec<u8>,
    removals: Removals,
}

/// How many removals a group remembers by hash.
const REMOVALS_REMEMBERED: usize = 256;

/// The last removals: they tell whether an absent key came and went since somebody looked.
#[derive(Default)]
struct Removals {
    count: u64,
    /// Hashes of the last ones, the newest last.
    recent: std::collections::VecDeque<u64>,
}

impl Removals {
    fn note(&mut self, hash: u64) {
        self.count += 1;
        if self.recent.len() == REMOVALS_REMEMBERED {
            self.recent.pop_front();
        }
        self.recent.push_back(hash);
    }

    fn forget_all(&mut self) {
        self.count += REMOVALS_REMEMBERED as u64 + 1;
        self.recent.clear();
    }

    /// Whether the key may be among the removals after the first `count`; sure unless too many followed.
    fn may_include(&self, hash: u64, count: u64) -> bool {
        let since = usize::try_from(self.count - count).unwrap_or(usize::MAX);
        since > self.recent.len() || self.recent.iter().rev().take(since).any(|removed| *removed == hash)
    }
}

/// The counters of one partition.
#[derive(Clone, Copy, Default)]
struct Sequences {
    /// Last version given out.
    last: Version,
    /// Version at which a key was last removed: what a reader of an absent key has to compare with.
    removed: Version,
    /// First version whose promise does not hold yet; absent when all of them do.
    uncommitted_from: Version,
    keys: u32,
}

impl SlotGroup {
    /// An empty group of `owner`.
    pub fn new(id: SlotGroupId, owner: CoreId) -> SlotGroup {
        SlotGroup {
            id,
            owner,
            index: Index::default(),
            heap: Heap::default(),
            lists: Vec::new(),
            lists_free: Vec::new(),
            sequences: vec![Sequences::default(); base::SLOTS_PER_GROUP as usize].into_boxed_slice(),
            databases: Default::default(),
            list_bytes: 0,
            scratch: Vec::new(),
            removals: Removals::default(),
        }
    }

    /// Which group.
    pub fn id(&self) -> SlotGroupId {
        self.id
    }

    /// Keys and expiring keys of one database.
    pub fn database(&self, database: base::Database) -> DatabaseCount {
        self.databases[database.0 as usize]
    }

    /// Whether any key has an expiry.
    pub fn has_expiring(&self) -> bool {
        self.databases.iter().any(|count| count.expiring > 0)
    }

    /// Keys of one slot, all databases.
    pub fn keys_in_slot(&self, slot: Slot) -> u32 {
        self.sequences[slot.in_group() as usize].keys
    }

    /// Last version given out in this partition.
    pub fn last_version(&self, slot: Slot) -> Version {
        self.sequences[slot.in_group() as usize].last
    }

    /// Version of the partition's last removal; what WATCH remembers of an absent key.
    pub fn removed_version(&self, slot: Slot) -> Version {
        self.sequences[slot.in_group() as usize].removed
    }

    /// How many keys were removed here so far; what WATCH remembers of an absent key.
    pub fn removal_count(&self) -> u64 {
        self.removals.count
    }

    /// Whether `key` may have been removed since the count was `count`.
    pub fn may_have_removed(&self, key: &Key<'_>, count: u64) -> bool {
        self.removals.may_include(key.hash, count)
    }

    /// The version of the partition's next write.
    pub(crate) fn next_version(&self, slot: Slot) -> Version {
        let last = self.sequences[slot.in_group() as usize].last;
        assert!(last < Version::MAX, "48 bits of versions outlast any disk");
        Version(last.0 + 1)
    }

    /// Remember that `version` is not committed; true when the partition was clean before.
    pub(crate) fn mark_uncommitted(&mut self, slot: Slot, version: Version) -> bool {
        let from = &mut self.sequences[slot.in_group() as usize].uncommitted_from;
        let was_clean = *from == Version::ABSENT;
        if was_clean {
            *from = version;
        }
        was_clean
    }

    /// The promise holds up to `version`; true when the partition is clean now.
    pub(crate) fn commit(&mut self, slot: Slot, version: Version) -> bool {
        let sequences = &mut self.sequences[slot.in_group() as usize];
        if sequences.uncommitted_from == Version::ABSENT || sequences.uncommitted_from > version {
            return false;
        }
        let clean = sequences.last <= version;
        sequences.uncommitted_from = if clean { Version::ABSENT } else { Version(version.0 + 1) };
        clean
    }

    /// Whether a reader who saw `version` (or, seeing nothing, the last removal) saw what is not committed.
    pub(crate) fn is_uncommitted(&self, slot: Slot, version: Version) -> bool {
        let from = self.sequences[slot.in_group() as usize].uncommitted_from;
        from != Version::ABSENT && version >= from
    }

    /// Forget all keys, of one database or of all; every partition's sequence moves on by one, so that every watcher
    /// notices.
    pub(crate) fn clear(&mut self, database: Option<base::Database>) {
        let others_empty =
            |only: base::Database| self.databases.iter().enumerate().all(|(d, n)| d == only.0 as usize || n.keys == 0);
        if database.is_none_or(others_empty) {
            let (sequences, removals) = (std::mem::take(&mut self.sequences), std::mem::take(&mut self.removals));
            *self = SlotGroup { sequences, removals, ..SlotGroup::new(self.id, self.owner) };
            self.sequences.iter_mut().for_each(|sequences| sequences.keys = 0);
        } else if let Some(database) = database {
            self.remove_all_of(database);
        }
        self.removals.forget_all();
        for sequences in &mut self.sequences {
            sequences.last.0 += 1;
            sequences.removed = sequences.last;
        }
    }

    fn remove_all_of(&mut self, database: base::Database) {
        let mut doomed: Vec<(u32, Vec<u8>)> = Vec::new();
        let mut cursor = Some(0);
        while let Some(from) = cursor {
            cursor = self.index.walk(from, |position, location| {
                if self.database_at(location) == database {
                    doomed.push((position, self.record_at(location).key.to_vec()));
                }
            });
        }
        for (position, name) in doomed {
            let heap = &self.heap;
            let matches = |location| Header::matches(heap.bytes(location), database, &name);
            let Some((place, location)) = self.index.find(position, matches) else {
                continue; // A walk may show an entry twice.
            };
            let slot = self.id.slot((position >> 24) as u8);
            self.remove_at(Found { place, location }, database, slot, Version::ABSENT);
        }
    }

    /// Bytes of memory: index, heap pages, lists.
    pub fn heap_bytes(&self) -> usize {
        self.index.heap_bytes() + self.heap.reserved_bytes() + self.list_bytes
    }

    /// Bytes of heap pages and lists.
    pub(crate) fn record_bytes(&self) -> usize {
        self.heap.reserved_bytes() + self.list_bytes
    }

    /// Bytes that one key takes: its slot of the heap, its list, and an index entry at three quarters load.
    pub(crate) fn bytes_of(&self, found: Found) -> usize {
        const INDEX_ENTRY_BYTES: usize = 12;
        let list = match self.record(found).value {
            Value::List(list) => list.heap_bytes(),
            Value::String { .. } => 0,
        };
        self.heap.slot_bytes(found.location) + list + INDEX_ENTRY_BYTES
    }

    /// Where the key's record is, expired or not.
    #[inline]
    pub fn find(&self, key: &Key<'_>) -> Option<Found> {
        debug_assert_eq!(key.group(), self.id);
        let heap = &self.heap;
        self.index
            .find(key.position(), |location| Header::matches(heap.bytes(location), key.database, key.bytes))
            .map(|(place, location)| Found { place, location })
    }

    /// The record that was found.
    #[inline]
    pub fn record(&self, found: Found) -> Record<'_> {
        self.record_at(found.location)
    }

    /// The record at a location that the index gave.
    #[inline]
    pub(crate) fn record_at(&self, location: Location) -> Record<'_> {
        let bytes = self.heap.bytes(location);
        let header = Header::decode(bytes);
        let value_start = header.value_start();
        let value = &bytes[value_start..value_start + header.value_len as usize];
        let value = match header.kind {
            Kind::String => Value::String { bytes: value, raw: header.raw },
            Kind::List => Value::List(self.list(list_number(value))),
        };
        Record {
            key: &bytes[header.key_start()..value_start],
            version: header.version,
            expire_at_ms: header.expire_at_ms,
            value,
        }
    }

    /// The database of the record at a location that the index gave.
    pub(crate) fn database_at(&self, location: Location) -> base::Database {
        Header::decode(self.heap.bytes(location)).database
    }

    /// Perform a change on memory under `version`. The change was planned against the key's present value.
    pub fn apply(&mut self, key: &Key<'_>, change: &Change<'_>, version: Version) -> Result<(), HeapFull> {
        debug_assert_eq!(key.group(), self.id);
        let sequences = &mut self.sequences[key.slot.in_group() as usize];
        sequences.last = sequences.last.max(version);
        let found = self.find(key);
        match *change {
            Change::Put { kind: Kind::String, value, expiry } => self.put_string(key, found, value, expiry, version),
            Change::Put { kind: Kind::List, value, expiry } => self.put_list(key, found, value, expiry, version),
            Change::Remove => {
                if let Some(found) = found {
                    self.remove(key, found, version);
                }
                Ok(())
            }
            _ => {
                let found = found.expect("a change of a present value was planned against a key that exists");
                self.apply_in_place(key, found, change, version)
            }
        }
    }

    fn apply_in_place(
        &mut self,
        key: &Key<'_>,
        found: Found,
        change: &Change<'_>,
        version: Version,
    ) -> Result<(), HeapFull> {
        let header = self.header(found);
        match *change {
            Change::Append { bytes } => self.splice(key, found, header.value_len as usize, bytes, version),
            Change::Overwrite { offset, bytes } => self.splice(key, found, offset as usize, bytes, version),
            Change::Expire { at_ms } => self.set_expiry(key, found, Some(at_ms), version),
            Change::Persist => self.set_expiry(key, found, None, version),
            _ => {
                self.change_list(key, found, change, version);
                Ok(())
            }
        }
    }

    fn put_string(
        &mut self,
        key: &Key<'_>,
        found: Option<Found>,
        value: &[u8],
        expiry: Expiry,
        version: Version,
    ) -> Result<(), HeapFull> {
        let old = found.map(|found| self.header(found));
        let header = Header {
            version,
            database: key.database,
            kind: Kind::String,
            raw: false,
            expire_at_ms: expiry_after(old.as_ref(), expiry),
            key_len: key.bytes.len() as u16,
            value_len: value.len() as u32,
        };
        self.put(key, found.zip(old), header, value)
    }

    fn put_list(
        &mut self,
        key: &Key<'_>,
        found: Option<Found>,
        value: &[u8],
        expiry: Expiry,
        version: Version,
    ) -> Result<(), HeapFull> {
        let list = List::decode(value).expect("the encoding was checked where it entered");
        let old = found.map(|found| self.header(found));
        let number = self.add_list(list);
        let header = Header {
            version,
            database: key.database,
            kind: Kind::List,
            raw: false,
            expire_at_ms: expiry_after(old.as_ref(), expiry),
            key_len: key.bytes.len() as u16,
            value_len: 4,
        };
        self.put(key, found.zip(old), header, &number.to_le_bytes())
    }

    /// Write a whole record, over the old one where it fits.
    fn put(
        &mut self,
        key: &Key<'_>,
        old: Option<(Found, Header)>,
        header: Header,
        value: &[u8],
    ) -> Result<(), HeapFull> {
        let bytes = header.record_bytes();
        let location = match old {
            Some((found, _)) if fits(self.heap.slot_bytes(found.location), bytes) => found.location,
            _ => self.heap.allocate(bytes)?,
        };
        if let Some((found, old_header)) = old {
            self.drop_list_of(found, &old_header);
            self.count_expiry(&old_header, header.expire_at_ms);
            if location != found.location {
                self.heap.free(found.location);
                self.index.relocate(found.place, location);
            }
        } else {
            self.index.insert(key.position(), location);
            let database = &mut self.databases[key.database.0 as usize];
            database.keys += 1;
            database.expiring += u64::from(header.expire_at_ms.is_some());
            self.sequences[key.slot.in_group() as usize].keys += 1;
        }
        let record = self.heap.bytes_mut(location);
        header.encode(record);
        let (key_start, value_start) = (header.key_start(), header.value_start());
        record[key_start..value_start].copy_from_slice(key.bytes);
        record[value_start..value_start + value.len()].copy_from_slice(value);
        Ok(())
    }

    fn remove(&mut self, key: &Key<'_>, found: Found, version: Version) {
        self.remove_at(found, key.database, key.slot, version);
        self.removals.note(key.hash);
    }

    fn remove_at(&mut self, found: Found, database: base::Database, slot: Slot, version: Version) {
        let header = self.header(found);
        self.drop_list_of(found, &header);
        self.index.remove(found.place);
        self.heap.free(found.location);
        let database = &mut self.databases[database.0 as usize];
        database.keys -= 1;
        database.expiring -= u64::from(header.expire_at_ms.is_some());
        let sequences = &mut self.sequences[slot.in_group() as usize];
        sequences.keys -= 1;
        sequences.removed = version;
    }

    /// Write `bytes` at `offset` of a string, growing it with zeros.
    fn splice(
        &mut self,
        key: &Key<'_>,
        found: Found,
        offset: usize,
        bytes: &[u8],
        version: Version,
    ) -> Result<(), HeapFull> {
        let mut header = self.header(found);
        let old_len = header.value_len as usize;
        let new_len = old_len.max(offset + bytes.len());
        header.version = version;
        header.raw = true;
        header.value_len = new_len as u32;
        let mut location = found.location;
        if self.heap.slot_bytes(location) < header.record_bytes() {
            // A quarter of slack, so that a value built by many appends is copied a logarithmic number of times.
            location = self.heap.allocate(header.record_bytes() + new_len / 4)?;
            let keep = header.value_start() + old_len;
            let mut scratch = std::mem::take(&mut self.scratch);
            scratch.extend_from_slice(&self.heap.bytes(found.location)[..keep]);
            self.heap.bytes_mut(location)[..keep].copy_from_slice(&scratch);
            scratch.clear();
            scratch.shrink_to(base::limits::LOG_PIECE_BYTES_MAX);
            self.scratch = scratch;
            self.heap.free(found.location);
            self.index.relocate(found.place, location);
        }
        debug_assert_eq!(key.bytes.len(), header.key_len as usize);
        let record = self.heap.bytes_mut(location);
        header.encode(record);
        let value = &mut record[header.value_start()..];
        if offset > old_len {
            value[old_len..offset].fill(0);
        }
        value[offset..offset + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn set_expiry(
        &mut self,
        key: &Key<'_>,
        found: Found,
        expire_at_ms: Option<u64>,
        version: Version,
    ) -> Result<(), HeapFull> {
        let old = self.header(found);
        let header = Header { version, expire_at_ms, ..old };
        if old.expire_at_ms.is_some() == expire_at_ms.is_some() {
            header.encode(self.heap.bytes_mut(found.location));
            return Ok(());
        }
        // The field comes or goes, so key and value move; a list's number moves with them.
        let old_bytes = self.heap.bytes(found.location);
        let content = old_bytes[old.key_start()..old.record_bytes()].to_vec();
        let location = if fits(self.heap.slot_bytes(found.location), header.record_bytes()) {
            found.location
        } else {
            let location = self.heap.allocate(header.record_bytes())?;
            self.heap.free(found.location);
            self.index.relocate(found.place, location);
            location
        };
        debug_assert_eq!(key.bytes, &content[..key.bytes.len()]);
        self.count_expiry(&old, expire_at_ms);
        let record = self.heap.bytes_mut(location);
        header.encode(record);
        record[header.key_start()..header.record_bytes()].copy_from_slice(&content);
        Ok(())
    }

    fn change_list(&mut self, key: &Key<'_>, found: Found, change: &Change<'_>, version: Version) {
        let header = self.header(found);
        let bytes = self.heap.bytes(found.location);
        let number = list_number(&bytes[header.value_start()..]);
        let list = self.lists[number as usize].as_deref_mut().expect("a list record names a list");
        self.list_bytes -= list.heap_bytes();
        match *change {
            Change::ListPush { end, elements } => elements.iter().for_each(|element| list.push(end, element)),
            Change::ListPop { end, count } => list.drop_end(end, usize::try_from(count).unwrap_or(usize::MAX)),
            Change::ListSet { index, element } => list.set(index as usize, element),
            Change::ListInsert { index, element } => list.insert(index as usize, element),
            Change::ListRemove { count, element } => {
                list.remove_equal(count, element);
            }
            Change::ListTrim { start, length } => list.trim(start as usize, length as usize),
            _ => unreachable!("the caller sends list changes only"),
        }
        self.list_bytes += list.heap_bytes();
        if list.is_empty() {
            self.remove(key, found, version);
        } else {
            Header { version, ..header }.encode(self.heap.bytes_mut(found.location));
        }
    }

    fn header(&self, found: Found) -> Header {
        Header::decode(self.heap.bytes(found.location))
    }

    fn count_expiry(&mut self, old: &Header, now: Option<u64>) {
        let expiring = &mut self.databases[old.database.0 as usize].expiring;
        *expiring = *expiring + u64::from(now.is_some()) - u64::from(old.expire_at_ms.is_some());
    }

    fn list(&self, number: u32) -> &List {
        self.lists[number as usize].as_deref().expect("a list record names a list")
    }

    fn add_list(&mut self, list: List) -> u32 {
        self.list_bytes += list.heap_bytes();
        let list = Some(Box::new(list));
        if let Some(number) = self.lists_free.pop() {
            self.lists[number as usize] = list;
            return number;
        }
        self.lists.push(list);
        (self.lists.len() - 1) as u32
    }

    fn drop_list_of(&mut self, found: Found, header: &Header) {
        if header.kind != Kind::List {
            return;
        }
        let number = list_number(&self.heap.bytes(found.location)[header.value_start()..]);
        let list = self.lists[number as usize].take().expect("a list record names a list");
        self.list_bytes -= list.heap_bytes();
        self.lists_free.push(number);
    }
}

/// Whether a record of `bytes` should stay in a slot of `slot_bytes`: it has room and wastes at most half.
fn fits(slot_bytes: usize, bytes: usize) -> bool {
    bytes <= slot_bytes && (slot_bytes <= 64 || bytes * 2 >= slot_bytes)
}

fn expiry_after(old: Option<&Header>, expiry: Expiry) -> Option<u64> {
    match expiry {
        Expiry::Keep => old.and_then(|header| header.expire_at_ms),
        Expiry::Clear => None,
        Expiry::At(at_ms) => Some(at_ms),
    }
}

fn list_number(value: &[u8]) -> u32 {
    u32::from_le_bytes(*value.first_chunk().expect("a list's value is four bytes"))
}
