//! Registry: keys of any type.

use super::flags::{Categories, Flags, KeyFlags};
use super::id::CommandId as Id;
use super::keys::KeySpec;
use super::spec::{CommandSpec, Family, Group, Oracle, Spread};

pub(super) static COMMANDS: [CommandSpec; 26] = [
    CommandSpec::new(Id::Del, "del", -2, Group::Generic)
        .flags(Flags::WRITE)
        .keys(&[KeySpec::range(1, -1, 1, KeyFlags::RM.union(KeyFlags::DELETE))])
        .since("1.0.0")
        .complexity("O(N) with N the number of keys")
        .doc("key...", "Deletes keys and returns how many there were.")
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"])
        .spread(Spread::MultiKey),
    CommandSpec::new(Id::Unlink, "unlink", -2, Group::Generic)
        .flags(Flags::WRITE.union(Flags::FAST))
        .keys(&[KeySpec::range(1, -1, 1, KeyFlags::RM.union(KeyFlags::DELETE))])
        .since("4.0.0")
        .complexity("O(N) with N the number of keys")
        .doc("key...", "Deletes keys; their memory is given back in small steps.")
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"])
        .spread(Spread::MultiKey),
    CommandSpec::new(Id::Exists, "exists", -2, Group::Generic)
        .flags(Flags::READONLY.union(Flags::FAST))
        .keys(&[KeySpec::range(1, -1, 1, KeyFlags::RO)])
        .since("1.0.0")
        .complexity("O(N) with N the number of keys")
        .doc("key...", "Counts how many of the keys exist; a key named twice counts twice.")
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"])
        .spread(Spread::MultiKey),
    CommandSpec::new(Id::Type, "type", 2, Group::Generic)
        .flags(Flags::READONLY.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RO)])
        .since("1.0.0")
        .doc("key", "Returns the type of a value."),
    CommandSpec::new(Id::Ttl, "ttl", 2, Group::Generic)
        .flags(Flags::READONLY.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .since("1.0.0")
        .doc("key", "Returns the seconds a key has left.")
        .tips(&["nondeterministic_output"]),
    CommandSpec::new(Id::Pttl, "pttl", 2, Group::Generic)
        .flags(Flags::READONLY.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .since("2.6.0")
        .doc("key", "Returns the milliseconds a key has left.")
        .tips(&["nondeterministic_output"]),
    CommandSpec::new(Id::Expiretime, "expiretime", 2, Group::Generic)
        .flags(Flags::READONLY.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .since("7.0.0")
        .doc("key", "Returns the Unix time in seconds at which a key expires."),
    CommandSpec::new(Id::Pexpiretime, "pexpiretime", 2, Group::Generic)
        .flags(Flags::READONLY.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .since("7.0.0")
        .doc("key", "Returns the Unix time in milliseconds at which a key expires."),
    CommandSpec::new(Id::Expire, "expire", -3, Group::Generic)
        .flags(Flags::WRITE.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))])
        .since("1.0.0")
        .doc("key seconds [NX | XX | GT | LT]", "Lets a key expire after seconds."),
    CommandSpec::new(Id::Pexpire, "pexpire", -3, Group::Generic)
        .flags(Flags::WRITE.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))])
        .since("2.6.0")
        .doc("key milliseconds [NX | XX | GT | LT]", "Lets a key expire after milliseconds."),
    CommandSpec::new(Id::Expireat, "expireat", -3, Group::Generic)
        .flags(Flags::WRITE.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))])
        .since("1.2.0")
        .doc("key unix-time-seconds [NX | XX | GT | LT]", "Lets a key expire at a Unix time in seconds."),
    CommandSpec::new(Id::Pexpireat, "pexpireat", -3, Group::Generic)
        .flags(Flags::WRITE.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))])
        .since("2.6.0")
        .doc("key unix-time-milliseconds [NX | XX | GT | LT]", "Lets a key expire at a Unix time in milliseconds."),
    CommandSpec::new(Id::Persist, "persist", 2, Group::Generic)
        .flags(Flags::WRITE.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))])
        .since("2.2.0")
        .doc("key", "Removes the expiry of a key."),
    CommandSpec::new(Id::Rename, "rename", 3, Group::Generic)
        .flags(Flags::WRITE)
        .keys(&[
            KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE)),
            KeySpec::one(2, KeyFlags::OW.union(KeyFlags::UPDATE)),
        ])
        .since("1.0.0")
        .doc("key newkey", "Gives a key another name, replacing what was there.")
        .spread(Spread::MultiKey),
    CommandSpec::new(Id::Renamenx, "renamenx", 3, Group::Generic)
        .flags(Flags::WRITE.union(Flags::FAST))
        .keys(&[
            KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE)),
            KeySpec::one(2, KeyFlags::OW.union(KeyFlags::INSERT)),
        ])
        .since("1.0.0")
        .doc("key newkey", "Gives a key another name unless that exists.")
        .spread(Spread::MultiKey),
    CommandSpec::new(Id::Copy, "copy", -3, Group::Generic)
        .flags(Flags::WRITE.union(Flags::DENYOOM))
        .keys(&[
            KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS)),
            KeySpec::one(2, KeyFlags::OW.union(KeyFlags::UPDATE)),
        ])
        .since("6.2.0")
        .complexity("O(N) with N the size of the value")
        .doc("source destination [DB destination-db] [REPLACE]", "Copies a value to another key.")
        .spread(Spread::MultiKey),
    CommandSpec::new(Id::Move, "move", 3, Group::Generic)
        .flags(Flags::WRITE.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))])
        .since("1.0.0")
        .doc("key db", "Moves a key to another database."),
    CommandSpec::new(Id::Dump, "dump", 2, Group::Generic)
        .flags(Flags::READONLY)
        .keys(&[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .since("2.6.0")
        .complexity("O(N) with N the size of the value")
        .doc("key", "Returns a value as RESTORE takes it, here and in Redis and Valkey.")
        .oracle(Oracle::Model)
        .tips(&["nondeterministic_output"]),
    CommandSpec::new(Id::Restore, "restore", -4, Group::Generic)
        .flags(Flags::WRITE.union(Flags::DENYOOM))
        .keys(&[KeySpec::one(1, KeyFlags::OW.union(KeyFlags::UPDATE))])
        .since("2.6.0")
        .complexity("O(N) with N the size of the value")
        .doc(
            "key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]",
            "Makes a key of what DUMP returned, here or elsewhere.",
        )
        .also(Categories::DANGEROUS),
    CommandSpec::new(Id::Touch, "touch", -2, Group::Generic)
        .flags(Flags::READONLY.union(Flags::FAST))
        .keys(&[KeySpec::range(1, -1, 1, KeyFlags::RO)])
        .since("3.2.1")
        .complexity("O(N) with N the number of keys")
        .doc("key...", "Marks keys as used and counts how many exist.")
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"])
        .spread(Spread::MultiKey),
    CommandSpec::new(Id::Object, "object", -2, Group::Generic)
        .since("2.2.3")
        .doc("", "Looks inside how values are kept.")
        .spread(Spread::Any)
        .subcommands(&OBJECT),
    CommandSpec::new(Id::Randomkey, "randomkey", 1, Group::Generic)
        .flags(Flags::READONLY)
        .since("1.0.0")
        .doc("", "Returns some key.")
        .tips(&["request_policy:all_shards", "nondeterministic_output"])
        .family(Family::Node)
        .spread(Spread::AllCores)
        .oracle(Oracle::Model),
    CommandSpec::new(Id::Keys, "keys", 2, Group::Generic)
        .flags(Flags::READONLY)
        .also(Categories::DANGEROUS)
        .since("1.0.0")
        .complexity("O(N) with N the number of keys in the database")
        .doc("pattern", "Returns every key that fits a pattern.")
        .tips(&["request_policy:all_shards", "nondeterministic_output_order"])
        .family(Family::Node)
        .spread(Spread::AllCores),
    CommandSpec::new(Id::Scan, "scan", -2, Group::Generic)
        .flags(Flags::READONLY)
        .since("2.8.0")
        .complexity("O(1) for each call, O(N) for the whole walk")
        .doc("cursor [MATCH pattern] [COUNT count] [TYPE type]", "Walks over the keys in small steps.")
        .tips(&["nondeterministic_output", "request_policy:special"])
        .family(Family::Node)
        .spread(Spread::AllCores)
        .oracle(Oracle::Model),
    CommandSpec::new(Id::Wait, "wait", 3, Group::Generic)
        .flags(Flags::NOSCRIPT)
        .also(Categories::CONNECTION)
        .without(Categories::KEYSPACE)
        .since("3.0.0")
        .doc("numreplicas timeout-ms", "Waits until the writes of this connection are on so many replicas.")
        .tips(&["request_policy:all_shards", "response_policy:agg_min"])
        .family(Family::Node)
        .spread(Spread::AllCores),
    CommandSpec::new(Id::Waitaof, "waitaof", 4, Group::Generic)
        .flags(Flags::NOSCRIPT.union(Flags::BLOCKING))
        .also(Categories::CONNECTION)
        .since("7.2.0")
        .doc(
            "numlocal numreplicas timeout-ms",
            "Waits until the writes of this connection are durable here and on so many replicas.",
        )
        .tips(&["request_policy:all_shards", "response_policy:agg_min"])
        .family(Family::Node)
        .spread(Spread::AllCores)
        .oracle(Oracle::Model),
];

static OBJECT: [CommandSpec; 5] = [
    CommandSpec::new(Id::ObjectEncoding, "object|encoding", 3, Group::Generic)
        .flags(Flags::READONLY)
        .keys(&[KeySpec::one(2, KeyFlags::RO)])
        .since("2.2.3")
        .doc("key", "Returns the encoding of a value, by the names Redis uses.")
        .tips(&["nondeterministic_output"]),
    CommandSpec::new(Id::ObjectFreq, "object|freq", 3, Group::Generic)
        .flags(Flags::READONLY)
        .keys(&[KeySpec::one(2, KeyFlags::RO)])
        .since("4.0.0")
        .doc("key", "Returns how often a key was used, on a logarithmic scale.")
        .tips(&["nondeterministic_output"]),
    CommandSpec::new(Id::ObjectHelp, "object|help", 2, Group::Generic)
        .flags(Flags::LOADING.union(Flags::STALE))
        .since("6.2.0")
        .doc("", "Lists the subcommands.")
        .spread(Spread::Any),
    CommandSpec::new(Id::ObjectIdletime, "object|idletime", 3, Group::Generic)
        .flags(Flags::READONLY)
        .keys(&[KeySpec::one(2, KeyFlags::RO)])
        .since("2.2.3")
        .doc("key", "Returns the seconds since a key was last used.")
        .tips(&["nondeterministic_output"]),
    CommandSpec::new(Id::ObjectRefcount, "object|refcount", 3, Group::Generic)
        .flags(Flags::READONLY)
        .keys(&[KeySpec::one(2, KeyFlags::RO)])
        .since("2.2.3")
        .doc("key", "Returns the references to a value.")
        .tips(&["nondeterministic_output"]),
];
