//! Registry: the connection itself.

use super::flags::Flags;
use super::id::CommandId as Id;
use super::spec::{CommandSpec, Group, Oracle, Spread};

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
        .doc(
            "[<protover [AUTH username password] [SETNAME clientname]>]",
            "Chooses the version of the protocol, and greets.",
        )
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
        .complexity("O(N)")
        .doc("[username] password", "Presents a password."),
    CommandSpec::new(Id::Ping, "ping", -1, Group::Connection)
        .flags(Flags::FAST)
        .since("1.0.0")
        .doc("[message]", "Returns the message, or PONG.")
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"]),
    CommandSpec::new(Id::Echo, "echo", 2, Group::Connection)
        .flags(Flags::LOADING.union(Flags::STALE).union(Flags::FAST))
        .since("1.0.0")
        .doc("message", "Returns the message."),
    CommandSpec::new(Id::Select, "select", 2, Group::Connection)
        .flags(Flags::LOADING.union(Flags::STALE).union(Flags::FAST))
        .since("1.0.0")
        .doc("index", "Chooses the database of this connection."),
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
        .doc("", "Closes the connection after the reply."),
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
        .doc("", "Brings the connection back to how it began."),
    CommandSpec::new(Id::Client, "client", -2, Group::Connection)
        .since("2.4.0")
        .doc("", "Looks at and changes connections.")
        .oracle(Oracle::Model)
        .subcommands(&CLIENT),
];

static CLIENT: [CommandSpec; 18] = [
    CommandSpec::new(Id::ClientCaching, "client|caching", 3, Group::Connection)
        .flags(Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE))
        .since("6.0.0")
        .doc("<YES | NO>", "Says whether the keys of the next command are tracked.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClientGetname, "client|getname", 2, Group::Connection)
        .flags(Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE))
        .since("2.6.9")
        .doc("", "Returns the name of this connection.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClientGetredir, "client|getredir", 2, Group::Connection)
        .flags(Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE))
        .since("6.0.0")
        .doc("", "Returns which connection gets the invalidations of this one.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClientHelp, "client|help", 2, Group::Connection)
        .flags(Flags::LOADING.union(Flags::STALE))
        .since("5.0.0")
        .doc("", "Lists the subcommands.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClientId, "client|id", 2, Group::Connection)
        .flags(Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE))
        .since("5.0.0")
        .doc("", "Returns the number of this connection.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClientInfo, "client|info", 2, Group::Connection)
        .flags(Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE))
        .since("6.2.0")
        .doc("", "Returns what is known about this connection.")
        .tips(&["nondeterministic_output"])
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClientKill, "client|kill", -3, Group::Connection)
        .flags(Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE))
        .since("2.4.0")
        .complexity("O(N) with N the number of connections")
        .doc(
            "<addr | <[ID client-id] [TYPE type] [USER username] [ADDR addr] [LADDR addr] [SKIPME yes-no]>>",
            "Closes connections.",
        )
        .spread(Spread::AllCores)
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClientList, "client|list", -2, Group::Connection)
        .flags(Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE))
        .since("2.4.0")
        .complexity("O(N) with N the number of connections")
        .doc("[TYPE type] [ID client-id...]", "Lists the connections.")
        .tips(&["nondeterministic_output"])
        .spread(Spread::AllCores)
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClientNoEvict, "client|no-evict", 3, Group::Connection)
        .flags(Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE))
        .since("7.0.0")
        .doc("<ON | OFF>", "Exempts this connection from eviction.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClientNoTouch, "client|no-touch", 3, Group::Connection)
        .flags(Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE))
        .since("7.2.0")
        .doc("<ON | OFF>", "Lets this connection read without marking keys as used.")
        .oracle(Oracle::Valkey),
    CommandSpec::new(Id::ClientPause, "client|pause", -3, Group::Connection)
        .flags(Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE))
        .since("2.9.50")
        .doc("timeout-ms [WRITE | ALL]", "Holds commands back for a while.")
        .spread(Spread::AllCores)
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClientReply, "client|reply", 3, Group::Connection)
        .flags(Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE))
        .since("3.2.0")
        .doc("<ON | OFF | SKIP>", "Says whether this connection wants replies.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClientSetinfo, "client|setinfo", 4, Group::Connection)
        .flags(Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE))
        .since("7.2.0")
        .doc("<LIB-NAME libname | LIB-VER libver>", "Says which library is connected.")
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
        .oracle(Oracle::Valkey),
    CommandSpec::new(Id::ClientSetname, "client|setname", 3, Group::Connection)
        .flags(Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE))
        .since("2.6.9")
        .doc("connection-name", "Names this connection.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClientTracking, "client|tracking", -3, Group::Connection)
        .flags(Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE))
        .since("6.0.0")
        .doc(
            "<ON | OFF> [REDIRECT client-id] [PREFIX prefix]... [BCAST] [OPTIN] [OPTOUT] [NOLOOP]",
            "OFF only: no invalidations are sent, and ON is refused.",
        )
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClientTrackinginfo, "client|trackinginfo", 2, Group::Connection)
        .flags(Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE))
        .since("6.2.0")
        .doc("", "Returns the state of tracking of this connection.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClientUnblock, "client|unblock", -3, Group::Connection)
        .flags(Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE))
        .since("5.0.0")
        .complexity("O(log N)")
        .doc("client-id [TIMEOUT | ERROR]", "Ends the waiting of another connection.")
        .spread(Spread::AllCores)
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ClientUnpause, "client|unpause", 2, Group::Connection)
        .flags(Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE))
        .since("6.2.0")
        .complexity("O(N) with N the number of held connections")
        .doc("", "Ends a pause.")
        .spread(Spread::AllCores)
        .oracle(Oracle::Model),
];
