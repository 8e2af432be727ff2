//! One slot group: 256 consecutive slots with their index, heap, lists and sequences, in one box that can change cores.
//!
//! Everything a key of these slots has in memory is reachable from here and from nowhere else. That is what lets a unit
//! over several cores run on one of them: the others lend their groups by moving the box.

mod beside;
mod check;
mod clear;
mod evict;
mod numbered;
mod tier;
mod versions;
mod write;

use base::{Blocks, CoreId, Slot, SlotGroupId, Text, Version};
use evict::Compaction;
pub(crate) use evict::{GroupBytes, HAND_STEPS_MAX, Victim};
use numbered::Numbered;
use tier::Tier;
use types::{Kind, List};
use versions::{Removals, Sequences};

use crate::heap::{Heap, Location};
use crate::index::{Index, Place};
use crate::key::Key;
use crate::lazy_free::Garbage;
use crate::recency::Recency;
use crate::record::{Form, Header, Plain};

/// What a value is, borrowed from the group.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// A string.
    String {
        /// The bytes.
        text: Text<'a>,
        /// How it came about.
        form: Form,
    },
    /// A list, never empty.
    List(&'a List),
    /// A string that is not in memory: who needs its bytes has them read first ([`SlotGroup::cold_value`]).
    Cold,
}

impl Value<'_> {
    /// Its type.
    pub fn kind(&self) -> Kind {
        match self {
            Value::String { .. } | Value::Cold => Kind::String,
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

impl Record<'_> {
    /// When it expires, as a change says it.
    pub(crate) fn expiry(&self) -> types::Expiry {
        self.expire_at_ms.map_or(types::Expiry::Clear, types::Expiry::At)
    }
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
    lists: Numbered<Box<List>>,
    /// Strings longer than a block.
    long: Numbered<Blocks>,
    sequences: Box<[Sequences]>,
    /// What [`SlotGroup::change_sum`] has beside them: copies whose versions are not the slot's last, and sequences that begin anew.
    untold_changes: u64,
    /// A bit for each slot that another node serves: it says what expires.
    followed: [u64; base::SLOTS_PER_GROUP as usize / 64],
    /// Slots of whose copies some are where there is no room.
    crowded: [u64; base::SLOTS_PER_GROUP as usize / 64],
    databases: [DatabaseCount; base::limits::DATABASE_COUNT as usize],
    /// Bytes of lists and long values.
    beside_bytes: usize,
    scratch: Vec<u8>,
    /// Let go of, and too large to be given back at once.
    garbage: Vec<Garbage>,
    removals: Removals,
    /// How often it was cleared.
    clears: u64,
    /// By what keys are worth something to the memory limit.
    recency: Recency,
    /// Where eviction's hand stands in the index.
    hand: u32,
    compaction: Compaction,
    pub(crate) tier: Tier,
}

impl SlotGroup {
    /// An empty group of `owner`.
    pub fn new(id: SlotGroupId, owner: CoreId) -> SlotGroup {
        SlotGroup {
            id,
            owner,
            index: Index::default(),
            heap: Heap::default(),
            lists: Numbered::default(),
            long: Numbered::default(),
            sequences: vec![Sequences::default(); base::SLOTS_PER_GROUP as usize].into_boxed_slice(),
            untold_changes: 0,
            followed: Default::default(),
            crowded: Default::default(),
            databases: Default::default(),
            beside_bytes: 0,
            scratch: Vec::new(),
            garbage: Vec::new(),
            removals: Removals::default(),
            clears: 0,
            recency: Recency::default(),
            hand: 0,
            compaction: Compaction::default(),
            tier: Tier::default(),
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

    /// Keys of all databases.
    pub(crate) fn keys(&self) -> u64 {
        self.databases.iter().map(|count| count.keys).sum()
    }

    /// Of which slots another node says what expires: bit i of word w is slot 64 w + i of all.
    pub(crate) fn set_followed(&mut self, word: impl Fn(usize) -> u64) {
        self.followed = self.words_of(word);
    }

    /// Whether another node serves the slot.
    pub(crate) fn is_followed(&self, slot: Slot) -> bool {
        evict::has(&self.followed, slot)
    }

    /// Bytes of memory: index, heap pages, lists, long values.
    pub fn heap_bytes(&self) -> usize {
        self.index.heap_bytes() + self.record_bytes()
    }

    /// Bytes of heap pages, lists and long values.
    pub(crate) fn record_bytes(&self) -> usize {
        self.heap.reserved_bytes() + self.beside_bytes
    }

    /// What of it holds something.
    pub(crate) fn used_bytes(&self) -> usize {
        self.heap.used_bytes() + self.beside_bytes
    }

    /// Bytes that one key takes: its slot of the heap, what lies beside it, and an index entry at three quarters load.
    pub(crate) fn bytes_of(&self, found: Found) -> usize {
        const INDEX_ENTRY_BYTES: usize = 12;
        let beside = match self.record(found).value {
            Value::List(list) => list.heap_bytes(),
            Value::String { text: Text::Long(blocks), .. } => blocks.len(),
            Value::String { .. } | Value::Cold => 0,
        };
        self.heap.slot_bytes(found.location) + beside + INDEX_ENTRY_BYTES
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

    /// Version of the record that was found, and when it expires; the rest of it is not looked at.
    #[inline]
    pub(crate) fn version_and_expiry(&self, found: Found) -> (Version, Option<u64>) {
        Header::version_and_expiry(self.heap.bytes(found.location))
    }

    /// Bytes of a string, wherever it is; 0 of anything else, or when its time is over.
    pub(crate) fn string_len(&self, found: Found, now_ms: u64) -> usize {
        let header = self.header(found);
        let is_over = header.expire_at_ms.is_some_and(|at_ms| at_ms <= now_ms);
        match header.kind {
            Kind::String if is_over => 0,
            Kind::String if header.is_long => {
                self.long.get(number_of(&self.heap.bytes(found.location)[header.value_start()..])).len()
            }
            Kind::String => header.value_len as usize,
            Kind::List => 0,
        }
    }

    /// The record at a location that the index gave.
    #[inline]
    pub(crate) fn record_at(&self, location: Location) -> Record<'_> {
        let bytes = self.heap.bytes(location);
        let Some(Plain { key, version, expire_at_ms, value, form, .. }) = Plain::of(bytes) else {
            return self.record_of_any_kind(bytes);
        };
        Record { key, version, expire_at_ms, value: Value::String { text: Text::Short(value), form } }
    }

    /// The same of a string whose bytes follow its key, with its database.
    #[inline]
    pub(crate) fn plain_at(&self, location: Location) -> Option<Plain<'_>> {
        Plain::of(self.heap.bytes(location))
    }

    /// Apart from [`SlotGroup::record_at`], so that what nearly every read takes stays short.
    #[inline(never)]
    fn record_of_any_kind<'a>(&'a self, bytes: &'a [u8]) -> Record<'a> {
        let header = Header::decode(bytes);
        let value = &bytes[header.value_start()..header.record_bytes()];
        let value = match header.kind {
            _ if header.is_cold() => Value::Cold,
            Kind::String if header.is_long => {
                Value::String { text: Text::Long(self.long.get(number_of(value))), form: header.form }
            }
            Kind::String => Value::String { text: Text::Short(value), form: header.form },
            Kind::List => Value::List(self.lists.get(number_of(value))),
        };
        Record {
            key: &bytes[header.key_start()..header.key_end()],
            version: header.version,
            expire_at_ms: header.expire_at_ms,
            value,
        }
    }

    /// The database of the record at a location that the index gave.
    pub(crate) fn database_at(&self, location: Location) -> base::Database {
        Header::database(self.heap.bytes(location))
    }

    fn header(&self, found: Found) -> Header {
        Header::decode(self.heap.bytes(found.location))
    }
}

/// The number in the record of what lies beside it.
fn number_of(value: &[u8]) -> u32 {
    u32::from_le_bytes(*value.first_chunk().expect("a number has four bytes"))
}
