//! Which instance owns which slots: one immutable value with a version, replaced as a whole.
//!
//! ```text
//! --cores 3:  groups  0 ─────── 21 │ 22 ─────── 42 │ 43 ─────── 63
//!             slots   0 … 5631     │ 5632 … 11007  │ 11008 … 16383
//!             owner   core 0       │ core 1        │ core 2
//! ```
//! Ranges end at slot groups, so that no group is ever shared by two cores.

use std::ops::Range;

use base::limits::CORES_MAX;
use base::{CoreId, InstanceName, SLOT_COUNT, SLOT_GROUP_COUNT, SLOTS_PER_GROUP, Slot, SlotGroupId};

/// Version of a table. Larger is newer; every inter-node message will carry it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

/// Name of an instance in the cluster: 40 hexadecimal digits, as Redis Cluster clients expect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceId([u8; 20]);

impl InstanceId {
    /// The id of core `core` of the store `store_id`: the same after every restart, different for every core.
    pub fn derive(store_id: [u8; 16], core: CoreId) -> InstanceId {
        InstanceId::derive_labelled(store_id, core.0.into(), b'i')
    }

    /// The id of an instance of the cluster `cluster`: the same for whoever asks, on whichever node.
    pub fn derive_in_cluster(cluster: [u8; 16], name: InstanceName) -> InstanceId {
        InstanceId::derive_labelled(cluster, number_in_cluster(name), b'i')
    }

    /// The id of the shard that an instance of the cluster `cluster` leads.
    pub fn derive_shard_in_cluster(cluster: [u8; 16], name: InstanceName) -> InstanceId {
        InstanceId::derive_labelled(cluster, number_in_cluster(name), b's')
    }

    /// The id of the shard (the chain of replicas) that the instance leads.
    fn derive_shard(store_id: [u8; 16], core: CoreId) -> InstanceId {
        InstanceId::derive_labelled(store_id, core.0.into(), b's')
    }

    /// Three rounds of a 64-bit mixer (splitmix64) over store or cluster, number in it and label. Ids need to be distinct, not
    /// secret.
    fn derive_labelled(store_id: [u8; 16], number: u64, label: u8) -> InstanceId {
        let (low, high) = store_id.split_at(8);
        let word = |bytes: &[u8]| bytes.iter().fold(0u64, |word, &byte| word << 8 | u64::from(byte));
        let mut state = mix(word(low)) ^ word(high);
        state = mix(state ^ number << 8 ^ u64::from(label));
        let mut id = [0u8; 20];
        for chunk in id.chunks_mut(8) {
            state = mix(state);
            chunk.copy_from_slice(&state.to_be_bytes()[..chunk.len()]);
        }
        InstanceId(id)
    }

    /// The 40 digits.
    pub fn to_hex(self) -> String {
        let digit = |digit: u8| char::from(b"0123456789abcdef"[usize::from(digit)]);
        self.0.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
    }
}

impl std::fmt::Display for InstanceId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.to_hex())
    }
}

/// Node and core in 48 bits.
fn number_in_cluster(name: InstanceName) -> u64 {
    u64::from(name.node.0) << 16 | u64::from(name.core.0)
}

fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

/// Where clients reach an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Announced host. Empty: the one the client is connected to.
    pub host: String,
    /// Announced port.
    pub port: u16,
}

/// A contiguous range of slots, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotRange {
    /// First slot.
    pub first: Slot,
    /// Last slot.
    pub last: Slot,
}

impl SlotRange {
    /// Number of slots, at least 1.
    pub fn len(self) -> u16 {
        self.last.number() - self.first.number() + 1
    }

    /// Never: a range has at least one slot.
    pub fn is_empty(self) -> bool {
        false
    }

    /// The numbers of its slots.
    pub fn numbers(self) -> Range<u16> {
        self.first.number()..self.last.number() + 1
    }

    /// Whether `slot` is in.
    pub fn contains(self, slot: Slot) -> bool {
        (self.first..=self.last).contains(&slot)
    }
}

/// One instance: a core with its port and slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Its core on this node.
    pub core: CoreId,
    /// Its name.
    pub id: InstanceId,
    /// Name of the chain it leads (CLUSTER MYSHARDID).
    pub shard_id: InstanceId,
    /// Where cluster clients reach it.
    pub endpoint: Endpoint,
    /// What it owns, ascending; at most 16 ranges by design, one so far.
    pub ranges: Vec<SlotRange>,
}

/// Why a split is impossible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotRangeError {
    /// No core, or more than [`CORES_MAX`].
    CoreCount {
        /// What was asked.
        cores: u16,
    },
    /// The ports of the instances do not fit below 65536.
    PortRange {
        /// Port of the first instance.
        base_port: u16,
    },
}

impl std::fmt::Display for SlotRangeError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SlotRangeError::CoreCount { cores } => write!(formatter, "{cores} cores: 1 to {CORES_MAX} are possible"),
            SlotRangeError::PortRange { base_port } => {
                write!(formatter, "instance ports from {base_port} on do not fit below 65536")
            }
        }
    }
}

impl std::error::Error for SlotRangeError {}

/// The address book of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeTable {
    epoch: Epoch,
    instances: Vec<Instance>,
    owners: [u16; SLOT_GROUP_COUNT as usize],
}

impl NodeTable {
    /// An even split over `cores` instances, which announce `host` and the ports from `base_port` on.
    ///
    /// # Errors
    /// [`SlotRangeError`] when the number of cores or the ports are impossible.
    pub fn even(store_id: [u8; 16], cores: u16, host: &str, base_port: u16) -> Result<NodeTable, SlotRangeError> {
        if cores == 0 || usize::from(cores) > CORES_MAX {
            return Err(SlotRangeError::CoreCount { cores });
        }
        if base_port == 0 || base_port.checked_add(cores - 1).is_none() {
            return Err(SlotRangeError::PortRange { base_port });
        }
        let mut owners = [0; SLOT_GROUP_COUNT as usize];
        let instances = (0..cores)
            .map(|core| {
                let first_group = boundary(core, cores);
                let end_group = boundary(core + 1, cores);
                owners[usize::from(first_group)..usize::from(end_group)].fill(core);
                let core = CoreId(core);
                Instance {
                    core,
                    id: InstanceId::derive(store_id, core),
                    shard_id: InstanceId::derive_shard(store_id, core),
                    endpoint: Endpoint { host: host.to_string(), port: base_port + core.0 },
                    ranges: vec![SlotRange {
                        first: Slot::wrapping(first_group * SLOTS_PER_GROUP),
                        last: Slot::wrapping(end_group * SLOTS_PER_GROUP - 1),
                    }],
                }
            })
            .collect();
        Ok(NodeTable { epoch: Epoch(1), instances, owners })
    }

    /// Version of this table.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// All instances, by core.
    pub fn instances(&self) -> &[Instance] {
        &self.instances
    }

    /// The instance of `core`; `None` when the node has fewer cores.
    pub fn instance(&self, core: CoreId) -> Option<&Instance> {
        self.instances.get(usize::from(core.0))
    }

    /// Who owns `slot`.
    #[inline]
    pub fn owner(&self, slot: Slot) -> CoreId {
        self.group_owner(slot.group())
    }

    /// Who owns all slots of `group`.
    #[inline]
    pub fn group_owner(&self, group: SlotGroupId) -> CoreId {
        CoreId(self.owners[usize::from(group.number())])
    }

    /// The groups of `core`, ascending.
    pub fn groups_of(&self, core: CoreId) -> impl Iterator<Item = SlotGroupId> {
        SlotGroupId::all().filter(move |&group| self.group_owner(group) == core)
    }

    /// The groups of `core`: bit i is group i.
    pub fn group_mask_of(&self, core: CoreId) -> u64 {
        self.groups_of(core).fold(0, |mask, group| mask | 1 << group.number())
    }

    /// Where a client that asked the wrong instance for `slot` is sent.
    pub fn moved(&self, slot: Slot) -> &Endpoint {
        &self.instances[usize::from(self.owner(slot).0)].endpoint
    }
}

/// The core that has `group` on a node of `cores` cores: the same on every node that has as many.
///
/// # Panics
/// Without a core.
#[inline]
pub fn home(group: SlotGroupId, cores: u16) -> CoreId {
    // The last core whose first group is not behind this one.
    CoreId(u16::from(group.number()) * cores / (SLOT_COUNT / SLOTS_PER_GROUP))
}

/// First group of core `core` of `cores`; sizes differ by one group at most.
fn boundary(core: u16, cores: u16) -> u16 {
    let groups = SLOT_COUNT / SLOTS_PER_GROUP;
    (core * groups).div_ceil(cores)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(cores: u16) -> NodeTable {
        NodeTable::even([7; 16], cores, "127.0.0.1", 7001).expect("a possible split")
    }

    #[test]
    fn every_split_covers_every_slot_once_and_evenly() {
        for cores in 1..=CORES_MAX as u16 {
            let table = table(cores);
            let mut next = 0;
            for instance in table.instances() {
                for range in &instance.ranges {
                    assert_eq!(range.first.number(), next, "{cores} cores");
                    assert_eq!(range.first.in_group(), 0);
                    assert_eq!(range.last.in_group(), 255);
                    next = range.last.number() + 1;
                    for number in range.first.number()..=range.last.number() {
                        let slot = Slot::wrapping(number);
                        assert_eq!((table.owner(slot), home(slot.group(), cores)), (instance.core, instance.core));
                    }
                }
            }
            assert_eq!(next, SLOT_COUNT);
            let sizes = || table.instances().iter().map(|instance| table.groups_of(instance.core).count());
            let (smallest, largest) = (sizes().min().expect("a core"), sizes().max().expect("a core"));
            assert!(largest - smallest <= 1, "{cores} cores: {smallest} to {largest} groups");
        }
    }

    #[test]
    fn impossible_splits_are_refused() {
        let even = |cores, port| NodeTable::even([0; 16], cores, "", port);
        assert_eq!(even(0, 7001), Err(SlotRangeError::CoreCount { cores: 0 }));
        assert_eq!(even(65, 7001), Err(SlotRangeError::CoreCount { cores: 65 }));
        assert_eq!(even(2, 65535), Err(SlotRangeError::PortRange { base_port: 65535 }));
        assert!(even(1, 65535).is_ok());
    }

    #[test]
    fn ids_are_stable_and_distinct() {
        let mut ids: Vec<String> = table(64).instances().iter().map(|instance| instance.id.to_hex()).collect();
        ids.extend(table(64).instances().iter().map(|instance| instance.shard_id.to_hex()));
        assert!(ids.iter().all(|id| id.len() == 40 && id.bytes().all(|byte| byte.is_ascii_hexdigit())));
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 128);
        assert_eq!(table(4), table(4));
        assert_ne!(InstanceId::derive([1; 16], CoreId(0)), InstanceId::derive([2; 16], CoreId(0)));
    }

    #[test]
    fn ids_stay_what_they_were() {
        // Clients and scripts have written them down.
        let id = InstanceId::derive([7; 16], CoreId(1)).to_hex();
        assert_eq!(id, "7ff40304a31f751978b7ebb97fe866f969b0ac05");
    }

    #[test]
    fn a_redirect_names_the_owner() {
        let table = table(2);
        assert_eq!(table.moved(Slot::wrapping(0)).port, 7001);
        assert_eq!(table.moved(Slot::wrapping(8191)).port, 7001);
        assert_eq!(table.moved(Slot::wrapping(8192)).port, 7002);
    }
}
