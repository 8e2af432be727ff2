//! Target `machine`: one or two cores under several clients. However bytes are cut, every connection reads the same
//! whole replies; the cores come to rest; and what was logged is what a restart finds. Under a memory limit replies
//! depend on who went for them, so there it is the rest that has to hold.

mod street;

use base::Database;
use shard::Durability;
use wire::reply_parse::skip_reply;
use wire::request::encode;

use crate::commands::contents;
use crate::source::Source;
use crate::vocabulary;
use street::Street;

/// Most steps of one input.
const STEPS_MAX: usize = 120;
/// Connections of one input.
const CONNECTIONS: usize = 3;
/// Requests that other requests depend on.
const SHORTCUTS: [&[&str]; 12] = [
    &["MULTI"],
    &["EXEC"],
    &["WATCH", "a", "l"],
    &["BLPOP", "l", "0"],
    &["BLMOVE", "l", "m", "LEFT", "RIGHT", "5"],
    &["RPUSH", "l", "x", "y"],
    &["HELLO", "3"],
    &["AUTH", "secret"],
    &["SET", "a", "1"],
    &["ZH.WAIT", "a", "EQ", "1", "0"],
    &["MSET", "a", "1", "b", "2", "c", "3", "l2", "4"],
    &["RESET"],
];
/// Requests whose answers tell how many ticks, bytes or reads there were, or are drawn.
const VARYING: [&str; 11] =
    ["info", "memory", "latency", "slowlog", "client", "randomkey", "object", "debug", "acl", "genpass", "backup"];
/// Where all of these are, EXEC may answer an array of fewer elements than it says, as Redis does: CLIENT REPLY takes effect in it.
const BREAKING: [&str; 3] = ["multi", "exec", "reply"];
/// Requests that could make values of any size.
const GROWING: [&str; 3] = ["setrange", "setbit", "bitfield"];

/// The lowest memory limit: about what a core without keys takes.
const LIMIT_BYTES: u64 = 100_000;
const POLICIES: [&str; 5] = ["noeviction", "allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-ttl"];

/// What the cores are.
pub struct Shape {
    cores: u16,
    durability: Durability,
    is_locked: bool,
    /// Bytes, and what goes when they are not enough.
    memory_limit: Option<(u64, &'static str)>,
}

/// What happens next.
enum Step {
    Send { connection: usize, bytes: Vec<u8> },
    Close { connection: usize },
    Wait { ms: u64 },
    Read { connection: usize, reads: bool },
}

/// Input: shape, cuts, steps.
pub fn run(data: &[u8]) {
    let mut source = Source::new(data);
    let shape = shape(&mut source);
    let cuts = [source.byte(), source.byte() % 16, source.byte() % 4];
    let steps = steps(&mut source);
    let sent: Vec<u8> = steps
        .iter()
        .filter_map(|step| if let Step::Send { bytes, .. } = step { Some(&bytes[..]) } else { None })
        .collect::<Vec<_>>()
        .concat();
    let sent = String::from_utf8_lossy(&sent).to_ascii_lowercase();
    let has_long_number = sent.as_bytes().windows(6).any(|window| window.iter().all(u8::is_ascii_digit));
    if has_long_number && GROWING.iter().any(|word| sent.contains(word)) {
        return; // The target `commands` asks for large offsets, and knows which ones are refused.
    }
    let gives_whole_replies = !BREAKING.iter().all(|word| sent.contains(word));
    let whole = play(&shape, &[255], &steps, gives_whole_replies);
    let cut = play(&shape, &cuts, &steps, gives_whole_replies);
    if shape.memory_limit.is_none() && !VARYING.iter().any(|word| sent.contains(word)) {
        for (connection, ((whole, left_unread), (cut, _))) in whole.iter().zip(&cut).enumerate() {
            let common = if *left_unread { whole.len().min(cut.len()) } else { usize::MAX };
            let (whole, cut) = (&whole[..common.min(whole.len())], &cut[..common.min(cut.len())]);
            assert_eq!(whole.escape_ascii().to_string(), cut.escape_ascii().to_string(), "connection {connection}");
        }
    }
}

/// One in eight has a memory limit.
fn shape(source: &mut Source<'_>) -> Shape {
    let bits = source.byte();
    let has_limit = bits >> 5 == 7;
    Shape {
        cores: 1 + u16::from(bits & 1),
        durability: if bits & 2 == 0 { Durability::Interval } else { Durability::Memory },
        is_locked: bits & 12 == 12,
        memory_limit: has_limit.then(|| (LIMIT_BYTES << source.below(6), source.pick(&POLICIES))),
    }
}

fn steps(source: &mut Source<'_>) -> Vec<Step> {
    let mut steps = Vec::new();
    while !source.is_empty() && steps.len() < STEPS_MAX {
        let choice = source.byte();
        let connection = usize::from(choice >> 4) % CONNECTIONS;
        let send = |bytes| Step::Send { connection, bytes };
        steps.push(match choice % 16 {
            0..7 => {
                let spec = vocabulary::command(source);
                send(multibulk(&vocabulary::request(spec, source)))
            }
            7 => {
                let spec = vocabulary::data_command(source);
                let mut line = vocabulary::request(spec, source).join(&b' ');
                line.extend_from_slice(source.pick(&[&b"\r\n"[..], b"\n"]));
                send(line)
            }
            8..12 => send(multibulk(
                &source.pick(&SHORTCUTS).iter().map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>(),
            )),
            12 => send(source.string().to_vec()),
            13 => Step::Close { connection },
            14 => Step::Wait { ms: 1 << source.below(24) },
            _ => Step::Read { connection, reads: source.byte() & 1 == 1 },
        });
    }
    steps
}

fn multibulk(words: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(words.iter().map(Vec::as_slice), &mut bytes);
    bytes
}

fn expect_whole(mut rest: &[u8]) {
    while !rest.is_empty() {
        let length = skip_reply(rest).expect("the bytes are replies").expect("and whole ones");
        rest = &rest[length..];
    }
}

/// Everything that each connection read, and whether it left without reading, in the order of their opening; whole replies, if so.
fn play(shape: &Shape, cuts: &[u8], steps: &[Step], gives_whole_replies: bool) -> Vec<(Vec<u8>, bool)> {
    let mut street = Street::new(shape);
    for step in steps {
        match step {
            Step::Send { connection, bytes } => street.send(*connection, bytes, cuts),
            Step::Close { connection } => street.hang_up(*connection),
            Step::Wait { ms } => street.wait(*ms),
            Step::Read { connection, reads } => street.set_reading(*connection, *reads),
        }
        if street.is_stopped() {
            break;
        }
    }
    let read = street.finish();
    if gives_whole_replies {
        read.iter().for_each(|(read, _)| expect_whole(read));
    }
    if shape.durability != Durability::Memory {
        let found = street.recovered();
        for database in (0..base::limits::DATABASE_COUNT).map(Database) {
            let gather = |shards: &[shard::Shard]| {
                let mut all: Vec<_> = shards.iter().flat_map(|shard| contents(shard.store(), database)).collect();
                all.sort();
                all
            };
            assert_eq!(gather(&found), gather(street.shards()), "database {}", database.0);
        }
    }
    read
}
