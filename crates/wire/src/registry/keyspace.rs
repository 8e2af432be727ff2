//! Registry: keys of any type.

use super::flags::{Categories, Flags, KeyFlags};
use super::id::CommandId as Id;
use super::keys::KeySpec;
use super::spec::{CommandSpec, Family, Group, Oracle, Spread};

pub(super) static COMMANDS: [CommandSpec; 24] = [
    CommandSpec::new(Id::Del, "del", -2, Group::Generic)
        .flags(Flags::WRITE)
        .keys(&[KeySpec::range(1, -1, 1, KeyFlags::RM.union(KeyFlags::DELETE))])
        .since("1.0.0")
        .complexity("O(N) where N is the number of keys that will be removed. When a key to remove holds a value other than a string, the individual complexity for this key is O(M) where M is the number of elements in the list, set, sorted set or hash. Removing a single key that holds a string value is O(1).")
        .doc("", "")
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"])
        .spread(Spread::MultiKey),
    CommandSpec::new(Id::Unlink, "unlink", -2, Group::Generic)
        .flags(Flags::WRITE.union(Flags::FAST))
        .keys(&[KeySpec::range(1, -1, 1, KeyFlags::RM.union(KeyFlags::DELETE))])
        .since("4.0.0")
        .complexity("O(1) for each key removed regardless of its size. Then the command does O(N) work in a different thread in order to reclaim memory, where N is the number of allocations the deleted objects where composed of.")
        .doc("", "")
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"])
        .spread(Spread::MultiKey),
    CommandSpec::new(Id::Exists, "exists", -2, Group::Generic)
        .flags(Flags::READONLY.union(Flags::FAST))
        .keys(&[KeySpec::range(1, -1, 1, KeyFlags::RO)])
        .since("1.0.0")
        .complexity("O(N) where N is the number of keys to check.")
        .doc("", "")
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"])
        .spread(Spread::MultiKey),
    CommandSpec::new(Id::Type, "type", 2, Group::Generic)
        .flags(Flags::READONLY.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RO)])
        .since("1.0.0")
        .doc("", ""),
    CommandSpec::new(Id::Ttl, "ttl", 2, Group::Generic)
        .flags(Flags::READONLY.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .since("1.0.0")
        .doc("", "")
        .tips(&["nondeterministic_output"]),
    CommandSpec::new(Id::Pttl, "pttl", 2, Group::Generic)
        .flags(Flags::READONLY.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .since("2.6.0")
        .doc("", "")
        .tips(&["nondeterministic_output"]),
    CommandSpec::new(Id::Expiretime, "expiretime", 2, Group::Generic)
        .flags(Flags::READONLY.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .since("7.0.0")
        .doc("", ""),
    CommandSpec::new(Id::Pexpiretime, "pexpiretime", 2, Group::Generic)
        .flags(Flags::READONLY.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .since("7.0.0")
        .doc("", ""),
    CommandSpec::new(Id::Expire, "expire", -3, Group::Generic)
        .flags(Flags::WRITE.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))])
        .since("1.0.0")
        .doc("", ""),
    CommandSpec::new(Id::Pexpire, "pexpire", -3, Group::Generic)
        .flags(Flags::WRITE.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))])
        .since("2.6.0")
        .doc("", ""),
    CommandSpec::new(Id::Expireat, "expireat", -3, Group::Generic)
        .flags(Flags::WRITE.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))])
        .since("1.2.0")
        .doc("", ""),
    CommandSpec::new(Id::Pexpireat, "pexpireat", -3, Group::Generic)
        .flags(Flags::WRITE.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))])
        .since("2.6.0")
        .doc("", ""),
    CommandSpec::new(Id::Persist, "persist", 2, Group::Generic)
        .flags(Flags::WRITE.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))])
        .since("2.2.0")
        .doc("", ""),
    CommandSpec::new(Id::Rename, "rename", 3, Group::Generic)
        .flags(Flags::WRITE)
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE)), KeySpec::one(2, KeyFlags::OW.union(KeyFlags::UPDATE))])
        .since("1.0.0")
        .doc("", "")
        .spread(Spread::MultiKey),
    CommandSpec::new(Id::Renamenx, "renamenx", 3, Group::Generic)
        .flags(Flags::WRITE.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE)), KeySpec::one(2, KeyFlags::OW.union(KeyFlags::INSERT))])
        .since("1.0.0")
        .doc("", "")
        .spread(Spread::MultiKey),
    CommandSpec::new(Id::Copy, "copy", -3, Group::Generic)
        .flags(Flags::WRITE.union(Flags::DENYOOM))
        .keys(&[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS)), KeySpec::one(2, KeyFlags::OW.union(KeyFlags::UPDATE))])
        .since("6.2.0")
        .complexity("O(N) worst case for collections, where N is the number of nested items. O(1) for string values.")
        .doc("", "")
        .spread(Spread::MultiKey),
    CommandSpec::new(Id::Move, "move", 3, Group::Generic)
        .flags(Flags::WRITE.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))])
        .since("1.0.0")
        .doc("", ""),
    CommandSpec::new(Id::Touch, "touch", -2, Group::Generic)
        .flags(Flags::READONLY.union(Flags::FAST))
        .keys(&[KeySpec::range(1, -1, 1, KeyFlags::RO)])
        .since("3.2.1")
        .complexity("O(N) where N is the number of keys that will be touched.")
        .doc("", "")
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"])
        .spread(Spread::MultiKey),
    CommandSpec::new(Id::Object, "object", -2, Group::Generic)
        .since("2.2.3")
        .complexity("Depends on subcommand.")
        .doc("", "")
        .spread(Spread::Any)
        .subcommands(&OBJECT),
    CommandSpec::new(Id::Randomkey, "randomkey", 1, Group::Generic)
        .flags(Flags::READONLY)
        .since("1.0.0")
        .doc("", "")
        .tips(&["request_policy:all_shards", "nondeterministic_output"])
        .family(Family::Node)
        .spread(Spread::AllCores)
        .oracle(Oracle::Model),
    CommandSpec::new(Id::Keys, "keys", 2, Group::Generic)
        .flags(Flags::READONLY)
        .also(Categories::DANGEROUS)
        .since("1.0.0")
        .complexity("O(N) with N being the number of keys in the database, under the assumption that the key names in the database and the given pattern have limited length.")
        .doc("", "")
        .tips(&["request_policy:all_shards", "nondeterministic_output_order"])
        .family(Family::Node)
        .spread(Spread::AllCores),
    CommandSpec::new(Id::Scan, "scan", -2, Group::Generic)
        .flags(Flags::READONLY)
        .since("2.8.0")
        .complexity("O(1) for every call. O(N) for a complete iteration, including enough command calls for the cursor to return back to 0. N is the number of elements inside the collection.")
        .doc("", "")
        .tips(&["nondeterministic_output", "request_policy:special"])
        .family(Family::Node)
        .spread(Spread::AllCores)
        .oracle(Oracle::Model),
    CommandSpec::new(Id::Wait, "wait", 3, Group::Generic)
        .flags(Flags::NOSCRIPT)
        .also(Categories::CONNECTION)
        .since("3.0.0")
        .doc("", "")
        .tips(&["request_policy:all_shards", "response_policy:agg_min"])
        .family(Family::Node)
        .spread(Spread::AllCores),
    CommandSpec::new(Id::Waitaof, "waitaof", 4, Group::Generic)
        .flags(Flags::NOSCRIPT.union(Flags::BLOCKING))
        .also(Categories::CONNECTION)
        .since("7.2.0")
        .doc("", "")
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
        .doc("", "")
        .tips(&["nondeterministic_output"]),
    CommandSpec::new(Id::ObjectFreq, "object|freq", 3, Group::Generic)
        .flags(Flags::READONLY)
        .keys(&[KeySpec::one(2, KeyFlags::RO)])
        .since("4.0.0")
        .doc("", "")
        .tips(&["nondeterministic_output"]),
    CommandSpec::new(Id::ObjectHelp, "object|help", 2, Group::Generic)
        .flags(Flags::LOADING.union(Flags::STALE))
        .since("6.2.0")
        .doc("", "")
        .spread(Spread::Any),
    CommandSpec::new(Id::ObjectIdletime, "object|idletime", 3, Group::Generic)
        .flags(Flags::READONLY)
        .keys(&[KeySpec::one(2, KeyFlags::RO)])
        .since("2.2.3")
        .doc("", "")
        .tips(&["nondeterministic_output"]),
    CommandSpec::new(Id::ObjectRefcount, "object|refcount", 3, Group::Generic)
        .flags(Flags::READONLY)
        .keys(&[KeySpec::one(2, KeyFlags::RO)])
        .since("2.2.3")
        .doc("", "")
        .tips(&["nondeterministic_output"]),
];
