//! Commands about chains: who takes over, who is whole, who stands behind the first.

use base::limits::{CHAIN_MEMBERS_MAX, REPLACEMENTS_MAX};
use base::planted::{Bug, is_planted};
use placement::{Epoch, SlotRange};

use crate::chain::{Chain, Member};
use crate::command::Replacement;
use crate::moves::{Move, MoveState};
use crate::node::NodeState;
use crate::refusal::{Flaw, Refusal};
use crate::stretch::{all_slots, common};
use crate::table::Table;
use base::{InstanceName, NodeId, Slot};

impl Table {
    pub(crate) fn promote(
        &mut self,
        epoch: Epoch,
        (id, incarnation): (NodeId, u64),
        replacements: &[Replacement],
    ) -> Result<(), Refusal> {
        self.is_fenced((id, incarnation), replacements)?;
        self.known_mut(id)?.state = NodeState::Down;
        let moving = |slots| self.moves.iter().find(|one| common(one.slots, slots).is_some()).copied();
        self.stretches.change(all_slots(), epoch, |slots, chain| after_loss(chain, id, moving(slots)));
        self.moves.retain(|one| one.from.node != id && one.to.node != id);
        for replacement in replacements {
            self.place_replacement(epoch, *replacement);
        }
        Ok(())
    }

    pub(crate) fn detach(
        &mut self,
        epoch: Epoch,
        (id, incarnation): (NodeId, u64),
        replacements: &[Replacement],
    ) -> Result<(), Refusal> {
        self.is_fenced((id, incarnation), replacements)?;
        let mut left = Vec::new();
        for (slots, stretch) in self.stretches.iter().filter(|(_, stretch)| stretch.chain.has(id)) {
            let parts = self.unmoved(slots).into_iter();
            left.extend(parts.filter(|part| self.may_leave(*part, &stretch.chain, id)));
        }
        for slots in left {
            self.stretches.change(slots, epoch, |_, chain| after_loss(chain, id, None));
        }
        for replacement in replacements {
            self.place_replacement(epoch, *replacement);
        }
        Ok(())
    }

    /// Whether a fenced node may leave this chain of `slots` though its lease may run: somebody else is first, and is there to go on
    /// without it. What moves waits until it is over.
    pub(crate) fn may_leave(&self, slots: SlotRange, chain: &Chain, id: NodeId) -> bool {
        let is_moving = || self.moves.iter().any(|one| common(one.slots, slots).is_some());
        let is_served_by = |first: InstanceName| first.node != id && self.has_lease(first.node).is_ok();
        chain.has(id) && chain.primary().is_some_and(is_served_by) && !is_moving()
    }

    /// The parts of `slots` of which no move has anything: a stretch may be larger than a move to who stands in its chain already.
    fn unmoved(&self, slots: SlotRange) -> Vec<SlotRange> {
        let mut moving: Vec<SlotRange> = self.moves.iter().filter_map(|one| common(one.slots, slots)).collect();
        moving.sort_unstable_by_key(|part| part.first);
        let (mut parts, mut next) = (Vec::new(), slots.first.number());
        let ends = moving.iter().map(|part| (part.first.number(), part.last.number() + 1));
        for (end, behind) in ends.chain([(slots.last.number() + 1, 0)]) {
            if next < end {
                parts.push(SlotRange { first: Slot::wrapping(next), last: Slot::wrapping(end - 1) });
            }
            next = behind;
        }
        parts
    }

    fn is_fenced(&self, (id, incarnation): (NodeId, u64), replacements: &[Replacement]) -> Result<(), Refusal> {
        if replacements.len() > REPLACEMENTS_MAX {
            return Err(Refusal::Impossible(Flaw::Replacements));
        }
        let node = self.known(id)?;
        if node.state != NodeState::Fenced {
            return Err(Refusal::NodeIs(id, node.state));
        }
        match node.facts.incarnation {
            known if known == incarnation => Ok(()),
            known => Err(Refusal::OtherIncarnation(id, known)),
        }
    }

    /// Append `replacement` wherever that is still legal and wanted.
    fn place_replacement(&mut self, epoch: Epoch, Replacement { slots, place }: Replacement) {
        if self.takes(place).is_err() {
            return;
        }
        let parts: Vec<(SlotRange, Chain)> =
            self.stretches.within(slots).map(|(part, stretch)| (part, stretch.chain)).collect();
        for (part, mut chain) in parts {
            let is_served = chain.first().is_some_and(|first| self.has_lease(first.place.node).is_ok());
            let is_short = chain.len() < usize::from(self.settings.chain_length);
            if !is_served || !is_short || chain.has(place.node) || self.fits(place.node, &chain).is_err() {
                continue;
            }
            if self.keeps_home(part, place).is_ok() {
                chain.push(Member::filling(place));
                self.stretches.change(part, epoch, |_, _| chain);
            }
        }
    }

    pub(crate) fn whole(&mut self, slots: SlotRange, id: NodeId, planned: Epoch) -> Result<(), Refusal> {
        self.still(slots, planned)?;
        for (part, stretch) in self.stretches.within(slots) {
            if !stretch.chain.has(id) {
                return Err(Refusal::NotMember(part.first, id));
            }
            let before = stretch.chain.iter().take_while(|member| member.place.node != id);
            if before.into_iter().any(|member| !member.whole) {
                return Err(Refusal::FillingBefore(part.first, id));
            }
        }
        self.has_lease(id)?;
        // The places stay, so no epoch changes.
        self.stretches.change(slots, planned, |_, chain| chain.with_whole(id));
        Ok(())
    }

    pub(crate) fn doubt(
        &mut self,
        epoch: Epoch,
        (slots, planned): (SlotRange, Epoch),
        id: NodeId,
    ) -> Result<(), Refusal> {
        self.still(slots, planned)?;
        for (part, stretch) in self.stretches.within(slots) {
            let first = stretch.chain.primary().ok_or(Refusal::Nobody(part.first))?;
            if first.node == id || !stretch.chain.has(id) {
                return Err(Refusal::NotMember(part.first, id));
            }
        }
        self.stretches.change(slots, epoch, |_, chain| chain.doubted(id));
        self.stretches.renew(slots, epoch);
        Ok(())
    }

    pub(crate) fn replace(
        &mut self,
        epoch: Epoch,
        (slots, planned): (SlotRange, Epoch),
        places: &[InstanceName],
        counted: bool,
    ) -> Result<(), Refusal> {
        let is_repeated = |at: usize| places[..at].iter().any(|place| place.node == places[at].node);
        if !(1..=CHAIN_MEMBERS_MAX).contains(&places.len()) || (0..places.len()).any(is_repeated) {
            return Err(Refusal::Impossible(Flaw::Members));
        }
        self.still(slots, planned)?;
        let parts: Vec<(SlotRange, Chain)> =
            self.stretches.within(slots).map(|(part, stretch)| (part, stretch.chain)).collect();
        for (part, before) in parts {
            let after = self.replaced(part, &before, places)?;
            self.keeps_promise(part, &before, &after, counted)?;
            self.keeps_moves(part, &after)?;
            for place in places {
                self.keeps_home(part, *place)?;
            }
            self.stretches.change(part, epoch, |_, _| after);
        }
        Ok(())
    }

    /// The chain of `part` when it has `places`: who was whole stays that, who is new is filled, or is the first of nothing.
    fn replaced(&self, part: SlotRange, before: &Chain, places: &[InstanceName]) -> Result<Chain, Refusal> {
        let mut after = Chain::EMPTY;
        for (at, &place) in places.iter().enumerate() {
            match before.member(place.node) {
                Some(member) => after.push(Member { place, whole: member.whole }),
                None => {
                    self.takes(place)?;
                    after.push(Member { place, whole: before.is_empty() && at == 0 });
                }
            }
        }
        if let Some(first) = before.primary() {
            self.has_lease(first.node)?;
            if Some(first) != after.primary() {
                return Err(Refusal::NotFirst(part.first, first));
            }
        }
        if after != after.whole_first() {
            let late = after.iter().skip_while(|member| member.whole).find(|member| member.whole);
            return Err(Refusal::FillingBefore(part.first, late.expect("they differ").place.node));
        }
        for (at, member) in after.iter().enumerate().filter(|(_, member)| !before.has(member.place.node)) {
            let others = Chain::of(&[&after[..at], &after[at + 1..]].concat());
            self.fits(member.place.node, &others)?;
        }
        Ok(after)
    }

    /// Whoever takes over has what was acknowledged, and there are not fewer of them than there shall be.
    fn keeps_promise(&self, part: SlotRange, before: &Chain, after: &Chain, counted: bool) -> Result<(), Refusal> {
        let wanted = before.whole_count().min(2).min(usize::from(self.settings.chain_length));
        if after.whole_count() < wanted {
            return Err(Refusal::FewerWhole(part.first));
        }
        match !counted && successor(after).is_some() && successor(after) != successor(before) {
            true => Err(Refusal::Uncounted(part.first)),
            false => Ok(()),
        }
    }

    /// Both ends of a move stay in the chain until it is over.
    fn keeps_moves(&self, part: SlotRange, after: &Chain) -> Result<(), Refusal> {
        let is_kept = |one: &&Move| after.has(one.from.node) && after.has(one.to.node);
        let mut moving = self.moves.iter().filter(|one| common(one.slots, part).is_some());
        moving.find(|one| !is_kept(one)).map_or(Ok(()), |one| Err(Refusal::Moving(one.id)))
    }
}

/// Who takes over when the first is lost: the first whole member behind it.
pub(crate) fn successor(chain: &Chain) -> Option<InstanceName> {
    chain.iter().skip(1).find(|member| member.whole).map(|member| member.place)
}

/// What is left of a chain when `lost` is lost: the others, or, when none of them has everything, `lost` as its only member.
///
/// ```text
///                         lost     left
///  1  2 │ 3  4             1       2 │ ~3 ~4    who stands behind those that replies waited for may lag: it is whole once
///                          2       1 │ ~3 ~4    the first says so again, and nobody's heir before
///                          3       1 2 │ 4
///  to  from  2 │ 3         to      from 2 │ ~3  handed over, `moving`: they wait for the source and its second
/// ```
pub(crate) fn after_loss(chain: &Chain, lost: NodeId, moving: Option<Move>) -> Chain {
    let Some(at) = chain.iter().position(|member| member.place.node == lost) else { return *chain };
    let rest = chain.without(lost);
    if rest.whole_count() > 0 {
        let is_handed = moving.is_some_and(|one| one.state == MoveState::HandingOver);
        let abreast = if is_handed { 3 } else { 2 };
        return match rest.get(abreast - 1).filter(|_| at < abreast) {
            Some(behind) => rest.doubted(behind.place.node),
            None => rest,
        };
    }
    if is_planted(Bug::M4PromoteShorterLog) && !rest.is_empty() {
        return rest.with_whole(rest[0].place.node);
    }
    Chain::of(&[chain[at]])
}
