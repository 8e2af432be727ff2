//! A key on its way through the store: its bytes and everything that is computed from them once.

use base::{Database, Slot, SlotGroupId};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A key with its slot and its hash. The hash is XXH3-64, seeded per process against flooding; it is never stored.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    /// The name.
    pub bytes: &'a [u8],
    /// The numbered keyspace it lives in.
    pub database: Database,
    /// Its hash slot.
    pub slot: Slot,
    /// XXH3-64 of name and database.
    pub hash: u64,
}

impl<'a> Key<'a> {
    /// Hash `bytes` for a store seeded with `seed`; `slot` comes from placement.
    #[inline]
    pub fn new(bytes: &'a [u8], database: Database, slot: Slot, seed: u64) -> Key<'a> {
        Key { bytes, database, slot, hash: xxh3_64_with_seed(bytes, seed.wrapping_add(u64::from(database.0))) }
    }

    /// The group that holds it.
    #[inline]
    pub fn group(&self) -> SlotGroupId {
        self.slot.group()
    }

    /// Its place in the order of the group's index: 8 bits of slot, then 24 bits of hash. Keys of one slot are
    /// neighbours, so a slot can be walked, counted and moved without touching another.
    #[inline]
    pub fn position(&self) -> u32 {
        (u32::from(self.slot.in_group()) << 24) | (self.hash >> 40) as u32
    }
}
