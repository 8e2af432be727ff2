//! All that a scrape may show, as of one round of questions.

use std::collections::BTreeMap;

use shard::beside::{CoreStanding, MemberStanding};
use shard::node::{NodeIdentity, ProcessFacts, Statistics};
use shard::order::Standing;

/// What the node's manager says.
#[derive(Clone, Debug, Default)]
pub enum ManagerStanding {
    /// The node is on its own.
    #[default]
    None,
    /// Nothing yet, or nothing in time.
    Silent,
    /// No cluster has let the node in: why.
    Outside(String),
    /// How the cluster stands.
    Inside(Box<Standing>),
}

/// What the admin port counts of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnCounts {
    /// Requests, of whatever kind.
    pub requests: u64,
    /// Of those, without an answer that they asked for: malformed, too long, unknown.
    pub refused: u64,
    /// Connections that were ended because others came, or took too long.
    pub ended: u64,
    /// How long the round took whose answers these are, microseconds.
    pub round_us: u64,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// Who the node is.
    pub identity: NodeIdentity,
    /// The operating system's view.
    pub process: ProcessFacts,
    /// By core; `None`: it has not answered in time.
    pub cores: Vec<Option<Box<CoreStanding>>>,
    /// By core, and behind them of the manager: how long it has owed an answer, microseconds; 0: it owes none.
    pub owed_us: Vec<u64>,
    /// The cluster.
    pub manager: ManagerStanding,
    /// The admin port itself.
    pub own: OwnCounts,
}

impl Sample {
    /// The cores that answered, by their numbers.
    pub fn answered(&self) -> impl Iterator<Item = (usize, &CoreStanding)> {
        self.cores.iter().enumerate().filter_map(|(core, standing)| Some((core, standing.as_deref()?)))
    }

    /// The first core that answered as a member of a cluster.
    pub fn member(&self) -> Option<&MemberStanding> {
        self.answered().find_map(|(_, standing)| standing.member.as_ref())
    }

    /// What the node's manager says of the cluster.
    pub fn cluster(&self) -> Option<&Standing> {
        match &self.manager {
            ManagerStanding::Inside(standing) => Some(standing),
            _ => None,
        }
    }

    /// What all cores counted.
    pub(crate) fn statistics(&self) -> Statistics {
        let mut sum = Statistics::default();
        self.answered().for_each(|(_, standing)| sum.add(&standing.facts.statistics));
        sum
    }

    /// Keys, and those that will expire, by the number of their database; empty ones are left out.
    pub(crate) fn keyspaces(&self) -> BTreeMap<usize, (u64, u64)> {
        let mut sum = BTreeMap::new();
        for (_, standing) in self.answered() {
            for (database, keyspace) in standing.facts.keyspace.iter().enumerate().filter(|(_, one)| one.keys > 0) {
                let entry = sum.entry(database).or_insert((0, 0));
                *entry = (entry.0 + keyspace.keys, entry.1 + keyspace.expiring);
            }
        }
        sum
    }
}
