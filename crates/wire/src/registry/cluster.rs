//! Registry: slots and instances.

use super::flags::{Categories, Flags};
use super::id::CommandId as Id;
use super::spec::{CommandSpec, Family, Group, Oracle};

pub(super) static COMMANDS: [CommandSpec; 4] = [
    CommandSpec::new(Id::Cluster, "cluster", -2, Group::Cluster)
        .since("3.0.0")
        .complexity("Depends on subcommand.")
        .doc("", "")
        .oracle(Oracle::Model)
        .subcommands(&CLUSTER),
    CommandSpec::new(Id::Asking, "asking", 1, Group::Cluster)
        .flags(Flags::FAST)
        .also(Categories::CONNECTION)
        .since("3.0.0")
        .doc("", "")
        .family(Family::Connection),
    CommandSpec::new(Id::Readonly, "readonly", 1, Group::Cluster)
        .flags(Flags::LOADING.union(Flags::STALE).union(Flags::FAST))
        .also(Categories::CONNECTION)
        .since("3.0.0")
        .doc("", "")
        .family(Family::Connection),
    CommandSpec::new(Id::Readwrite, "readwrite", 1, Group::Cluster)
        .flags(Flags::LOADING.union(Flags::STALE).union(Flags::FAST))
        .also(Categories::CONNECTION)
        .since("3.0.0")
        .doc("", "")
        .family(Family::Connection),
];

static CLUSTER: [CommandSpec; 29] = [
    CommandSpec::new(Id::ClusterAddslots, "cluster|addslots", -3, Group::Cluster)
        .flags(Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING))
        .since("3.0.0")
        .complexity("O(N) where N is the total number of hash slot arguments")
        .doc("", "")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterAddslotsrange, "cluster|addslotsrange", -4, Group::Cluster)
        .flags(Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING))
        .since("7.0.0")
        .complexity("O(N) where N is the total number of the slots between the start slot and end slot arguments.")
        .doc("", "")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterBumpepoch, "cluster|bumpepoch", 2, Group::Cluster)
        .flags(Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING))
        .since("3.0.0")
        .doc("", "")
        .tips(&["nondeterministic_output"])
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterCountFailureReports, "cluster|count-failure-reports", 3, Group::Cluster)
        .flags(Flags::ADMIN.union(Flags::STALE))
        .since("3.0.0")
        .complexity("O(N) where N is the number of failure reports")
        .doc("", "")
        .tips(&["nondeterministic_output"])
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterCountkeysinslot, "cluster|countkeysinslot", 3, Group::Cluster)
        .flags(Flags::STALE)
        .since("3.0.0")
        .doc("", "")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterDelslots, "cluster|delslots", -3, Group::Cluster)
        .flags(Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING))
        .since("3.0.0")
        .complexity("O(N) where N is the total number of hash slot arguments")
        .doc("", "")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterDelslotsrange, "cluster|delslotsrange", -4, Group::Cluster)
        .flags(Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING))
        .since("7.0.0")
        .complexity("O(N) where N is the total number of the slots between the start slot and end slot arguments.")
        .doc("", "")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterFailover, "cluster|failover", -2, Group::Cluster)
        .flags(Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING))
        .since("3.0.0")
        .doc("", "")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterFlushslots, "cluster|flushslots", 2, Group::Cluster)
        .flags(Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING))
        .since("3.0.0")
        .doc("", "")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterForget, "cluster|forget", 3, Group::Cluster)
        .flags(Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING))
        .since("3.0.0")
        .doc("", "")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterGetkeysinslot, "cluster|getkeysinslot", 4, Group::Cluster)
        .flags(Flags::STALE)
        .since("3.0.0")
        .complexity("O(log(N)) where N is the number of requested keys")
        .doc("", "")
        .tips(&["nondeterministic_output"])
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterHelp, "cluster|help", 2, Group::Cluster)
        .flags(Flags::LOADING.union(Flags::STALE))
        .since("5.0.0")
        .doc("", "")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterInfo, "cluster|info", 2, Group::Cluster)
        .flags(Flags::STALE)
        .since("3.0.0")
        .doc("", "")
        .tips(&["nondeterministic_output"])
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterKeyslot, "cluster|keyslot", 3, Group::Cluster)
        .flags(Flags::STALE)
        .since("3.0.0")
        .complexity("O(N) where N is the number of bytes in the key")
        .doc("", "")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterLinks, "cluster|links", 2, Group::Cluster)
        .flags(Flags::STALE)
        .since("7.0.0")
        .complexity("O(N) where N is the total number of Cluster nodes")
        .doc("", "")
        .tips(&["nondeterministic_output"])
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterMeet, "cluster|meet", -4, Group::Cluster)
        .flags(Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING))
        .since("3.0.0")
        .doc("", "")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterMyid, "cluster|myid", 2, Group::Cluster)
        .flags(Flags::STALE)
        .since("3.0.0")
        .doc("", "")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterMyshardid, "cluster|myshardid", 2, Group::Cluster)
        .flags(Flags::LOADING.union(Flags::STALE))
        .since("7.2.0")
        .doc("", "")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterNodes, "cluster|nodes", 2, Group::Cluster)
        .flags(Flags::STALE)
        .since("3.0.0")
        .complexity("O(N) where N is the total number of Cluster nodes")
        .doc("", "")
        .tips(&["nondeterministic_output"])
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterReplicas, "cluster|replicas", 3, Group::Cluster)
        .flags(Flags::ADMIN.union(Flags::STALE))
        .since("5.0.0")
        .doc("", "")
        .tips(&["nondeterministic_output"])
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterReplicate, "cluster|replicate", 3, Group::Cluster)
        .flags(Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING))
        .since("3.0.0")
        .doc("", "")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterReset, "cluster|reset", -2, Group::Cluster)
        .flags(Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::STALE))
        .since("3.0.0")
        .complexity("O(N) where N is the number of known nodes. The command may execute a FLUSHALL as a side effect.")
        .doc("", "")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterSaveconfig, "cluster|saveconfig", 2, Group::Cluster)
        .flags(Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING))
        .since("3.0.0")
        .doc("", "")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterSetConfigEpoch, "cluster|set-config-epoch", 3, Group::Cluster)
        .flags(Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING))
        .since("3.0.0")
        .doc("", "")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterSetslot, "cluster|setslot", -4, Group::Cluster)
        .flags(Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING))
        .since("3.0.0")
        .doc("", "")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterShards, "cluster|shards", 2, Group::Cluster)
        .flags(Flags::STALE)
        .since("7.0.0")
        .complexity("O(N) where N is the total number of cluster nodes")
        .doc("", "")
        .tips(&["nondeterministic_output"])
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterSlaves, "cluster|slaves", 3, Group::Cluster)
        .flags(Flags::ADMIN.union(Flags::STALE))
        .since("3.0.0")
        .doc("", "")
        .tips(&["nondeterministic_output"])
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterSlots, "cluster|slots", 2, Group::Cluster)
        .flags(Flags::STALE)
        .since("3.0.0")
        .complexity("O(N) where N is the total number of Cluster nodes")
        .doc("", "")
        .tips(&["nondeterministic_output"])
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterSlotStats, "cluster|slot-stats", -4, Group::Cluster)
        .flags(Flags::LOADING.union(Flags::STALE))
        .since("8.0.0")
        .complexity("O(N log N) with N the number of slots")
        .doc("", "")
        .tips(&["nondeterministic_output", "request_policy:all_shards"])
        .oracle(Oracle::Model),
];
