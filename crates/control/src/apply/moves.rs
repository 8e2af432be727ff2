//! Commands about moves: a destination joins the chains, takes over, and the source leaves.

use base::limits::MOVES_MAX;
use placement::Epoch;
use placement::SlotRange;

use crate::apply::chains::successor;
use crate::chain::{Chain, Member};
use crate::moves::{Move, MoveState};
use crate::refusal::{Flaw, Refusal};
use crate::table::Table;
use base::{InstanceName, NodeId};

impl Table {
    pub(crate) fn move_begin(
        &mut self,
        epoch: Epoch,
        (slots, planned): (SlotRange, Epoch),
        from: InstanceName,
        to: InstanceName,
    ) -> Result<(), Refusal> {
        if from.node == to.node {
            return Err(Refusal::Impossible(Flaw::SameNode));
        }
        self.still(slots, planned)?;
        self.takes(to)?;
        self.has_lease(from.node)?;
        if let Some(id) = self.moving(slots) {
            return Err(Refusal::Moving(id));
        }
        if self.moves.len() == MOVES_MAX {
            return Err(Refusal::TooManyMoves);
        }
        for (part, stretch) in self.stretches.within(slots) {
            let first = stretch.chain.primary().ok_or(Refusal::Nobody(part.first))?;
            if first != from {
                return Err(Refusal::NotFirst(part.first, first));
            }
            if stretch.chain.has(to.node) {
                continue;
            }
            if stretch.chain.is_full() {
                return Err(Refusal::ChainFull(part.first));
            }
            self.fits(to.node, &stretch.chain.without(from.node))?;
        }
        self.ranges_allow(slots, from, to)?;
        self.keeps_home(slots, to)?;
        self.stretches.change(slots, epoch, |_, chain| {
            let mut chain = *chain;
            if !chain.has(to.node) {
                chain.push(Member::filling(to));
            }
            chain
        });
        self.moves.push(Move { id: epoch.0, slots, from, to, state: MoveState::Wanted });
        Ok(())
    }

    pub(crate) fn hand_over(&mut self, epoch: Epoch, id: u64, planned: Epoch) -> Result<(), Refusal> {
        let one = self.the_move(id)?;
        if one.state != MoveState::Wanted {
            return Err(Refusal::MoveHandedOver(id));
        }
        self.still(one.slots, planned)?;
        self.has_lease(one.from.node)?;
        self.has_lease(one.to.node)?;
        let lacks = |chain: &Chain| !chain.member(one.to.node).is_some_and(|member| member.whole);
        if let Some((part, _)) = self.stretches.within(one.slots).find(|(_, stretch)| lacks(&stretch.chain)) {
            return Err(Refusal::NotWhole(part.first));
        }
        let moved = |chain: &Chain| {
            let mut after = Chain::of(&[Member::whole(one.to), Member::whole(one.from)]);
            let others = chain.without(one.to.node).without(one.from.node);
            others.iter().for_each(|&member| after.push(member));
            after
        };
        let before = [one.from, one.to].map(|place| self.ranges_of(place).len());
        self.stretches.change(one.slots, epoch, |_, chain| moved(chain));
        for (place, before) in [one.from, one.to].into_iter().zip(before) {
            self.ranges_are_few(place, before)?;
        }
        self.set_state(id, MoveState::HandingOver);
        Ok(())
    }

    pub(crate) fn move_end(&mut self, epoch: Epoch, id: u64) -> Result<(), Refusal> {
        let one = self.the_move(id)?;
        if one.state != MoveState::HandingOver {
            return Err(Refusal::MoveNotHandedOver(id));
        }
        let wanted = usize::from(self.settings.chain_length);
        let leaves = |chain: &Chain| chain.len() > wanted || self.shares_machine(chain, one.from.node);
        for (part, stretch) in self.stretches.within(one.slots).filter(|(_, stretch)| leaves(&stretch.chain)) {
            // Two copies on one machine were never more than one.
            let is_copy = !self.clash(one.from.node, one.to.node);
            let copies = stretch.chain.whole_count() - usize::from(!is_copy);
            if stretch.chain.without(one.from.node).whole_count() < wanted.min(2).min(copies) {
                return Err(Refusal::FewerWhole(part.first));
            }
        }
        let parts: Vec<(SlotRange, Chain)> = self
            .stretches
            .within(one.slots)
            .filter(|(_, stretch)| leaves(&stretch.chain))
            .map(|(part, stretch)| (part, stretch.chain.without(one.from.node)))
            .collect();
        parts.into_iter().for_each(|(part, chain)| self.stretches.change(part, epoch, |_, _| chain));
        self.moves.retain(|other| other.id != id);
        Ok(())
    }

    pub(crate) fn move_cancel(&mut self, epoch: Epoch, id: u64) -> Result<(), Refusal> {
        let one = self.the_move(id)?;
        if one.state != MoveState::Wanted {
            return Err(Refusal::MoveHandedOver(id));
        }
        let parts: Vec<(SlotRange, Chain)> = self
            .stretches
            .within(one.slots)
            .map(|(part, stretch)| (part, self.without_destination(&stretch.chain, one.to.node)))
            .collect();
        parts.into_iter().for_each(|(part, chain)| self.stretches.change(part, epoch, |_, _| chain));
        self.moves.retain(|other| other.id != id);
        Ok(())
    }

    /// The chain when the destination of a move stays out after all. It stays in where the chain is not too long. Where it
    /// must leave although others would take over after it, those have to prove again that they are whole: the first has not
    /// waited for them.
    fn without_destination(&self, chain: &Chain, to: NodeId) -> Chain {
        let wanted = usize::from(self.settings.chain_length);
        let rest = chain.without(to);
        if self.shares_machine(chain, to) {
            if successor(chain) == successor(&rest) {
                return rest;
            }
            let doubted: Vec<Member> =
                rest.iter().enumerate().map(|(at, &member)| Member { whole: at == 0, ..member }).collect();
            return Chain::of(&doubted);
        }
        let is_last = chain.last().is_some_and(|member| member.place.node == to);
        let is_enough = rest.whole_count() >= chain.whole_count().min(2).min(wanted);
        if is_last && is_enough && chain.len() > wanted { rest } else { *chain }
    }

    fn shares_machine(&self, chain: &Chain, node: NodeId) -> bool {
        chain.iter().any(|member| self.clash(member.place.node, node))
    }

    fn the_move(&self, id: u64) -> Result<Move, Refusal> {
        self.moves.iter().find(|one| one.id == id).copied().ok_or(Refusal::MoveUnknown(id))
    }

    fn set_state(&mut self, id: u64, state: MoveState) {
        self.moves.iter_mut().filter(|one| one.id == id).for_each(|one| one.state = state);
    }

    fn ranges_are_few(&self, place: InstanceName, before: usize) -> Result<(), Refusal> {
        let now = self.ranges_of(place).len();
        match now > base::limits::RANGES_PER_INSTANCE_MAX && now > before {
            true => Err(Refusal::TooManyRanges(place)),
            false => Ok(()),
        }
    }
}
