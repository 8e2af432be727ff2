//! Leases: until when a node may serve, as machines that are told the time.
//!
//! ```text
//!  NodeLease (each node)            Grants (each manager)                  Judge (the leader of the managers)
//!   │ Renewal ──────────────────────►│ fenced? another incarnation?         │
//!   │◄───────────────── Reply granted│ notes until when                     │
//!                                    │ Report ─────────────────────────────►│ who was granted nothing for a lease, or does not
//!                                    │                                      │ listen any more, is suspected
//!                                    │                                      ├─ wishes Fence, Detach: others go on without it
//!                                    │◄─────────────────────────── Question │
//!                                    │ Answer ─────────────────────────────►│ a majority: fenced, and nothing runs
//!                                                                           └─ wishes Promote
//! ```
//!
//! All times are microseconds of a monotonic clock of the machine that is called; clocks of two machines are never compared.
//! A clock may run wrong by 5 %: a node takes its lease for 5 % shorter than it is, a manager for 5 % longer, so that even a slow
//! node is over before a fast manager says so.

mod grants;
mod judge;
mod node_lease;

pub use grants::Grants;
pub use judge::{Judge, Wish};
pub use node_lease::NodeLease;

use base::planted::{Bug, is_planted};

use base::NodeId;

/// How wrong a clock's rate may be, per cent.
pub const CLOCK_ERROR_PER_CENT: u64 = 5;

/// The managers that vote, as one version of the managers' own agreement has them: one set, or, while they change, the old and
/// the new one, of both of which a majority is needed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Voters {
    /// The index under which they were agreed.
    pub version: u64,
    /// One set or two.
    pub sets: Vec<Vec<NodeId>>,
}

impl Voters {
    /// Everybody, once, ascending.
    pub fn all(&self) -> Vec<NodeId> {
        let mut all: Vec<NodeId> = self.sets.iter().flatten().copied().collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Whether a majority of every set says yes. Of nobody there is none.
    pub fn have_majority(&self, says_yes: impl Fn(NodeId) -> bool) -> bool {
        let is_most = |set: &Vec<NodeId>| set.iter().filter(|&&voter| says_yes(voter)).count() > set.len() / 2;
        !self.sets.is_empty() && self.sets.iter().all(is_most)
    }

    /// Whether so many say no in one of the sets that no majority of it is left.
    pub fn lack_majority(&self, says_no: impl Fn(NodeId) -> bool) -> bool {
        let is_left = |set: &Vec<NodeId>| set.iter().filter(|&&voter| !says_no(voter)).count() > set.len() / 2;
        !self.sets.iter().all(is_left)
    }
}

/// A node asks a manager to renew its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renewal {
    /// Who asks.
    pub node: NodeId,
    /// Which start of it.
    pub incarnation: u64,
    /// Which renewal: ascending.
    pub number: u64,
    /// Version of the voters of whom it needs a majority.
    pub voters: u64,
}

/// What the manager answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Of the renewal: a reply to an earlier start of the node is worth nothing.
    pub incarnation: u64,
    /// Of the renewal.
    pub number: u64,
    /// How long the lease runs from when the renewal was sent, microseconds, less what the node's clock may be wrong; or that
    /// there is none.
    pub granted_us: Result<u64, Denial>,
}

/// Why a lease is not renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial {
    /// For good: this incarnation was fenced, or a later one is known.
    Over,
    /// The table has an earlier incarnation: it is fenced first, then this one returns.
    NotReturned,
    /// The manager's table has no such node, perhaps not yet.
    Unknown,
    /// The manager has started and does not know yet that its table is as new as the one it had.
    NotCurrent,
    /// The node counts on voters that changed since.
    OldVoters,
}

/// The leader asks a manager about a node that is fenced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// About whom.
    pub node: NodeId,
    /// Which start of it.
    pub incarnation: u64,
}

/// What the manager knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// About whom.
    pub node: NodeId,
    /// Which start of it.
    pub incarnation: u64,
    /// It will never grant that incarnation a lease again.
    pub fenced: bool,
    /// How long a lease that it granted may still run, microseconds of its clock.
    pub may_run_us: u64,
}

/// What a manager tells the leader several times in a lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Each node that should have a lease.
    pub nodes: Vec<Heard>,
}

/// Of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    /// Who.
    pub node: NodeId,
    /// The latest incarnation that asked.
    pub incarnation: u64,
    /// How long it has been listening without granting that node a lease, microseconds.
    pub silent_us: u64,
}

/// How much of a lease a node counts on.
pub(crate) fn counted_by_node(lease_us: u64) -> u64 {
    if is_planted(Bug::M31LeaseWithoutMargin) {
        return lease_us;
    }
    lease_us * (100 - CLOCK_ERROR_PER_CENT) / 100
}

/// How long a manager, or the leader, waits for a lease to be over. One more for what a clock's reading leaves off.
pub(crate) fn counted_by_manager(lease_us: u64) -> u64 {
    if is_planted(Bug::M31LeaseWithoutMargin) {
        return lease_us;
    }
    (lease_us * (100 + CLOCK_ERROR_PER_CENT)).div_ceil(100) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn voters(sets: &[&[u32]]) -> Voters {
        let sets = sets.iter().map(|set| set.iter().copied().map(NodeId).collect()).collect();
        Voters { version: 1, sets }
    }

    #[test]
    fn a_majority_is_needed_of_every_set() {
        let both = voters(&[&[1, 2, 3], &[3, 4, 5]]);
        assert_eq!(both.all().len(), 5);
        assert!(both.have_majority(|voter| [1, 3, 5].contains(&voter.0)));
        assert!(!both.have_majority(|voter| [1, 2, 3].contains(&voter.0)));
        assert!(both.lack_majority(|voter| [4, 5].contains(&voter.0)));
        assert!(!both.lack_majority(|voter| [1, 4].contains(&voter.0)));
        assert!(!voters(&[]).have_majority(|_| true));
        assert!(!voters(&[&[1, 2, 3, 4]]).have_majority(|voter| voter.0 < 3), "two of four are no majority");
        assert!(voters(&[&[1, 2, 3, 4]]).lack_majority(|voter| voter.0 < 3), "and two that say no leave none");
    }

    #[test]
    fn a_slow_node_is_over_before_a_fast_manager_says_so() {
        for lease_us in [50_000, 300_000, 333_333, 60_000_000] {
            let node_true = counted_by_node(lease_us) as f64 / 0.95;
            let manager_true = (counted_by_manager(lease_us) - 1) as f64 / 1.05;
            assert!(node_true <= manager_true + 1e-6, "{lease_us}: {node_true} > {manager_true}");
        }
    }
}
