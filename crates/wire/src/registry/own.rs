//! Registry: Zerohop's own commands.

use super::flags::{Categories, Flags, KeyFlags};
use super::id::CommandId as Id;
use super::keys::KeySpec;
use super::spec::{CommandSpec, Group, Oracle, Spread};

pub(super) static COMMANDS: [CommandSpec; 5] = [
    CommandSpec::new(Id::ZhBackup, "zh.backup", -2, Group::Server)
        .since("0.1.0")
        .doc("", "Keeps the data directory's files as they are while they are copied.")
        .oracle(Oracle::Model)
        .subcommands(&BACKUP),
    CommandSpec::new(Id::ZhCluster, "zh.cluster", -2, Group::Cluster)
        .since("0.1.0")
        .doc("", "Looks after the nodes of a cluster.")
        .oracle(Oracle::Model)
        .subcommands(&CLUSTER),
    CommandSpec::new(Id::ZhGet, "zh.get", 2, Group::Generic)
        .flags(Flags::READONLY.union(Flags::FAST))
        .also(Categories::STRING)
        .keys(&[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .since("0.1.0")
        .doc("key", "Returns the value and the version of a string.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ZhMget, "zh.mget", -2, Group::String)
        .flags(Flags::READONLY.union(Flags::FAST))
        .keys(&[KeySpec::range(1, -1, 1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .since("0.1.0")
        .complexity("O(N) with N the number of keys")
        .doc("key...", "Returns several strings, and for each that another instance of a cluster serves where it is.")
        .permitted_as(Id::Mget)
        .spread(Spread::MultiKey)
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ZhWait, "zh.wait", -4, Group::Generic)
        .flags(Flags::READONLY.union(Flags::BLOCKING).union(Flags::NOSCRIPT))
        .keys(&[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .since("0.1.0")
        .doc(
            "key <EQ value | NE value | EXISTS | ABSENT | VERSION version> timeout-ms",
            "Waits until a key is as asked for.",
        )
        .oracle(Oracle::Model),
];

const BACKUP_FLAGS: Flags = Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::NO_MULTI);

static BACKUP: [CommandSpec; 3] = [
    CommandSpec::new(Id::ZhBackupBegin, "zh.backup|begin", -2, Group::Server)
        .flags(BACKUP_FLAGS)
        .since("0.1.0")
        .complexity("O(N) with N the number of files")
        .doc("[lease-ms]", "Pins the files of one moment and names them.")
        .spread(Spread::AllCores)
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ZhBackupEnd, "zh.backup|end", 3, Group::Server)
        .flags(BACKUP_FLAGS)
        .since("0.1.0")
        .doc("id", "Unpins the files; an error if they were not pinned all the time.")
        .spread(Spread::AllCores)
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ZhBackupKeep, "zh.backup|keep", 3, Group::Server)
        .flags(BACKUP_FLAGS)
        .since("0.1.0")
        .doc("id", "Begins the lease anew.")
        .spread(Spread::AllCores)
        .oracle(Oracle::Model),
];

const ORDER_FLAGS: Flags = Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::STALE).union(Flags::NO_MULTI);

static CLUSTER: [CommandSpec; 8] = [
    CommandSpec::new(Id::ZhClusterConfigure, "zh.cluster|configure", -4, Group::Cluster)
        .flags(ORDER_FLAGS)
        .since("0.1.0")
        .doc("<LEASE-MS milliseconds | CHAIN-LENGTH members>...", "Sets what all nodes obey.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ZhClusterDrain, "zh.cluster|drain", 3, Group::Cluster)
        .flags(ORDER_FLAGS)
        .since("0.1.0")
        .doc("node", "Moves everything away from a node.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ZhClusterKeep, "zh.cluster|keep", 3, Group::Cluster)
        .flags(ORDER_FLAGS)
        .since("0.1.0")
        .doc("node", "Ends the draining of a node, which gets a share again.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ZhClusterRebalance, "zh.cluster|rebalance", 2, Group::Cluster)
        .flags(ORDER_FLAGS)
        .since("0.1.0")
        .doc("", "Moves slots until every node has its share.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ZhClusterRemove, "zh.cluster|remove", -3, Group::Cluster)
        .flags(ORDER_FLAGS)
        .since("0.1.0")
        .doc("node [ABANDON]", "Removes a node that has nothing any more, or that is down and lost.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ZhClusterStatus, "zh.cluster|status", 2, Group::Cluster)
        .flags(ORDER_FLAGS)
        .since("0.1.0")
        .complexity("O(N) with N the number of ranges")
        .doc("", "Returns nodes, chains, moves and what is not as it should be.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ZhClusterSuspect, "zh.cluster|suspect", 3, Group::Cluster)
        // Any client may say what it sees: nothing is taken from anybody by that.
        .flags(Flags::NOSCRIPT.union(Flags::STALE).union(Flags::NO_MULTI))
        .since("0.1.0")
        .doc("node", "Has a node looked at that does not answer, and returns what was found.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ZhClusterWeigh, "zh.cluster|weigh", 4, Group::Cluster)
        .flags(ORDER_FLAGS)
        .since("0.1.0")
        .doc("node weight", "Sets the share of a node against others'; 0: as many as it has cores.")
        .oracle(Oracle::Model),
];
