//! What instances and clients are told of the table: who serves what, and where.

use placement::{Chain, ClusterView, Moving, NodePlace};

use crate::moves::{Move, MoveState};
use crate::node::{Node, NodeState};
use crate::table::Table;

impl Table {
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
    }
}
