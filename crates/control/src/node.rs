//! A node of the table: who it is, where it is, what state it is in, and which core has which slot group.

use base::{CoreId, InstanceName, NodeId, SlotGroupId};

/// Where a node stands. `Up` → (`Fenced` → `Down`) → `Up` with a new incarnation; `Up` → `Draining` → `Gone`, or `Up` again when
/// it is kept after all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum NodeState {
    /// Its lease is renewed, and slots may be given to it.
    Up = 1,
    /// Its lease is renewed; it gets nothing new, and what it has goes elsewhere.
    Draining = 2,
    /// Its lease is renewed no more, and may still run.
    Fenced = 3,
    /// Its lease is over, and others have taken its place.
    Down = 4,
    /// It never comes back.
    Gone = 5,
}

impl NodeState {
    /// All of them, ascending.
    pub const ALL: [NodeState; 5] =
        [NodeState::Up, NodeState::Draining, NodeState::Fenced, NodeState::Down, NodeState::Gone];

    /// The state of that number.
    pub fn of(number: u8) -> Option<NodeState> {
        NodeState::ALL.into_iter().find(|state| *state as u8 == number)
    }

    /// Whether managers renew its lease.
    pub fn has_lease(self) -> bool {
        matches!(self, NodeState::Up | NodeState::Draining)
    }

    /// The word that `status` prints.
    pub fn word(self) -> &'static str {
        match self {
            NodeState::Up => "up",
            NodeState::Draining => "draining",
            NodeState::Fenced => "fenced",
            NodeState::Down => "down",
            NodeState::Gone => "gone",
        }
    }
}

/// What a node says of itself when it comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Newcomer {
    /// The number it shall have.
    pub id: NodeId,
    /// Counts its starts; a later one is larger.
    pub incarnation: u64,
    /// Host of its inter-node port, as others reach it.
    pub host: String,
    /// Its inter-node port.
    pub port: u16,
    /// Instances it has.
    pub cores: u16,
    /// Its share against others'; 0: as many as it has instances.
    pub weight: u16,
    /// Failure domain above the machine; empty when there is none, which counts as one zone of its own.
    pub zone: String,
    /// Name of the machine, never empty: no two members of a chain are on the same.
    pub machine: String,
    /// What its directory is known again by, and no other has; zero where nobody told.
    pub identity: [u8; 32],
}

/// A node as the table has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Who it is, with the incarnation that is or was last up.
    pub facts: Newcomer,
    /// Where it stands.
    pub state: NodeState,
    /// Slots move to it until it has its share. Then they stay where they are, and where operators put them.
    pub takes_share: bool,
}

impl Node {
    /// A node that has just come.
    pub fn new(facts: Newcomer) -> Node {
        Node { facts, state: NodeState::Up, takes_share: true }
    }

    /// Its number.
    pub fn id(&self) -> NodeId {
        self.facts.id
    }

    /// Whether its address is its own: who is down may come back at another one, and somebody else may be there meanwhile.
    pub fn is_reached(&self) -> bool {
        !matches!(self.state, NodeState::Down | NodeState::Gone)
    }

    /// The core that has `group` there: its number of cores says so, and nothing else.
    pub fn home(&self, group: SlotGroupId) -> CoreId {
        placement::home(group, self.facts.cores)
    }

    /// The instance that has `group` there.
    pub fn place(&self, group: SlotGroupId) -> InstanceName {
        InstanceName { node: self.id(), core: self.home(group) }
    }

    /// Its part in a sum over all nodes, at least 1.
    pub fn share(&self) -> u32 {
        u32::from(if self.facts.weight == 0 { self.facts.cores } else { self.facts.weight })
    }
}
