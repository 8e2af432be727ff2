//! Commands that clients of a world want to be agreed: some change the table, some are refused by it.

use base::rng::Rng;
use control::{Action, Command, Founding, Newcomer, NodeId, RequestId, Settings};

/// One that nobody else asks for.
pub fn draw(rng: &mut Rng) -> Command {
    let id = RequestId { proposer: rng.next_u64(), number: 1 };
    let settings = Settings { lease_ms: 100 + rng.below(400) as u32, chain_length: 1 + rng.below(3) as u8 };
    let node = NodeId(1 + rng.below(12) as u32);
    let action = match rng.below(8) {
        0 => Action::Create(Founding { cluster: [7; 16], settings, relaxed: false, node: newcomer(node) }),
        1..4 => Action::Join(newcomer(node)),
        4 => Action::Configure(settings),
        5 => Action::Fence { node, incarnation: 1 },
        6 => Action::Drain { node },
        _ => Action::Weigh { node, weight: rng.below(9) as u16 },
    };
    Command { id, action }
}

fn newcomer(id: NodeId) -> Newcomer {
    Newcomer {
        id,
        incarnation: 1,
        host: format!("host-{}", id.0),
        port: 7000,
        cores: 2,
        weight: 0,
        zone: String::new(),
        machine: format!("machine-{}", id.0 % 5),
        identity: [0; 32],
    }
}
