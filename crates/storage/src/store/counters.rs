//! What a store counts while it works, for INFO.

use super::Store;

/// Reads of keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lookups {
    /// Those that found their key.
    pub found: u64,
    /// Those that did not.
    pub missed: u64,
}

impl Store {
    /// Changes applied since start.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Keys that went because their time was over.
    pub fn expired(&self) -> u64 {
        self.expired
    }

    /// How often [`Store::read`] found its key, and how often it did not.
    pub fn lookups(&self) -> Lookups {
        self.lookups
    }

    /// Forgets what a command that only wrote looked up.
    pub fn set_lookups(&mut self, lookups: Lookups) {
        self.lookups = lookups;
    }

    /// Forgets what it counted of lookups, expired and evicted keys (CONFIG RESETSTAT).
    pub fn reset_counters(&mut self) {
        (self.lookups, self.expired) = (Lookups::default(), 0);
        self.eviction.reset_counters();
    }
}
