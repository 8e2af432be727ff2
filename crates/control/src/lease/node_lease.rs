//! The node's side: it renews with every manager, and knows until when it may serve.

use std::collections::{BTreeMap, VecDeque};

use base::limits::LEASE_MS_MAX;
use base::planted::{Bug, is_planted};

use super::{Denial, Renewal, Reply, Voters, counted_by_node};
use base::NodeId;

/// Renewals whose replies are still worth something.
const SENT_MAX: usize = 8;
/// Renewals in a lease: what passed since the last one is taken from what a node may stand still for.
const RENEWALS_PER_LEASE: u64 = 5;
/// Part of the time between two renewals by which one may be early, because its node is awake: then nodes that ask each other do
/// it together, and wake less often.
const EARLY_PER_RENEWAL: u64 = 4;

/// A node's lease, for one incarnation: a node that starts again makes a new one.
#[derive(Clone, Debug)]
pub struct NodeLease {
    node: NodeId,
    incarnation: u64,
    voters: Voters,
    lease_us: u64,
    next_us: u64,
    number: u64,
    sent: VecDeque<(u64, u64)>,
    /// For each manager until when its latest grant holds, by this node's clock and less what that may be wrong.
    until_us: BTreeMap<NodeId, u64>,
    /// Until when voters before these had granted. That holds as it does for a node that has not heard of the new ones: nobody
    /// is promoted for a lease after a change.
    kept_us: u64,
    is_over: bool,
}

impl NodeLease {
    /// No lease yet; the first renewal goes out with the first [`NodeLease::renewals`]. `lease_us` only sets how often.
    pub fn new(node: NodeId, incarnation: u64, voters: Voters, lease_us: u64) -> NodeLease {
        NodeLease {
            node,
            incarnation,
            voters,
            lease_us,
            next_us: 0,
            number: 0,
            sent: VecDeque::new(),
            until_us: BTreeMap::new(),
            kept_us: 0,
            is_over: false,
        }
    }

    /// Other voters count from now on. Only voters that are agreed may come here, never such as are only proposed.
    pub fn set_voters(&mut self, voters: Voters) {
        if voters.version > self.voters.version {
            self.kept_us = self.until_us();
            self.voters = voters;
            self.next_us = 0;
        }
    }

    /// Leases have another length: how often to renew.
    pub fn set_lease(&mut self, lease_us: u64) {
        self.lease_us = lease_us;
    }

    /// What to send, to whom, if it is time, or nearly.
    pub fn renewals(&mut self, now_us: u64) -> Vec<(NodeId, Renewal)> {
        let between_us = self.lease_us / RENEWALS_PER_LEASE;
        if now_us + between_us / EARLY_PER_RENEWAL < self.next_us || self.is_over {
            return Vec::new();
        }
        self.next_us = now_us + between_us;
        self.number += 1;
        self.sent.push_back((self.number, now_us));
        if self.sent.len() > SENT_MAX {
            self.sent.pop_front();
        }
        let (node, incarnation) = (self.node, self.incarnation);
        let renewal = Renewal { node, incarnation, number: self.number, voters: self.voters.version };
        self.voters.all().into_iter().map(|manager| (manager, renewal)).collect()
    }

    /// When [`NodeLease::renewals`] has something again at the latest.
    pub fn deadline_us(&self) -> u64 {
        self.next_us
    }

    /// A manager has answered; `from` is known by its connection.
    pub fn on_reply(&mut self, from: NodeId, reply: Reply) {
        if reply.incarnation != self.incarnation {
            return;
        }
        match reply.granted_us {
            Ok(lease_us) => {
                let Some((_, sent_us)) = self.sent.iter().find(|(sent, _)| *sent == reply.number) else { return };
                // No lease is longer, whatever a manager says.
                let until_us = sent_us + counted_by_node(lease_us.min(u64::from(LEASE_MS_MAX) * 1000));
                let known = self.until_us.entry(from).or_insert(0);
                *known = until_us.max(*known);
            }
            Err(Denial::Over) => self.is_over = true,
            // Asked again at once it would say the same again; whoever hears of newer voters asks at once.
            Err(Denial::OldVoters | Denial::NotReturned | Denial::Unknown | Denial::NotCurrent) => {}
        }
    }

    /// The moment from which on it may not serve, unless something comes; 0 when it never could. A majority of managers has
    /// granted up to there, of these voters or of those before.
    pub fn until_us(&self) -> u64 {
        if self.is_over {
            return 0;
        }
        let of_set = |set: &Vec<NodeId>| {
            let mut ends: Vec<u64> =
                set.iter().map(|manager| self.until_us.get(manager).copied().unwrap_or(0)).collect();
            ends.sort_unstable_by(|one, other| other.cmp(one));
            ends.get(set.len() / 2).copied().unwrap_or(0)
        };
        self.voters.sets.iter().map(of_set).min().unwrap_or(0).max(self.kept_us)
    }

    /// Whether it may serve, by the clock of the tick.
    pub fn may_serve(&self, now_us: u64) -> bool {
        if is_planted(Bug::M6LeaseSurvivesStop) {
            return self.until_us() > 0;
        }
        now_us < self.until_us()
    }

    /// Whether this incarnation may never serve again: it was fenced.
    pub fn is_over(&self) -> bool {
        self.is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease() -> NodeLease {
        let voters = Voters { version: 1, sets: vec![vec![NodeId(1), NodeId(2), NodeId(3)]] };
        NodeLease::new(NodeId(9), 5, voters, 300_000)
    }

    fn granted(number: u64) -> Reply {
        Reply { incarnation: 5, number, granted_us: Ok(300_000) }
    }

    #[test]
    fn a_majority_grants_and_the_clock_counts_from_when_it_was_asked() {
        let mut lease = lease();
        assert_eq!(lease.renewals(1000).len(), 3);
        assert!(lease.renewals(2000).is_empty() && lease.deadline_us() == 61_000);
        lease.on_reply(NodeId(1), granted(1));
        assert!(!lease.may_serve(50_000), "one of three is no majority");
        lease.on_reply(NodeId(1), granted(1));
        assert!(!lease.may_serve(50_000), "nor is the same one twice");
        lease.on_reply(NodeId(3), granted(1));
        assert_eq!(lease.until_us(), 1000 + 285_000);
        assert!(lease.may_serve(285_999) && !lease.may_serve(286_000));
        lease.on_reply(NodeId(2), granted(7));
        lease.on_reply(NodeId(2), Reply { incarnation: 4, ..granted(1) });
        assert_eq!(
            lease.until_us(),
            286_000,
            "neither what was never asked grants anything nor what an earlier start asked"
        );
    }

    #[test]
    fn grants_of_different_renewals_add_up_to_the_later_one_of_a_majority() {
        let mut lease = lease();
        for now_us in [0, 100_000, 200_000] {
            lease.renewals(now_us);
        }
        for (manager, number) in [(1, 3), (2, 1), (3, 2)] {
            lease.on_reply(NodeId(manager), granted(number));
        }
        assert_eq!(lease.until_us(), 100_000 + 285_000);
        lease.on_reply(NodeId(1), Reply { granted_us: Err(Denial::Over), ..granted(3) });
        assert!(lease.is_over() && !lease.may_serve(1) && lease.renewals(u64::MAX / 2).is_empty());
    }

    #[test]
    fn new_voters_have_to_grant_before_they_count_and_what_the_old_ones_granted_runs_to_its_end() {
        let mut lease = lease();
        lease.renewals(0);
        for manager in 1..=3 {
            lease.on_reply(NodeId(manager), granted(1));
        }
        let set = |ids: [u32; 3]| ids.map(NodeId).to_vec();
        lease.set_voters(Voters { version: 2, sets: vec![set([1, 2, 3]), set([3, 4, 5])] });
        assert_eq!(lease.until_us(), 285_000, "nobody is promoted before");
        assert_eq!(lease.renewals(10_000).len(), 5);
        for old in 1..=3 {
            lease.on_reply(NodeId(old), granted(2));
        }
        assert_eq!(lease.until_us(), 285_000, "one of the new set is no majority of it");
        lease.on_reply(NodeId(4), granted(2));
        assert_eq!(lease.until_us(), 295_000, "3 and 4 of the new set");
        lease.set_voters(Voters { version: 1, sets: vec![set([1, 2, 3])] });
        assert_eq!(lease.renewals(1_000_000).len(), 5, "older voters are no news");
    }

    #[test]
    fn a_manager_that_knows_newer_voters_is_not_asked_again_at_once() {
        let mut lease = lease();
        lease.renewals(0);
        lease.on_reply(NodeId(1), Reply { granted_us: Err(Denial::OldVoters), ..granted(1) });
        assert!(lease.renewals(1).is_empty() && lease.deadline_us() == 60_000);
    }
}
