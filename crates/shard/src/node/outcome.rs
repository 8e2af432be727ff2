//! What a node command leaves to the shard, and which facts it needs beforehand.

use super::config::ConfigChange;
use crate::access::AclOrder;
use crate::order::Order;
use crate::timing::TimingRequest;
use base::{Door, Slot};
use wire::registry::{CommandId as Id, CommandSpec};

/// Where a node command gets what it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodePlan {
    /// From this core's own facts.
    Here,
    /// From the facts of all cores, gathered first.
    Gather,
    /// From the keys of all cores: the shard executes it itself.
    Keys(KeysKind),
}

/// Commands over the keys of every core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeysKind {
    /// Count them.
    Dbsize,
    /// Remove those of the database.
    Flushdb,
    /// Remove all.
    Flushall,
    /// Name those that fit a pattern.
    Keys,
    /// Name some, and where to go on.
    Scan,
    /// Name any.
    Randomkey,
}

/// A step of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackupRequest {
    /// Pin the files of now and name them.
    Begin {
        /// Until somebody says that it is still at work, milliseconds.
        lease_ms: u64,
    },
    /// Somebody is.
    Keep {
        /// Which backup.
        id: u64,
    },
    /// All is copied.
    End {
        /// Which backup.
        id: u64,
    },
}

/// How many copies WAIT or WAITAOF asks for, in a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopiesAsked {
    /// WAITAOF: whether the own log is to have it as well. `None`: it is WAIT.
    pub local: Option<bool>,
    /// Followers.
    pub replicas: usize,
    /// Give up after that long, milliseconds; `None` for never.
    pub timeout_ms: Option<u64>,
}

/// What an ACL command needs of other cores or of chance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AclRequest {
    /// Have it decided, and reply with what became of it.
    Order(AclOrder),
    /// Reply with so many refusals, the latest of all cores.
    Log(usize),
    /// Forget the refusals of all cores, and reply with OK.
    ResetLog,
    /// Reply with a random password.
    Password {
        /// Of so many bits.
        bits: usize,
    },
}

/// What is left to do for the shard. The reply is written unless the variant says otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeOutcome {
    /// Nothing.
    Done,
    /// Stop the node; no reply, the connection just ends.
    Shutdown,
    /// About users.
    Acl(AclRequest),
    /// Apply to the settings of every core. Where [`ConfigChange::password`] is among them the reply is not written, and
    /// comes when all cores ask for that password.
    ConfigChanged(Vec<ConfigChange>),
    /// Forget what every core counted.
    ResetStatistics,
    /// Reply with the array of 1 or 0 (all earlier writes of this connection are durable here) and 0 (no replica
    /// exists). When `local`, wait until they are durable, but no longer than the timeout.
    WaitDurable {
        /// Whether to wait for durability here.
        local: bool,
        /// Give up after that long, milliseconds; `None` for never.
        timeout_ms: Option<u64>,
    },
    /// Reply with how many followers have what this connection wrote (WAIT), or with the array of 1 or 0 (so has the own log) and
    /// how many would keep it through a power cut (WAITAOF), once there are so many.
    WaitCopies(CopiesAsked),
    /// Reply with what took long on the cores that the door shows.
    Timing(TimingRequest),
    /// Do it and reply.
    Backup(BackupRequest),
    /// Have the node's manager do it, and reply.
    Order(Order),
    /// Reply with the number of keys in the slot.
    CountKeysInSlot(Slot),
    /// Reply with an array of keys in the slot.
    KeysInSlot {
        /// Where.
        slot: Slot,
        /// At most so many.
        count: usize,
    },
    /// Reply with the bytes that the key `arguments[2]` takes, or null.
    MemoryUsage,
}

/// Which facts `spec` needs. A cluster client asks one instance about that instance.
pub fn plan(spec: &CommandSpec, door: Door) -> NodePlan {
    match spec.id {
        Id::Dbsize => NodePlan::Keys(KeysKind::Dbsize),
        Id::Flushdb => NodePlan::Keys(KeysKind::Flushdb),
        Id::Flushall => NodePlan::Keys(KeysKind::Flushall),
        Id::Keys => NodePlan::Keys(KeysKind::Keys),
        Id::Scan => NodePlan::Keys(KeysKind::Scan),
        Id::Randomkey => NodePlan::Keys(KeysKind::Randomkey),
        Id::Info | Id::LatencyHistogram | Id::MemoryStats | Id::Lastsave | Id::Role | Id::ClusterGetslotmigrations
            if door == Door::Standalone =>
        {
            NodePlan::Gather
        }
        _ => NodePlan::Here,
    }
}
