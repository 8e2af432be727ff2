//! Registry: slots and instances.

use super::flags::{Categories, Flags};
use super::id::CommandId as Id;
use super::spec::{CommandSpec, Family, Group, Oracle};

pub(super) static COMMANDS: [CommandSpec; 4] = [
    CommandSpec::new(Id::Cluster, "cluster", -2, Group::Cluster)
        .since("3.0.0")
        .doc("", "Looks at slots and instances.")
        .oracle(Oracle::Model)
        .subcommands(&CLUSTER),
    CommandSpec::new(Id::Asking, "asking", 1, Group::Cluster)
        .flags(Flags::FAST)
        .also(Categories::CONNECTION)
        .since("3.0.0")
        .doc("", "Lets the next command touch a slot that is arriving.")
        .family(Family::Connection),
    CommandSpec::new(Id::Readonly, "readonly", 1, Group::Cluster)
        .flags(Flags::LOADING.union(Flags::STALE).union(Flags::FAST))
        .also(Categories::CONNECTION)
        .since("3.0.0")
        .doc("", "Lets this connection read from a replica.")
        .family(Family::Connection),
    CommandSpec::new(Id::Readwrite, "readwrite", 1, Group::Cluster)
        .flags(Flags::LOADING.union(Flags::STALE).union(Flags::FAST))
        .also(Categories::CONNECTION)
        .since("3.0.0")
        .doc("", "Ends READONLY.")
        .family(Family::Connection),
];

static CLUSTER: [CommandSpec; 32] = [
    CommandSpec::new(Id::ClusterAddslots, "cluster|addslots", -3, Group::Cluster)
        .flags(Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING))
        .since("3.0.0")
        .complexity("O(N) with N the number of slots")
        .doc("slot...", "Gives slots to this instance.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterAddslotsrange, "cluster|addslotsrange", -4, Group::Cluster)
        .flags(Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING))
        .since("7.0.0")
        .complexity("O(N) with N the number of slots")
        .doc("<start-slot end-slot>...", "Gives ranges of slots to this instance.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterBumpepoch, "cluster|bumpepoch", 2, Group::Cluster)
        .flags(Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING))
        .since("3.0.0")
        .doc("", "Raises the epoch of this instance.")
        .tips(&["nondeterministic_output"])
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterCancelslotmigrations, "cluster|cancelslotmigrations", 2, Group::Cluster)
        .flags(Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING).union(Flags::NO_MULTI))
        .since("9.0.0")
        .doc("", "Calls off the moves of slots away from this instance.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterCountFailureReports, "cluster|count-failure-reports", 3, Group::Cluster)
        .flags(Flags::ADMIN.union(Flags::STALE))
        .since("3.0.0")
        .complexity("O(N) with N the number of reports")
        .doc("node-id", "Counts who reports an instance as failed.")
        .tips(&["nondeterministic_output"])
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterCountkeysinslot, "cluster|countkeysinslot", 3, Group::Cluster)
        .flags(Flags::STALE)
        .since("3.0.0")
        .doc("slot", "Counts the keys of a slot.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterDelslots, "cluster|delslots", -3, Group::Cluster)
        .flags(Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING))
        .since("3.0.0")
        .complexity("O(N) with N the number of slots")
        .doc("slot...", "Takes slots from this instance.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterDelslotsrange, "cluster|delslotsrange", -4, Group::Cluster)
        .flags(Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING))
        .since("7.0.0")
        .complexity("O(N) with N the number of slots")
        .doc("<start-slot end-slot>...", "Takes ranges of slots from this instance.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterFailover, "cluster|failover", -2, Group::Cluster)
        .flags(Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING))
        .since("3.0.0")
        .doc("[FORCE | TAKEOVER]", "Makes a replica the primary.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterFlushslots, "cluster|flushslots", 2, Group::Cluster)
        .flags(Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING))
        .since("3.0.0")
        .doc("", "Takes all slots from this instance.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterForget, "cluster|forget", 3, Group::Cluster)
        .flags(Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING))
        .since("3.0.0")
        .doc("node-id", "Removes an instance from the cluster.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterGetkeysinslot, "cluster|getkeysinslot", 4, Group::Cluster)
        .flags(Flags::STALE)
        .since("3.0.0")
        .complexity("O(N) with N the number of keys returned")
        .doc("slot count", "Returns keys of a slot.")
        .tips(&["nondeterministic_output"])
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterGetslotmigrations, "cluster|getslotmigrations", 2, Group::Cluster)
        .flags(Flags::ADMIN.union(Flags::STALE))
        .since("9.0.0")
        .complexity("O(N) with N the number of moves")
        .doc(
            "",
            "Returns the moves of slots from and to this instance, at port P of this node, and what became of them.",
        )
        .tips(&["nondeterministic_output"])
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterHelp, "cluster|help", 2, Group::Cluster)
        .flags(Flags::LOADING.union(Flags::STALE))
        .since("5.0.0")
        .doc("", "Lists the subcommands.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterInfo, "cluster|info", 2, Group::Cluster)
        .flags(Flags::STALE)
        .since("3.0.0")
        .doc("", "Returns the state of the cluster.")
        .tips(&["nondeterministic_output"])
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterKeyslot, "cluster|keyslot", 3, Group::Cluster)
        .flags(Flags::STALE)
        .since("3.0.0")
        .complexity("O(N) with N the length of the key")
        .doc("key", "Returns the slot of a key.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterLinks, "cluster|links", 2, Group::Cluster)
        .flags(Flags::STALE)
        .since("7.0.0")
        .complexity("O(N) with N the number of instances")
        .doc("", "Returns the connections between instances.")
        .tips(&["nondeterministic_output"])
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterMeet, "cluster|meet", -4, Group::Cluster)
        .flags(Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING))
        .since("3.0.0")
        .doc("ip port [cluster-bus-port]", "Joins an instance to the cluster.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterMigrateslots, "cluster|migrateslots", -7, Group::Cluster)
        .flags(Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING).union(Flags::NO_MULTI))
        .since("9.0.0")
        .complexity("O(N) with N the number of slots")
        .doc("<SLOTSRANGE <start-slot end-slot>... NODE node-id>...", "Moves ranges of slots to instances.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterMyid, "cluster|myid", 2, Group::Cluster)
        .flags(Flags::STALE)
        .since("3.0.0")
        .doc("", "Returns the id of this instance.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterMyshardid, "cluster|myshardid", 2, Group::Cluster)
        .flags(Flags::LOADING.union(Flags::STALE))
        .since("7.2.0")
        .doc("", "Returns the id of the chain of this instance.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterNodes, "cluster|nodes", 2, Group::Cluster)
        .flags(Flags::STALE)
        .since("3.0.0")
        .complexity("O(N) with N the number of instances")
        .doc("", "Returns the instances and their slots as text.")
        .tips(&["nondeterministic_output"])
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterReplicas, "cluster|replicas", 3, Group::Cluster)
        .flags(Flags::ADMIN.union(Flags::STALE))
        .since("5.0.0")
        .complexity("O(N) with N the number of replicas")
        .doc("node-id", "Returns the replicas of an instance as text.")
        .tips(&["nondeterministic_output"])
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterReplicate, "cluster|replicate", 3, Group::Cluster)
        .flags(Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING))
        .since("3.0.0")
        .doc("node-id", "Makes this instance a replica.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterReset, "cluster|reset", -2, Group::Cluster)
        .flags(Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::STALE))
        .since("3.0.0")
        .complexity("O(N) with N the number of instances")
        .doc("[HARD | SOFT]", "Leaves the cluster.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterSaveconfig, "cluster|saveconfig", 2, Group::Cluster)
        .flags(Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING))
        .since("3.0.0")
        .doc("", "Saves the table of the cluster.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterSetConfigEpoch, "cluster|set-config-epoch", 3, Group::Cluster)
        .flags(Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING))
        .since("3.0.0")
        .doc("config-epoch", "Sets the epoch of this instance.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterSetslot, "cluster|setslot", -4, Group::Cluster)
        .flags(Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING))
        .since("3.0.0")
        .doc("slot <IMPORTING node-id | MIGRATING node-id | NODE node-id | STABLE>", "Says who owns a slot.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterShards, "cluster|shards", 2, Group::Cluster)
        .flags(Flags::STALE)
        .since("7.0.0")
        .complexity("O(N) with N the number of instances")
        .doc("", "Returns the chains, their slots and their instances.")
        .tips(&["nondeterministic_output"])
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterSlaves, "cluster|slaves", 3, Group::Cluster)
        .flags(Flags::ADMIN.union(Flags::STALE))
        .since("3.0.0")
        .complexity("O(N) with N the number of replicas")
        .doc("node-id", "Returns the replicas of an instance as text; the old name of REPLICAS.")
        .tips(&["nondeterministic_output"])
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterSlots, "cluster|slots", 2, Group::Cluster)
        .flags(Flags::STALE)
        .since("3.0.0")
        .complexity("O(N) with N the number of instances")
        .doc("", "Returns the ranges of slots and who owns them.")
        .tips(&["nondeterministic_output"])
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClusterSlotStats, "cluster|slot-stats", -4, Group::Cluster)
        .flags(Flags::LOADING.union(Flags::STALE))
        .since("8.0.0")
        .complexity("O(N log N) with N the number of slots")
        .doc(
            "<SLOTSRANGE start-slot end-slot | ORDERBY metric [LIMIT limit] [ASC | DESC]>",
            "Returns the use of slots.",
        )
        .tips(&["nondeterministic_output", "request_policy:all_shards"])
        .oracle(Oracle::Model),
];
