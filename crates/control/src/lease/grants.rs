//! The manager's side: what it granted, in memory only, and what it answers about that.

use std::collections::BTreeMap;

use base::planted::{Bug, is_planted};

use super::{Answer, Denial, Heard, Question, Renewal, Reply, Report, counted_by_manager};
use crate::table::Table;
use base::NodeId;

/// What is known of one node's renewals.
#[derive(Clone, Copy, Debug)]
struct Grant {
    /// Since when it is listened to, or when it was granted last.
    heard_us: u64,
    /// Until when what was granted may run, by this manager's clock and with what that may be wrong.
    until_us: u64,
    /// The latest incarnation that asked.
    incarnation: u64,
}

/// The leases that one manager granted since it started.
#[derive(Clone, Debug)]
pub struct Grants {
    /// Until when something may run that was granted before the start.
    forgotten_until_us: u64,
    /// Whether the table is known to be at least as new as any that was obeyed before the start.
    is_current: bool,
    /// Version of the voters that stand in this manager's log, agreed or not.
    voters: u64,
    reported_us: u64,
    grants: BTreeMap<NodeId, Grant>,
}

impl Grants {
    /// A manager has started, with `table` as it found it and its voters: whatever it granted before is forgotten, and may
    /// run for the longest lease there ever was.
    pub fn start(now_us: u64, table: &Table, voters: u64) -> Grants {
        let longest_us = counted_by_manager(u64::from(table.lease_ms_longest()) * 1000);
        let is_forgotten = is_planted(Bug::M32GrantsForgotten);
        Grants {
            forgotten_until_us: if is_forgotten { 0 } else { now_us + longest_us },
            is_current: is_planted(Bug::M34GrantsOnOldTable),
            voters,
            reported_us: now_us,
            grants: BTreeMap::new(),
        }
    }

    /// The leader has confirmed an index, and the table has obeyed up to it: since the start nothing that was known before is
    /// missing. Until then nothing is granted, because a fence that was obeyed before could be missing.
    pub fn set_current(&mut self) {
        self.is_current = true;
    }

    /// Whether it may grant.
    pub fn is_current(&self) -> bool {
        self.is_current
    }

    /// The voters in this manager's log are of this version, as soon as they stand there and before they are agreed. It goes
    /// back when the entry is cut off again.
    pub fn set_voters(&mut self, version: u64) {
        self.voters = version;
    }

    /// A node asks, and `table` is what this manager has obeyed.
    pub fn on_renewal(&mut self, now_us: u64, table: &Table, renewal: Renewal) -> Reply {
        let Renewal { incarnation, number, .. } = renewal;
        if table.node(renewal.node).is_some() {
            let grant = self.grant(now_us, renewal.node);
            grant.incarnation = grant.incarnation.max(incarnation);
        }
        if let Some(why) = self.denial(table, renewal) {
            return Reply { incarnation, number, granted_us: Err(why) };
        }
        let lease_us = u64::from(table.settings().lease_ms) * 1000;
        let grant = self.grant(now_us, renewal.node);
        grant.heard_us = now_us;
        grant.until_us = grant.until_us.max(now_us + counted_by_manager(lease_us));
        Reply { incarnation, number, granted_us: Ok(lease_us) }
    }

    fn denial(&self, table: &Table, renewal: Renewal) -> Option<Denial> {
        if !self.is_current {
            return Some(Denial::NotCurrent);
        }
        let Some(node) = table.node(renewal.node) else { return Some(Denial::Unknown) };
        match renewal.incarnation.cmp(&node.facts.incarnation) {
            std::cmp::Ordering::Less => return Some(Denial::Over),
            std::cmp::Ordering::Greater => return Some(Denial::NotReturned),
            std::cmp::Ordering::Equal if !node.state.has_lease() => return Some(Denial::Over),
            std::cmp::Ordering::Equal => {}
        }
        (renewal.voters < self.voters).then_some(Denial::OldVoters)
    }

    fn grant(&mut self, now_us: u64, node: NodeId) -> &mut Grant {
        self.grants.entry(node).or_insert(Grant { heard_us: now_us, until_us: 0, incarnation: 0 })
    }

    /// Whether this start of a node has asked for a lease: it knows who it is.
    pub fn has_asked(&self, node: NodeId, incarnation: u64) -> bool {
        self.grants.get(&node).is_some_and(|grant| grant.incarnation >= incarnation)
    }

    /// Nobody listens any more where the node is: that says at once what its silence would say in a lease, unless it asks again.
    pub fn on_refused(&mut self, now_us: u64, table: &Table, node: NodeId) {
        let lease_us = u64::from(table.settings().lease_ms) * 1000;
        let grant = self.grant(now_us, node);
        grant.heard_us = grant.heard_us.min(now_us.saturating_sub(lease_us));
    }

    /// The leader asks about a node.
    pub fn answer(&self, now_us: u64, table: &Table, question: Question) -> Answer {
        let Question { node, incarnation } = question;
        let is_over = table.node(node).is_some_and(|node| {
            node.facts.incarnation > incarnation || (node.facts.incarnation == incarnation && !node.state.has_lease())
        });
        let granted_until_us = self.grants.get(&node).map_or(0, |grant| grant.until_us);
        let may_run_us = granted_until_us.max(self.forgotten_until_us).saturating_sub(now_us);
        Answer { node, incarnation, fenced: self.is_current && is_over, may_run_us }
    }

    /// When the next node will have been granted nothing for a lease, of those that had not at `since_us`: the leader shall hear of
    /// it at once.
    pub fn next_silence_us(&self, since_us: u64, table: &Table) -> Option<u64> {
        let lease_us = u64::from(table.settings().lease_ms) * 1000;
        let has_lease = |node: &NodeId| table.node(*node).is_some_and(|node| node.state.has_lease());
        let listed = self.grants.iter().filter(|(node, _)| has_lease(node));
        listed.map(|(_, grant)| grant.heard_us + lease_us).filter(|at_us| *at_us > since_us).min()
    }

    /// What the leader is told, several times in a lease. After a pause in which this manager heard nobody it says so of
    /// nobody, but listens anew.
    pub fn report(&mut self, now_us: u64, table: &Table) -> Report {
        let lease_us = u64::from(table.settings().lease_ms) * 1000;
        if now_us.saturating_sub(self.reported_us) >= lease_us {
            self.grants.values_mut().for_each(|grant| grant.heard_us = now_us);
        }
        self.reported_us = now_us;
        self.grants.retain(|node, grant| {
            let is_listed = table.node(*node).is_some_and(|node| node.state.has_lease());
            is_listed || grant.until_us > now_us
        });
        let listed = table.nodes().filter(|node| node.state.has_lease());
        let nodes = listed.map(|node| {
            let grant = self.grant(now_us, node.id());
            let silent_us = now_us.saturating_sub(grant.heard_us);
            Heard { node: node.id(), incarnation: grant.incarnation, silent_us }
        });
        Report { nodes: nodes.collect() }
    }
}
