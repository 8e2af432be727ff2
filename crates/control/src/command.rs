//! What may be agreed: commands, each with the id by which it is known when it is proposed twice.

use placement::SlotRange;

use crate::node::Newcomer;
use base::{InstanceName, NodeId};

/// Who proposes, and which of its commands it is: larger numbers are later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId {
    /// A number nobody else proposes under.
    pub proposer: u64,
    /// Ascending within one proposer.
    pub number: u64,
}

/// A command as it is proposed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// By what it is known.
    pub id: RequestId,
    /// What it asks.
    pub action: Action,
}

/// What the whole table obeys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long a lease runs, milliseconds.
    pub lease_ms: u32,
    /// Members that a chain shall have, 1 to 5.
    pub chain_length: u8,
}

/// The first command of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Founding {
    /// Name of the cluster, by chance.
    pub cluster: [u8; 16],
    /// What it obeys.
    pub settings: Settings,
    /// Members of a chain may be on one machine: only a local `up` says that.
    pub relaxed: bool,
    /// The first node, which gets all slots.
    pub node: Newcomer,
}

/// Who comes behind a lost member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// In these slots.
    pub slots: SlotRange,
    /// This instance.
    pub place: InstanceName,
}

/// A node that was down and is up again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comeback {
    /// Which.
    pub node: NodeId,
    /// Larger than the one before.
    pub incarnation: u64,
    /// Where it is now.
    pub host: String,
    /// Its inter-node port now.
    pub port: u16,
    /// The instances it has now.
    pub cores: u16,
    /// Who is down and was there last is not there any more. Commands of before 2026-11-24 do not say so, and are obeyed as then.
    pub takes_address: bool,
}

/// What a command asks. An `epoch` is the version of the table that the command was planned for: it is refused when the
/// chain of any of its slots has changed since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The first node owns all slots alone.
    Create(Founding),
    /// A new node, without slots.
    Join(Newcomer),
    /// A node that was down is up.
    Returned(Comeback),
    /// Managers renew its lease no more.
    Fence {
        /// Whose.
        node: NodeId,
        /// Which start of it.
        incarnation: u64,
    },
    /// A fenced node leaves all chains; who is next takes its place.
    Promote {
        /// Whose chains.
        node: NodeId,
        /// Which start of it: the one whose lease is known to be over.
        incarnation: u64,
        /// Who comes at the ends, filling. What is not legal any more when it is applied is left out.
        replacements: Vec<Replacement>,
    },
    /// A fenced node leaves the chains that somebody else is first of and serves. Its lease need not be over for that: nobody
    /// counts on what it does there, and its place may not wait.
    Detach {
        /// Whose chains.
        node: NodeId,
        /// Which start of it.
        incarnation: u64,
        /// As for a promotion.
        replacements: Vec<Replacement>,
    },
    /// A member has everything. Only the first of the chain proposes it.
    Whole {
        /// Of these slots.
        slots: SlotRange,
        /// Which member.
        node: NodeId,
        /// Planned for.
        epoch: u64,
    },
    /// A member has not what it is said to have, so it and those behind it are filled anew. Only the first of the chain
    /// proposes it, before it has anything forgotten. What was said of members for an older table is refused behind it.
    Doubt {
        /// In these slots.
        slots: SlotRange,
        /// Which member.
        node: NodeId,
        /// Planned for.
        epoch: u64,
    },
    /// Who stands in a chain behind the first.
    Replace {
        /// Of these slots.
        slots: SlotRange,
        /// Planned for.
        epoch: u64,
        /// All of the chain, the first included. Who is new comes as filling.
        places: Vec<InstanceName>,
        /// The first proposes it itself, and waits already for whoever becomes the next whole one: without that, who takes
        /// over could lack what was acknowledged a moment ago.
        counted: bool,
    },
    /// The destination joins the chains.
    MoveBegin {
        /// What moves.
        slots: SlotRange,
        /// Planned for.
        epoch: u64,
        /// Who is first of all of it.
        from: InstanceName,
        /// Who becomes that.
        to: InstanceName,
    },
    /// The destination becomes first, the source stands behind it.
    HandOver {
        /// Which move.
        id: u64,
        /// Planned for.
        epoch: u64,
    },
    /// The source leaves, where the chain is longer than it shall be. Only the destination proposes it, when it waits
    /// already for whoever becomes second.
    MoveEnd {
        /// Which move.
        id: u64,
    },
    /// The destination leaves, where the chain is longer than it shall be.
    MoveCancel {
        /// Which move.
        id: u64,
    },
    /// A node gets nothing new, and what it has goes elsewhere.
    Drain {
        /// Which.
        node: NodeId,
    },
    /// A node that drains stays after all.
    Keep {
        /// Which.
        node: NodeId,
    },
    /// A node is to get its share of the slots, or has as much of it as can be had.
    Share {
        /// Which.
        node: NodeId,
        /// It is to get it.
        takes: bool,
    },
    /// A node is gone for ever.
    Remove {
        /// Which.
        node: NodeId,
        /// What only this node has is given up.
        abandon: bool,
    },
    /// A node's share.
    Weigh {
        /// Whose.
        node: NodeId,
        /// 0: as many as it has instances.
        weight: u16,
    },
    /// What the table obeys.
    Configure(Settings),
}
