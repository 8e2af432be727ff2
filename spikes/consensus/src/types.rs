//! What the library is told about us: ids, commands, and which parts of it are chosen.

use std::fmt;

use openraft::type_config::alias::{EntryOf, LogIdOf, SnapshotMetaOf, VoteOf};
use openraft::vote::leader_id_std;
use openraft::{EmptyNode, StoredMembership};

use crate::host::runtime::HostRuntime;

openraft::declare_raft_types!(
    /// Standard Raft: one leader per term. The library's default lets two of one term follow each other.
    pub Types:
        D = Command,
        R = Applied,
        NodeId = u64,
        Node = EmptyNode,
        LeaderId = leader_id_std::LeaderId<u64, u64>,
        AsyncRuntime = HostRuntime,
);

/// An entry of the log.
pub type Entry = EntryOf<Types>;
/// Term and index of an entry.
pub type LogId = LogIdOf<Types>;
/// Term, candidate, and whether it became leader.
pub type Vote = VoteOf<Types>;
/// What a snapshot stands for.
pub type SnapshotMeta = SnapshotMetaOf<Types>;
/// Who votes, by which entry.
pub type Members = StoredMembership<leader_id_std::CommittedLeaderId<u64>, u64, EmptyNode>;
/// The library.
pub type Raft = openraft::Raft<Types, crate::table::Table>;

/// The id of the entry `index` of `term`.
pub fn log_id(term: u64, index: u64) -> LogId {
    LogId::new(leader_id_std::CommittedLeaderId::new(term), index)
}

/// What a client wants to be agreed: a number that nobody else uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command(pub u64);

impl fmt::Display for Command {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.0)
    }
}

/// The answer: where it stands in the agreed order, and the table's digest behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// Index of the entry.
    pub index: u64,
    /// Digest of everything applied so far.
    pub digest: u64,
}
