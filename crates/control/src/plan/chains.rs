//! Plans for chains: who comes behind a lost member, who fills up a chain, who is surplus.

use std::collections::{BTreeMap, BTreeSet};

use base::limits::REPLACEMENTS_MAX;
use placement::SlotRange;

use super::TOLERATED;
use super::filler::{Want, choose};
use super::loads::{Load, copies, parts, settled};
use crate::apply::chains::{after_loss, successor};
use crate::chain::{Chain, Member};
use crate::command::{Action, Replacement};
use crate::node::NodeState;
use crate::stretch::{common, groups_of, slots_of};
use crate::table::Table;
use base::{InstanceName, NodeId, Slot};

/// Who comes behind `lost` when it is promoted away, in every chain that is too short without it and has a first whose lease
/// runs.
pub fn replacements(table: &Table, lost: NodeId) -> Vec<Replacement> {
    behind(table, lost, |_, chain| chain.has(lost))
}

/// The same where it leaves before its lease is over, because others are first; `None`: it is in no such chain.
pub fn detachment(table: &Table, lost: NodeId) -> Option<Vec<Replacement>> {
    let leaves = |slots: SlotRange, chain: &Chain| table.may_leave(slots, chain, lost);
    let is_there = parts(table).iter().any(|(slots, chain, _)| leaves(*slots, chain));
    is_there.then(|| behind(table, lost, leaves))
}

fn behind(table: &Table, lost: NodeId, leaves: impl Fn(SlotRange, &Chain) -> bool) -> Vec<Replacement> {
    let mut wants = Vec::new();
    for (slots, chain, moving) in parts(table).into_iter().filter(|(slots, chain, _)| leaves(*slots, chain)) {
        let kept = after_loss(&chain, lost, moving);
        let is_over = moving.is_none_or(|one| one.from.node == lost || one.to.node == lost);
        let beside = if is_over { kept } else { settled(&kept, moving) };
        if is_served(table, &kept) && kept.len() < wanted(table) {
            wants.push(Want { slots, beside, present: kept });
        }
    }
    let mut choices = choose(table, &wants);
    choices.truncate(REPLACEMENTS_MAX);
    choices.into_iter().map(|choice| Replacement { slots: choice.slots, place: choice.place }).collect()
}

/// Members for chains that are shorter than they shall be, wherever somebody is legal.
pub fn fill_up(table: &Table) -> Vec<Action> {
    let mut wants = Vec::new();
    for (slots, chain, moving) in parts(table) {
        let beside = settled(&chain, moving);
        if is_served(table, &chain) && beside.len() < wanted(table) && !chain.is_full() {
            wants.push(Want { slots, beside, present: chain });
        }
    }
    additions(table, &wants)
}

/// Moves, and behind them what their chains need to keep their length when they are over. In one go: a source that keeps its slots still
/// by a table between the two is refused, because its chain has changed since, and with bad luck so is the next try, for ever.
pub fn with_members(table: &Table, mut moves: Vec<Action>) -> Vec<Action> {
    let mut after = table.clone();
    moves.retain(|action| after.try_out(action).is_ok());
    moves.extend(fill_up(&after));
    moves
}

/// Members for chains in which somebody stands who should not: a node that drains, or one in a zone that is there twice while
/// another has room. When the new member is whole, [`trim`] lets the other one go.
pub fn mend(table: &Table) -> Vec<Action> {
    let mut wants = Vec::new();
    for (slots, chain, moving) in parts(table) {
        let is_whole = chain.whole_count() == chain.len();
        if moving.is_some() || !is_whole || !is_served(table, &chain) || chain.len() != wanted(table) || chain.is_full()
        {
            continue;
        }
        if let Some(bad) = misplaced(table, &chain) {
            wants.push(Want { slots, beside: chain.without(bad), present: chain });
        }
    }
    additions(table, &wants)
}

/// While anybody is to get a share: members for chains in which somebody stands who has more than his share of copies, from whoever
/// lacks them, also because others got slots of his. When the new member is whole, [`trim`] lets the other one go: only what it
/// would do is planned. Half of what is too much goes at a time, so that nothing comes back.
pub fn spread(table: &Table) -> Vec<Action> {
    let is_open = table.nodes().any(|node| node.takes_share && node.state == NodeState::Up);
    if !is_open || !is_settled(table) {
        return Vec::new();
    }
    let mut spreader = Spreader { table, loads: copies(table), given: BTreeMap::new() };
    let mut actions = Vec::new();
    for (slots, chain, _) in parts(table) {
        let Some((slots, to)) = spreader.swap(slots, &chain) else { continue };
        let mut after = chain;
        after.push(Member::filling(to));
        let places = after.iter().map(|member| member.place).collect();
        actions.push(Action::Replace { slots, epoch: table.version(), places, counted: false });
    }
    actions
}

/// Whether no chain is being filled, or has more members than it shall, and nothing is on its way.
pub fn is_settled(table: &Table) -> bool {
    let is_done = |chain: &Chain| chain.whole_count() == chain.len() && chain.len() <= wanted(table);
    table.moves().is_empty() && table.stretches().all(|(_, stretch)| is_done(&stretch.chain))
}

/// A plan of [`spread`] in the making.
struct Spreader<'a> {
    table: &'a Table,
    loads: BTreeMap<InstanceName, Load>,
    /// Slots that go from each instance by this plan.
    given: BTreeMap<InstanceName, u32>,
}

impl Spreader<'_> {
    /// Slots of a chain that are copied, and to whom.
    fn swap(&mut self, slots: SlotRange, chain: &Chain) -> Option<(SlotRange, InstanceName)> {
        if chain.len() != wanted(self.table) || chain.is_full() || !is_served(self.table, chain) {
            return None;
        }
        let behind = chain.iter().skip(1).map(|member| member.place);
        let from = behind.max_by_key(|place| self.may_give(*place))?;
        let lack = |place: InstanceName| self.loads.get(&place).map_or(0, |load| load.lack());
        // Beside all of it: until it is whole, nobody goes.
        let may = |place: &InstanceName| self.may_take(*place, chain) && self.at_home(slots, *place).is_some();
        let legal = self.loads.keys().copied().filter(|place| !chain.has(place.node) && may(place));
        let to = legal.max_by_key(|place| (lack(*place), std::cmp::Reverse(*place)))?;
        let slots = self.at_home(slots, to)?;
        let count = u32::from(slots.len()).min(self.may_give(from)).min(lack(to));
        let mut after = *chain;
        after.push(Member::whole(to));
        let goes = surplus(self.table, &after, &self.loads).map(|member| member.place);
        if count == 0 || goes != Some(from) {
            return None;
        }
        let slots = SlotRange { last: Slot::wrapping(slots.first.number() + count as u16 - 1), ..slots };
        *self.given.entry(from).or_insert(0) += count;
        self.loads.entry(to).or_default().slots += count;
        Some((slots, to))
    }

    fn may_give(&self, place: InstanceName) -> u32 {
        let excess = self.loads.get(&place).map_or(0, |load| load.excess());
        (excess / 2).saturating_sub(self.given.get(&place).copied().unwrap_or(0))
    }

    /// The first of these slots, as far as their groups are those of this core.
    fn at_home(&self, slots: SlotRange, place: InstanceName) -> Option<SlotRange> {
        let node = self.table.node(place.node)?;
        let last = groups_of(slots).take_while(|group| node.place(*group) == place).last()?;
        common(slots, SlotRange { last: slots_of(last).last, ..slots })
    }

    fn may_take(&self, place: InstanceName, beside: &Chain) -> bool {
        let is_short = |load: &Load| load.lack() > load.target / TOLERATED;
        self.table.node(place.node).is_some_and(|node| node.state == NodeState::Up)
            && self.loads.get(&place).is_some_and(is_short)
            && self.table.fits(place.node, beside).is_ok()
    }
}

fn additions(table: &Table, wants: &[Want]) -> Vec<Action> {
    let epoch = table.version();
    let action = |choice: super::filler::Choice| {
        let mut chain = choice.present;
        chain.push(Member::filling(choice.place));
        let places = chain.iter().map(|member| member.place).collect();
        Action::Replace { slots: choice.slots, epoch, places, counted: false }
    };
    choose(table, wants).into_iter().map(action).collect()
}

/// Members that go because a chain has more than it shall, one at a time. Nobody who is whole goes while somebody else is being
/// filled.
pub fn trim(table: &Table) -> Vec<Action> {
    let loads = copies(table);
    let mut actions: Vec<(SlotRange, Chain, Chain)> = Vec::new();
    for (slots, chain, moving) in parts(table) {
        if moving.is_some() || chain.len() <= wanted(table) || !is_served(table, &chain) {
            continue;
        }
        let Some(going) = surplus(table, &chain, &loads) else { continue };
        if going.whole && chain.whole_count() < chain.len() {
            continue;
        }
        match actions.last_mut() {
            Some((last, same, _)) if *same == chain && last.last.number() + 1 == slots.first.number() => {
                last.last = slots.last;
            }
            _ => actions.push((slots, chain, chain.without(going.place.node))),
        }
    }
    let epoch = table.version();
    let action = |(slots, chain, rest): (SlotRange, Chain, Chain)| {
        let counted = successor(&rest).is_some() && successor(&rest) != successor(&chain);
        Action::Replace { slots, epoch, places: rest.iter().map(|member| member.place).collect(), counted }
    };
    actions.into_iter().map(action).collect()
}

/// Whom a chain misses least: who drains, who leaves the more zones behind, who has more than his share, who is not whole, who
/// would not take over, who is fullest.
fn surplus(table: &Table, chain: &Chain, loads: &BTreeMap<InstanceName, Load>) -> Option<Member> {
    let zones_without = |id: NodeId| {
        let rest = chain.without(id);
        let zones = rest.iter().filter_map(|member| table.node(member.place.node)).map(|node| &node.facts.zone);
        zones.collect::<BTreeSet<_>>().len()
    };
    let fullness = |place: InstanceName| loads.get(&place).map_or(u64::MAX, |load| load.fullness());
    chain.iter().skip(1).copied().max_by_key(|member| {
        let id = member.place.node;
        let takes_over = successor(chain) == Some(member.place);
        let is_overfull = loads.get(&member.place).is_some_and(|load| load.excess() > 0);
        (is_draining(table, id), zones_without(id), is_overfull, !member.whole, !takes_over, fullness(member.place))
    })
}

fn is_draining(table: &Table, id: NodeId) -> bool {
    table.node(id).is_some_and(|node| node.state == NodeState::Draining)
}

/// Who, behind the first, should not be in the chain, if anybody: of two in one zone the later one.
fn misplaced(table: &Table, chain: &Chain) -> Option<NodeId> {
    let behind = || chain.iter().skip(1).map(|member| member.place.node);
    let crowded = || behind().rfind(|id| table.fits(*id, &chain.without(*id)).is_err());
    behind().find(|id| is_draining(table, *id)).or_else(crowded)
}

fn wanted(table: &Table) -> usize {
    usize::from(table.settings().chain_length)
}

fn is_served(table: &Table, chain: &Chain) -> bool {
    chain.primary().is_some_and(|first| table.has_lease(first.node).is_ok())
}
