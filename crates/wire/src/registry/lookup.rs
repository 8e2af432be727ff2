//! From a command's name to its entry: one hash of the name's 16 outer bytes into a table built by the compiler.

use super::GROUPS;
use super::id::{COMMAND_ID_COUNT, CommandId};
use super::spec::CommandSpec;

/// Four places per command, so that most are found at the first look.
const TABLE_LEN: usize = 512;
/// Longest name; first and last eight bytes and the length describe a name of up to 16 bytes completely.
const NAME_BYTES_MAX: usize = 16;

#[derive(Clone, Copy, PartialEq, Eq)]
struct NameKey {
    first: u64,
    last: u64,
    len: u64,
}

#[derive(Clone, Copy)]
struct Place {
    key: NameKey,
    spec: Option<&'static CommandSpec>,
}

static TABLE: [Place; TABLE_LEN] = build_table();
static BY_ID: [Option<&'static CommandSpec>; COMMAND_ID_COUNT] = build_by_id();

/// The entry of a top-level command, its name in any case.
#[inline]
pub fn lookup(name: &[u8]) -> Option<&'static CommandSpec> {
    let key = name_key(name)?;
    let mut at = place_of(key);
    loop {
        let place = &TABLE[at];
        if place.key.first == key.first && place.key.last == key.last && place.key.len == key.len {
            return place.spec;
        }
        place.spec?;
        at = (at + 1) % TABLE_LEN;
    }
}

/// The entry of a command or subcommand.
#[inline]
pub fn spec(id: CommandId) -> &'static CommandSpec {
    BY_ID[id as usize].expect("the registry has an entry for every id")
}

/// Overlapping words of a lower-cased name; `None` when it is empty or too long to be one.
#[inline(always)]
const fn name_key(name: &[u8]) -> Option<NameKey> {
    let len = name.len();
    let (first, last) = if let (Some(first), Some(last)) = (name.first_chunk::<8>(), name.last_chunk::<8>()) {
        if len > NAME_BYTES_MAX {
            return None;
        }
        (u64::from_le_bytes(*first), u64::from_le_bytes(*last))
    } else if let (Some(first), Some(last)) = (name.first_chunk::<4>(), name.last_chunk::<4>()) {
        (u32::from_le_bytes(*first) as u64, u32::from_le_bytes(*last) as u64)
    } else if len > 0 {
        let (first, middle, last) = (name[0] as u64, name[len / 2] as u64, name[len - 1] as u64);
        (first | middle << 8, last)
    } else {
        return None;
    };
    Some(NameKey { first: lower_case(first), last: lower_case(last), len: len as u64 })
}

/// Lower-cases eight ASCII letters at once. Other ASCII stays as it is; bytes above it may change but stay above it, and
/// no name has any.
#[inline(always)]
const fn lower_case(word: u64) -> u64 {
    const EVERY: u64 = 0x0101_0101_0101_0101;
    let low_bits = word & (0x7f * EVERY);
    // Bit 7 of a byte says: at least 'A', above 'Z'.
    let from_a = low_bits + (0x80 - b'A' as u64) * EVERY;
    let above_z = low_bits + (0x7f - b'Z' as u64) * EVERY;
    let letter = from_a & !above_z & (0x80 * EVERY);
    word | letter >> 2
}

#[inline(always)]
const fn place_of(key: NameKey) -> usize {
    let mixed = (key.first ^ key.last.rotate_left(29) ^ key.len).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> (64 - TABLE_LEN.trailing_zeros())) as usize
}

const fn build_table() -> [Place; TABLE_LEN] {
    let empty = Place { key: NameKey { first: 0, last: 0, len: 0 }, spec: None };
    let mut table = [empty; TABLE_LEN];
    let mut group = 0;
    while group < GROUPS.len() {
        let mut index = 0;
        while index < GROUPS[group].len() {
            let spec = &GROUPS[group][index];
            let Some(key) = name_key(spec.name.as_bytes()) else { panic!("a command's name has 1 to 16 bytes") };
            let mut at = place_of(key);
            while table[at].spec.is_some() {
                at = (at + 1) % TABLE_LEN;
            }
            table[at] = Place { key, spec: Some(spec) };
            index += 1;
        }
        group += 1;
    }
    table
}

const fn build_by_id() -> [Option<&'static CommandSpec>; COMMAND_ID_COUNT] {
    let mut table = [None; COMMAND_ID_COUNT];
    let mut group = 0;
    while group < GROUPS.len() {
        let mut index = 0;
        while index < GROUPS[group].len() {
            let spec = &GROUPS[group][index];
            assert!(table[spec.id as usize].is_none(), "two entries share an id");
            table[spec.id as usize] = Some(spec);
            let mut sub = 0;
            while sub < spec.subcommands.len() {
                let subcommand = &spec.subcommands[sub];
                assert!(table[subcommand.id as usize].is_none(), "two entries share an id");
                table[subcommand.id as usize] = Some(subcommand);
                sub += 1;
            }
            index += 1;
        }
        group += 1;
    }
    let mut id = 0;
    while id < COMMAND_ID_COUNT {
        assert!(table[id].is_some(), "an id has no entry");
        id += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;

    #[test]
    fn finds_every_name_in_any_case() {
        for expected in registry::all() {
            let upper = expected.name.to_ascii_uppercase();
            for name in [expected.name, upper.as_str()] {
                let found = lookup(name.as_bytes()).map(|spec| spec.id);
                assert_eq!(found, Some(expected.id), "{name}");
            }
            assert!(std::ptr::eq(spec(expected.id), expected));
        }
    }

    #[test]
    fn finds_nothing_else() {
        for name in ["", "g", "ge", "gett", "gat", "get\0", "\0get", "GE\x54\x20", "zh\x0eget", "abcdefghijklmnopq"] {
            assert!(lookup(name.as_bytes()).is_none(), "{name:?}");
        }
        for spec in registry::all() {
            for index in 0..spec.name.len() {
                let mut name = spec.name.as_bytes().to_vec();
                name[index] ^= 0x80;
                assert!(lookup(&name).is_none(), "{name:?}");
                name[index] = name[index] ^ 0x80 | 0x20;
                name[index] ^= 0x60;
                let found = lookup(&name).map(|spec| spec.name.as_bytes().to_vec());
                assert!(found.is_none_or(|found| found.eq_ignore_ascii_case(&name)), "{name:?}");
            }
        }
    }
}
