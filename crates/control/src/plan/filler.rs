//! Who joins a chain: legal places first, then the nearest, then the emptiest, in contiguous pieces.

use std::collections::BTreeMap;

use base::{InstanceName, NodeId, SlotGroupId};
use placement::SlotRange;

use super::loads::{Load, copies, takers};
use crate::chain::Chain;
use crate::node::Node;
use crate::stretch::{common, groups_of, slots_of};
use crate::table::Table;

/// A part of the slots whose chain needs somebody.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Want {
    pub slots: SlotRange,
    /// Beside whom.
    pub beside: Chain,
    /// Who is in the chain although somebody else should be: must not be chosen either.
    pub present: Chain,
}

/// The choice for a want, or for a part of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice {
    pub slots: SlotRange,
    pub present: Chain,
    pub place: InstanceName,
}

/// Chooses somebody for each want where anybody is legal.
pub(crate) fn choose(table: &Table, wants: &[Want]) -> Vec<Choice> {
    let mut filler = Filler::new(table, wants.iter().map(|want| u32::from(want.slots.len())).sum());
    let mut choices: Vec<Choice> = Vec::new();
    for want in wants {
        let legal = filler.legal(want);
        for group in groups_of(want.slots) {
            let slots = common(want.slots, slots_of(group)).expect("a group that the range touches");
            let Some(place) = filler.place(&legal, group) else { continue };
            filler.give(place, slots);
            match choices.last_mut() {
                Some(last) if last.place == place && last.present == want.present && is_next(last.slots, slots) => {
                    last.slots.last = slots.last;
                }
                _ => choices.push(Choice { slots, present: want.present, place }),
            }
        }
    }
    choices
}

fn is_next(one: SlotRange, other: SlotRange) -> bool {
    one.last.number() + 1 == other.first.number()
}

struct Filler<'a> {
    table: &'a Table,
    loads: BTreeMap<InstanceName, Load>,
    /// How much more an instance is meant to get.
    quota: BTreeMap<InstanceName, u32>,
    /// Who was chosen last: goes on until its quota is used.
    last: Option<InstanceName>,
}

impl<'a> Filler<'a> {
    fn new(table: &'a Table, slots: u32) -> Filler<'a> {
        let loads = copies(table);
        let quota = quotas(&loads, slots);
        Filler { table, loads, quota, last: None }
    }

    /// The nodes that may stand there, and whether each is near.
    fn legal(&self, want: &Want) -> Vec<(&'a Node, bool)> {
        let zone = |id: NodeId| self.table.node(id).map(|node| &node.facts.zone);
        let first = want.beside.primary().map(|place| place.node);
        let may = |id: &NodeId| !want.present.has(*id) && self.table.fits(*id, &want.beside).is_ok();
        let is_near = |id: NodeId| first.is_some_and(|first| zone(first) == zone(id));
        let nodes = takers(self.table).into_iter().filter(may);
        nodes.filter_map(|id| Some((self.table.node(id)?, is_near(id)))).collect()
    }

    /// The best instance of the legal nodes for a group.
    fn place(&self, legal: &[(&Node, bool)], group: SlotGroupId) -> Option<InstanceName> {
        let is_any_near = legal.iter().any(|(_, is_near)| *is_near);
        let nodes = legal.iter().filter(|(_, is_near)| *is_near == is_any_near);
        let instances = nodes.map(|(node, _)| node.place(group));
        instances.min_by_key(|place| {
            let quota = self.quota.get(place).copied().unwrap_or(0);
            let fullness = self.loads.get(place).map_or(u64::MAX, |load| load.fullness());
            (quota == 0, Some(*place) != self.last, fullness, *place)
        })
    }

    fn give(&mut self, place: InstanceName, slots: SlotRange) {
        let count = u32::from(slots.len());
        self.loads.entry(place).or_default().slots += count;
        let quota = self.quota.entry(place).or_insert(0);
        *quota = quota.saturating_sub(count);
        self.last = Some(place);
    }
}

/// How the slots would be spread if everybody were legal everywhere: a little at a time to the emptiest.
fn quotas(loads: &BTreeMap<InstanceName, Load>, slots: u32) -> BTreeMap<InstanceName, u32> {
    let mut queue: std::collections::BTreeSet<(u64, InstanceName)> =
        loads.iter().filter(|(_, load)| load.target > 0).map(|(&place, load)| (load.fullness(), place)).collect();
    let (mut quotas, mut left) = (BTreeMap::new(), slots);
    let step = (slots / 1024).max(16);
    while left > 0 {
        let Some((_, place)) = queue.pop_first() else { break };
        let given = step.min(left);
        left -= given;
        let quota = quotas.entry(place).or_insert(0);
        *quota += given;
        let load = loads.get(&place).copied().unwrap_or_default();
        queue.insert((Load { slots: load.slots + *quota, ..load }.fullness(), place));
    }
    quotas
}
