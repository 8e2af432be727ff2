//! The values that sequences are made of: keys of one sequence, numbers at their boundaries, bytes of every encoding.

use base::BLOCK_BYTES;
use base::rng::Rng;

/// The integers at which peers have failed (reliability table of boundaries).
pub const BOUNDARIES: [&str; 11] = [
    "0",
    "1",
    "-1",
    "2147483647",
    "2147483649",
    "4294967295",
    "4294967297",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "-2147483649",
];

/// Texts that look like numbers and are none, or are numbers in an unusual spelling.
const ODD_NUMBERS: [&str; 14] =
    ["", " 1", "1 ", "+1", "007", "-0", "1.0", "0x10", "abc", "1e2", "--1", "99999999999999999999", "1\0", "nan"];

/// The kind of value a template asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// A key that mostly holds a string.
    StringKey,
    /// A key that mostly holds a list.
    ListKey,
    /// Any key of the sequence.
    AnyKey,
    /// `numkeys key…` of lists.
    CountedListKeys,
    /// Any bytes.
    Value,
    /// A value of few different ones, so that equal elements and matching comparisons occur.
    Element,
    /// A signed 64-bit integer.
    Integer,
    /// A small signed index.
    Index,
    /// A bit's index, which may count from the end.
    BitIndex,
    /// Hundreds of elements: a list of several chunks.
    ManyElements,
    /// A small count.
    Count,
    /// A bit offset; large valid ones are left out, they would cost 512 MiB each.
    BitOffset,
    /// A byte offset, likewise.
    ByteOffset,
    /// 0, 1, or what is neither.
    Bit,
    /// A type of BITFIELD.
    BitType,
    /// A floating-point number.
    Float,
    /// Relative seconds: far away, past, or invalid, never near.
    Seconds,
    /// Relative milliseconds, likewise.
    Milliseconds,
    /// An absolute second.
    UnixSeconds,
    /// An absolute millisecond.
    UnixMilliseconds,
    /// A glob pattern.
    Pattern,
    /// A database number.
    Database,
    /// A timeout of a blocking command: one that passes at once or is refused.
    Timeout,
    /// A digest of XXH3-64.
    Digest,
    /// A value as DUMP returns it, or not quite.
    Dump,
    /// A SCAN cursor.
    Cursor,
    /// A word that no command knows.
    Nonsense,
}

impl Slot {
    /// The slot that templates call `name`.
    ///
    /// # Panics
    /// On a name outside the language.
    pub fn named(name: &str) -> Slot {
        match name {
            "s" => Slot::StringKey,
            "l" => Slot::ListKey,
            "k" => Slot::AnyKey,
            "counted" => Slot::CountedListKeys,
            "v" => Slot::Value,
            "e" => Slot::Element,
            "n" => Slot::Integer,
            "i" => Slot::Index,
            "bi" => Slot::BitIndex,
            "many" => Slot::ManyElements,
            "c" => Slot::Count,
            "bitoff" => Slot::BitOffset,
            "off" => Slot::ByteOffset,
            "bit" => Slot::Bit,
            "bittype" => Slot::BitType,
            "f" => Slot::Float,
            "sec" => Slot::Seconds,
            "ms" => Slot::Milliseconds,
            "at" => Slot::UnixSeconds,
            "pat" => Slot::UnixMilliseconds,
            "glob" => Slot::Pattern,
            "db" => Slot::Database,
            "timeout" => Slot::Timeout,
            "digest" => Slot::Digest,
            "dump" => Slot::Dump,
            "cursor" => Slot::Cursor,
            "nonsense" => Slot::Nonsense,
            other => panic!("the catalogue names no slot <{other}>"),
        }
    }

    /// Whether the boundary table has an entry for this slot. Bit offsets and expiries are listed there by hand.
    pub fn is_numeric(self) -> bool {
        matches!(
            self,
            Slot::Integer
                | Slot::Index
                | Slot::BitIndex
                | Slot::Count
                | Slot::ByteOffset
                | Slot::BitOffset
                | Slot::Bit
                | Slot::Seconds
                | Slot::Milliseconds
                | Slot::UnixSeconds
                | Slot::UnixMilliseconds
                | Slot::Database
                | Slot::Float
                | Slot::Cursor
        )
    }
}

/// The keys of one sequence and the values it may use.
#[derive(Clone, Debug)]
pub struct Pool {
    unique: String,
    strings: Vec<Vec<u8>>,
    lists: Vec<Vec<u8>>,
    foreign: Option<Vec<u8>>,
    /// Unix time in seconds around which absolute expiries are chosen.
    now_s: i64,
}

impl Pool {
    /// Keys that no other sequence has: they contain `unique`. With `tags` they all belong to the slot of the first tag,
    /// except one rarely used key, which belongs to the slot of the second.
    pub fn new(unique: &str, tags: Option<(&str, &str)>, now_s: i64) -> Pool {
        let key = |name: &str| {
            match tags {
                Some((tag, _)) => format!("{{{tag}}}{unique}{name}"),
                None => format!("{unique}:{name}"),
            }
            .into_bytes()
        };
        Pool {
            unique: unique.to_string(),
            strings: vec![key("s0"), key("s1"), [key("s2"), odd_name(unique)].concat()],
            lists: vec![key("l0"), key("l1")],
            foreign: tags.map(|(_, other)| format!("{{{other}}}{unique}s0").into_bytes()),
            now_s,
        }
    }

    /// Whether its keys belong to a node of a cluster.
    pub fn is_of_cluster(&self) -> bool {
        self.foreign.is_some()
    }

    /// What every key of the sequence contains.
    pub fn unique(&self) -> &str {
        &self.unique
    }

    /// The same keys without the one of another slot: the model knows no slots.
    pub fn without_foreign_key(&self) -> Pool {
        Pool { foreign: None, ..self.clone() }
    }

    /// All keys of the sequence.
    pub fn keys(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.strings.iter().chain(&self.lists)
    }

    /// Appends what `slot` stands for.
    pub fn fill(&self, slot: Slot, rng: &mut Rng, output: &mut Vec<Vec<u8>>) {
        if slot == Slot::CountedListKeys {
            let count = 1 + rng.below(3);
            let announced = if rng.chance(1, 20) { number(rng, 5) } else { count.to_string().into_bytes() };
            output.push(announced);
            for _ in 0..count {
                output.push(self.key(Slot::ListKey, rng));
            }
            return;
        }
        let count = if slot == Slot::ManyElements { 100 + rng.below(300) } else { 1 };
        for _ in 0..count {
            output.push(self.one(slot, rng));
        }
    }

    fn key(&self, slot: Slot, rng: &mut Rng) -> Vec<u8> {
        if let Some(foreign) = &self.foreign
            && rng.chance(1, 100)
        {
            return foreign.clone();
        }
        let right_type = !rng.chance(1, 12);
        let keys = match (slot, right_type) {
            (Slot::StringKey, true) | (Slot::ListKey, false) => &self.strings,
            (Slot::ListKey, true) | (Slot::StringKey, false) => &self.lists,
            _ if rng.chance(1, 2) => &self.strings,
            _ => &self.lists,
        };
        pick(rng, keys).clone()
    }

    fn one(&self, slot: Slot, rng: &mut Rng) -> Vec<u8> {
        let text = |choice: &&str| choice.as_bytes().to_vec();
        match slot {
            Slot::StringKey | Slot::ListKey | Slot::AnyKey | Slot::CountedListKeys => self.key(slot, rng),
            Slot::Value => value(rng),
            Slot::Element | Slot::ManyElements => text(pick(rng, &["a", "b", "c", "1", "2", "", "aa", "abc", "10"])),
            Slot::Integer => number(rng, 100),
            Slot::Index if rng.chance(1, 8) => number(rng, 300),
            Slot::Index => number(rng, 6),
            Slot::BitIndex => number(rng, 120),
            Slot::Count => match rng.below(8) {
                0 => number(rng, 4),
                n => n.to_string().into_bytes(),
            },
            Slot::BitOffset | Slot::ByteOffset => offset(rng, slot),
            Slot::Bit => text(pick(rng, &["0", "1", "0", "1", "0", "1", "2", "-1", "x"])),
            Slot::BitType => text(pick(
                rng,
                &["u8", "i8", "u1", "i1", "i64", "u63", "i16", "u5", "i33", "u64", "i65", "u0", "x8", "8", "U8", ""],
            )),
            Slot::Float => float(rng),
            Slot::Seconds => relative(rng, 1),
            Slot::Milliseconds => relative(rng, 1000),
            Slot::UnixSeconds => self.absolute(rng, 1),
            Slot::UnixMilliseconds => self.absolute(rng, 1000),
            Slot::Pattern => text(pick(
                rng,
                &["*", "*s*", "*[0-1]", "*l?", "", "a*", "*[^0]", "\\*", "[", "[a", "*\\", "**", "?", "*:s0", "[z-a]*"],
            )),
            Slot::Database => text(pick(rng, &["0", "1", "9", "15", "0", "1", "16", "-1", "abc", "4294967296", "01"])),
            Slot::Timeout => {
                text(pick(rng, &["0.001", "0.002", "0.001", "-1", "abc", "nan", "inf", "9223372036854775807", "-0.1"]))
            }
            Slot::Digest => digest(rng),
            Slot::Dump => dump(rng),
            Slot::Cursor => text(pick(
                rng,
                &["0", "0", "0", "0", "abc", "-1", "+0", " 0", "-", "0\0x", "18446744073709551616", "1.5", ""],
            )),
            Slot::Nonsense => text(pick(rng, &["FOO", "BAR", "NOPE", "", "GETT", "a\r\nb", "S E T", "\0SET"])),
        }
    }

    /// Absolute times far in the past or future, so that no clock decides a comparison.
    fn absolute(&self, rng: &mut Rng, scale: i64) -> Vec<u8> {
        match rng.below(10) {
            0 => number(rng, 1000),
            1 => b"1".to_vec(),
            2 => ((self.now_s - 86_400) * scale).to_string().into_bytes(),
            _ => ((self.now_s + 86_400 + rng.below(1000) as i64) * scale + rng.below(scale as u64) as i64)
                .to_string()
                .into_bytes(),
        }
    }
}

/// What follows the name of one key in some sequences: bytes that protocols, patterns and hash tags care about, or many.
fn odd_name(unique: &str) -> Vec<u8> {
    match unique.bytes().last() {
        Some(b'0') => b"\0\r\n\xff\"".to_vec(),
        Some(b'1') => b"{}{a}".to_vec(),
        Some(b'2') => b"[a]*?\\".to_vec(),
        Some(b'3') => vec![b'x'; 300],
        _ => Vec::new(),
    }
}

/// One of `choices`.
pub fn pick<'a, T>(rng: &mut Rng, choices: &'a [T]) -> &'a T {
    &choices[rng.below(choices.len() as u64) as usize]
}

fn number(rng: &mut Rng, small: u64) -> Vec<u8> {
    match rng.below(20) {
        0..=1 => pick(rng, &BOUNDARIES).as_bytes().to_vec(),
        2 => pick(rng, &ODD_NUMBERS).as_bytes().to_vec(),
        _ => (rng.below(2 * small + 1) as i64 - small as i64).to_string().into_bytes(),
    }
}

fn offset(rng: &mut Rng, slot: Slot) -> Vec<u8> {
    let refused: &[&str] = match slot {
        Slot::BitOffset => &["4294967296", "-1", "9223372036854775807", "-9223372036854775808", "x", "4294967297"],
        _ => &["536870912", "2147483649", "4294967297", "-1", "9223372036854775807", "-9223372036854775808", "x"],
    };
    match rng.below(16) {
        0 => pick(rng, refused).as_bytes().to_vec(),
        1..=3 => rng.below(2000).to_string().into_bytes(),
        4 if slot == Slot::BitOffset => format!("#{}", rng.below(10)).into_bytes(),
        5 if rng.chance(1, 8) => {
            // Around the end of the first block of a long value.
            let byte = BLOCK_BYTES as u64 - 4 + rng.below(8);
            (if slot == Slot::BitOffset { byte * 8 } else { byte }).to_string().into_bytes()
        }
        _ => rng.below(24).to_string().into_bytes(),
    }
}

fn float(rng: &mut Rng) -> Vec<u8> {
    const FLOATS: [&str; 20] = [
        "0.1",
        "1.5",
        "-2.25",
        "3",
        "1e3",
        "3.0e3",
        "-0",
        "inf",
        "-inf",
        "nan",
        "1e308",
        "1e-10",
        "5.0e-324",
        "abc",
        "",
        " 1.5",
        "0x1p3",
        "1e400",
        "10.50",
        "17179869184",
    ];
    if rng.chance(1, 6) { number(rng, 50) } else { pick(rng, &FLOATS).as_bytes().to_vec() }
}

/// Relative times, hardly two of them the same: by `GT` or `LT` the millisecond in which each came would decide.
fn relative(rng: &mut Rng, scale: i64) -> Vec<u8> {
    let text = |choice: &&str| choice.as_bytes().to_vec();
    let or_later = |first: i64, rng: &mut Rng| (first + rng.below(10_000_000) as i64).to_string().into_bytes();
    match rng.below(10) {
        0 => match rng.below(6) {
            // What does not fit into 32 bits, with a sign and without.
            0 => or_later(2_147_483_647_000, rng),
            1 => or_later(4_294_967_297_000, rng),
            _ => text(pick(rng, &["0", "-1", "9223372036854775807", "-9223372036854775808"])),
        },
        1 => match rng.below(6) {
            // The most that 64 bits take of seconds, and one more; of milliseconds just a long time.
            0 if scale == 1 => text(&"9223372036854775"),
            1 if scale == 1 => text(&"9223372036854776"),
            0 | 1 => or_later(9_223_372_036_854_775, rng),
            _ => text(pick(rng, &["abc", "", "1.5", "99999999999999999999"])),
        },
        _ => or_later(1000 * scale, rng),
    }
}

fn digest(rng: &mut Rng) -> Vec<u8> {
    match rng.below(6) {
        0..=1 => format!("{:016x}", rng.next_u64()).into_bytes(),
        _ => {
            let known = pick(rng, &["a", "b", "c", "1", "2", "", "aa", "abc", "10"]);
            format!("{:016x}", xxhash_rust::xxh3::xxh3_64(known.as_bytes())).into_bytes()
        }
    }
}

/// What redis-server 7.0.15 dumped: strings plain, as integers and compressed; lists in one listpack, in several, plain and
/// compressed. Some are damaged, cut or of no known version.
fn dump(rng: &mut Rng) -> Vec<u8> {
    let known = pick(
        rng,
        &[
            "000568656c6c6f0a006372df766534200a",
            "00c139300a009d94ea2793fc08b9",
            "00c2701101000a0001a408fe953095a5",
            "00c30d419002616261e0ff01e07a010161620a003f03619433dd8d9a",
            "120102c32e408c1f8c0000000800816102826262030101dffb02c12c02f270110104f400f2052a01201e0309e06478e05a000166ff0a00201413b96cac1c16",
            "12040213130000000400816102826262030101dffb02ff0216160000000400c12c02d06002f1001003f270110104ff02c322406211620000000400f3ffff7fff05f400f2052a0120100309e04678e03c0003487f01ff0212120000000300c08002df7f02f200800004ff0a00a49dcdf8bfad9676",
        ],
    );
    let digit = |digit: u8| (digit as char).to_digit(16).map_or(0, |value| value as u8);
    let mut bytes: Vec<u8> = known.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect();
    match rng.below(10) {
        0 => bytes.truncate(rng.below(bytes.len() as u64) as usize),
        1 => {
            let at = rng.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << rng.below(8);
        }
        _ => {}
    }
    bytes
}

/// Values on both sides of every encoding change: integer, 44 and 45 bytes, one listpack and several, binary, in one block
/// and in several.
fn value(rng: &mut Rng) -> Vec<u8> {
    match rng.below(24) {
        0..=3 => number(rng, 1000),
        4..=5 => float(rng),
        6 => random_bytes(rng, 44),
        7 => random_bytes(rng, 45),
        8 => random_bytes(rng, 64),
        9 => Vec::new(),
        10 => b"a\r\nb\0\xff".to_vec(),
        11 if rng.chance(1, 4) => random_bytes(rng, 9000),
        11 => random_bytes(rng, 600),
        12 => b"foobar".to_vec(),
        13 if rng.chance(1, 15) => {
            let length = *pick(rng, &[BLOCK_BYTES, BLOCK_BYTES + 1, 70_000, 2 * BLOCK_BYTES + 3]);
            random_bytes(rng, length)
        }
        _ => {
            let length = rng.below(12) as usize;
            (0..length).map(|_| b'a' + rng.below(4) as u8).collect()
        }
    }
}

fn random_bytes(rng: &mut Rng, length: usize) -> Vec<u8> {
    (0..length).map(|_| rng.next_u64() as u8).collect()
}
