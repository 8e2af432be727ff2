//! Requests that mean something: commands of the registry with arguments that some command knows.

use std::sync::LazyLock;

use wire::registry::{CommandSpec, Family, all};

use crate::source::Source;

/// Words that mean something to some command, and numbers at their bounds; keys first.
const WORDS: [&str; 118] = [
    "a",
    "b",
    "c",
    "l",
    "m",
    "s",
    "{a}b",
    "{a}c",
    "0",
    "1",
    "-1",
    "2",
    "3",
    "7",
    "8",
    "10",
    "100",
    "-2",
    "16",
    "64",
    "2147483647",
    "2147483648",
    "-2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "18446744073709551616",
    "536870912",
    "1.5",
    "-1.5",
    "1e5",
    "1e300",
    "1e4932",
    "0x10",
    "inf",
    "-inf",
    "nan",
    "",
    "u8",
    "i64",
    "u63",
    "i1",
    "u64",
    "#3",
    "#-1",
    "#9223372036854775807",
    "GET",
    "SET",
    "INCRBY",
    "OVERFLOW",
    "SAT",
    "FAIL",
    "WRAP",
    "NX",
    "XX",
    "GT",
    "LT",
    "EX",
    "PX",
    "EXAT",
    "PXAT",
    "KEEPTTL",
    "PERSIST",
    "IFEQ",
    "IFNE",
    "IFDEQ",
    "IFDNE",
    "2d06800538d394c2",
    "BYTE",
    "BIT",
    "AND",
    "OR",
    "XOR",
    "NOT",
    "LEFT",
    "RIGHT",
    "BEFORE",
    "AFTER",
    "COUNT",
    "RANK",
    "MAXLEN",
    "LEN",
    "IDX",
    "MINMATCHLEN",
    "WITHMATCHLEN",
    "REPLACE",
    "DB",
    "EQ",
    "NE",
    "EXISTS",
    "ABSENT",
    "VERSION",
    "MATCH",
    "TYPE",
    "string",
    "list",
    "*",
    "?",
    "[a-z]*",
    "\\*",
    "ON",
    "OFF",
    "AUTH",
    "default",
    "secret",
    "SETNAME",
    "NAME",
    "ASYNC",
    "SYNC",
    "ID",
    "TIMEOUT",
    "SKIP",
    "NO",
    "YES",
    "1000",
    "0.001",
];
/// Bytes of the longest word of one repeated byte.
const LONG_WORD_MAX: usize = 5000;
/// How many of [`WORDS`] are keys.
const KEYS: usize = 8;
/// Commands whose argument is an offset: one inside the largest value would only cost memory.
const WITH_OFFSETS: [&str; 4] = ["setrange", "setbit", "bitfield", "bitfield_ro"];
/// Offsets up to here are cheap.
const OFFSET_CHEAP: i128 = 100_000;
/// Offsets from here on are refused.
const OFFSET_REFUSED: i128 = 1 << 32;

static COMMANDS: LazyLock<Vec<&'static CommandSpec>> = LazyLock::new(|| {
    let plain = all().filter(|spec| spec.subcommands.is_empty());
    plain.chain(all().flat_map(|spec| spec.subcommands)).collect()
});
static DATA_COMMANDS: LazyLock<Vec<&'static CommandSpec>> =
    LazyLock::new(|| COMMANDS.iter().copied().filter(|spec| spec.family == Family::Data).collect());

/// A command that `commands` executes.
pub fn data_command(source: &mut Source<'_>) -> &'static CommandSpec {
    DATA_COMMANDS[source.below(DATA_COMMANDS.len())]
}

/// Any command.
pub fn command(source: &mut Source<'_>) -> &'static CommandSpec {
    COMMANDS[source.below(COMMANDS.len())]
}

/// A request of `spec`: its name, and as many words as the input says and its arity takes, or now and then does not.
pub fn request(spec: &CommandSpec, source: &mut Source<'_>) -> Vec<Vec<u8>> {
    let mut words: Vec<Vec<u8>> = spec.full_name.split('|').map(|part| part.as_bytes().to_vec()).collect();
    let least = usize::from(spec.arity.unsigned_abs());
    let count = match source.below(16) {
        extra @ 0..6 if spec.arity < 0 => least + extra,
        15 => source.below(8),
        _ => least,
    };
    while words.len() < count {
        words.push(word(source));
    }
    if WITH_OFFSETS.contains(&spec.full_name) {
        words.iter_mut().filter(|word| is_costly(word)).for_each(|word| *word = b"77".to_vec());
    }
    words
}

fn word(source: &mut Source<'_>) -> Vec<u8> {
    match source.byte() {
        choice @ 0..100 => WORDS[usize::from(choice) % KEYS].as_bytes().to_vec(),
        choice @ 100..240 => {
            WORDS[(usize::from(choice) - 100 + source.below(2) * 100) % WORDS.len()].as_bytes().to_vec()
        }
        240 => vec![source.byte(); usize::from(source.short()) % LONG_WORD_MAX],
        _ => source.string().to_vec(),
    }
}

/// Whether `word` is an offset that would make a large value.
fn is_costly(word: &[u8]) -> bool {
    let digits = word.strip_prefix(b"#").unwrap_or(word);
    let value = std::str::from_utf8(digits).ok().and_then(|text| text.parse::<i128>().ok());
    // `#n` counts in units of up to 64 bits.
    value.is_some_and(|value| (OFFSET_CHEAP / 64..OFFSET_REFUSED).contains(&value))
}
