//! Registry: Zerohop's own commands.

use super::flags::{Categories, Flags, KeyFlags};
use super::id::CommandId as Id;
use super::keys::KeySpec;
use super::spec::{CommandSpec, Group, Oracle};

pub(super) static COMMANDS: [CommandSpec; 2] = [
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
