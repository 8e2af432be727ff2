//! How the cluster stands, as this node's manager knows it: for `status`.

use control::{MoveState, NodeState, plan};
use shard::order::{MoveStanding, NodeStanding, Standing};

use crate::inside::Inside;

impl Inside {
    /// Of the newest table that is known here.
    pub fn standing(&self) -> Standing {
        let table = self.table();
        let settings = table.settings();
        let node = |node: &control::Node| NodeStanding {
            node: node.id(),
            host: node.facts.host.clone(),
            port: node.facts.port,
            cores: node.facts.cores,
            weight: node.share(),
            zone: node.facts.zone.clone(),
            machine: node.facts.machine.clone(),
            state: node.state.word(),
            takes_share: node.takes_share,
        };
        let chains = table.stretches().map(|(slots, stretch)| {
            let members = stretch.chain.iter().map(|member| (member.place, member.whole)).collect();
            (slots, members)
        });
        let moves = table.moves().iter().map(|one| MoveStanding {
            id: one.id,
            slots: one.slots,
            from: one.from,
            to: one.to,
            is_handed: one.state == MoveState::HandingOver,
        });
        Standing {
            cluster: table.cluster(),
            version: table.version(),
            leader: self.leader,
            voters: self.identity.voters.all().into_iter().collect(),
            lease_ms: settings.lease_ms,
            chain_length: settings.chain_length,
            nodes: table.nodes().filter(|node| node.state != NodeState::Gone).map(node).collect(),
            chains: chains.collect(),
            moves: moves.collect(),
            violations: plan::violations(table).iter().map(ToString::to_string).collect(),
        }
    }
}
