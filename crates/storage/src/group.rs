//! One slot group: 256 consecutive slots with their index, heap, lists and sequences, in one box that can change cores.
//!
//! Everything a key of these slots has in memory is reachable from here and from nowhere else. That is what lets a unit
//! over several cores run on one of them: the others lend their groups by moving the box.

mod beside;
mod check;
mod evict;
mod numbered;
mod tier;
mod write;

use base::{Blocks, CoreId, Slot, SlotGroupId, Text, Version};
use evict::Compaction;
pub(crate) use evict::{GroupBytes, HAND_STEPS_MAX, Victim};
use numbered::Numbered;
use tier::Tier;
use types::{Kind, List};

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
    /// The next version leaves some out.
    skips: bool,
}

/// Versions that the first write of a promoted store leaves out. 65,536 promotions of a slot use up 48 bits.
const PROMOTION_SKIP: u64 = 1 << 32;

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

    /// Keys of one slot, all databases.
    pub fn keys_in_slot(&self, slot: Slot) -> u32 {
        self.sequences[slot.in_group() as usize].keys
    }

    /// Ask for the slot's counters.
    #[inline]
    pub(crate) fn prefetch_counters(&self, slot: Slot) {
        base::prefetch::prefetch(&raw const self.sequences[slot.in_group() as usize]);
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

    /// How often it was cleared since the start.
    pub fn clears(&self) -> u64 {
        self.clears
    }

    /// The sum of all slots' last versions, and what these do not tell of: every change makes it larger.
    pub fn change_sum(&self) -> u64 {
        self.sequences.iter().map(|sequences| sequences.last.0).sum::<u64>() + self.untold_changes
    }

    /// The versions that a run states for its group's slots.
    pub(crate) fn set_versions(&mut self, versions: &[(Version, Version)]) {
        for (sequences, (last, removed)) in self.sequences.iter_mut().zip(versions) {
            (sequences.last, sequences.removed) = (sequences.last.max(*last), *removed);
        }
    }

    /// The version of the partition's next write.
    pub(crate) fn next_version(&self, slot: Slot) -> Version {
        let Sequences { last, skips, .. } = self.sequences[slot.in_group() as usize];
        let next = Version(last.0 + 1 + if skips { PROMOTION_SKIP } else { 0 });
        assert!(next <= Version::MAX, "48 bits of versions outlast any disk");
        next
    }

    /// The next write of the partition leaves versions out; nothing that others know changes before it.
    pub(crate) fn skip_versions(&mut self, slot: Slot) {
        self.sequences[slot.in_group() as usize].skips = true;
    }

    /// The write whose version was to come after `last` did not happen.
    pub(crate) fn take_back_version(&mut self, slot: Slot, last: Version) {
        self.sequences[slot.in_group() as usize].last = last;
    }

    /// It happened.
    pub(crate) fn end_skip(&mut self, slot: Slot) {
        self.sequences[slot.in_group() as usize].skips = false;
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
    /// of a key that was there notices. `seed` is that of the keys' hashes.
    pub(crate) fn clear(&mut self, database: Option<base::Database>, seed: u64) {
        let clears = self.clears + 1;
        let removed = self.hashes_to_remember(database, seed);
        let others_empty =
            |only: base::Database| self.databases.iter().enumerate().all(|(d, n)| d == only.0 as usize || n.keys == 0);
        if database.is_none_or(others_empty) {
            let (sequences, removals) = (std::mem::take(&mut self.sequences), std::mem::take(&mut self.removals));
            let tier = self.tier.emptied();
            let (recency, followed, crowded) = (self.recency, self.followed, self.crowded);
            let fresh = SlotGroup { recency, followed, crowded, tier, ..SlotGroup::new(self.id, self.owner) };
            let untold_changes = self.untold_changes;
            let old = std::mem::replace(self, SlotGroup { sequences, removals, untold_changes, ..fresh });
            self.garbage = old.into_garbage();
            self.sequences.iter_mut().for_each(|sequences| sequences.keys = 0);
        } else if let Some(database) = database {
            self.remove_all_of(database);
        }
        match removed {
            Some(hashes) => hashes.into_iter().for_each(|hash| self.removals.note(hash)),
            None => self.removals.forget_all(),
        }
        for sequences in &mut self.sequences {
            sequences.last.0 += 1;
            sequences.removed = sequences.last;
        }
        self.clears = clears;
    }

    /// Forget all keys of one slot; a run under way is void, as after a clear. Versions begin anew: what comes has those of who
    /// serves it now, who may never have known how far they went here.
    pub(crate) fn forget_slot(&mut self, slot: Slot) {
        self.clears += 1;
        self.drop_keys(slot, None, usize::MAX);
        self.removals.forget_all();
        self.set_sequence(slot, (Version::ABSENT, Version::ABSENT));
    }

    /// About `keys_max` keys of a slot leave memory, from a place of its walk on; how many went, and where the walk goes on.
    pub(crate) fn drop_keys(&mut self, slot: Slot, from: Option<u32>, keys_max: usize) -> (usize, Option<u32>) {
        let wanted = u32::from(slot.in_group());
        let (mut cursor, mut gone, mut doomed) = (Some(from.unwrap_or(wanted << 24)), 0, Vec::new());
        while let Some(from) = cursor.filter(|from| from >> 24 == wanted && gone < keys_max) {
            cursor = self.index.walk(from, |position, location| {
                if position >> 24 == wanted {
                    doomed.push((position, location));
                }
            });
            // Bucket by bucket, because what was walked is in the processor's cache now.
            for (position, location) in doomed.drain(..) {
                // A walk may show an entry twice.
                if let Some((place, _)) = self.index.find(position, |at| at == location) {
                    let database = self.database_at(location);
                    self.remove_at(Found { place, location }, database, slot, Version::ABSENT);
                    gone += 1;
                }
            }
        }
        (gone, cursor.filter(|from| from >> 24 == wanted))
    }

    /// Of which slots another node says what expires: bit i of word w is slot 64 w + i of all.
    pub(crate) fn set_followed(&mut self, word: impl Fn(usize) -> u64) {
        self.followed = self.words_of(word);
    }

    /// Whether another node serves the slot.
    pub(crate) fn is_followed(&self, slot: Slot) -> bool {
        evict::has(&self.followed, slot)
    }

    /// What a slot's sequence is on the node that it was copied from.
    pub(crate) fn set_sequence(&mut self, slot: Slot, (last, removed): (Version, Version)) {
        let sequences = &mut self.sequences[slot.in_group() as usize];
        self.untold_changes += 1 + sequences.last.0.saturating_sub(last.0);
        (sequences.last, sequences.removed) = (last, removed);
    }

    fn into_garbage(self) -> Vec<Garbage> {
        let mut garbage = self.garbage;
        garbage.extend([Garbage::Heap(self.heap), Garbage::Index(self.index)]);
        garbage.extend(self.lists.into_values().map(Garbage::List));
        garbage.extend(self.long.into_values().map(Garbage::Blocks));
        garbage
    }

    /// Whether [`SlotGroup::take_garbage`] would yield anything.
    #[inline]
    pub(crate) fn has_garbage(&self) -> bool {
        !self.garbage.is_empty() || self.heap.has_released()
    }

    /// What was let go of and is too large to be given back at once.
    pub(crate) fn take_garbage(&mut self) -> impl Iterator<Item = Garbage> {
        let pages = self.heap.take_released();
        std::mem::take(&mut self.garbage).into_iter().chain(pages.into_iter().map(Garbage::Page))
    }

    /// Hashes of all keys of one database or of all; `None` when they are more than are remembered anyway.
    fn hashes_to_remember(&self, database: Option<base::Database>, seed: u64) -> Option<Vec<u64>> {
        let is_meant = |found: base::Database| database.is_none_or(|only| only == found);
        let counts = self.databases.iter().enumerate().filter(|(number, _)| is_meant(base::Database(*number as u8)));
        if counts.map(|(_, count)| count.keys).sum::<u64>() > REMOVALS_REMEMBERED as u64 {
            return None;
        }
        let mut hashes = Vec::new();
        let mut cursor = Some(0);
        while let Some(from) = cursor {
            cursor = self.index.walk(from, |position, location| {
                let (name, database) = (self.record_at(location).key, self.database_at(location));
                if is_meant(database) {
                    hashes.push(Key::new(name, database, self.id.slot((position >> 24) as u8), seed).hash);
                }
            });
        }
        Some(hashes)
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
