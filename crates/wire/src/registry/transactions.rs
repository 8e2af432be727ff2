//! Registry: transactions.

use super::flags::{Flags, KeyFlags};
use super::id::CommandId as Id;
use super::keys::KeySpec;
use super::spec::{CommandSpec, Group, Spread};

pub(super) static COMMANDS: [CommandSpec; 5] = [
    CommandSpec::new(Id::Multi, "multi", 1, Group::Transactions)
        .flags(Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE).union(Flags::FAST).union(Flags::ALLOW_BUSY))
        .since("1.2.0")
        .doc("", "Begins a transaction: what follows is queued."),
    CommandSpec::new(Id::Exec, "exec", 1, Group::Transactions)
        .flags(Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE).union(Flags::SKIP_SLOWLOG))
        .since("1.2.0")
        .complexity("that of the queued commands")
        .doc("", "Executes what was queued, all at once."),
    CommandSpec::new(Id::Discard, "discard", 1, Group::Transactions)
        .flags(Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE).union(Flags::FAST).union(Flags::ALLOW_BUSY))
        .since("2.0.0")
        .complexity("O(N) with N the number of queued commands")
        .doc("", "Forgets what was queued."),
    CommandSpec::new(Id::Watch, "watch", -2, Group::Transactions)
        .flags(Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE).union(Flags::FAST).union(Flags::ALLOW_BUSY))
        .keys(&[KeySpec::range(1, -1, 1, KeyFlags::RO)])
        .since("2.2.0")
        .complexity("O(1) for each key")
        .doc("key...", "Lets the next EXEC do nothing if one of the keys is changed before.")
        .spread(Spread::MultiKey),
    CommandSpec::new(Id::Unwatch, "unwatch", 1, Group::Transactions)
        .flags(Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE).union(Flags::FAST).union(Flags::ALLOW_BUSY))
        .since("2.2.0")
        .doc("", "Forgets the watched keys."),
];
