//! Registry: Zerohop's own commands.

use super::flags::{Categories, Flags, KeyFlags};
use super::id::CommandId as Id;
use super::keys::KeySpec;
use super::spec::{CommandSpec, Group, Oracle, Spread};

pub(super) static COMMANDS: [CommandSpec; 3] = [
    CommandSpec::new(Id::ZhBackup, "zh.backup", -2, Group::Server)
        .since("0.1.0")
        .doc("", "Keeps the data directory's files as they are while they are copied.")
        .oracle(Oracle::Model)
        .subcommands(&BACKUP),
    CommandSpec::new(Id::ZhGet, "zh.get", 2, Group::Generic)
        .flags(Flags::READONLY.union(Flags::FAST))
        .also(Categories::STRING)
        .keys(&[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .since("0.1.0")
        .doc("key", "Returns the value and the version of a string.")
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ZhWait, "zh.wait", -4, Group::Generic)
        .flags(Flags::READONLY.union(Flags::BLOCKING).union(Flags::NOSCRIPT))
        .keys(&[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .since("0.1.0")
        .doc(
            "key <EQ value | NE value | EXISTS | ABSENT | VERSION version> timeout-ms",
            "Waits until a key is as asked for.",
        )
        .oracle(Oracle::Model),
];

const BACKUP_FLAGS: Flags = Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::NO_MULTI);

static BACKUP: [CommandSpec; 3] = [
    CommandSpec::new(Id::ZhBackupBegin, "zh.backup|begin", -2, Group::Server)
        .flags(BACKUP_FLAGS)
        .since("0.1.0")
        .complexity("O(N) with N the number of files")
        .doc("[lease-ms]", "Pins the files of one moment and names them.")
        .spread(Spread::AllCores)
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ZhBackupEnd, "zh.backup|end", 3, Group::Server)
        .flags(BACKUP_FLAGS)
        .since("0.1.0")
        .doc("id", "Unpins the files; an error if they were not pinned all the time.")
        .spread(Spread::AllCores)
        .oracle(Oracle::Model),
    CommandSpec::new(Id::ZhBackupKeep, "zh.backup|keep", 3, Group::Server)
        .flags(BACKUP_FLAGS)
        .since("0.1.0")
        .doc("id", "Begins the lease anew.")
        .spread(Spread::AllCores)
        .oracle(Oracle::Model),
];
