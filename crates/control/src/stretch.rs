//! Stretches: which chain has which slots, under which epoch. Sorted, all slots covered, neighbours merged where equal.

use base::{SLOT_COUNT, SLOTS_PER_GROUP, Slot, SlotGroupId};
use placement::{Epoch, SlotRange};

use crate::chain::Chain;

/// A run of slots that have the same chain under the same epoch; it ends where the next one begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Its first slot.
    pub first: Slot,
    /// Version of the table that last changed who is in the chain, or their order, or doubted a member.
    pub epoch: Epoch,
    /// Who has it.
    pub chain: Chain,
}

/// The whole key space.
pub fn all_slots() -> SlotRange {
    SlotRange { first: Slot::wrapping(0), last: Slot::wrapping(SLOT_COUNT - 1) }
}

/// Slots `first..=last`; `None` unless both are slots in this order.
pub fn range(first: u16, last: u16) -> Option<SlotRange> {
    (first <= last).then_some(SlotRange { first: Slot::new(first)?, last: Slot::new(last)? })
}

/// The groups that `slots` touch, ascending.
pub fn groups_of(slots: SlotRange) -> impl Iterator<Item = SlotGroupId> {
    (slots.first.group().number()..=slots.last.group().number()).filter_map(SlotGroupId::new)
}

/// The slots of a group.
pub fn slots_of(group: SlotGroupId) -> SlotRange {
    SlotRange { first: group.slot(0), last: group.slot((SLOTS_PER_GROUP - 1) as u8) }
}

/// What two ranges have in common.
pub fn common(one: SlotRange, other: SlotRange) -> Option<SlotRange> {
    let (first, last) = (one.first.max(other.first), one.last.min(other.last));
    (first <= last).then_some(SlotRange { first, last })
}

/// The stretches of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretches(Vec<Stretch>);

impl Stretches {
    /// Nobody has anything.
    pub fn nobody() -> Stretches {
        Stretches(vec![Stretch { first: Slot::wrapping(0), epoch: Epoch(0), chain: Chain::EMPTY }])
    }

    /// These stretches, if they begin at slot 0, ascend and are merged.
    pub fn of(list: Vec<Stretch>) -> Option<Stretches> {
        let is_first = list.first().is_some_and(|stretch| stretch.first.number() == 0);
        let is_sorted = list.windows(2).all(|pair| pair[0].first < pair[1].first && !is_equal(&pair[0], &pair[1]));
        (is_first && is_sorted).then_some(Stretches(list))
    }

    /// As they lie in the table.
    pub fn list(&self) -> &[Stretch] {
        &self.0
    }

    /// Each with the slots it covers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (SlotRange, &Stretch)> {
        self.0
            .iter()
            .enumerate()
            .map(|(at, stretch)| (SlotRange { first: stretch.first, last: self.last(at) }, stretch))
    }

    /// The parts of stretches that lie in `slots`.
    pub fn within(&self, slots: SlotRange) -> impl Iterator<Item = (SlotRange, &Stretch)> {
        let at = self.position(slots.first);
        (at..self.0.len())
            .map(|at| (SlotRange { first: self.0[at].first, last: self.last(at) }, &self.0[at]))
            .map_while(move |(range, stretch)| common(range, slots).map(|part| (part, stretch)))
    }

    /// The stretch of `slot`.
    pub fn of_slot(&self, slot: Slot) -> &Stretch {
        &self.0[self.position(slot)]
    }

    /// Change the chains of `slots`; where the places or their order change, the epoch becomes `epoch`.
    pub fn change(&mut self, slots: SlotRange, epoch: Epoch, mut edit: impl FnMut(SlotRange, &Chain) -> Chain) {
        self.cut_before(slots.first.number());
        self.cut_before(slots.last.number() + 1);
        let mut at = self.position(slots.first);
        while at < self.0.len() && self.0[at].first <= slots.last {
            let covered = SlotRange { first: self.0[at].first, last: self.last(at) };
            let chain = edit(covered, &self.0[at].chain);
            let stretch = &mut self.0[at];
            if !stretch.chain.has_same_places(&chain) {
                stretch.epoch = epoch;
            }
            stretch.chain = chain;
            at += 1;
        }
    }

    /// What was planned for an older table is refused, although the places are what they were.
    pub fn renew(&mut self, slots: SlotRange, epoch: Epoch) {
        self.cut_before(slots.first.number());
        self.cut_before(slots.last.number() + 1);
        let within = self.0.iter_mut().filter(|stretch| (slots.first..=slots.last).contains(&stretch.first));
        within.for_each(|stretch| stretch.epoch = epoch);
    }

    /// Make one of neighbours that are equal in everything.
    pub fn merge(&mut self) {
        self.0.dedup_by(|later, earlier| is_equal(later, earlier));
    }

    fn cut_before(&mut self, number: u16) {
        let Some(slot) = Slot::new(number) else { return };
        let at = self.position(slot);
        if self.0[at].first != slot {
            let right = Stretch { first: slot, ..self.0[at] };
            self.0.insert(at + 1, right);
        }
    }

    fn position(&self, slot: Slot) -> usize {
        self.0.partition_point(|stretch| stretch.first <= slot) - 1
    }

    fn last(&self, at: usize) -> Slot {
        let end = self.0.get(at + 1).map_or(SLOT_COUNT, |next| next.first.number());
        Slot::wrapping(end - 1)
    }
}

fn is_equal(one: &Stretch, other: &Stretch) -> bool {
    one.epoch == other.epoch && one.chain == other.chain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::Member;
    use base::CoreId;
    use base::{InstanceName, NodeId};

    #[test]
    fn a_change_cuts_and_a_merge_heals() {
        let mut stretches = Stretches::nobody();
        let chain = Chain::of(&[Member::whole(InstanceName { node: NodeId(1), core: CoreId(0) })]);
        let middle = range(100, 299).expect("a range");
        stretches.change(middle, Epoch(5), |_, _| chain);
        let firsts: Vec<u16> = stretches.list().iter().map(|stretch| stretch.first.number()).collect();
        assert_eq!(firsts, [0, 100, 300]);
        assert_eq!(stretches.of_slot(Slot::wrapping(299)).epoch, Epoch(5));
        let parts: Vec<u16> = stretches.within(range(200, 400).expect("a range")).map(|(part, _)| part.len()).collect();
        assert_eq!(parts, [100, 101]);
        stretches.change(all_slots(), Epoch(6), |_, _| chain);
        stretches.merge();
        assert_eq!(stretches.list().len(), 3, "the middle keeps its epoch");
        stretches.change(all_slots(), Epoch(7), |_, _| Chain::EMPTY);
        stretches.merge();
        assert_eq!(stretches.list().len(), 1);
    }
}
