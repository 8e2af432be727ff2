//! Registry: the connection itself.

use super::flags::Flags;
use super::id::CommandId as Id;
use super::spec::{CommandSpec, Group, Oracle};

pub(super) static COMMANDS: [CommandSpec; 8] = [
    CommandSpec::new(Id::Hello, "hello", -1, Group::Connection)
        .flags(
            Flags::NOSCRIPT
                .union(Flags::LOADING)
                .union(Flags::STALE)
                .union(Flags::FAST)
                .union(Flags::NO_AUTH)
                .union(Flags::ALLOW_BUSY),
        )
        .since("6.0.0")
        .doc("", "")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::Auth, "auth", -2, Group::Connection)
        .flags(
            Flags::NOSCRIPT
                .union(Flags::LOADING)
                .union(Flags::STALE)
                .union(Flags::FAST)
                .union(Flags::NO_AUTH)
                .union(Flags::ALLOW_BUSY),
        )
        .since("1.0.0")
        .complexity("O(N) where N is the number of passwords defined for the user")
        .doc("", ""),
    CommandSpec::new(Id::Ping, "ping", -1, Group::Connection)
        .flags(Flags::FAST)
        .since("1.0.0")
        .doc("", "")
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"]),
    CommandSpec::new(Id::Echo, "echo", 2, Group::Connection)
        .flags(Flags::LOADING.union(Flags::STALE).union(Flags::FAST))
        .since("1.0.0")
        .doc("", ""),
    CommandSpec::new(Id::Select, "select", 2, Group::Connection)
        .flags(Flags::LOADING.union(Flags::STALE).union(Flags::FAST))
        .since("1.0.0")
        .doc("", ""),
    CommandSpec::new(Id::Quit, "quit", -1, Group::Connection)
        .flags(
            Flags::NOSCRIPT
                .union(Flags::LOADING)
                .union(Flags::STALE)
                .union(Flags::FAST)
                .union(Flags::NO_AUTH)
                .union(Flags::ALLOW_BUSY),
        )
        .since("1.0.0")
        .doc("", ""),
    CommandSpec::new(Id::Reset, "reset", 1, Group::Connection)
        .flags(
            Flags::NOSCRIPT
                .union(Flags::LOADING)
                .union(Flags::STALE)
                .union(Flags::FAST)
                .union(Flags::NO_AUTH)
                .union(Flags::ALLOW_BUSY),
        )
        .since("6.2.0")
        .doc("", ""),
    CommandSpec::new(Id::Client, "client", -2, Group::Connection)
        .since("2.4.0")
        .complexity("Depends on subcommand.")
        .doc("", "")
        .oracle(Oracle::Model)
        .subcommands(&CLIENT),
];

static CLIENT: [CommandSpec; 18] = [
    CommandSpec::new(Id::ClientCaching, "client|caching", 3, Group::Connection)
        .flags(Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE))
        .since("6.0.0")
        .doc("", "")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClientGetname, "client|getname", 2, Group::Connection)
        .flags(Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE))
        .since("2.6.9")
        .doc("", "")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClientGetredir, "client|getredir", 2, Group::Connection)
        .flags(Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE))
        .since("6.0.0")
        .doc("", "")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClientHelp, "client|help", 2, Group::Connection)
        .flags(Flags::LOADING.union(Flags::STALE))
        .since("5.0.0")
        .doc("", "")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClientId, "client|id", 2, Group::Connection)
        .flags(Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE))
        .since("5.0.0")
        .doc("", "")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClientInfo, "client|info", 2, Group::Connection)
        .flags(Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE))
        .since("6.2.0")
        .doc("", "")
        .tips(&["nondeterministic_output"])
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClientKill, "client|kill", -3, Group::Connection)
        .flags(Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE))
        .since("2.4.0")
        .complexity("O(N) where N is the number of client connections")
        .doc("", "")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClientList, "client|list", -2, Group::Connection)
        .flags(Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE))
        .since("2.4.0")
        .complexity("O(N) where N is the number of client connections")
        .doc("", "")
        .tips(&["nondeterministic_output"])
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClientNoEvict, "client|no-evict", 3, Group::Connection)
        .flags(Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE))
        .since("7.0.0")
        .doc("", "")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClientNoTouch, "client|no-touch", 3, Group::Connection)
        .flags(Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE))
        .since("7.2.0")
        .doc("", "")
        .oracle(Oracle::Valkey),
    CommandSpec::new(Id::ClientPause, "client|pause", -3, Group::Connection)
        .flags(Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE))
        .since("2.9.50")
        .doc("", "")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClientReply, "client|reply", 3, Group::Connection)
        .flags(Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE))
        .since("3.2.0")
        .doc("", "")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClientSetinfo, "client|setinfo", 4, Group::Connection)
        .flags(Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE))
        .since("7.2.0")
        .doc("", "")
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
        .oracle(Oracle::Valkey),
    CommandSpec::new(Id::ClientSetname, "client|setname", 3, Group::Connection)
        .flags(Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE))
        .since("2.6.9")
        .doc("", "")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClientTracking, "client|tracking", -3, Group::Connection)
        .flags(Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE))
        .since("6.0.0")
        .complexity("O(1). Some options may introduce additional complexity.")
        .doc("", "")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClientTrackinginfo, "client|trackinginfo", 2, Group::Connection)
        .flags(Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE))
        .since("6.2.0")
        .doc("", "")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClientUnblock, "client|unblock", -3, Group::Connection)
        .flags(Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE))
        .since("5.0.0")
        .complexity("O(log N) where N is the number of client connections")
        .doc("", "")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClientUnpause, "client|unpause", 2, Group::Connection)
        .flags(Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE))
        .since("6.2.0")
        .complexity("O(N) Where N is the number of paused clients")
        .doc("", "")
        .oracle(Oracle::Model),
];
