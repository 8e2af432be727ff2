//! How much each instance has, and how much it should have.

use std::collections::BTreeMap;

use base::{CoreId, InstanceName, NodeId, SLOT_COUNT, Slot};
use placement::SlotRange;

use crate::chain::Chain;
use crate::moves::Move;
use crate::node::{Node, NodeState};
use crate::stretch::common;
use crate::table::Table;

/// One instance's slots.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Load {
    /// What it has, or will have when all moves are over.
    pub slots: u32,
    /// Its share.
    pub target: u32,
}

impl Load {
    pub fn excess(self) -> u32 {
        self.slots.saturating_sub(self.target)
    }

    pub fn lack(self) -> u32 {
        self.target.saturating_sub(self.slots)
    }

    /// Slots per share, scaled; what has no share is fullest.
    pub fn fullness(self) -> u64 {
        (u64::from(self.slots) << 20) / u64::from(self.target.max(1))
    }
}

/// The share of each instance that takes slots, of `total` slots: by weight, or by instances, and evenly within a node.
pub(crate) fn shares(table: &Table, total: u32) -> BTreeMap<InstanceName, u32> {
    let takers = || table.nodes().filter(|node| node.state == NodeState::Up);
    let sum: u64 = takers().map(|node| u64::from(node.share())).sum();
    let of_node = |node: &Node| (u64::from(total) * u64::from(node.share()) / sum.max(1)) as u32;
    let mut shares = BTreeMap::new();
    for node in takers() {
        let (whole, cores) = (of_node(node), u32::from(node.facts.cores));
        for core in 0..cores {
            let share = whole / cores + u32::from(core < whole % cores);
            shares.insert(InstanceName { node: node.id(), core: CoreId(core as u16) }, share);
        }
    }
    shares
}

/// Who is first of each slot when all moves are over.
pub(crate) fn firsts(table: &Table) -> Vec<Option<InstanceName>> {
    let mut firsts = vec![None; usize::from(SLOT_COUNT)];
    let mut set = |slots: SlotRange, place: Option<InstanceName>| {
        firsts[usize::from(slots.first.number())..=usize::from(slots.last.number())].fill(place);
    };
    table.stretches().for_each(|(slots, stretch)| set(slots, stretch.chain.primary()));
    table.moves().iter().for_each(|one| set(one.slots, Some(one.to)));
    firsts
}

/// The parts of stretches between the ends of moves: each part is in one move or in none.
pub(crate) fn parts(table: &Table) -> Vec<(SlotRange, Chain, Option<Move>)> {
    let mut ends: Vec<u16> =
        table.moves().iter().flat_map(|one| [one.slots.first.number(), one.slots.last.number() + 1]).collect();
    ends.sort_unstable();
    let mut parts = Vec::new();
    for (slots, stretch) in table.stretches() {
        let mut first = slots.first.number();
        let from = ends.partition_point(|end| *end <= first);
        let inner = ends[from..].iter().copied().take_while(|end| *end <= slots.last.number());
        for end in inner.chain([slots.last.number() + 1]).filter(|end| *end > slots.first.number()) {
            if end > first {
                let part = SlotRange { first: Slot::wrapping(first), last: Slot::wrapping(end - 1) };
                let moving = table.moves().iter().find(|one| common(one.slots, part).is_some()).copied();
                parts.push((part, stretch.chain, moving));
                first = end;
            }
        }
    }
    parts
}

/// The chain as it will be when its move is over.
pub(crate) fn settled(chain: &Chain, moving: Option<Move>) -> Chain {
    let Some(one) = moving else { return *chain };
    let mut after = Chain::EMPTY;
    let mover = chain.member(one.to.node);
    mover.into_iter().for_each(|member| after.push(member));
    let others = chain.without(one.to.node).without(one.from.node);
    others.iter().for_each(|&member| after.push(member));
    after
}

/// How many slots each instance has in whatever part, and should have of all copies there are.
pub(crate) fn copies(table: &Table) -> BTreeMap<InstanceName, Load> {
    let mut held: BTreeMap<InstanceName, u32> = BTreeMap::new();
    let mut total = 0;
    for (slots, chain, moving) in parts(table) {
        for member in settled(&chain, moving).iter() {
            *held.entry(member.place).or_insert(0) += u32::from(slots.len());
            total += u32::from(slots.len());
        }
    }
    let targets = shares(table, total);
    targets
        .into_iter()
        .map(|(place, target)| (place, Load { slots: held.get(&place).copied().unwrap_or(0), target }))
        .collect()
}

/// The nodes that take slots.
pub(crate) fn takers(table: &Table) -> Vec<NodeId> {
    table.nodes().filter(|node| node.state == NodeState::Up).map(Node::id).collect()
}
