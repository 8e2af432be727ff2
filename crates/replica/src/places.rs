//! Nodes of the tables in tests: where they are is of no matter there.

use base::NodeId;
use placement::NodePlace;

/// A node that is up, in its first life.
pub(crate) fn place(node: u32) -> NodePlace {
    NodePlace { node: NodeId(node), host: String::new(), port: 1, cores: 1, is_up: true, incarnation: 1 }
}
