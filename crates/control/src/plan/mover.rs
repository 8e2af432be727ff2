//! Slots move from who has too many to who has too few: from the fullest, in contiguous pieces, never more than a share.

use std::collections::{BTreeMap, BTreeSet};

use base::limits::{MOVES_MAX, RANGES_PER_INSTANCE_MAX};
use base::{InstanceName, NodeId, SLOT_COUNT, SLOTS_PER_GROUP, Slot};
use placement::SlotRange;

use super::TOLERATED;
use super::loads::{Load, firsts, shares};
use crate::command::Action;
use crate::node::NodeState;
use crate::stretch::range;
use crate::table::Table;

/// Pieces of at least this many slots end at slot groups, so that the next instance finds a group that is free.
const ALIGNED_SLOTS: u16 = 2 * SLOTS_PER_GROUP;

/// What moves to `node`, which has just come or came back: from the fullest, no more than its share.
pub fn join(table: &Table, node: NodeId) -> Vec<Action> {
    Mover::new(table).run(|place| place.node == node, |_| true)
}

/// What moves so that everybody has its share.
pub fn rebalance(table: &Table) -> Vec<Action> {
    Mover::new(table).run(|_| true, |_| true)
}

/// What moves to those that are to get their share.
pub fn share_out(table: &Table) -> Vec<Action> {
    let takes = |id: NodeId| table.node(id).is_some_and(|node| node.takes_share);
    Mover::new(table).run(|place| takes(place.node), |_| true)
}

/// What moves away from `node`: all of it, to who lacks most.
pub fn drain(table: &Table, node: NodeId) -> Vec<Action> {
    let mut mover = Mover::new(table);
    mover.is_draining = true;
    mover.run(|place| place.node != node, |place| place.node == node)
}

struct Mover<'a> {
    table: &'a Table,
    /// Where every step is tried: what the table would refuse is no plan.
    scratch: Table,
    firsts: Vec<Option<InstanceName>>,
    /// Whether a slot is on its way.
    is_moving: Vec<bool>,
    loads: BTreeMap<InstanceName, Load>,
    legal: BTreeMap<NodeId, Vec<bool>>,
    hopeless: BTreeSet<(InstanceName, InstanceName)>,
    plan: Vec<Action>,
    /// All has to go, so somebody takes it even beyond his share.
    is_draining: bool,
}

impl<'a> Mover<'a> {
    fn new(table: &'a Table) -> Mover<'a> {
        let firsts = firsts(table);
        let mut is_moving = vec![false; usize::from(SLOT_COUNT)];
        for one in table.moves() {
            is_moving[usize::from(one.slots.first.number())..=usize::from(one.slots.last.number())].fill(true);
        }
        let mut loads: BTreeMap<InstanceName, Load> = BTreeMap::new();
        firsts.iter().flatten().for_each(|place| loads.entry(*place).or_default().slots += 1);
        let total = loads.values().map(|load| load.slots).sum();
        for (place, target) in shares(table, total) {
            loads.entry(place).or_default().target = target;
        }
        let scratch = table.clone();
        Mover {
            table,
            scratch,
            firsts,
            is_moving,
            loads,
            legal: BTreeMap::new(),
            hopeless: BTreeSet::new(),
            plan: Vec::new(),
            is_draining: false,
        }
    }

    fn run(mut self, may_take: impl Fn(InstanceName) -> bool, may_give: impl Fn(InstanceName) -> bool) -> Vec<Action> {
        while self.scratch.moves().len() < MOVES_MAX {
            let Some((from, to, count)) = self.next_pair(&may_take, &may_give) else { break };
            let piece = self.piece(from, to, count);
            let is_done = piece.is_some_and(|slots| self.take(slots, from, to));
            if !is_done {
                self.hopeless.insert((from, to));
            }
        }
        self.plan
    }

    /// Who lacks most takes from who is fullest, and how much.
    fn next_pair(
        &self,
        may_take: &impl Fn(InstanceName) -> bool,
        may_give: &impl Fn(InstanceName) -> bool,
    ) -> Option<(InstanceName, InstanceName, u32)> {
        let is_up = |place: InstanceName| self.table.node(place.node).is_some_and(|node| node.state == NodeState::Up);
        let mut takers: Vec<(InstanceName, Load)> = self
            .loads
            .iter()
            .map(|(&place, &load)| (place, load))
            .filter(|(place, _)| may_take(*place) && is_up(*place))
            .collect();
        takers.sort_by_key(|(place, load)| (std::cmp::Reverse(load.lack()), load.fullness(), *place));
        let mut givers: Vec<(InstanceName, Load)> = self.loads.iter().map(|(&place, &load)| (place, load)).collect();
        givers.retain(|(place, load)| load.excess() > 0 && may_give(*place) && self.gives(*place));
        givers.sort_by_key(|(place, load)| (std::cmp::Reverse(load.fullness()), *place));
        for (to, load) in takers {
            let is_short = load.lack() > load.target / TOLERATED;
            if !is_short && !self.is_draining {
                continue;
            }
            let giver = givers.iter().find(|(from, _)| from.node != to.node && !self.hopeless.contains(&(*from, to)));
            let Some((from, given)) = giver else { continue };
            let lack = if is_short { load.lack() } else { given.excess() };
            let left = RANGES_PER_INSTANCE_MAX.saturating_sub(self.scratch_ranges(to)).max(1) as u32;
            return Some((*from, to, lack.min(given.excess().max(lack.div_ceil(left)))));
        }
        None
    }

    fn gives(&self, place: InstanceName) -> bool {
        self.table.has_lease(place.node).is_ok()
    }

    fn scratch_ranges(&self, to: InstanceName) -> usize {
        let coming = self.scratch.moves().iter().filter(|one| one.to == to).count();
        self.scratch.ranges_of(to).len() + coming
    }

    /// The best contiguous piece of at most `count` slots that may go from one to the other.
    fn piece(&mut self, from: InstanceName, to: InstanceName, count: u32) -> Option<SlotRange> {
        let legal = self.legal_slots(to.node);
        let node = self.table.node(to.node)?;
        let may_go = |number: u16| {
            let at = usize::from(number);
            let is_home = node.home(Slot::wrapping(number).group()) == to.core;
            self.firsts[at] == Some(from) && !self.is_moving[at] && legal[at] && is_home
        };
        let mut best: Option<(u32, SlotRange)> = None;
        let mut number = 0;
        while number < SLOT_COUNT {
            if !may_go(number) {
                number += 1;
                continue;
            }
            let end = (number..SLOT_COUNT).find(|&next| !may_go(next)).unwrap_or(SLOT_COUNT);
            let (score, slots) = self.cut((number, end), (from, to), count);
            if best.is_none_or(|(other, _)| score > other) {
                best = Some((score, slots));
            }
            number = end;
        }
        best.map(|(_, slots)| slots)
    }

    /// The part of `first..end` that is best taken, and how good that is: long, beside what the taker has, and at an end of what
    /// the giver has.
    fn cut(&self, (first, end): (u16, u16), (from, to): (InstanceName, InstanceName), count: u32) -> (u32, SlotRange) {
        let owner =
            |number: Option<u16>| number.and_then(|number| self.firsts.get(usize::from(number)).copied().flatten());
        let (before, after) = (owner(first.checked_sub(1)), owner(Some(end)));
        let length = count.min(u32::from(end - first)) as u16;
        let is_from_head = before == Some(to) || (after != Some(to) && after == Some(from) && before != Some(from));
        let (mut start, mut stop) = if is_from_head { (first, first + length) } else { (end - length, end) };
        if stop - start >= ALIGNED_SLOTS {
            if is_from_head && stop != end {
                stop -= stop % SLOTS_PER_GROUP;
            } else if !is_from_head && start != first {
                start = start.next_multiple_of(SLOTS_PER_GROUP);
            }
        }
        let is_beside = before == Some(to) || after == Some(to);
        let is_inside = before == Some(from) && after == Some(from);
        let weight = if is_inside { 2 } else { 4 };
        let slots = range(start, stop - 1).expect("a piece has a slot");
        (u32::from(stop - start) * weight + u32::from(is_beside), slots)
    }

    /// For each slot whether `to` may stand in its chain instead of the first.
    fn legal_slots(&mut self, to: NodeId) -> Vec<bool> {
        let table = self.table;
        let compute = || {
            let mut legal = vec![false; usize::from(SLOT_COUNT)];
            for (slots, stretch) in table.stretches() {
                let rest = stretch.chain.primary().map(|first| stretch.chain.without(first.node));
                let may = rest
                    .is_some_and(|rest| rest.has(to) || (!stretch.chain.is_full() && table.fits(to, &rest).is_ok()));
                legal[usize::from(slots.first.number())..=usize::from(slots.last.number())].fill(may);
            }
            legal
        };
        self.legal.entry(to).or_insert_with(compute).clone()
    }

    /// Plan it, if the table would have it.
    fn take(&mut self, slots: SlotRange, from: InstanceName, to: InstanceName) -> bool {
        let action = |epoch| Action::MoveBegin { slots, epoch, from, to };
        if self.scratch.try_out(&action(self.scratch.version())).is_err() {
            return false;
        }
        self.plan.push(action(self.table.version()));
        for number in slots.first.number()..=slots.last.number() {
            self.firsts[usize::from(number)] = Some(to);
            self.is_moving[usize::from(number)] = true;
        }
        let count = u32::from(slots.len());
        self.loads.entry(from).or_default().slots -= count;
        self.loads.entry(to).or_default().slots += count;
        true
    }
}
