//! Which parts of the library are chosen, and what it is told about us.

use std::fmt;
use std::rc::Rc;

use openraft::type_config::alias::{EntryOf, LogIdOf, SnapshotMetaOf, SnapshotOf, VoteOf};
use openraft::vote::leader_id_std;
use openraft::{EmptyNode, StoredMembership};

use crate::host::runtime::HostRuntime;
use control::Outcome;

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
pub type LibraryEntry = EntryOf<Types>;
/// Term and index of an entry.
pub type LogId = LogIdOf<Types>;
/// Term, candidate, and whether it became leader.
pub type Vote = VoteOf<Types>;
/// What a snapshot stands for.
pub type SnapshotMeta = SnapshotMetaOf<Types>;
/// A table up to an entry, and what it stands for.
pub type LibrarySnapshot = SnapshotOf<Types, Vec<u8>>;
/// Who votes, by which entry.
pub type Members = StoredMembership<leader_id_std::CommittedLeaderId<u64>, u64, EmptyNode>;
/// The library.
pub type Raft = openraft::Raft<Types, super::machine::Machine>;

/// The id of the entry `index` of `term`.
pub fn log_id(term: u64, index: u64) -> LogId {
    LogId::new(leader_id_std::CommittedLeaderId::new(term), index)
}

/// A command of `control`, encoded; whoever lets one in has seen that it can be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command(pub Rc<[u8]>);

impl fmt::Display for Command {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "a command of {} bytes", self.0.len())
    }
}

/// Where an entry stands in the agreed order, and what the table said if it was a command.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    /// Index of the entry.
    pub index: u64,
    /// What the table said.
    pub outcome: Option<Outcome>,
}
