//! Walks over the keys: SCAN, the keys of a slot, a random key, what is due to expire.

use std::ops::Range;

use base::{Database, SLOT_GROUP_COUNT, Slot};

use super::Store;
use crate::group::{Record, SlotGroup};

/// A quarter of the buckets that one step of SCAN visits at least, however few keys it finds: an empty store takes one.
const SCAN_BUCKETS_MIN: usize = 64;

/// A position of SCAN: slot group, then position within it. 38 bits, so that every client's number type holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanCursor(pub u64);

/// Looking at so many keys takes as long as removing one: it is found again twice, logged and freed. A million that expired at once
/// held a core for ticks of 7 ms when each counted as one (`cargo x bench checkpoint --only expiry`).
pub const EXPIRED_KEY_COST: usize = 12;

impl Store {
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
                if examined >= most.max(1) || buckets >= most.max(SCAN_BUCKETS_MIN).saturating_mul(4) {
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

    /// The cursors of a slot's keys.
    pub fn slot_range(slot: Slot) -> Range<ScanCursor> {
        let start = u64::from(slot.number()) << 24;
        ScanCursor(start)..ScanCursor(start + (1 << 24))
    }

    /// Visit keys of `database` in order of slot and hash, those of `range` and about `most` of them; where to go on, or
    /// `None` at its end. A key that is there from the first step of a walk to its last is shown exactly once. Expired keys
    /// are not shown.
    pub fn walk(
        &self,
        range: Range<ScanCursor>,
        most: usize,
        (database, now_ms): (Database, u64),
        mut visit: impl FnMut(Record<'_>),
    ) -> Option<ScanCursor> {
        let (mut cursor, mut examined) = (range.start.0, 0);
        while cursor < range.end.0.min(u64::from(SLOT_GROUP_COUNT) << 32) {
            if examined >= most.max(1) {
                return Some(ScanCursor(cursor));
            }
            let group_number = cursor >> 32;
            let (group_start, next_group) = (group_number << 32, (group_number + 1) << 32);
            let group = self.groups[group_number as usize].as_deref();
            let next = group.and_then(|group| {
                group.index.walk(cursor as u32, |position, location| {
                    let at = group_start + u64::from(position);
                    // A bucket may begin before the cursor: what is there was shown before segments grew or split.
                    if at < cursor || at >= range.end.0 {
                        return;
                    }
                    examined += 1;
                    let record = group.record_at(location);
                    let expired = record.expire_at_ms.is_some_and(|at_ms| at_ms <= now_ms);
                    if !expired && group.database_at(location) == database {
                        visit(record);
                    }
                })
            });
            // A bucket counts even if it is empty: a store that was large once is walked in short steps as well.
            examined += 1;
            cursor = next.map_or(next_group, |position| group_start + u64::from(position));
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

    /// Removes keys whose time is over, going round the groups, while looking at `most` keys, or fewer and removing some: one
    /// that goes counts for [`EXPIRED_KEY_COST`]. How many went.
    pub fn expire_step(&mut self, now_ms: u64, most: usize) -> usize {
        let core = self.core;
        // What is lent belongs to a unit: nobody would log what is done to it meanwhile.
        let may_expire = move |group: &SlotGroup| group.owner == core && group.has_expiring();
        let any = self.groups().any(may_expire);
        self.may_expire = any;
        if !any {
            return 0;
        }
        let mut due: Vec<(Slot, Database, Vec<u8>)> = Vec::new();
        let mut examined = 0;
        let (mut group_number, mut position) = self.expiry_cursor;
        for _ in 0..=self.groups.len() {
            let group = self.groups[group_number as usize].as_deref();
            let Some(group) = group.filter(|group| may_expire(group)) else {
                (group_number, position) = ((group_number + 1) % SLOT_GROUP_COUNT, 0);
                continue;
            };
            while examined < most {
                let next = group.index.walk(position, |position, location| {
                    examined += 1;
                    let record = group.record_at(location);
                    let slot = group.id().slot((position >> 24) as u8);
                    if record.expire_at_ms.is_some_and(|at_ms| at_ms <= now_ms) && !group.is_followed(slot) {
                        examined += EXPIRED_KEY_COST - 1;
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
}
