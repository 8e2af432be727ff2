//! One core's share of the data: its slot groups, and the one path by which anything changes.
//!
//! ```text
//!  command ── plans ──► Change ── Store::apply ──► memory   (group: index, heap, lists)
//!                                     │
//!                                     └──────────► log      (its own, or the lender's for a lent group)
//! ```

pub(crate) mod counters;
mod crowd;
mod evict;
mod follow;
mod garbage;
mod lent;
mod marks;
mod pass_on;
mod promise;
mod replay;
mod scan;
mod sizes;
mod slot_copy;
mod stages;
mod tier;

pub use follow::{are_of_slots, records_of_slots};
pub use lent::LentPart;
pub use marks::{Comparison, Mark, Marks};
pub use pass_on::{Known, Pass};
pub use replay::ReadCold;
pub use scan::{EXPIRED_KEY_COST, ScanCursor};
pub use slot_copy::{SlotCopy, Spent};
pub use stages::{Arriving, PassedStages, StageBegin};
pub use tier::Tiered;

use base::limits::{LOG_GROUP_BYTES, LOG_UNIT_BYTES_MAX};
use base::planted::{Bug, is_planted};
use base::{CoreId, Database, SLOT_GROUP_COUNT, Slot, SlotGroupId, Version};
use evict::Eviction;
use lent::lent_part;
use types::Change;

use crate::group::{GroupBytes, Record, SlotGroup};
use crate::heap::HeapFull;
use crate::key::Key;
use crate::lazy_free::LazyFree;
use crate::log::LogBuffer;
use crate::recency::Recency;
use crate::record::Form;

/// Why a change was not performed: nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotApplied {
    /// The slot group has no address left for the record.
    HeapFull,
    /// The records of the command or EXEC would exceed [`LOG_UNIT_BYTES_MAX`].
    UnitTooLong,
}

impl From<HeapFull> for NotApplied {
    fn from(_: HeapFull) -> NotApplied {
        NotApplied::HeapFull
    }
}

/// See the module.
pub struct Store {
    core: CoreId,
    seed: u64,
    groups: Vec<Option<Box<SlotGroup>>>,
    log: Option<LogBuffer>,
    /// What a unit did to lent groups, for their owners.
    lent: Vec<(CoreId, LentPart)>,
    /// Bytes of their records.
    lent_bytes: usize,
    /// Records of one tick's group and one unit, above which changes that carry values are refused, bytes.
    log_bytes_max: usize,
    /// Keys changed since [`Store::take_touched`], if anybody asked.
    touched: Vec<(Slot, u64)>,
    tracks_touched: bool,
    touched_all: bool,
    ledger: promise::Ledger,
    changes: u64,
    stages: stages::OwnStages,
    expired: u64,
    lookups: counters::Lookups,
    expiry_cursor: (u8, u32),
    /// False only if no key here has an expiry.
    may_expire: bool,
    /// Who reads what expired does not remove it.
    keeps_expired: bool,
    lazy_free: LazyFree,
    eviction: Eviction,
    tier: tier::Tier,
}

impl Store {
    /// A store for `core` that owns no group yet. `logs` is false for durability `memory`.
    pub fn new(core: CoreId, seed: u64, logs: bool) -> Store {
        Store {
            core,
            seed,
            groups: (0..SLOT_GROUP_COUNT).map(|_| None).collect(),
            log: logs.then(LogBuffer::default),
            lent: Vec::new(),
            lent_bytes: 0,
            log_bytes_max: LOG_GROUP_BYTES + LOG_UNIT_BYTES_MAX,
            touched: Vec::new(),
            tracks_touched: false,
            touched_all: false,
            ledger: promise::Ledger::default(),
            changes: 0,
            stages: stages::OwnStages::default(),
            expired: 0,
            lookups: counters::Lookups::default(),
            expiry_cursor: (0, 0),
            may_expire: false,
            keeps_expired: false,
            lazy_free: LazyFree::default(),
            eviction: Eviction::new(seed),
            tier: tier::Tier::default(),
        }
    }

    /// The seed that every [`Key`] of this store is hashed with.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Hash a key for this store.
    #[inline]
    pub fn key<'a>(&self, bytes: &'a [u8], database: Database, slot: Slot) -> Key<'a> {
        Key::new(bytes, database, slot, self.seed)
    }

    /// The group, if it is here.
    #[inline]
    pub fn group(&self, group: SlotGroupId) -> Option<&SlotGroup> {
        self.groups[group.number() as usize].as_deref()
    }

    /// All groups that are here.
    pub fn groups(&self) -> impl Iterator<Item = &SlotGroup> {
        self.groups.iter().flatten().map(|group| &**group)
    }

    #[inline]
    fn group_of(&self, key: &Key<'_>) -> &SlotGroup {
        self.group(key.group()).expect("the router sends a key only where its group is")
    }

    #[inline]
    fn group_of_mut(&mut self, slot: Slot) -> &mut SlotGroup {
        self.groups[slot.group().number() as usize]
            .as_deref_mut()
            .expect("the router sends a key only where its group is")
    }

    /// First prefetch: the key's bucket. Harmless when its group is elsewhere.
    #[inline]
    pub fn prefetch_bucket(&self, key: &Key<'_>) {
        if let Some(group) = self.group(key.group()) {
            group.index.prefetch(key.position());
        }
    }

    /// Beside the first prefetch, where the key will be written: the counters of its slot, half a megabyte for all of them, which
    /// would be waited for in the middle of the change.
    #[inline]
    pub fn prefetch_counters(&self, key: &Key<'_>) {
        if let Some(group) = self.group(key.group()) {
            group.prefetch_counters(key.slot);
        }
    }

    /// Second prefetch, once the bucket has arrived: the key's record.
    #[inline]
    pub fn prefetch_record(&self, key: &Key<'_>) {
        if let Some(group) = self.group(key.group())
            && let Some(location) = group.index.guess(key.position())
        {
            group.heap.prefetch(location);
        }
    }

    /// Whether keys whose time is over stay where they are, unseen, because nothing may be logged. Only while nothing writes.
    pub fn keep_expired(&mut self, keeps: bool) {
        self.keeps_expired = keeps;
    }

    /// The key's record, unless it does not exist or its time is over (then it is removed, by record).
    #[inline]
    pub fn read(&mut self, key: &Key<'_>, now_ms: u64) -> Option<Record<'_>> {
        let Some(found) = self.group_of(key).find(key) else {
            self.lookups.missed += 1;
            self.note_absent(key.slot);
            return None;
        };
        let (version, expire_at_ms) = self.group_of(key).version_and_expiry(found);
        if expire_at_ms.is_some_and(|at_ms| at_ms <= now_ms) {
            // Who serves a slot says what expires there.
            if !self.keeps_expired && !self.group_of(key).is_followed(key.slot) {
                self.expire(key);
            }
            self.lookups.missed += 1;
            self.note_absent(key.slot);
            return None;
        }
        self.lookups.found += 1;
        if self.is_asked() && self.group_of(key).is_uncommitted(key.slot, version) {
            self.ledger.note_seen(key.slot);
        }
        if self.eviction.recency != Recency::Nothing {
            let random = self.eviction.rng.next_u64();
            self.group_of_mut(key.slot).touch(found, random);
        }
        Some(self.group_of(key).record(found))
    }

    /// Whether a read has to ask if what it sees is committed.
    #[inline]
    fn is_asked(&self) -> bool {
        self.ledger.has_any() && !is_planted(Bug::M48ReadsUnasked)
    }

    fn note_absent(&mut self, slot: Slot) {
        if !self.is_asked() {
            return;
        }
        let group = self.group_of_mut(slot);
        let removed = group.removed_version(slot);
        if group.is_uncommitted(slot, removed) {
            self.ledger.note_seen(slot);
        }
    }

    fn expire(&mut self, key: &Key<'_>) {
        self.apply(key, &Change::Remove).expect("a removal needs no room");
        self.expired += 1;
    }

    /// The version of the key's last write; absent keys have [`Version::ABSENT`].
    pub fn version(&mut self, key: &Key<'_>, now_ms: u64) -> Version {
        self.read(key, now_ms).map_or(Version::ABSENT, |record| record.version)
    }

    /// Bytes of the key's string, in memory or on the disk, without anybody's noticing; 0 where it has none, or its group is not here.
    pub fn string_len(&self, key: &Key<'_>, now_ms: u64) -> usize {
        let Some(group) = self.group(key.group()) else { return 0 };
        group.find(key).map_or(0, |found| group.string_len(found, now_ms))
    }

    /// Perform a change on memory and append it to the log. The only way anything changes.
    ///
    /// # Errors
    /// See [`NotApplied`]; then nothing changed. A change without a value ([`Change::payload_bytes`]) always succeeds.
    #[inline]
    pub fn apply(&mut self, key: &Key<'_>, change: &Change<'_>) -> Result<Version, NotApplied> {
        if !self.has_log_room(change) {
            return Err(NotApplied::UnitTooLong);
        }
        let group = self.groups[key.group().number() as usize]
            .as_deref_mut()
            .expect("the router sends a key only where its group is");
        let (last, version) = (group.last_version(key.slot), group.next_version(key.slot));
        let counted = self.eviction.is_limited() && group.owner == self.core;
        let before = if counted { group.bytes() } else { GroupBytes::default() };
        let applied = group.apply(key, change, version);
        if counted {
            self.eviction.note_change(before, group.bytes());
        }
        if group.has_garbage() {
            self.lazy_free.add(group.take_garbage());
        }
        if let Err(reason) = applied {
            group.take_back_version(key.slot, last);
            return Err(reason.into());
        }
        group.end_skip(key.slot);
        self.changes += 1;
        self.stages.note(change);
        self.may_expire |= change.sets_expiry();
        if group.owner != self.core {
            let owner = group.owner;
            self.note_lent(owner, key, version, change);
            return Ok(version);
        }
        self.ledger.note(group, key.slot, version);
        if let Some(log) = &mut self.log {
            log.append(key, version, change);
        }
        if self.tracks_touched {
            self.touched.push((key.slot, key.hash));
        }
        Ok(version)
    }

    /// Whether the records of the unit under way may grow by `change`.
    #[inline]
    fn has_log_room(&self, change: &Change<'_>) -> bool {
        let payload_bytes = change.payload_bytes();
        payload_bytes == 0 || self.log_bytes() + self.lent_bytes + payload_bytes <= self.log_bytes_max
    }

    /// Note how the key's string came about, for `OBJECT`. No change: watchers and the log do not learn of it.
    pub fn set_form(&mut self, key: &Key<'_>, form: Form) {
        self.group_of_mut(key.slot).set_form(key, form);
    }

    /// Every own partition moved on by one version: readers of absence and watchers have to know.
    fn note_cleared(&mut self) {
        self.touched_all = self.tracks_touched;
        if !self.ledger.tracks() {
            return;
        }
        for group in self.groups.iter_mut().flatten().filter(|group| group.owner == self.core) {
            for position in 0..=u8::MAX {
                let slot = group.id().slot(position);
                let version = group.last_version(slot);
                self.ledger.note(group, slot, version);
            }
        }
    }

    /// Forget all keys of the groups that are here, lent ones included, of one database or of all, and log it.
    pub fn clear(&mut self, database: Option<Database>) {
        let mut owners: Vec<CoreId> = self.groups().map(|group| group.owner).collect();
        owners.sort_unstable();
        owners.dedup();
        let seed = self.seed;
        for group in self.groups.iter_mut().flatten() {
            let before = group.bytes();
            group.clear(database, seed);
            if self.eviction.is_limited() && group.owner == self.core {
                self.eviction.note_change(before, group.bytes());
            }
            self.lazy_free.add(group.take_garbage());
        }
        self.changes += 1;
        self.note_cleared();
        for owner in owners {
            let first = self.groups.iter().flatten().find(|group| group.owner == owner).expect("it has groups here");
            let slot = first.id().slot(0);
            let version = first.last_version(slot);
            if owner != self.core {
                let part = lent_part(&mut self.lent, owner);
                part.cleared = true;
                if self.log.is_some() {
                    part.log.append_clear(database, slot, version);
                }
            } else if let Some(log) = &mut self.log {
                log.append_clear(database, slot, version);
            }
        }
    }

    /// Bytes of the records of this tick, or of the unit under way; 0 in durability `memory`.
    #[inline]
    pub fn log_bytes(&self) -> usize {
        self.log.as_ref().map_or(0, LogBuffer::record_bytes)
    }

    /// Whether something was changed and not sealed into a log group yet.
    #[inline]
    pub fn has_unsealed(&self) -> bool {
        self.log.as_ref().is_some_and(|log| !log.is_empty())
    }

    /// Refuse what makes the records of a tick and a unit longer than `bytes`; for tests.
    pub fn set_log_bytes_max(&mut self, bytes: usize) {
        self.log_bytes_max = bytes;
    }

    /// The records of this tick, to be sealed into a log group; `None` in durability `memory`.
    pub fn log_mut(&mut self) -> Option<&mut LogBuffer> {
        self.log.as_mut()
    }
}
