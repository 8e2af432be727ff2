//! Registry: the node as a whole.

use super::flags::{Categories, Flags, KeyFlags};
use super::id::CommandId as Id;
use super::keys::KeySpec;
use super::spec::{CommandSpec, Group, Oracle, Spread};

pub(super) static COMMANDS: [CommandSpec; 18] = [
    CommandSpec::new(Id::Info, "info", -1, Group::Server)
        .flags(Flags::LOADING.union(Flags::STALE))
        .also(Categories::DANGEROUS)
        .since("1.0.0")
        .doc("[section]...", "Returns the state of the node.")
        .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"])
        .spread(Spread::AllCores)
        .oracle(Oracle::Model),
    CommandSpec::new(Id::Config, "config", -2, Group::Server)
        .since("2.0.0")
        .doc("", "Looks at and changes the configuration.")
        .oracle(Oracle::Model)
        .subcommands(&CONFIG),
    CommandSpec::new(Id::Command, "command", -1, Group::Server)
        .flags(Flags::LOADING.union(Flags::STALE))
        .also(Categories::CONNECTION)
        .since("2.8.13")
        .complexity("O(N) with N the number of commands")
        .doc("", "Describes every command.")
        .tips(&["nondeterministic_output_order"])
        .oracle(Oracle::Model)
        .subcommands(&COMMAND),
    CommandSpec::new(Id::Dbsize, "dbsize", 1, Group::Server)
        .flags(Flags::READONLY.union(Flags::FAST))
        .also(Categories::KEYSPACE)
        .since("1.0.0")
        .doc("", "Counts the keys of the database.")
        .tips(&["request_policy:all_shards", "response_policy:agg_sum"])
        .spread(Spread::AllCores),
    CommandSpec::new(Id::Flushdb, "flushdb", -1, Group::Server)
        .flags(Flags::WRITE)
        .also(Categories::DANGEROUS.union(Categories::KEYSPACE))
        .since("1.0.0")
        .complexity("O(N) with N the number of keys")
        .doc("[ASYNC | SYNC]", "Deletes every key of the database.")
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
        .spread(Spread::AllCores),
    CommandSpec::new(Id::Flushall, "flushall", -1, Group::Server)
        .flags(Flags::WRITE)
        .also(Categories::DANGEROUS.union(Categories::KEYSPACE))
        .since("1.0.0")
        .complexity("O(N) with N the number of keys")
        .doc("[ASYNC | SYNC]", "Deletes every key of every database.")
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
        .spread(Spread::AllCores),
    CommandSpec::new(Id::Shutdown, "shutdown", -1, Group::Server)
        .flags(
            Flags::ADMIN
                .union(Flags::NOSCRIPT)
                .union(Flags::LOADING)
                .union(Flags::STALE)
                .union(Flags::NO_MULTI)
                .union(Flags::ALLOW_BUSY),
        )
        .since("1.0.0")
        .complexity("O(N)")
        .doc("[NOSAVE | SAVE] [NOW] [FORCE] [ABORT]", "Stops the node.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::Debug, "debug", -2, Group::Server)
        .flags(Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE))
        .since("1.0.0")
        .complexity("that of the subcommand")
        .doc("subcommand [arg]...", "Tools for developers of the server.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::Time, "time", 1, Group::Server)
        .flags(Flags::LOADING.union(Flags::STALE).union(Flags::FAST))
        .since("2.6.0")
        .doc("", "Returns the Unix time in seconds and the microseconds.")
        .tips(&["nondeterministic_output"])
        .oracle(Oracle::Model),
    CommandSpec::new(Id::Lastsave, "lastsave", 1, Group::Server)
        .flags(Flags::LOADING.union(Flags::STALE).union(Flags::FAST))
        .also(Categories::ADMIN.union(Categories::DANGEROUS))
        .since("1.0.0")
        .doc("", "Returns the Unix time of the last checkpoint.")
        .tips(&["nondeterministic_output"])
        .oracle(Oracle::Model),
    CommandSpec::new(Id::Save, "save", 1, Group::Server)
        .flags(Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::NO_ASYNC_LOADING).union(Flags::NO_MULTI))
        .since("1.0.0")
        .complexity("O(N)")
        .doc("", "Refused: every write is in the log already; `zerohop backup` copies it.")
        .spread(Spread::AllCores)
        .oracle(Oracle::Model),
    CommandSpec::new(Id::Bgsave, "bgsave", -1, Group::Server)
        .flags(Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::NO_ASYNC_LOADING))
        .since("1.0.0")
        .doc("[SCHEDULE]", "Refused: every write is in the log already; `zerohop backup` copies it.")
        .spread(Spread::AllCores)
        .oracle(Oracle::Model),
    CommandSpec::new(Id::Bgrewriteaof, "bgrewriteaof", 1, Group::Server)
        .flags(Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::NO_ASYNC_LOADING))
        .since("1.0.0")
        .doc("", "Refused: the log is rewritten by itself.")
        .spread(Spread::AllCores)
        .oracle(Oracle::Model),
    CommandSpec::new(Id::Role, "role", 1, Group::Server)
        .flags(Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE).union(Flags::FAST))
        .also(Categories::ADMIN.union(Categories::DANGEROUS))
        .since("2.8.12")
        .doc("", "Returns the role of this instance in its chain.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::Slowlog, "slowlog", -2, Group::Server)
        .since("2.2.12")
        .doc("", "Commands that took long.")
        .oracle(Oracle::Model)
        .subcommands(&SLOWLOG),
    CommandSpec::new(Id::Latency, "latency", -2, Group::Server)
        .since("2.8.13")
        .doc("", "What made requests wait, by second.")
        .oracle(Oracle::Model)
        .subcommands(&LATENCY),
    CommandSpec::new(Id::Memory, "memory", -2, Group::Server)
        .since("4.0.0")
        .doc("", "Looks at where memory goes.")
        .oracle(Oracle::Model)
        .subcommands(&MEMORY),
    CommandSpec::new(Id::Acl, "acl", -2, Group::Server)
        .since("6.0.0")
        .doc("", "Looks at and changes users and what they may do.")
        .oracle(Oracle::Model)
        .subcommands(&ACL),
];

static CONFIG: [CommandSpec; 5] = [
    CommandSpec::new(Id::ConfigGet, "config|get", -3, Group::Server)
        .flags(Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE))
        .since("2.0.0")
        .complexity("O(N) with N the number of parameters")
        .doc("parameter...", "Returns the parameters that fit the patterns.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ConfigHelp, "config|help", 2, Group::Server)
        .flags(Flags::LOADING.union(Flags::STALE))
        .since("5.0.0")
        .doc("", "Lists the subcommands.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ConfigResetstat, "config|resetstat", 2, Group::Server)
        .flags(Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE))
        .since("2.0.0")
        .doc("", "Sets the counters to zero.")
        .spread(Spread::AllCores)
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ConfigRewrite, "config|rewrite", 2, Group::Server)
        .flags(Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE))
        .since("2.8.0")
        .doc("", "Writes the configuration to its file.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ConfigSet, "config|set", -4, Group::Server)
        .flags(Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE))
        .since("2.0.0")
        .complexity("O(N) with N the number of parameters")
        .doc("<parameter value>...", "Changes parameters.")
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
        .spread(Spread::AllCores)
        .oracle(Oracle::Model),
];

static COMMAND: [CommandSpec; 7] = [
    CommandSpec::new(Id::CommandCount, "command|count", 2, Group::Server)
        .flags(Flags::LOADING.union(Flags::STALE))
        .also(Categories::CONNECTION)
        .since("2.8.13")
        .doc("", "Returns the number of commands.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::CommandDocs, "command|docs", -2, Group::Server)
        .flags(Flags::LOADING.union(Flags::STALE))
        .also(Categories::CONNECTION)
        .since("7.0.0")
        .complexity("O(N) with N the number of commands")
        .doc("[command-name]...", "Returns the documentation of commands.")
        .tips(&["nondeterministic_output_order"])
        .oracle(Oracle::Model),
    CommandSpec::new(Id::CommandGetkeys, "command|getkeys", -4, Group::Server)
        .flags(Flags::LOADING.union(Flags::STALE))
        .also(Categories::CONNECTION)
        .since("2.8.13")
        .complexity("O(N) with N the number of arguments")
        .doc("command arg...", "Returns the keys of a request.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::CommandGetkeysandflags, "command|getkeysandflags", -4, Group::Server)
        .flags(Flags::LOADING.union(Flags::STALE))
        .also(Categories::CONNECTION)
        .since("7.0.0")
        .complexity("O(N) with N the number of arguments")
        .doc("command arg...", "Returns the keys of a request and what is done with each.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::CommandHelp, "command|help", 2, Group::Server)
        .flags(Flags::LOADING.union(Flags::STALE))
        .also(Categories::CONNECTION)
        .since("5.0.0")
        .doc("", "Lists the subcommands.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::CommandInfo, "command|info", -2, Group::Server)
        .flags(Flags::LOADING.union(Flags::STALE))
        .also(Categories::CONNECTION)
        .since("2.8.13")
        .complexity("O(N) with N the number of commands")
        .doc("[command-name]...", "Describes the named commands.")
        .tips(&["nondeterministic_output_order"])
        .oracle(Oracle::Model),
    CommandSpec::new(Id::CommandList, "command|list", -2, Group::Server)
        .flags(Flags::LOADING.union(Flags::STALE))
        .also(Categories::CONNECTION)
        .since("7.0.0")
        .complexity("O(N) with N the number of commands")
        .doc("[FILTERBY <MODULE module-name | ACLCAT category | PATTERN pattern>]", "Returns the names of commands.")
        .tips(&["nondeterministic_output_order"])
        .oracle(Oracle::Model),
];

static SLOWLOG: [CommandSpec; 4] = [
    CommandSpec::new(Id::SlowlogGet, "slowlog|get", -2, Group::Server)
        .flags(Flags::ADMIN.union(Flags::LOADING).union(Flags::STALE))
        .since("2.2.12")
        .complexity("O(N) with N the number of entries")
        .doc("[count]", "Returns commands of this node's clients that took `slowlog-log-slower-than` microseconds or more, the latest first.")
        .tips(&["request_policy:all_nodes", "nondeterministic_output"])
        .spread(Spread::AllCores)
        .oracle(Oracle::Model),
    CommandSpec::new(Id::SlowlogHelp, "slowlog|help", 2, Group::Server)
        .flags(Flags::LOADING.union(Flags::STALE))
        .since("6.2.0")
        .doc("", "Lists the subcommands.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::SlowlogLen, "slowlog|len", 2, Group::Server)
        .flags(Flags::ADMIN.union(Flags::LOADING).union(Flags::STALE))
        .since("2.2.12")
        .doc("", "Returns how many there are.")
        .tips(&["request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"])
        .spread(Spread::AllCores)
        .oracle(Oracle::Model),
    CommandSpec::new(Id::SlowlogReset, "slowlog|reset", 2, Group::Server)
        .flags(Flags::ADMIN.union(Flags::LOADING).union(Flags::STALE))
        .since("2.2.12")
        .complexity("O(N) with N the number of entries")
        .doc("", "Forgets them.")
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
        .spread(Spread::AllCores)
        .oracle(Oracle::Model),
];

static LATENCY: [CommandSpec; 7] = [
    CommandSpec::new(Id::LatencyDoctor, "latency|doctor", 2, Group::Server)
        .flags(Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE))
        .since("2.8.13")
        .doc("", "Returns a report for people.")
        .tips(&["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"])
        .spread(Spread::AllCores)
        .oracle(Oracle::Model),
    CommandSpec::new(Id::LatencyGraph, "latency|graph", 3, Group::Server)
        .flags(Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE))
        .since("2.8.13")
        .doc("event", "Returns a picture of an event's samples.")
        .tips(&["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"])
        .spread(Spread::AllCores)
        .oracle(Oracle::Model),
    CommandSpec::new(Id::LatencyHelp, "latency|help", 2, Group::Server)
        .flags(Flags::LOADING.union(Flags::STALE))
        .since("2.8.13")
        .doc("", "Lists the subcommands.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::LatencyHistogram, "latency|histogram", -2, Group::Server)
        .flags(Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE))
        .since("7.0.0")
        .complexity("O(N) with N the number of commands")
        .doc("[command]...", "Returns nothing: commands are not counted by how long they took.")
        .tips(&["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"])
        .spread(Spread::AllCores)
        .oracle(Oracle::Model),
    CommandSpec::new(Id::LatencyHistory, "latency|history", 3, Group::Server)
        .flags(Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE))
        .since("2.8.13")
        .doc("event", "Returns the longest wait of each of the latest 160 seconds that had one: second, milliseconds.")
        .tips(&["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"])
        .spread(Spread::AllCores)
        .oracle(Oracle::Model),
    CommandSpec::new(Id::LatencyLatest, "latency|latest", 2, Group::Server)
        .flags(Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE))
        .since("2.8.13")
        .doc(
            "",
            "Returns each event with its latest second, the longest wait in it and the longest of all, milliseconds.",
        )
        .tips(&["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"])
        .spread(Spread::AllCores)
        .oracle(Oracle::Model),
    CommandSpec::new(Id::LatencyReset, "latency|reset", -2, Group::Server)
        .flags(Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE))
        .since("2.8.13")
        .doc("[event]...", "Forgets samples of these events, or of all; returns of how many.")
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
        .spread(Spread::AllCores)
        .oracle(Oracle::Model),
];

static MEMORY: [CommandSpec; 6] = [
    CommandSpec::new(Id::MemoryDoctor, "memory|doctor", 2, Group::Server)
        .since("4.0.0")
        .doc("", "Returns a report for people.")
        .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"])
        .spread(Spread::AllCores)
        .oracle(Oracle::Model),
    CommandSpec::new(Id::MemoryHelp, "memory|help", 2, Group::Server)
        .flags(Flags::LOADING.union(Flags::STALE))
        .since("4.0.0")
        .doc("", "Lists the subcommands.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::MemoryMallocStats, "memory|malloc-stats", 2, Group::Server)
        .since("4.0.0")
        .doc("", "Returns the statistics of the allocator.")
        .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"])
        .oracle(Oracle::Model),
    CommandSpec::new(Id::MemoryPurge, "memory|purge", 2, Group::Server)
        .since("4.0.0")
        .doc("", "Gives free memory back to the system.")
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
        .spread(Spread::AllCores)
        .oracle(Oracle::Model),
    CommandSpec::new(Id::MemoryStats, "memory|stats", 2, Group::Server)
        .since("4.0.0")
        .doc("", "Returns where memory goes.")
        .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"])
        .spread(Spread::AllCores)
        .oracle(Oracle::Model),
    CommandSpec::new(Id::MemoryUsage, "memory|usage", -3, Group::Server)
        .flags(Flags::READONLY)
        .keys(&[KeySpec::one(2, KeyFlags::RO)])
        .since("4.0.0")
        .complexity("O(N) with N the number of samples")
        .doc("key [SAMPLES count]", "Returns the bytes that a key and its value take.")
        .spread(Spread::SingleKey)
        .oracle(Oracle::Model),
];

static ACL: [CommandSpec; 13] = [
    CommandSpec::new(Id::AclCat, "acl|cat", -2, Group::Server)
        .flags(Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE))
        .since("6.0.0")
        .doc("[category]", "Returns the categories, or the commands of one.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::AclDeluser, "acl|deluser", -3, Group::Server)
        .flags(Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE))
        .since("6.0.0")
        .complexity("O(N) with N the number of connections")
        .doc("username...", "Removes users and closes their connections.")
        .spread(Spread::AllCores)
        .oracle(Oracle::Model),
    CommandSpec::new(Id::AclDryrun, "acl|dryrun", -4, Group::Server)
        .flags(Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE))
        .since("7.0.0")
        .complexity("that of checking the request")
        .doc("username command [arg]...", "Tells whether a user may run a request.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::AclGenpass, "acl|genpass", -2, Group::Server)
        .flags(Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE))
        .since("6.0.0")
        .doc("[bits]", "Returns a random password.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::AclGetuser, "acl|getuser", 3, Group::Server)
        .flags(Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE))
        .since("6.0.0")
        .complexity("O(N) with N the number of rules")
        .doc("username", "Returns what a user may do.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::AclHelp, "acl|help", 2, Group::Server)
        .flags(Flags::LOADING.union(Flags::STALE))
        .since("6.0.0")
        .doc("", "Lists the subcommands.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::AclList, "acl|list", 2, Group::Server)
        .flags(Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE))
        .since("6.0.0")
        .complexity("O(N) with N the number of users")
        .doc("", "Returns the users as rules.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::AclLoad, "acl|load", 2, Group::Server)
        .flags(Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE))
        .since("6.0.0")
        .complexity("O(N) with N the number of rules and connections")
        .doc("", "Reads the users from their file: all of it, or nothing.")
        .spread(Spread::AllCores)
        .oracle(Oracle::Model),
    CommandSpec::new(Id::AclLog, "acl|log", -2, Group::Server)
        .flags(Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE))
        .since("6.0.0")
        .complexity("O(N) with N the number of entries")
        .doc("[count | RESET]", "Returns the latest refusals.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::AclSave, "acl|save", 2, Group::Server)
        .flags(Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE))
        .since("6.0.0")
        .complexity("O(N) with N the number of users")
        .doc("", "Writes the users to their file.")
        .spread(Spread::AllCores)
        .oracle(Oracle::Model),
    CommandSpec::new(Id::AclSetuser, "acl|setuser", -3, Group::Server)
        .flags(Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE))
        .since("6.0.0")
        .complexity("O(N) with N the number of rules and connections")
        .doc("username [rule]...", "Makes a user, or changes what it may do.")
        .spread(Spread::AllCores)
        .oracle(Oracle::Model),
    CommandSpec::new(Id::AclUsers, "acl|users", 2, Group::Server)
        .flags(Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE))
        .since("6.0.0")
        .complexity("O(N) with N the number of users")
        .doc("", "Returns the names of the users.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::AclWhoami, "acl|whoami", 2, Group::Server)
        .flags(Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE))
        .since("6.0.0")
        .doc("", "Returns the user of this connection.")
        .oracle(Oracle::Model),
];
