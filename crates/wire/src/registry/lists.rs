//! Registry: lists.

use super::flags::{Flags, KeyFlags};
use super::id::CommandId as Id;
use super::keys::KeySpec;
use super::spec::{CommandSpec, Group, Spread};

pub(super) static COMMANDS: [CommandSpec; 22] = [
    CommandSpec::new(Id::Lpush, "lpush", -3, Group::List)
        .flags(Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))])
        .since("1.0.0")
        .complexity("O(N) with N the number of elements")
        .doc("key element...", "Adds elements at the head of a list."),
    CommandSpec::new(Id::Rpush, "rpush", -3, Group::List)
        .flags(Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))])
        .since("1.0.0")
        .complexity("O(N) with N the number of elements")
        .doc("key element...", "Adds elements at the tail of a list."),
    CommandSpec::new(Id::Lpushx, "lpushx", -3, Group::List)
        .flags(Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))])
        .since("2.2.0")
        .complexity("O(N) with N the number of elements")
        .doc("key element...", "Adds elements at the head of a list that exists."),
    CommandSpec::new(Id::Rpushx, "rpushx", -3, Group::List)
        .flags(Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))])
        .since("2.2.0")
        .complexity("O(N) with N the number of elements")
        .doc("key element...", "Adds elements at the tail of a list that exists."),
    CommandSpec::new(Id::Lpop, "lpop", -2, Group::List)
        .flags(Flags::WRITE.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE))])
        .since("1.0.0")
        .complexity("O(N) with N the number of elements taken")
        .doc("key [count]", "Takes elements from the head of a list."),
    CommandSpec::new(Id::Rpop, "rpop", -2, Group::List)
        .flags(Flags::WRITE.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE))])
        .since("1.0.0")
        .complexity("O(N) with N the number of elements taken")
        .doc("key [count]", "Takes elements from the tail of a list."),
    CommandSpec::new(Id::Llen, "llen", 2, Group::List)
        .flags(Flags::READONLY.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RO)])
        .since("1.0.0")
        .doc("key", "Returns the length of a list."),
    CommandSpec::new(Id::Lrange, "lrange", 4, Group::List)
        .flags(Flags::READONLY)
        .keys(&[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .since("1.0.0")
        .complexity("O(S+N) with S the distance from the nearer end and N the number of elements")
        .doc("key start stop", "Returns a part of a list."),
    CommandSpec::new(Id::Lindex, "lindex", 3, Group::List)
        .flags(Flags::READONLY)
        .keys(&[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .since("1.0.0")
        .complexity("O(N) with N the distance from the nearer end")
        .doc("key index", "Returns one element of a list."),
    CommandSpec::new(Id::Lset, "lset", 4, Group::List)
        .flags(Flags::WRITE.union(Flags::DENYOOM))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))])
        .since("1.0.0")
        .complexity("O(N) with N the distance from the nearer end")
        .doc("key index element", "Replaces one element of a list."),
    CommandSpec::new(Id::Linsert, "linsert", 5, Group::List)
        .flags(Flags::WRITE.union(Flags::DENYOOM))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))])
        .since("2.2.0")
        .complexity("O(N) with N the elements before the pivot")
        .doc("key <BEFORE | AFTER> pivot element", "Adds an element next to another one."),
    CommandSpec::new(Id::Lrem, "lrem", 4, Group::List)
        .flags(Flags::WRITE)
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::DELETE))])
        .since("1.0.0")
        .complexity("O(N) with N the length of the list")
        .doc("key count element", "Removes elements that equal one."),
    CommandSpec::new(Id::Ltrim, "ltrim", 4, Group::List)
        .flags(Flags::WRITE)
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::DELETE))])
        .since("1.0.0")
        .complexity("O(N) with N the number of elements removed")
        .doc("key start stop", "Keeps only a part of a list."),
    CommandSpec::new(Id::Lpos, "lpos", -3, Group::List)
        .flags(Flags::READONLY)
        .keys(&[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .since("6.0.6")
        .complexity("O(N) with N the number of elements looked at")
        .doc("key element [RANK rank] [COUNT num-matches] [MAXLEN len]", "Finds where an element is in a list."),
    CommandSpec::new(Id::Lmove, "lmove", 5, Group::List)
        .flags(Flags::WRITE.union(Flags::DENYOOM))
        .keys(&[
            KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE)),
            KeySpec::one(2, KeyFlags::RW.union(KeyFlags::INSERT)),
        ])
        .since("6.2.0")
        .doc("source destination <LEFT | RIGHT> <LEFT | RIGHT>", "Moves an element from one list to another.")
        .spread(Spread::MultiKey),
    CommandSpec::new(Id::Rpoplpush, "rpoplpush", 3, Group::List)
        .flags(Flags::WRITE.union(Flags::DENYOOM))
        .keys(&[
            KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE)),
            KeySpec::one(2, KeyFlags::RW.union(KeyFlags::INSERT)),
        ])
        .since("1.2.0")
        .doc("source destination", "Moves the tail of one list to the head of another.")
        .spread(Spread::MultiKey),
    CommandSpec::new(Id::Lmpop, "lmpop", -4, Group::List)
        .flags(Flags::WRITE)
        .keys(&[KeySpec::counted(1, 1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE))])
        .since("7.0.0")
        .complexity("O(N+M) with N the number of keys and M the number of elements taken")
        .doc("numkeys key... <LEFT | RIGHT> [COUNT count]", "Takes elements from the first list that has some.")
        .spread(Spread::MultiKey),
    CommandSpec::new(Id::Blpop, "blpop", -3, Group::List)
        .flags(Flags::WRITE.union(Flags::NOSCRIPT).union(Flags::BLOCKING))
        .keys(&[KeySpec::range(1, -2, 1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE))])
        .since("2.0.0")
        .complexity("O(N) with N the number of keys")
        .doc("key... timeout", "Takes the head of the first list that has one, waiting for it.")
        .spread(Spread::MultiKey),
    CommandSpec::new(Id::Brpop, "brpop", -3, Group::List)
        .flags(Flags::WRITE.union(Flags::NOSCRIPT).union(Flags::BLOCKING))
        .keys(&[KeySpec::range(1, -2, 1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE))])
        .since("2.0.0")
        .complexity("O(N) with N the number of keys")
        .doc("key... timeout", "Takes the tail of the first list that has one, waiting for it.")
        .spread(Spread::MultiKey),
    CommandSpec::new(Id::Blmove, "blmove", 6, Group::List)
        .flags(Flags::WRITE.union(Flags::DENYOOM).union(Flags::NOSCRIPT).union(Flags::BLOCKING))
        .keys(&[
            KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE)),
            KeySpec::one(2, KeyFlags::RW.union(KeyFlags::INSERT)),
        ])
        .since("6.2.0")
        .doc(
            "source destination <LEFT | RIGHT> <LEFT | RIGHT> timeout",
            "Moves an element from one list to another, waiting for it.",
        )
        .spread(Spread::MultiKey),
    CommandSpec::new(Id::Brpoplpush, "brpoplpush", 4, Group::List)
        .flags(Flags::WRITE.union(Flags::DENYOOM).union(Flags::NOSCRIPT).union(Flags::BLOCKING))
        .keys(&[
            KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE)),
            KeySpec::one(2, KeyFlags::RW.union(KeyFlags::INSERT)),
        ])
        .since("2.2.0")
        .doc("source destination timeout", "Moves the tail of one list to the head of another, waiting for it.")
        .spread(Spread::MultiKey),
    CommandSpec::new(Id::Blmpop, "blmpop", -5, Group::List)
        .flags(Flags::WRITE.union(Flags::BLOCKING))
        .keys(&[KeySpec::counted(2, 1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE))])
        .since("7.0.0")
        .complexity("O(N+M) with N the number of keys and M the number of elements taken")
        .doc(
            "timeout numkeys key... <LEFT | RIGHT> [COUNT count]",
            "Takes elements from the first list that has some, waiting for it.",
        )
        .spread(Spread::MultiKey),
];
