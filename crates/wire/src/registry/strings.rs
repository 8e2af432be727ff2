//! Registry: strings and counters.

use super::flags::{Flags, KeyFlags};
use super::id::CommandId as Id;
use super::keys::KeySpec;
use super::spec::{CommandSpec, Group, Oracle, Spread};

pub(super) static COMMANDS: [CommandSpec; 26] = [
    CommandSpec::new(Id::Get, "get", 2, Group::String)
        .flags(Flags::READONLY.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .since("1.0.0")
        .doc("", ""),
    CommandSpec::new(Id::Set, "set", -3, Group::String)
        .flags(Flags::WRITE.union(Flags::DENYOOM))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE).union(KeyFlags::VARIABLE_FLAGS))])
        .since("1.0.0")
        .doc("", ""),
    CommandSpec::new(Id::Setnx, "setnx", 3, Group::String)
        .flags(Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::OW.union(KeyFlags::INSERT))])
        .since("1.0.0")
        .doc("", ""),
    CommandSpec::new(Id::Setex, "setex", 4, Group::String)
        .flags(Flags::WRITE.union(Flags::DENYOOM))
        .keys(&[KeySpec::one(1, KeyFlags::OW.union(KeyFlags::UPDATE))])
        .since("2.0.0")
        .doc("", ""),
    CommandSpec::new(Id::Psetex, "psetex", 4, Group::String)
        .flags(Flags::WRITE.union(Flags::DENYOOM))
        .keys(&[KeySpec::one(1, KeyFlags::OW.union(KeyFlags::UPDATE))])
        .since("2.6.0")
        .doc("", ""),
    CommandSpec::new(Id::Getset, "getset", 3, Group::String)
        .flags(Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))])
        .since("1.0.0")
        .doc("", ""),
    CommandSpec::new(Id::Getdel, "getdel", 2, Group::String)
        .flags(Flags::WRITE.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE))])
        .since("6.2.0")
        .doc("", ""),
    CommandSpec::new(Id::Getex, "getex", -2, Group::String)
        .flags(Flags::WRITE.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))])
        .since("6.2.0")
        .doc("", ""),
    CommandSpec::new(Id::Mget, "mget", -2, Group::String)
        .flags(Flags::READONLY.union(Flags::FAST))
        .keys(&[KeySpec::range(1, -1, 1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .since("1.0.0")
        .complexity("O(N) where N is the number of keys to retrieve.")
        .doc("", "")
        .tips(&["request_policy:multi_shard"])
        .spread(Spread::MultiKey),
    CommandSpec::new(Id::Mset, "mset", -3, Group::String)
        .flags(Flags::WRITE.union(Flags::DENYOOM))
        .keys(&[KeySpec::range(1, -1, 2, KeyFlags::OW.union(KeyFlags::UPDATE))])
        .since("1.0.1")
        .complexity("O(N) where N is the number of keys to set.")
        .doc("", "")
        .tips(&["request_policy:multi_shard", "response_policy:all_succeeded"])
        .spread(Spread::MultiKey),
    CommandSpec::new(Id::Msetnx, "msetnx", -3, Group::String)
        .flags(Flags::WRITE.union(Flags::DENYOOM))
        .keys(&[KeySpec::range(1, -1, 2, KeyFlags::OW.union(KeyFlags::INSERT))])
        .since("1.0.1")
        .complexity("O(N) where N is the number of keys to set.")
        .doc("", "")
        .tips(&["request_policy:multi_shard", "response_policy:agg_min"])
        .spread(Spread::MultiKey),
    CommandSpec::new(Id::Msetex, "msetex", -4, Group::String)
        .flags(Flags::WRITE.union(Flags::DENYOOM))
        .keys(&[KeySpec::counted(1, 2, KeyFlags::OW.union(KeyFlags::UPDATE))])
        .since("8.4.0")
        .complexity("O(N) with N the number of keys")
        .doc("", "")
        .tips(&["request_policy:multi_shard"])
        .spread(Spread::MultiKey)
        .oracle(Oracle::Model),
    CommandSpec::new(Id::Append, "append", 3, Group::String)
        .flags(Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))])
        .since("2.0.0")
        .complexity("O(1). The amortized time complexity is O(1) assuming the appended value is small and the already present value is of any size, since the dynamic string library used by Redis will double the free space available on every reallocation.")
        .doc("", ""),
    CommandSpec::new(Id::Strlen, "strlen", 2, Group::String)
        .flags(Flags::READONLY.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RO)])
        .since("2.2.0")
        .doc("", ""),
    CommandSpec::new(Id::Getrange, "getrange", 4, Group::String)
        .flags(Flags::READONLY)
        .keys(&[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .since("2.4.0")
        .complexity("O(N) where N is the length of the returned string. The complexity is ultimately determined by the returned length, but because creating a substring from an existing string is very cheap, it can be considered O(1) for small strings.")
        .doc("", ""),
    CommandSpec::new(Id::Substr, "substr", 4, Group::String)
        .flags(Flags::READONLY)
        .keys(&[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .since("1.0.0")
        .complexity("O(N) where N is the length of the returned string. The complexity is ultimately determined by the returned length, but because creating a substring from an existing string is very cheap, it can be considered O(1) for small strings.")
        .doc("", ""),
    CommandSpec::new(Id::Setrange, "setrange", 4, Group::String)
        .flags(Flags::WRITE.union(Flags::DENYOOM))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))])
        .since("2.2.0")
        .complexity("O(1), not counting the time taken to copy the new string in place. Usually, this string is very small so the amortized complexity is O(1). Otherwise, complexity is O(M) with M being the length of the value argument.")
        .doc("", ""),
    CommandSpec::new(Id::Incr, "incr", 2, Group::String)
        .flags(Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))])
        .since("1.0.0")
        .doc("", ""),
    CommandSpec::new(Id::Decr, "decr", 2, Group::String)
        .flags(Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))])
        .since("1.0.0")
        .doc("", ""),
    CommandSpec::new(Id::Incrby, "incrby", 3, Group::String)
        .flags(Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))])
        .since("1.0.0")
        .doc("", ""),
    CommandSpec::new(Id::Decrby, "decrby", 3, Group::String)
        .flags(Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))])
        .since("1.0.0")
        .doc("", ""),
    CommandSpec::new(Id::Incrbyfloat, "incrbyfloat", 3, Group::String)
        .flags(Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))])
        .since("2.6.0")
        .doc("", ""),
    CommandSpec::new(Id::Lcs, "lcs", -3, Group::String)
        .flags(Flags::READONLY)
        .keys(&[KeySpec::range(1, 1, 1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .since("7.0.0")
        .complexity("O(N*M) where N and M are the lengths of s1 and s2, respectively")
        .doc("", "")
        .spread(Spread::MultiKey),
    CommandSpec::new(Id::Digest, "digest", 2, Group::String)
        .flags(Flags::READONLY.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .since("8.4.0")
        .complexity("O(N) with N the length of the string")
        .doc("", "")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::Delifeq, "delifeq", 3, Group::String)
        .flags(Flags::WRITE.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RM.union(KeyFlags::DELETE).union(KeyFlags::ACCESS))])
        .since("9.0.0")
        .doc("", "")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::Delex, "delex", -2, Group::String)
        .flags(Flags::WRITE.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RM.union(KeyFlags::DELETE).union(KeyFlags::ACCESS))])
        .since("8.4.0")
        .complexity("O(1) for IFEQ and IFNE, O(N) for digests, with N the length of the string")
        .doc("", "")
        .oracle(Oracle::Model),
];
