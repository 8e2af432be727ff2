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
        .complexity("O(1) for each element added, so O(N) to add N elements when the command is called with multiple arguments.")
        .doc("", ""),
    CommandSpec::new(Id::Rpush, "rpush", -3, Group::List)
        .flags(Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))])
        .since("1.0.0")
        .complexity("O(1) for each element added, so O(N) to add N elements when the command is called with multiple arguments.")
        .doc("", ""),
    CommandSpec::new(Id::Lpushx, "lpushx", -3, Group::List)
        .flags(Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))])
        .since("2.2.0")
        .complexity("O(1) for each element added, so O(N) to add N elements when the command is called with multiple arguments.")
        .doc("", ""),
    CommandSpec::new(Id::Rpushx, "rpushx", -3, Group::List)
        .flags(Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))])
        .since("2.2.0")
        .complexity("O(1) for each element added, so O(N) to add N elements when the command is called with multiple arguments.")
        .doc("", ""),
    CommandSpec::new(Id::Lpop, "lpop", -2, Group::List)
        .flags(Flags::WRITE.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE))])
        .since("1.0.0")
        .complexity("O(N) where N is the number of elements returned")
        .doc("", ""),
    CommandSpec::new(Id::Rpop, "rpop", -2, Group::List)
        .flags(Flags::WRITE.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE))])
        .since("1.0.0")
        .complexity("O(N) where N is the number of elements returned")
        .doc("", ""),
    CommandSpec::new(Id::Llen, "llen", 2, Group::List)
        .flags(Flags::READONLY.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RO)])
        .since("1.0.0")
        .doc("", ""),
    CommandSpec::new(Id::Lrange, "lrange", 4, Group::List)
        .flags(Flags::READONLY)
        .keys(&[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .since("1.0.0")
        .complexity("O(S+N) where S is the distance of start offset from HEAD for small lists, from nearest end (HEAD or TAIL) for large lists; and N is the number of elements in the specified range.")
        .doc("", ""),
    CommandSpec::new(Id::Lindex, "lindex", 3, Group::List)
        .flags(Flags::READONLY)
        .keys(&[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .since("1.0.0")
        .complexity("O(N) where N is the number of elements to traverse to get to the element at index. This makes asking for the first or the last element of the list O(1).")
        .doc("", ""),
    CommandSpec::new(Id::Lset, "lset", 4, Group::List)
        .flags(Flags::WRITE.union(Flags::DENYOOM))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))])
        .since("1.0.0")
        .complexity("O(N) where N is the length of the list. Setting either the first or the last element of the list is O(1).")
        .doc("", ""),
    CommandSpec::new(Id::Linsert, "linsert", 5, Group::List)
        .flags(Flags::WRITE.union(Flags::DENYOOM))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))])
        .since("2.2.0")
        .complexity("O(N) where N is the number of elements to traverse before seeing the value pivot. This means that inserting somewhere on the left end on the list (head) can be considered O(1) and inserting somewhere on the right end (tail) is O(N).")
        .doc("", ""),
    CommandSpec::new(Id::Lrem, "lrem", 4, Group::List)
        .flags(Flags::WRITE)
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::DELETE))])
        .since("1.0.0")
        .complexity("O(N+M) where N is the length of the list and M is the number of elements removed.")
        .doc("", ""),
    CommandSpec::new(Id::Ltrim, "ltrim", 4, Group::List)
        .flags(Flags::WRITE)
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::DELETE))])
        .since("1.0.0")
        .complexity("O(N) where N is the number of elements to be removed by the operation.")
        .doc("", ""),
    CommandSpec::new(Id::Lpos, "lpos", -3, Group::List)
        .flags(Flags::READONLY)
        .keys(&[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .since("6.0.6")
        .complexity("O(N) where N is the number of elements in the list, for the average case. When searching for elements near the head or the tail of the list, or when the MAXLEN option is provided, the command may run in constant time.")
        .doc("", ""),
    CommandSpec::new(Id::Lmove, "lmove", 5, Group::List)
        .flags(Flags::WRITE.union(Flags::DENYOOM))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE)), KeySpec::one(2, KeyFlags::RW.union(KeyFlags::INSERT))])
        .since("6.2.0")
        .doc("", "")
        .spread(Spread::MultiKey),
    CommandSpec::new(Id::Rpoplpush, "rpoplpush", 3, Group::List)
        .flags(Flags::WRITE.union(Flags::DENYOOM))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE)), KeySpec::one(2, KeyFlags::RW.union(KeyFlags::INSERT))])
        .since("1.2.0")
        .doc("", "")
        .spread(Spread::MultiKey),
    CommandSpec::new(Id::Lmpop, "lmpop", -4, Group::List)
        .flags(Flags::WRITE)
        .keys(&[KeySpec::counted(1, 1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE))])
        .since("7.0.0")
        .complexity("O(N+M) where N is the number of provided keys and M is the number of elements returned.")
        .doc("", "")
        .spread(Spread::MultiKey),
    CommandSpec::new(Id::Blpop, "blpop", -3, Group::List)
        .flags(Flags::WRITE.union(Flags::NOSCRIPT).union(Flags::BLOCKING))
        .keys(&[KeySpec::range(1, -2, 1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE))])
        .since("2.0.0")
        .complexity("O(N) where N is the number of provided keys.")
        .doc("", "")
        .spread(Spread::MultiKey),
    CommandSpec::new(Id::Brpop, "brpop", -3, Group::List)
        .flags(Flags::WRITE.union(Flags::NOSCRIPT).union(Flags::BLOCKING))
        .keys(&[KeySpec::range(1, -2, 1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE))])
        .since("2.0.0")
        .complexity("O(N) where N is the number of provided keys.")
        .doc("", "")
        .spread(Spread::MultiKey),
    CommandSpec::new(Id::Blmove, "blmove", 6, Group::List)
        .flags(Flags::WRITE.union(Flags::DENYOOM).union(Flags::NOSCRIPT).union(Flags::BLOCKING))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE)), KeySpec::one(2, KeyFlags::RW.union(KeyFlags::INSERT))])
        .since("6.2.0")
        .doc("", "")
        .spread(Spread::MultiKey),
    CommandSpec::new(Id::Brpoplpush, "brpoplpush", 4, Group::List)
        .flags(Flags::WRITE.union(Flags::DENYOOM).union(Flags::NOSCRIPT).union(Flags::BLOCKING))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE)), KeySpec::one(2, KeyFlags::RW.union(KeyFlags::INSERT))])
        .since("2.2.0")
        .doc("", "")
        .spread(Spread::MultiKey),
    CommandSpec::new(Id::Blmpop, "blmpop", -5, Group::List)
        .flags(Flags::WRITE.union(Flags::BLOCKING))
        .keys(&[KeySpec::counted(2, 1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE))])
        .since("7.0.0")
        .complexity("O(N+M) where N is the number of provided keys and M is the number of elements returned.")
        .doc("", "")
        .spread(Spread::MultiKey),
];
