//! What an instance knows of the cluster's table: who serves which slot, and who has copies of it. Replaced as a whole.
//!
//! ```text
//!   slots 0 … 5460          5461 … 10922          10923 … 16383         sorted, without gaps
//!   chain [A.0, B.1]        [B.0, C.0]            [C.1, A.1]            the first serves; all of them hold
//! ```

use base::{InstanceName, NodeId, SLOT_COUNT, Slot};

use crate::slots::SlotSet;
use crate::table::{Endpoint, SlotRange};

/// Distance from a node's port to that of its first instance.
pub const INSTANCE_PORT_OFFSET: u16 = 1;
/// Distance from an instance's port to the one for other nodes.
const LINK_PORT_OFFSET: u16 = 10_000;

/// Where a node is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePlace {
    /// Which node.
    pub node: NodeId,
    /// Its announced host.
    pub host: String,
    /// Its port P; instance i is at P+1+i, and for other nodes at P+10001+i.
    pub port: u16,
    /// Its instances.
    pub cores: u16,
    /// Whether its lease is renewed, as far as the table says: it is neither fenced nor down.
    pub is_up: bool,
    /// Which start of it: what a node holds is known of one start only.
    pub incarnation: u64,
}

/// A slot range on its way from one instance to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moving {
    /// Version of the table that began it.
    pub id: u64,
    /// What moves.
    pub slots: SlotRange,
    /// Who was first of all of it when it began.
    pub from: InstanceName,
    /// Who becomes that.
    pub to: InstanceName,
    /// The destination is first already; what the chain's whole members had then is the same.
    pub is_handed: bool,
}

/// Who holds a slot, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Version of the table that last changed it.
    pub epoch: u64,
    /// The first serves; the second is waited for. Empty: nobody serves the slot.
    pub members: Vec<InstanceName>,
    /// How many of them, from the first on, have everything; the others are being filled.
    pub whole: usize,
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterView {
    cluster: [u8; 16],
    version: u64,
    /// Ascending.
    nodes: Vec<NodePlace>,
    /// First slot of each stretch, ascending from 0, and its chain.
    stretches: Vec<(Slot, Chain)>,
    moves: Vec<Moving>,
    /// Whole copies without which a chain is degraded.
    promised: usize,
    /// Slots in which replies wait for every member that has everything, because one of them is about to leave.
    long: SlotSet,
}

impl ClusterView {
    /// A view of version `version`.
    ///
    /// # Panics
    /// When the stretches do not ascend from slot 0, or a member is on no node: the table's invariants.
    pub fn new(
        cluster: [u8; 16],
        version: u64,
        mut nodes: Vec<NodePlace>,
        stretches: Vec<(Slot, Chain)>,
    ) -> ClusterView {
        nodes.sort_unstable_by_key(|place| place.node);
        assert_eq!(stretches.first().map(|(slot, _)| slot.number()), Some(0), "every slot is in a stretch");
        assert!(stretches.is_sorted_by(|one, next| one.0 < next.0), "stretches ascend");
        let (moves, long) = (Vec::new(), SlotSet::default());
        let view = ClusterView { cluster, version, nodes, stretches, moves, promised: 2, long };
        let mut members = view.stretches.iter().flat_map(|(_, chain)| &chain.members);
        assert!(members.all(|member| view.place(member.node).is_some()), "members are on nodes");
        view
    }

    /// The same with these moves under way.
    pub fn with_moves(self, moves: Vec<Moving>) -> ClusterView {
        ClusterView { moves, ..self }
    }

    /// The same where chains shall have so many members: a reply waits for the second at most.
    pub fn with_chain_length(self, members: usize) -> ClusterView {
        ClusterView { promised: members.min(2), ..self }
    }

    /// Whether others are to have copies of what a slot's first has.
    pub fn keeps_copies(&self) -> bool {
        self.promised > 1
    }

    /// Whether a chain has fewer whole copies than a reply promises.
    pub fn is_degraded(&self, chain: &Chain) -> bool {
        chain.whole < self.promised
    }

    /// The same with chains of these slots that are longer than they shall be.
    pub fn with_long(self, long: SlotSet) -> ClusterView {
        ClusterView { long, ..self }
    }

    /// Whether replies wait for every member of the slot's chain that has everything: whoever comes second when one of them
    /// has left has to have what was acknowledged until then.
    pub fn waits_for_all(&self, slot: Slot) -> bool {
        self.long.contains(slot)
    }

    /// Which cluster.
    pub fn cluster(&self) -> [u8; 16] {
        self.cluster
    }

    /// Version of the table.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Nodes that are part of the cluster.
    pub fn nodes(&self) -> &[NodePlace] {
        &self.nodes
    }

    /// First slot of each stretch, and its chain.
    pub(crate) fn chains(&self) -> &[(Slot, Chain)] {
        &self.stretches
    }

    /// Who holds `slot`.
    #[inline]
    pub fn chain(&self, slot: Slot) -> &Chain {
        let behind = self.stretches.partition_point(|(first, _)| *first <= slot);
        &self.stretches[behind - 1].1
    }

    /// Who serves `slot`.
    #[inline]
    pub fn first(&self, slot: Slot) -> Option<InstanceName> {
        self.chain(slot).members.first().copied()
    }

    /// Moves under way.
    pub fn moves(&self) -> &[Moving] {
        &self.moves
    }

    /// The move that takes `slot` elsewhere, or did.
    pub fn moving(&self, slot: Slot) -> Option<&Moving> {
        self.moves.iter().find(|one| one.slots.contains(slot))
    }

    /// Slots that `instance` serves.
    pub fn served_by(&self, instance: InstanceName) -> SlotSet {
        self.slots_where(|chain| chain.members.first() == Some(&instance))
    }

    /// Slots of whose chains an instance of `node` is a member.
    pub fn held_by(&self, node: NodeId) -> SlotSet {
        self.slots_where(|chain| chain.members.iter().any(|member| member.node == node))
    }

    /// Slots of which `node` has no copy, and needs none: their chains have as many whole copies as promised and nobody who is being
    /// filled, and they stay where they are.
    pub fn settled_without(&self, node: NodeId) -> SlotSet {
        let settled = self.slots_where(|chain| {
            let is_elsewhere = chain.members.iter().all(|member| member.node != node);
            is_elsewhere && chain.whole == chain.members.len() && !self.is_degraded(chain)
        });
        let mut moving = SlotSet::default();
        self.moves.iter().for_each(|one| moving.insert_range(one.slots));
        settled.without(&moving)
    }

    fn slots_where(&self, is_meant: impl Fn(&Chain) -> bool) -> SlotSet {
        let mut slots = SlotSet::default();
        self.stretches().filter(|(_, chain)| is_meant(chain)).for_each(|(range, _)| slots.insert_range(range));
        slots
    }

    /// Whether slots are on their way to `node` or from it, or it is being filled.
    pub fn is_in_motion(&self, node: NodeId) -> bool {
        let is_filled = |(_, chain): &(Slot, Chain)| chain.members.iter().skip(chain.whole).any(|one| one.node == node);
        self.moves.iter().any(|one| one.from.node == node || one.to.node == node)
            || self.stretches.iter().any(is_filled)
    }

    /// Which start of a node the table knows; `None`: it is not part of the cluster.
    pub fn incarnation(&self, node: NodeId) -> Option<u64> {
        self.place(node).map(|place| place.incarnation)
    }

    /// Every slot and its chain.
    pub fn slots(&self) -> impl Iterator<Item = (Slot, &Chain)> {
        self.stretches().flat_map(|(range, chain)| range.numbers().map(move |slot| (Slot::wrapping(slot), chain)))
    }

    /// Every stretch of slots and its chain, ascending. Nobody is served while a table is looked at, which comes several times in a
    /// move: so what has one chain is looked at once.
    pub fn stretches(&self) -> impl Iterator<Item = (SlotRange, &Chain)> {
        let ends = self.stretches.iter().skip(1).map(|(next, _)| next.number()).chain([SLOT_COUNT]);
        let range = |first: Slot, end: u16| SlotRange { first, last: Slot::wrapping(end - 1) };
        self.stretches.iter().zip(ends).map(move |((first, chain), end)| (range(*first, end), chain))
    }

    /// Where a node is.
    pub(crate) fn place(&self, node: NodeId) -> Option<&NodePlace> {
        self.nodes.binary_search_by_key(&node, |place| place.node).ok().map(|number| &self.nodes[number])
    }

    /// Where clients reach an instance of this view.
    pub fn endpoint(&self, instance: InstanceName) -> Endpoint {
        let place = self.place(instance.node).expect("members are on nodes");
        Endpoint { host: place.host.clone(), port: place.port + INSTANCE_PORT_OFFSET + instance.core.0 }
    }

    /// Where other nodes reach an instance of this view: `host:port`.
    pub fn link_address(&self, instance: InstanceName) -> String {
        let endpoint = self.endpoint(instance);
        format!("{}:{}", endpoint.host, endpoint.port + LINK_PORT_OFFSET)
    }
}

#[cfg(test)]
mod tests {
    use base::CoreId;

    use super::*;

    #[test]
    fn every_slot_has_the_chain_of_its_stretch() {
        let name = |node, core| InstanceName { node: NodeId(node), core: CoreId(core) };
        let chain = |epoch, members: &[InstanceName]| Chain { epoch, members: members.to_vec(), whole: members.len() };
        let place = |node, port| NodePlace {
            node: NodeId(node),
            host: "10.0.0.1".to_owned(),
            port,
            cores: 2,
            is_up: true,
            incarnation: 1,
        };
        let stretches = vec![
            (Slot::wrapping(0), chain(3, &[name(1, 0), name(2, 1)])),
            (Slot::wrapping(100), chain(4, &[])),
            (Slot::wrapping(101), chain(5, &[name(2, 1)])),
        ];
        let view = ClusterView::new([1; 16], 7, vec![place(1, 7000), place(2, 8000)], stretches);
        assert_eq!(view.first(Slot::wrapping(99)), Some(name(1, 0)));
        assert_eq!(view.first(Slot::wrapping(100)), None);
        assert_eq!(view.first(Slot::wrapping(16383)), Some(name(2, 1)));
        assert_eq!(view.slots().filter(|(_, chain)| chain.epoch == 5).count(), 16383 - 100);
        assert_eq!(view.endpoint(name(2, 1)).port, 8002);
        assert_eq!(view.link_address(name(1, 0)), "10.0.0.1:17001");
    }
}
