//! Commands about the node: pure functions from facts to replies. What needs keys, other cores or the log is handed
//! to the shard as an outcome.
//!
//! ```text
//!  request ──► plan ──┬─ Here ───────────────────────► execute ──► reply, NodeOutcome
//!                     ├─ Gather: CoreFacts of all ───►
//!                     └─ Keys: the shard's own (DBSIZE, KEYS, SCAN…)
//! ```

mod acl;
mod backup;
mod cluster;
mod config;
mod config_keys;
mod facts;
mod gaps;
mod info;
mod latency;
mod memory;
mod orders;
mod outcome;
mod replication;
mod server;
mod statistics;

#[cfg(test)]
mod tests;

pub use config::{Config, ConfigChange, parse_bytes};
pub use config_keys::{ConfigKey, KEYS, Kind, Role};
pub use facts::{ClusterFacts, CoreFacts, LinkFacts, NodeFacts, NodeIdentity, ProcessFacts};
pub use outcome::{AclRequest, BackupRequest, CopiesAsked, KeysKind, NodeOutcome, NodePlan, plan};
pub use replication::TableCounts;
pub use statistics::{Calls, Counters, Gauges, KeyspaceFacts, Statistics};

use wire::registry::{CommandId as Id, CommandSpec, answer_command, lookup};
use wire::{Arguments, Reply};

/// Executes a command of the family [`Node`](wire::registry::Family::Node) whose [`plan`] is not
/// [`NodePlan::Keys`].
pub fn execute(
    spec: &CommandSpec,
    arguments: Arguments<'_>,
    facts: &NodeFacts<'_>,
    reply: &mut Reply<'_>,
) -> NodeOutcome {
    // Subcommands are told apart by the files of their containers.
    match container(arguments).unwrap_or(spec).id {
        Id::Info => info::execute(arguments, facts, reply),
        Id::Config => return config::execute(spec, arguments, facts, reply),
        Id::Command => answer_command(spec.id, arguments, reply),
        Id::ZhCluster => return orders::execute(spec, arguments, facts, reply),
        Id::Cluster => return cluster::execute(spec, arguments, facts, reply),
        Id::Memory => return memory::execute(spec, facts, reply),
        Id::Slowlog => return latency::execute_slowlog(spec, arguments, reply),
        Id::Latency => return latency::execute_latency(spec, arguments, facts, reply),
        Id::Acl => return acl::execute(spec, arguments, facts, reply),
        Id::ZhBackup => return backup::execute(spec, arguments, reply),
        _ => return server::execute(spec, arguments, facts, reply),
    }
    NodeOutcome::Done
}

/// The command that the first word names.
fn container(arguments: Arguments<'_>) -> Option<&'static CommandSpec> {
    arguments.get(0).and_then(lookup)
}
