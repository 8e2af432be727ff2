//! What instances and clients are told of the table: who serves what, and where.

use base::Slot;
use placement::{Chain, ClusterView, Moving, NodePlace, SlotSet};

use crate::moves::{Move, MoveState};
use crate::node::{Node, NodeState};
use crate::table::Table;

impl Table {
    /// Slots whose chains have more members than they shall, and are not on their way elsewhere.
    fn long(&self) -> SlotSet {
        let is_long = |chain: &crate::Chain| chain.len() > usize::from(self.settings().chain_length);
        let long = self.stretches().filter(|(_, stretch)| is_long(&stretch.chain)).map(|(slots, _)| slots);
        let slots = long.flat_map(|slots| (slots.first.number()..=slots.last.number()).map(Slot::wrapping));
        slots.filter(|slot| !self.moves().iter().any(|one| one.slots.contains(*slot))).collect()
    }

    /// The part of the table that requests are routed by.
    pub fn view(&self) -> ClusterView {
        let place = |node: &Node| NodePlace {
            node: node.id(),
            host: node.facts.host.clone(),
            port: node.facts.port,
            cores: node.facts.cores,
            is_up: node.state.has_lease(),
            incarnation: node.facts.incarnation,
        };
        // Who is gone is in no chain, and nobody should look for it.
        let places = self.nodes().filter(|node| node.state != NodeState::Gone).map(place);
        let stretches = self.stretches().map(|(slots, stretch)| {
            let members = stretch.chain.iter().map(|member| member.place).collect();
            (slots.first, Chain { epoch: stretch.epoch.0, members, whole: stretch.chain.whole_count() })
        });
        let moving = |one: &Move| Moving {
            id: one.id,
            slots: one.slots,
            from: one.from,
            to: one.to,
            is_handed: one.state == MoveState::HandingOver,
        };
        ClusterView::new(self.cluster(), self.version(), places.collect(), stretches.collect())
            .with_moves(self.moves().iter().map(moving).collect())
            .with_chain_length(usize::from(self.settings().chain_length))
            .with_long(self.long())
    }
}
