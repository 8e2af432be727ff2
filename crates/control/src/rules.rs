//! The rules of placement: who may stand in a chain beside whom, which core has which group, how many ranges are too many.

use base::limits::RANGES_PER_INSTANCE_MAX;
use base::{InstanceName, NodeId, Slot};
use placement::{Epoch, SlotRange};

use crate::chain::Chain;
use crate::node::{Node, NodeState};
use crate::refusal::Refusal;
use crate::stretch::{common, groups_of};
use crate::table::Table;

impl Table {
    pub(crate) fn known(&self, node: NodeId) -> Result<&Node, Refusal> {
        self.nodes.get(&node).ok_or(Refusal::NodeUnknown(node))
    }

    pub(crate) fn known_mut(&mut self, node: NodeId) -> Result<&mut Node, Refusal> {
        self.nodes.get_mut(&node).ok_or(Refusal::NodeUnknown(node))
    }

    /// Whether nothing has changed in `slots` since the version `planned`.
    pub(crate) fn still(&self, slots: SlotRange, planned: Epoch) -> Result<(), Refusal> {
        if planned.0 > self.version {
            return Err(Refusal::FromTheFuture(self.version));
        }
        match self.stretches.within(slots).find(|(_, stretch)| stretch.epoch > planned) {
            Some((part, stretch)) => Err(Refusal::Overtaken(part.first, stretch.epoch.0)),
            None => Ok(()),
        }
    }

    /// Whether slots may be given to `place`: the node is up and has the core.
    pub(crate) fn takes(&self, place: InstanceName) -> Result<(), Refusal> {
        let node = self.known(place.node)?;
        match node.state {
            NodeState::Up if place.core.0 < node.facts.cores => Ok(()),
            NodeState::Up => Err(Refusal::NoSuchCore(place)),
            state => Err(Refusal::NodeIs(place.node, state)),
        }
    }

    /// Whether managers renew the lease of `node`.
    pub(crate) fn has_lease(&self, node: NodeId) -> Result<(), Refusal> {
        match self.known(node)?.state {
            state if state.has_lease() => Ok(()),
            state => Err(Refusal::NodeIs(node, state)),
        }
    }

    /// Whether `node` may stand in a chain beside `others`: not on one machine, nor in one zone while another has room. A
    /// zone has room when a node that is up there is on no machine of the chain. Who drains is as good as gone.
    pub(crate) fn fits(&self, node: NodeId, others: &Chain) -> Result<(), Refusal> {
        if self.is_relaxed {
            return Ok(());
        }
        let facts = &self.known(node)?.facts;
        let others = || others.iter().filter_map(|member| self.nodes.get(&member.place.node));
        let beside = || others().filter(|node| node.state != NodeState::Draining).map(|node| &node.facts);
        if let Some(other) = beside().find(|other| other.machine == facts.machine) {
            return Err(Refusal::OneMachine(node, other.id));
        }
        let Some(other) = beside().find(|other| other.zone == facts.zone) else { return Ok(()) };
        let has_room = |candidate: &Node| {
            let is_new =
                beside().all(|other| other.zone != candidate.facts.zone && other.machine != candidate.facts.machine);
            candidate.state == NodeState::Up && is_new
        };
        match self.nodes.values().any(has_room) {
            true => Err(Refusal::OneZone(node, other.id)),
            false => Ok(()),
        }
    }

    /// Whether two nodes are on one machine, where that matters: not when one of them is leaving.
    pub(crate) fn clash(&self, one: NodeId, other: NodeId) -> bool {
        let (Some(one), Some(other)) = (self.nodes.get(&one), self.nodes.get(&other)) else { return false };
        let is_leaving = |node: &Node| matches!(node.state, NodeState::Draining | NodeState::Fenced);
        let is_one_machine = one.id() != other.id() && one.facts.machine == other.facts.machine;
        is_one_machine && !self.is_relaxed && !is_leaving(one) && !is_leaving(other)
    }

    /// Whether `place` is the core of its node that has all groups of `slots`.
    pub(crate) fn keeps_home(&self, slots: SlotRange, place: InstanceName) -> Result<(), Refusal> {
        let node = self.known(place.node)?;
        match groups_of(slots).find(|group| node.home(*group) != place.core) {
            Some(group) => Err(Refusal::HomeElsewhere(place.node, group, node.home(group))),
            None => Ok(()),
        }
    }

    /// The move that has some of `slots`.
    pub(crate) fn moving(&self, slots: SlotRange) -> Option<u64> {
        self.moves.iter().find(|one| common(one.slots, slots).is_some()).map(|one| one.id)
    }

    /// Whether `slots` may go to `to` and from `from` without either being first of too many ranges, in whatever order all
    /// that is on its way arrives.
    pub(crate) fn ranges_allow(&self, slots: SlotRange, from: InstanceName, to: InstanceName) -> Result<(), Refusal> {
        let owner = |number: Option<u16>| {
            let slot = number.and_then(Slot::new)?;
            let is_moving = self.moves.iter().any(|one| one.slots.contains(slot));
            self.stretches.of_slot(slot).chain.primary().filter(|_| !is_moving)
        };
        let before = owner(slots.first.number().checked_sub(1));
        let after = owner(Some(slots.last.number() + 1));
        let leaves_two = self.is_inside(slots, from);
        let coming = |place: InstanceName| self.moves.iter().filter(|one| one.to == place).count();
        let splitting = |place: InstanceName| {
            self.moves.iter().filter(|one| one.from == place && self.is_inside(one.slots, place)).count()
        };
        let most = |place: InstanceName| self.ranges_of(place).len() + coming(place) + splitting(place);
        if leaves_two && most(from) >= RANGES_PER_INSTANCE_MAX {
            return Err(Refusal::TooManyRanges(from));
        }
        let is_beside = before == Some(to) || after == Some(to);
        if !is_beside && most(to) >= RANGES_PER_INSTANCE_MAX {
            return Err(Refusal::TooManyRanges(to));
        }
        Ok(())
    }

    /// Whether `place` is first of the slots on both sides of `slots`.
    fn is_inside(&self, slots: SlotRange, place: InstanceName) -> bool {
        let is_first = |number: Option<u16>| {
            number.and_then(Slot::new).is_some_and(|slot| self.stretches.of_slot(slot).chain.primary() == Some(place))
        };
        is_first(slots.first.number().checked_sub(1)) && is_first(Some(slots.last.number() + 1))
    }
}
