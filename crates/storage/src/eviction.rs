//! What the memory limit asks of a store: how much it may take, and who goes when that is not enough.

use crate::recency::Recency;

/// Who goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Who was used longest ago, about.
    Lru,
    /// Who is used least often, about.
    Lfu,
    /// Anybody.
    Random,
    /// Whose time is over soonest, of those that the hand sees.
    Soonest,
}

/// How keys are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Only keys with an expiry may go.
    pub only_expiring: bool,
    /// Which of them.
    pub order: Order,
}

impl Policy {
    /// By what keys have to be measured for it.
    pub fn recency(self) -> Recency {
        match self.order {
            Order::Lru => Recency::Lru,
            Order::Lfu => Recency::Lfu,
            Order::Random | Order::Soonest => Recency::Nothing,
        }
    }
}

/// How much memory a store may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimit {
    /// Bytes of groups and of what they let go of.
    pub bytes: usize,
    /// Who goes when that is not enough; `None`: nobody, what would take more is refused.
    pub policy: Option<Policy>,
    /// Values that a run has leave memory first of all, and nobody goes.
    pub tiers: bool,
}

impl MemoryLimit {
    /// A sixteenth is kept free of records: free slots of one size and group do not serve another, and this is what a walk
    /// over the index can make of them (see the module `heap::compaction`).
    pub(crate) fn slack_bytes(self) -> usize {
        self.bytes / 16
    }
}

/// Whose keys may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// Those of all slots that this node serves.
    Any,
    /// Of these, those of slots with a copy where there is no room.
    Crowded,
}

/// Whether something that takes memory may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// It may.
    Enough,
    /// Not yet: another step may make room.
    Later,
    /// Not yet: a run has to be published first.
    Run,
    /// It may not, and nobody would go for it.
    Refused,
}
