//! Registry: bits of strings.

use super::flags::{Flags, KeyFlags};
use super::id::CommandId as Id;
use super::keys::KeySpec;
use super::spec::{CommandSpec, Group, Spread};

pub(super) static COMMANDS: [CommandSpec; 7] = [
    CommandSpec::new(Id::Setbit, "setbit", 4, Group::Bitmap)
        .flags(Flags::WRITE.union(Flags::DENYOOM))
        .keys(&[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))])
        .since("2.2.0")
        .doc("", ""),
    CommandSpec::new(Id::Getbit, "getbit", 3, Group::Bitmap)
        .flags(Flags::READONLY.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .since("2.2.0")
        .doc("", ""),
    CommandSpec::new(Id::Bitcount, "bitcount", -2, Group::Bitmap)
        .flags(Flags::READONLY)
        .keys(&[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .since("2.6.0")
        .complexity("O(N)")
        .doc("", ""),
    CommandSpec::new(Id::Bitpos, "bitpos", -3, Group::Bitmap)
        .flags(Flags::READONLY)
        .keys(&[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .since("2.8.7")
        .complexity("O(N)")
        .doc("", ""),
    CommandSpec::new(Id::Bitop, "bitop", -4, Group::Bitmap)
        .flags(Flags::WRITE.union(Flags::DENYOOM))
        .keys(&[
            KeySpec::one(2, KeyFlags::OW.union(KeyFlags::UPDATE)),
            KeySpec::range(3, -1, 1, KeyFlags::RO.union(KeyFlags::ACCESS)),
        ])
        .since("2.6.0")
        .complexity("O(N)")
        .doc("", "")
        .spread(Spread::MultiKey),
    CommandSpec::new(Id::Bitfield, "bitfield", -2, Group::Bitmap)
        .flags(Flags::WRITE.union(Flags::DENYOOM))
        .keys(&[KeySpec::one(
            1,
            KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE).union(KeyFlags::VARIABLE_FLAGS),
        )])
        .since("3.2.0")
        .complexity("O(1) for each subcommand specified")
        .doc("", ""),
    CommandSpec::new(Id::BitfieldRo, "bitfield_ro", -2, Group::Bitmap)
        .flags(Flags::READONLY.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .since("6.0.0")
        .complexity("O(1) for each subcommand specified")
        .doc("", ""),
];
