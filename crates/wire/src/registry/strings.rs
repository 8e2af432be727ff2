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
        .doc("key", "Returns the value of a string."),
    CommandSpec::new(Id::Set, "set", -3, Group::String)
        .flags(Flags::WRITE.union(Flags::DENYOOM))
        .keys(&[KeySpec::one(
            1,
            KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE).union(KeyFlags::VARIABLE_FLAGS),
        )])
        .since("1.0.0")
        .doc(
            "key value [NX | XX | IFEQ value | IFNE value | IFDEQ digest | IFDNE digest] [GET] [EX seconds | \
             PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]",
            "Stores a string, whatever was there before, if the condition holds.",
        ),
    CommandSpec::new(Id::Setnx, "setnx", 3, Group::String)
        .flags(Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::OW.union(KeyFlags::INSERT))])
        .since("1.0.0")
        .doc("key value", "Stores a string only where no key is."),
    CommandSpec::new(Id::Setex, "setex", 4, Group::String)
        .flags(Flags::WRITE.union(Flags::DENYOOM))
        .keys(&[KeySpec::one(1, KeyFlags::OW.union(KeyFlags::UPDATE))])
        .since("2.0.0")
        .doc("key seconds value", "Stores a string that expires after seconds."),
    CommandSpec::new(Id::Psetex, "psetex", 4, Group::String)
        .flags(Flags::WRITE.union(Flags::DENYOOM))
        .keys(&[KeySpec::one(1, KeyFlags::OW.union(KeyFlags::UPDATE))])
        .since("2.6.0")
        .doc("key milliseconds value", "Stores a string that expires after milliseconds."),
    CommandSpec::new(Id::Getset, "getset", 3, Group::String)
        .flags(Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))])
        .since("1.0.0")
        .doc("key value", "Stores a string and returns the one before."),
    CommandSpec::new(Id::Getdel, "getdel", 2, Group::String)
        .flags(Flags::WRITE.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE))])
        .since("6.2.0")
        .doc("key", "Returns a string and deletes its key."),
    CommandSpec::new(Id::Getex, "getex", -2, Group::String)
        .flags(Flags::WRITE.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))])
        .since("6.2.0")
        .doc(
            "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | \
             PERSIST]",
            "Returns a string and sets or removes its expiry.",
        ),
    CommandSpec::new(Id::Mget, "mget", -2, Group::String)
        .flags(Flags::READONLY.union(Flags::FAST))
        .keys(&[KeySpec::range(1, -1, 1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .since("1.0.0")
        .complexity("O(N) with N the number of keys")
        .doc("key...", "Returns several strings, null for each that is absent.")
        .tips(&["request_policy:multi_shard"])
        .spread(Spread::MultiKey),
    CommandSpec::new(Id::Mset, "mset", -3, Group::String)
        .flags(Flags::WRITE.union(Flags::DENYOOM))
        .keys(&[KeySpec::range(1, -1, 2, KeyFlags::OW.union(KeyFlags::UPDATE))])
        .since("1.0.1")
        .complexity("O(N) with N the number of keys")
        .doc("<key value>...", "Stores several strings at once.")
        .tips(&["request_policy:multi_shard", "response_policy:all_succeeded"])
        .spread(Spread::MultiKey),
    CommandSpec::new(Id::Msetnx, "msetnx", -3, Group::String)
        .flags(Flags::WRITE.union(Flags::DENYOOM))
        .keys(&[KeySpec::range(1, -1, 2, KeyFlags::OW.union(KeyFlags::INSERT))])
        .since("1.0.1")
        .complexity("O(N) with N the number of keys")
        .doc("<key value>...", "Stores several strings, or none if one of the keys exists.")
        .tips(&["request_policy:multi_shard", "response_policy:agg_min"])
        .spread(Spread::MultiKey),
    CommandSpec::new(Id::Msetex, "msetex", -4, Group::String)
        .flags(Flags::WRITE.union(Flags::DENYOOM))
        .keys(&[KeySpec::counted(1, 2, KeyFlags::OW.union(KeyFlags::UPDATE))])
        .since("8.4.0")
        .complexity("O(N) with N the number of keys")
        .doc(
            "numkeys <key value>... [NX | XX] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT \
             unix-time-milliseconds | KEEPTTL]",
            "Stores several strings with one expiry, or none if the condition fails.",
        )
        .tips(&["request_policy:multi_shard"])
        .spread(Spread::MultiKey)
        .oracle(Oracle::Model),
    CommandSpec::new(Id::Append, "append", 3, Group::String)
        .flags(Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))])
        .since("2.0.0")
        .doc("key value", "Adds bytes to the end of a string and returns its new length."),
    CommandSpec::new(Id::Strlen, "strlen", 2, Group::String)
        .flags(Flags::READONLY.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RO)])
        .since("2.2.0")
        .doc("key", "Returns the length of a string in bytes."),
    CommandSpec::new(Id::Getrange, "getrange", 4, Group::String)
        .flags(Flags::READONLY)
        .keys(&[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .since("2.4.0")
        .complexity("O(N) with N the length of the part")
        .doc("key start end", "Returns a part of a string."),
    CommandSpec::new(Id::Substr, "substr", 4, Group::String)
        .flags(Flags::READONLY)
        .keys(&[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .since("1.0.0")
        .complexity("O(N) with N the length of the part")
        .doc("key start end", "Returns a part of a string; the old name of GETRANGE."),
    CommandSpec::new(Id::Setrange, "setrange", 4, Group::String)
        .flags(Flags::WRITE.union(Flags::DENYOOM))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))])
        .since("2.2.0")
        .complexity("O(N) with N the length of the value")
        .doc("key offset value", "Overwrites a part of a string, filling up with zero bytes."),
    CommandSpec::new(Id::Incr, "incr", 2, Group::String)
        .flags(Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))])
        .since("1.0.0")
        .doc("key", "Adds one to a number."),
    CommandSpec::new(Id::Decr, "decr", 2, Group::String)
        .flags(Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))])
        .since("1.0.0")
        .doc("key", "Subtracts one from a number."),
    CommandSpec::new(Id::Incrby, "incrby", 3, Group::String)
        .flags(Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))])
        .since("1.0.0")
        .doc("key increment", "Adds an integer to a number."),
    CommandSpec::new(Id::Decrby, "decrby", 3, Group::String)
        .flags(Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))])
        .since("1.0.0")
        .doc("key decrement", "Subtracts an integer from a number."),
    CommandSpec::new(Id::Incrbyfloat, "incrbyfloat", 3, Group::String)
        .flags(Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))])
        .since("2.6.0")
        .doc("key increment", "Adds a floating-point number to a number."),
    CommandSpec::new(Id::Lcs, "lcs", -3, Group::String)
        .flags(Flags::READONLY)
        .keys(&[KeySpec::range(1, 1, 1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .since("7.0.0")
        .complexity("O(N*M) with N and M the lengths of the strings")
        .doc(
            "key1 key2 [LEN] [IDX] [MINMATCHLEN len] [WITHMATCHLEN]",
            "Returns the longest common subsequence of two strings.",
        )
        .spread(Spread::MultiKey),
    CommandSpec::new(Id::Digest, "digest", 2, Group::String)
        .flags(Flags::READONLY.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .since("8.4.0")
        .complexity("O(N) with N the length of the string")
        .doc("key", "Returns the XXH3 hash of a string as 16 hexadecimal digits.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::Delifeq, "delifeq", 3, Group::String)
        .flags(Flags::WRITE.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RM.union(KeyFlags::DELETE).union(KeyFlags::ACCESS))])
        .since("9.0.0")
        .doc("key value", "Deletes a key if it holds exactly this string.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::Delex, "delex", -2, Group::String)
        .flags(Flags::WRITE.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RM.union(KeyFlags::DELETE).union(KeyFlags::ACCESS))])
        .since("8.4.0")
        .complexity("O(1) for IFEQ and IFNE, O(N) for digests, with N the length of the string")
        .doc("key [IFEQ value | IFNE value | IFDEQ digest | IFDNE digest]", "Deletes a key if the condition holds.")
        .oracle(Oracle::Model),
];
