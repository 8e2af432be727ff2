//! What instances and clients are told of the table: who serves what, and where.

use placement::{Chain, ClusterView, NodePlace};

use crate::node::Node;
use crate::table::Table;

impl Table {
    /// The part of the table that requests are routed by.
    pub fn view(&self) -> ClusterView {
        let place = |node: &Node| NodePlace { node: node.id(), host: node.facts.host.clone(), port: node.facts.port };
        let places = self.nodes().map(place);
        let stretches = self.stretches().map(|(slots, stretch)| {
            let members = stretch.chain.iter().map(|member| member.place).collect();
            (slots.first, Chain { epoch: stretch.epoch.0, members })
        });
        ClusterView::new(self.cluster(), self.version(), places.collect(), stretches.collect())
    }
}
