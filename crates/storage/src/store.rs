//! One core's share of the data: its slot groups, and the one path by which anything changes.
//!
//! ```text
//!  command ── plans ──► Change ── Store::apply ──► memory   (group: index, heap, lists)
//!                                     │
//!                                     └──────────► log      (its own, or the lender's for a lent group)
//! ```

use base::{CoreId, Database, LogOrdinal, SLOT_GROUP_COUNT, Slot, SlotGroupId, Version};
use types::Change;

use crate::group::{DatabaseCount, Record, SlotGroup};
use crate::heap::HeapFull;
use crate::key::Key;
use crate::log::LogBuffer;

/// A quarter of the buckets that one step of SCAN visits at least, however few keys it finds: an empty store takes one.
const SCAN_BUCKETS_MIN: usize = 64;

/// A position of SCAN: slot group, then position within it. 38 bits, so that every client's number type holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanCursor(pub u64);

/// A change that was applied and whose promise does not hold yet.
#[derive(Clone, Copy, Debug)]
pub struct Uncommitted {
    /// Log group it is part of.
    pub ordinal: LogOrdinal,
    /// Partition.
    pub slot: Slot,
    /// The change's version.
    pub version: Version,
}

/// What a unit did to the groups that one core lent: the lender appends it to its own log.
#[derive(Debug, Default)]
pub struct LentPart {
    /// Its records; empty in durability `memory`.
    pub log: LogBuffer,
    /// Slot, hash and version of every changed key.
    pub touched: Vec<(Slot, u64, Version)>,
    /// Everything went.
    pub cleared: bool,
}

/// See the module.
pub struct Store {
    core: CoreId,
    seed: u64,
    groups: Vec<Option<Box<SlotGroup>>>,
    log: Option<LogBuffer>,
    /// What a unit did to lent groups, for their owners.
    lent: Vec<(CoreId, LentPart)>,
    /// Keys changed since [`Store::take_touched`], if anybody asked.
    touched: Vec<(Slot, u64)>,
    tracks_touched: bool,
    touched_all: bool,
    /// The log group that changes of this tick belong to, when promises take longer than the tick.
    tracks_uncommitted: Option<LogOrdinal>,
    uncommitted: std::collections::VecDeque<Uncommitted>,
    uncommitted_partitions: usize,
    /// Committed while their group was lent; noted in it when it comes home.
    committed_away: Vec<Uncommitted>,
    saw_uncommitted: bool,
    changes: u64,
    expired: u64,
    expiry_cursor: (u8, u32),
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
            touched: Vec::new(),
            tracks_touched: false,
            touched_all: false,
            tracks_uncommitted: None,
            uncommitted: std::collections::VecDeque::new(),
            uncommitted_partitions: 0,
            committed_away: Vec::new(),
            saw_uncommitted: false,
            changes: 0,
            expired: 0,
            expiry_cursor: (0, 0),
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

    /// Take a group in: an empty one at start, a lent one for a unit, an own one coming back.
    pub fn insert_group(&mut self, group: Box<SlotGroup>) {
        let place = &mut self.groups[group.id().number() as usize];
        assert!(place.is_none(), "a group is in one place at a time");
        let id = group.id();
        *place = Some(group);
        if !self.committed_away.is_empty() {
            let (home, away) = self.committed_away.drain(..).partition(|change| change.slot.group() == id);
            self.committed_away = away;
            Vec::into_iter(home).for_each(|change| self.commit_change(change));
        }
    }

    /// Hand a group out; `None` when it is not here.
    pub fn take_group(&mut self, group: SlotGroupId) -> Option<Box<SlotGroup>> {
        self.groups[group.number() as usize].take()
    }

    /// Takes out all groups that other cores lent, for a command that is to see the own ones only.
    pub fn set_lent_aside(&mut self) -> Vec<Box<SlotGroup>> {
        let core = self.core;
        let lent = |place: &mut Option<Box<SlotGroup>>| place.take_if(|group| group.owner != core);
        self.groups.iter_mut().filter_map(lent).collect()
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

    /// Second prefetch, once the bucket has arrived: the key's record.
    #[inline]
    pub fn prefetch_record(&self, key: &Key<'_>) {
        if let Some(group) = self.group(key.group())
            && let Some(location) = group.index.guess(key.position())
        {
            group.heap.prefetch(location);
        }
    }

    /// The key's record, unless it does not exist or its time is over (then it is removed, by record).
    #[inline]
    pub fn read(&mut self, key: &Key<'_>, now_ms: u64) -> Option<Record<'_>> {
        let Some(found) = self.group_of(key).find(key) else {
            self.note_absent(key.slot);
            return None;
        };
        let record = self.group_of(key).record(found);
        let (version, expire_at_ms) = (record.version, record.expire_at_ms);
        if expire_at_ms.is_some_and(|at_ms| at_ms <= now_ms) {
            self.expire(key);
            self.note_absent(key.slot);
            return None;
        }
        if self.uncommitted_partitions > 0 && self.group_of(key).is_uncommitted(key.slot, version) {
            self.saw_uncommitted = true;
        }
        Some(self.group_of(key).record(found))
    }

    fn note_absent(&mut self, slot: Slot) {
        if self.uncommitted_partitions == 0 {
            return;
        }
        let group = self.group_of_mut(slot);
        let removed = group.removed_version(slot);
        if group.is_uncommitted(slot, removed) {
            self.saw_uncommitted = true;
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

    /// Perform a change on memory and append it to the log. The only way anything changes.
    ///
    /// Errors: the group has no address left for the record; then nothing changed.
    #[inline]
    pub fn apply(&mut self, key: &Key<'_>, change: &Change<'_>) -> Result<Version, HeapFull> {
        let group = self.groups[key.group().number() as usize]
            .as_deref_mut()
            .expect("the router sends a key only where its group is");
        let version = group.next_version(key.slot);
        group.apply(key, change, version)?;
        self.changes += 1;
        if group.owner != self.core {
            let owner = group.owner;
            self.note_lent(owner, key, version, change);
            return Ok(version);
        }
        if let Some(ordinal) = self.tracks_uncommitted {
            self.uncommitted_partitions += usize::from(group.mark_uncommitted(key.slot, version));
            self.uncommitted.push_back(Uncommitted { ordinal, slot: key.slot, version });
        }
        if let Some(log) = &mut self.log {
            log.append(key, version, change);
        }
        if self.tracks_touched {
            self.touched.push((key.slot, key.hash));
        }
        Ok(version)
    }

    /// Every own partition moved on by one version: readers of absence and watchers have to know.
    fn note_cleared(&mut self) {
        self.touched_all = self.tracks_touched;
        let Some(ordinal) = self.tracks_uncommitted else { return };
        for group in self.groups.iter_mut().flatten().filter(|group| group.owner == self.core) {
            for position in 0..=u8::MAX {
                let slot = group.id().slot(position);
                let version = group.last_version(slot);
                self.uncommitted_partitions += usize::from(group.mark_uncommitted(slot, version));
                self.uncommitted.push_back(Uncommitted { ordinal, slot, version });
            }
        }
    }

    fn note_lent(&mut self, owner: CoreId, key: &Key<'_>, version: Version, change: &Change<'_>) {
        let logs = self.log.is_some();
        let part = lent_part(&mut self.lent, owner);
        if logs {
            part.log.append(key, version, change);
        }
        part.touched.push((key.slot, key.hash, version));
    }

    /// Replay: perform a change that was logged, under the version it had.
    ///
    /// # Errors
    /// What is wrong with the change: it does not fit the value it would change, or its version does not ascend.
    pub fn replay(&mut self, key: &Key<'_>, change: &Change<'_>, version: Version) -> Result<(), String> {
        let group = self.group_of_mut(key.slot);
        group.check(key, change, version)?;
        group.apply(key, change, version).map_err(|HeapFull| "the slot group is full".to_owned())
    }

    /// Forget all keys of the groups that are here, lent ones included, of one database or of all, and log it.
    pub fn clear(&mut self, database: Option<Database>) {
        let mut owners: Vec<CoreId> = self.groups().map(|group| group.owner).collect();
        owners.dedup();
        self.groups.iter_mut().flatten().for_each(|group| group.clear(database));
        self.changes += 1;
        self.note_cleared();
        for owner in owners {
            if owner != self.core {
                let part = lent_part(&mut self.lent, owner);
                part.cleared = true;
                if self.log.is_some() {
                    part.log.append_clear(database);
                }
            } else if let Some(log) = &mut self.log {
                log.append_clear(database);
            }
        }
    }

    /// Replay of [`Store::clear`], group by group: the cores may have been others.
    pub fn replay_clear_group(&mut self, group: SlotGroupId, database: Option<Database>) {
        if let Some(group) = self.groups[group.number() as usize].as_deref_mut() {
            group.clear(database);
        }
    }

    /// Keys and expiring keys of a database in the groups that are here.
    pub fn count(&self, database: Database) -> DatabaseCount {
        self.groups().map(|group| group.database(database)).fold(DatabaseCount::default(), |sum, count| DatabaseCount {
            keys: sum.keys + count.keys,
            expiring: sum.expiring + count.expiring,
        })
    }

    /// Visit about `most` keys of `database` from `cursor` on, in groups below number `end`; where to go on, or `None`
    /// when none is left. Expired keys are not shown.
    pub fn scan(
        &self,
        cursor: ScanCursor,
        (most, end): (usize, u8),
        database: Database,
        now_ms: u64,
        mut visit: impl FnMut(Record<'_>),
    ) -> Option<ScanCursor> {
        let (mut group_number, mut position) = ((cursor.0 >> 32) as usize, cursor.0 as u32);
        let (mut examined, mut buckets) = (0, 0);
        while group_number < usize::from(end) {
            let Some(group) = self.groups[group_number].as_deref() else {
                (group_number, position) = (group_number + 1, 0);
                continue;
            };
            loop {
                if examined >= most.max(1) || buckets >= most.max(SCAN_BUCKETS_MIN) * 4 {
                    return Some(ScanCursor((group_number as u64) << 32 | u64::from(position)));
                }
                let next = group.index.walk(position, |_, location| {
                    examined += 1;
                    let record = group.record_at(location);
                    let expired = record.expire_at_ms.is_some_and(|at_ms| at_ms <= now_ms);
                    if !expired && group.database_at(location) == database {
                        visit(record);
                    }
                });
                // Buckets count too: a store that was large once is walked in short steps as well.
                buckets += 1;
                match next {
                    Some(next) => position = next,
                    None => break,
                }
            }
            (group_number, position) = (group_number + 1, 0);
        }
        None
    }

    /// Up to `most` keys of one slot in `database`.
    pub fn keys_in_slot(&self, slot: Slot, database: Database, most: usize) -> Vec<Vec<u8>> {
        let mut keys: Vec<Vec<u8>> = Vec::new();
        let Some(group) = self.group(slot.group()) else {
            return keys;
        };
        let wanted = u32::from(slot.in_group());
        let mut cursor = Some(wanted << 24);
        while let Some(from) = cursor.filter(|from| from >> 24 == wanted && keys.len() < most) {
            cursor = group.index.walk(from, |position, location| {
                if position >> 24 == wanted && keys.len() < most && group.database_at(location) == database {
                    keys.push(group.record_at(location).key.to_vec());
                }
            });
        }
        keys
    }

    /// Any key of `database`, chosen by `random`; `None` when there is none here.
    pub fn random_key(&self, database: Database, now_ms: u64, random: u64) -> Option<Vec<u8>> {
        let start = ScanCursor(random % (u64::from(SLOT_GROUP_COUNT) << 32));
        let mut keys = Vec::new();
        let rest = self.scan_until_found(start, database, now_ms, &mut keys);
        if keys.is_empty() && rest.is_none() {
            self.scan_until_found(ScanCursor(0), database, now_ms, &mut keys);
        }
        let index = (random >> 32) as usize % keys.len().max(1);
        keys.into_iter().nth(index)
    }

    fn scan_until_found(
        &self,
        from: ScanCursor,
        database: Database,
        now_ms: u64,
        keys: &mut Vec<Vec<u8>>,
    ) -> Option<()> {
        let mut cursor = Some(from);
        while let Some(from) = cursor.filter(|_| keys.is_empty()) {
            cursor = self.scan(from, (16, SLOT_GROUP_COUNT), database, now_ms, |record| keys.push(record.key.to_vec()));
        }
        cursor.map(|_| ())
    }

    /// Remove up to `most` keys whose time is over, going round the groups; how many went.
    pub fn expire_step(&mut self, now_ms: u64, most: usize) -> usize {
        let mut due: Vec<(Slot, Database, Vec<u8>)> = Vec::new();
        let mut examined = 0;
        let (mut group_number, mut position) = self.expiry_cursor;
        for _ in 0..=self.groups.len() {
            let group = self.groups[group_number as usize].as_deref();
            let Some(group) = group.filter(|group| group.has_expiring()) else {
                (group_number, position) = ((group_number + 1) % SLOT_GROUP_COUNT, 0);
                continue;
            };
            while examined < most {
                let next = group.index.walk(position, |position, location| {
                    examined += 1;
                    let record = group.record_at(location);
                    if record.expire_at_ms.is_some_and(|at_ms| at_ms <= now_ms) {
                        let slot = group.id().slot((position >> 24) as u8);
                        due.push((slot, group.database_at(location), record.key.to_vec()));
                    }
                });
                examined += 1;
                position = next.unwrap_or(0);
                if next.is_none() {
                    group_number = (group_number + 1) % SLOT_GROUP_COUNT;
                    break;
                }
            }
            if examined >= most {
                break;
            }
        }
        self.expiry_cursor = (group_number, position);
        let before = self.expired;
        for (slot, database, name) in &due {
            let key = self.key(name, *database, *slot);
            self.read(&key, now_ms);
        }
        (self.expired - before) as usize
    }

    /// Whether any key here has an expiry.
    pub fn has_expiring(&self) -> bool {
        self.groups().any(SlotGroup::has_expiring)
    }

    /// Bytes of memory of the groups that are here.
    pub fn heap_bytes(&self) -> usize {
        self.groups().map(SlotGroup::heap_bytes).sum()
    }

    /// Bytes of heap pages and lists, free slots included.
    pub fn record_bytes(&self) -> usize {
        self.groups().map(SlotGroup::record_bytes).sum()
    }

    /// Bytes of the indexes.
    pub fn index_bytes(&self) -> usize {
        self.groups().map(|group| group.index.heap_bytes()).sum()
    }

    /// Bytes that a key takes with its record, its list and its share of an index.
    pub fn key_bytes(&mut self, key: &Key<'_>, now_ms: u64) -> Option<usize> {
        self.read(key, now_ms)?;
        let group = self.group_of(key);
        group.find(key).map(|found| group.bytes_of(found))
    }

    /// Changes applied since start.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Keys that went because their time was over.
    pub fn expired(&self) -> u64 {
        self.expired
    }

    /// The records of this tick, to be sealed into a log group; `None` in durability `memory`.
    pub fn log_mut(&mut self) -> Option<&mut LogBuffer> {
        self.log.as_mut()
    }

    /// What was done to lent groups since the last call, by owner.
    pub fn take_lent(&mut self) -> Vec<(CoreId, LentPart)> {
        std::mem::take(&mut self.lent)
    }

    /// From now on the own records of a unit over several cores are kept apart; returns those of the tick so far, to be
    /// given back to [`Store::end_unit`]. `None` in durability `memory`.
    pub fn begin_unit(&mut self) -> Option<LogBuffer> {
        self.log.as_mut().map(std::mem::take)
    }

    /// The unit's own records; the tick's are in place again.
    pub fn end_unit(&mut self, tick: Option<LogBuffer>) -> Option<LogBuffer> {
        std::mem::replace(&mut self.log, tick)
    }

    /// A lender takes note of what a unit did to its groups, which are here again.
    pub fn adopt(&mut self, touched: &[(Slot, u64, Version)], cleared: bool) {
        if cleared {
            self.note_cleared();
        }
        for &(slot, hash, version) in touched {
            if let Some(ordinal) = self.tracks_uncommitted {
                let group = self.group_of_mut(slot);
                let newly = usize::from(group.mark_uncommitted(slot, version));
                self.uncommitted_partitions += newly;
                self.uncommitted.push_back(Uncommitted { ordinal, slot, version });
            }
            if self.tracks_touched {
                self.touched.push((slot, hash));
            }
        }
    }

    /// Whether any change here is not committed yet.
    pub fn has_uncommitted(&self) -> bool {
        self.uncommitted_partitions > 0
    }

    /// Note the keys that change from now on, or stop noting them.
    pub fn track_touched(&mut self, on: bool) {
        self.tracks_touched = on;
        self.touched.clear();
    }

    /// Move the slots and hashes of the keys changed since the last call into `out`; true when all keys may have.
    pub fn take_touched(&mut self, out: &mut Vec<(Slot, u64)>) -> bool {
        out.append(&mut self.touched);
        std::mem::take(&mut self.touched_all)
    }

    /// From now on every change belongs to log group `ordinal` and is uncommitted until [`Store::commit`] reaches it;
    /// `None`: changes are committed at once.
    pub fn track_uncommitted(&mut self, ordinal: Option<LogOrdinal>) {
        self.tracks_uncommitted = ordinal;
    }

    /// The promise holds for all log groups up to `ordinal`.
    pub fn commit(&mut self, ordinal: LogOrdinal) {
        while let Some(first) = self.uncommitted.front().copied().filter(|first| first.ordinal <= ordinal) {
            self.uncommitted.pop_front();
            self.commit_change(first);
        }
    }

    fn commit_change(&mut self, change: Uncommitted) {
        match self.groups[change.slot.group().number() as usize].as_deref_mut() {
            Some(group) => {
                let clean = group.commit(change.slot, change.version);
                self.uncommitted_partitions -= usize::from(clean);
            }
            None => self.committed_away.push(change),
        }
    }

    /// Whether a read since the last call saw a value (or an absence) that is not committed.
    pub fn take_saw_uncommitted(&mut self) -> bool {
        std::mem::take(&mut self.saw_uncommitted)
    }
}

fn lent_part(parts: &mut Vec<(CoreId, LentPart)>, owner: CoreId) -> &mut LentPart {
    let index = parts.iter().position(|(core, _)| *core == owner).unwrap_or_else(|| {
        parts.push((owner, LentPart::default()));
        parts.len() - 1
    });
    &mut parts[index].1
}
