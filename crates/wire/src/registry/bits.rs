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
        .doc("key offset value", "Sets or clears one bit and returns what it was."),
    CommandSpec::new(Id::Getbit, "getbit", 3, Group::Bitmap)
        .flags(Flags::READONLY.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .since("2.2.0")
        .doc("key offset", "Returns one bit of a string."),
    CommandSpec::new(Id::Bitcount, "bitcount", -2, Group::Bitmap)
        .flags(Flags::READONLY)
        .keys(&[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .since("2.6.0")
        .complexity("O(N) with N the bytes looked at")
        .doc("key [<start end [BYTE | BIT]>]", "Counts the bits that are set."),
    CommandSpec::new(Id::Bitpos, "bitpos", -3, Group::Bitmap)
        .flags(Flags::READONLY)
        .keys(&[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .since("2.8.7")
        .complexity("O(N) with N the bytes looked at")
        .doc("key bit [<start [<end [BYTE | BIT]>]>]", "Finds the first bit that is set, or clear."),
    CommandSpec::new(Id::Bitop, "bitop", -4, Group::Bitmap)
        .flags(Flags::WRITE.union(Flags::DENYOOM))
        .keys(&[
            KeySpec::one(2, KeyFlags::OW.union(KeyFlags::UPDATE)),
            KeySpec::range(3, -1, 1, KeyFlags::RO.union(KeyFlags::ACCESS)),
        ])
        .since("2.6.0")
        .complexity("O(N) with N the length of the longest string")
        .doc("<AND | OR | XOR | NOT> destkey key...", "Combines strings bit by bit and stores the result.")
        .spread(Spread::MultiKey),
    CommandSpec::new(Id::Bitfield, "bitfield", -2, Group::Bitmap)
        .flags(Flags::WRITE.union(Flags::DENYOOM))
        .keys(&[KeySpec::one(
            1,
            KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE).union(KeyFlags::VARIABLE_FLAGS),
        )])
        .since("3.2.0")
        .complexity("O(1) for each operation")
        .doc(
            "key [GET encoding offset | <[OVERFLOW <WRAP | SAT | FAIL>] <SET encoding offset value | INCRBY \
             encoding offset increment>>]...",
            "Reads, sets and adds to integers of any width inside a string.",
        ),
    CommandSpec::new(Id::BitfieldRo, "bitfield_ro", -2, Group::Bitmap)
        .flags(Flags::READONLY.union(Flags::FAST))
        .keys(&[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .since("6.0.0")
        .complexity("O(1) for each operation")
        .doc("key [GET encoding offset]...", "Reads integers of any width inside a string."),
];
