//! Distinct index types, so that a slot can never be passed where a core is meant.

/// Hash slots of Redis Cluster.
pub const SLOT_COUNT: u16 = 16384;
/// Consecutive slots that share one index, one heap and (later) one checkpoint.
pub const SLOTS_PER_GROUP: u16 = 256;
/// Slot groups of the key space: 16384 / 256.
pub const SLOT_GROUP_COUNT: u8 = 64;

const _: () = assert!(SLOTS_PER_GROUP as u32 * SLOT_GROUP_COUNT as u32 == SLOT_COUNT as u32);

/// One core of this node, counted from 0. An instance is the shard that runs on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CoreId(pub u16);

/// One process on one machine, for ever: a number is not given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

impl std::fmt::Display for NodeId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "node {}", self.0)
    }
}

/// One core of one node: what owns slots and holds copies of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceName {
    /// The node.
    pub node: NodeId,
    /// Its core.
    pub core: CoreId,
}

impl std::fmt::Display for InstanceName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "node {} core {}", self.node.0, self.core.0)
    }
}

/// A connection of one core's street. The street hands out the index and changes the generation whenever an index
/// is used again, so that a late event can never reach a stranger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId {
    /// Position in the street's table; small and dense, fit to index an array.
    pub index: u32,
    /// How often the position was used before.
    pub generation: u32,
}

impl ConnectionId {
    /// One number for logs and `CLIENT ID`.
    pub fn as_u64(self) -> u64 {
        (u64::from(self.generation) << 32) | u64::from(self.index)
    }
}

/// One of the 16384 hash slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(u16);

impl Slot {
    /// `number` modulo 16384; CRC16 results go in as they are.
    pub fn wrapping(number: u16) -> Slot {
        Slot(number % SLOT_COUNT)
    }

    /// `None` when the number is no slot.
    pub fn new(number: u16) -> Option<Slot> {
        (number < SLOT_COUNT).then_some(Slot(number))
    }

    /// 0..16384.
    pub fn number(self) -> u16 {
        self.0
    }

    /// The group of 256 slots it belongs to.
    pub fn group(self) -> SlotGroupId {
        SlotGroupId((self.0 / SLOTS_PER_GROUP) as u8)
    }

    /// Position inside its group, 0..256.
    pub fn in_group(self) -> u8 {
        (self.0 % SLOTS_PER_GROUP) as u8
    }
}

/// One of the 64 groups of 256 consecutive slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotGroupId(u8);

impl SlotGroupId {
    /// `None` when the number is no group.
    pub fn new(number: u8) -> Option<SlotGroupId> {
        (number < SLOT_GROUP_COUNT).then_some(SlotGroupId(number))
    }

    /// 0..64.
    pub fn number(self) -> u8 {
        self.0
    }

    /// Slot of this group at `position`.
    pub fn slot(self, position: u8) -> Slot {
        Slot(u16::from(self.0) * SLOTS_PER_GROUP + u16::from(position))
    }

    /// All groups in ascending order.
    pub fn all() -> impl Iterator<Item = SlotGroupId> {
        (0..SLOT_GROUP_COUNT).map(SlotGroupId)
    }
}

/// Sequence of a key's last write within its partition; 48 bits, absent is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Version(pub u64);

impl Version {
    /// The version of a key that does not exist.
    pub const ABSENT: Version = Version(0);
    /// Largest version that fits its 48 bits.
    pub const MAX: Version = Version((1 << 48) - 1);
}

/// A numbered keyspace of the standalone personality (`SELECT`); 0 on cluster ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Database(pub u8);

/// Number of a log group (what one tick appends), ascending without gaps within one core's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LogOrdinal(pub u64);

/// Number of a log segment, ascending within one core's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SegmentNumber(pub u64);
