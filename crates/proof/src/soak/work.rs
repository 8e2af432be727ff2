//! What goes on all the time: sequences of every family of commands, and a bulk that makes logs grow, runs due and keys expire.

use std::io;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, SystemTime};

use base::rng::Rng;
use wire::registry;

use super::Gauge;
use crate::connection::{Connection, encode};
use crate::kill::load::{open, select};
use crate::reply::show;
use crate::sequence::Generator;

/// Keys of the bulk.
const BULK_KEYS: u64 = 200_000;
/// Longest value of the bulk, bytes.
const BULK_BYTES_MAX: u64 = 300;
/// Keys with long values.
const LONG_KEYS: u64 = 32;
/// Longest value, bytes: several blocks.
const LONG_BYTES_MAX: u64 = 256 << 10;
/// Keys that expire.
const EXPIRING_KEYS: u64 = 20_000;
/// What lives at most: the bulk with what a record costs, long values, what expires, and what sequences leave between two
/// times that they are swept.
pub const LIVE_BYTES_MAX: u64 =
    BULK_KEYS * (BULK_BYTES_MAX + 64) + LONG_KEYS * LONG_BYTES_MAX + EXPIRING_KEYS * 256 + (16 << 20);
/// The bulk's database: no sequence selects it.
const BULK_DATABASE: u32 = 14;
/// The databases that sequences select.
const SEQUENCE_DATABASES: [u32; 4] = [0, 1, 9, 15];
/// Sequences until what they left is swept.
const SWEPT_AFTER: u64 = 500;
/// Requests of a burst of the bulk.
const BURST: u64 = 48;
/// Bursts until what nobody calls all the time is called.
const RARE_AFTER: u64 = 200;
/// Between two bursts: a soak looks for what stays, not for speed.
const PAUSE: Duration = Duration::from_millis(2);

/// Commands that no sequence has.
const RARE: &[&str] = &[
    "INFO everything",
    "CONFIG GET *",
    "COMMAND COUNT",
    "CLIENT LIST",
    "CLIENT ID",
    "MEMORY USAGE bulk:1",
    "LATENCY HISTORY event",
    "SLOWLOG GET",
    "ACL WHOAMI",
    "ACL SETUSER soak on >password ~soak:* +@all -flushall",
    "ACL LIST",
    "ACL LOG",
    "ACL DELUSER soak",
    "CONFIG SET slowlog-max-len 128",
    "TIME",
    "ROLE",
    "LASTSAVE",
    "DBSIZE",
    "SCAN 0 COUNT 100",
    "RANDOMKEY",
    "KEYS nothing*",
    "WAITAOF 0 0 0",
    "WAIT 0 0",
    "BGSAVE",
    "SAVE",
    "BGREWRITEAOF",
    "DEBUG SLEEP 0",
    "CLUSTER INFO",
    "HELLO 2",
    "AUTH nobody nothing",
    "ASKING",
    "READONLY",
    "READWRITE",
    "COMMAND",
    "OBJECT ENCODING bulk:1",
    "ZH.GET bulk:1",
    "ZH.WAIT bulk:1 ABSENT 1",
    "DIGEST bulk:1",
    "ZH.CLUSTER STATUS",
    "DUMP bulk:1",
    "ZH.BACKUP BEGIN 1000",
    "RESET",
];
/// Commands that a soak may not call, each with its reason.
const UNCALLABLE: &[(&str, &str)] = &[("shutdown", "it would end"), ("flushall", "it would take the bulk away")];

/// Writes the bulk once.
///
/// # Errors
/// Those of the connection, and a refusal.
pub fn load(address: &str) -> io::Result<()> {
    let mut rng = Rng::new(0);
    let mut connection = open(address)?;
    select(&mut connection, BULK_DATABASE)?;
    for first in (0..BULK_KEYS).step_by(BURST as usize) {
        let mut request = Vec::new();
        let keys = first..BULK_KEYS.min(first + BURST);
        keys.clone().for_each(|key| encode(&set(key, &mut rng), &mut request));
        answered(&mut connection, &request, keys.end - keys.start)?;
    }
    Ok(())
}

/// Overwrites the bulk until it is over.
///
/// # Errors
/// Those of the connection, and an error reply.
pub fn bulk(address: &str, seed: u64, gauge: &Gauge) -> io::Result<()> {
    let mut rng = Rng::new(seed);
    let mut connection = open(address)?;
    select(&mut connection, BULK_DATABASE)?;
    let mut bursts = 0u64;
    while !gauge.is_over() {
        let mut request = Vec::new();
        for _ in 0..BURST {
            encode(&next(&mut rng), &mut request);
        }
        answered(&mut connection, &request, BURST)?;
        gauge.requests.fetch_add(BURST, Ordering::Relaxed);
        bursts += 1;
        if bursts % RARE_AFTER == 1 {
            call_rare(address)?;
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}

fn set(key: u64, rng: &mut Rng) -> Vec<Vec<u8>> {
    let value = vec![b'v'; rng.below(BULK_BYTES_MAX) as usize];
    vec![b"SET".to_vec(), format!("bulk:{key}").into_bytes(), value]
}

/// One request of the bulk; lists and counters stay as short as they are.
fn next(rng: &mut Rng) -> Vec<Vec<u8>> {
    let words = |line: String| line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
    let key = rng.below(BULK_KEYS);
    match rng.below(1000) {
        0..=1 => {
            let value = vec![b'l'; (64 << 10) + rng.below(LONG_BYTES_MAX - (64 << 10)) as usize];
            vec![b"SET".to_vec(), format!("long:{}", key % LONG_KEYS).into_bytes(), value]
        }
        2 => words(format!("GETRANGE long:{} 60000 61000", key % LONG_KEYS)),
        3..=99 => words(format!("SET expiring:{} value PX {}", key % EXPIRING_KEYS, 200 + rng.below(3000))),
        100..=149 => words(format!("RPUSH queue:{} element", key % 100)),
        150..=199 => words(format!("LTRIM queue:{} -50 -1", key % 100)),
        200..=249 => words(format!("INCR counter:{}", key % 100)),
        250..=599 => words(format!("GET bulk:{key}")),
        _ => set(key, rng),
    }
}

/// Sends `count` requests and reads as many replies, none of which may be an error.
fn answered(connection: &mut Connection, request: &[u8], count: u64) -> io::Result<()> {
    connection.write(request)?;
    for _ in 0..count {
        let reply = connection.read_reply()?;
        if reply.first() == Some(&b'-') {
            return Err(io::Error::other(format!("a request of the bulk is answered {}", show(&reply))));
        }
    }
    Ok(())
}

/// On a connection of its own, which then goes with what it began.
fn call_rare(address: &str) -> io::Result<()> {
    let mut connection = open(address)?;
    RARE.iter().try_for_each(|line| connection.call_line(line).map(drop))
}

/// Asks one sequence after the other on two connections until it is over. What they answer others judge; every request is
/// answered here, and nobody hangs.
///
/// # Errors
/// Those of the connections.
pub fn sequences(address: &str, seed: u64, gauge: &Gauge) -> io::Result<()> {
    let now_s = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs() as i64);
    let generator = Generator::new(now_s, true);
    let mut connections = [open(address)?, open(address)?];
    let mut asked = 0u64;
    while !gauge.is_over() {
        let sequence = generator.sequence(seed.wrapping_add(asked), None);
        asked += 1;
        // Those empty all databases.
        for step in sequence.steps.iter().filter(|_| !sequence.exclusive) {
            let arguments: Vec<&[u8]> = step.arguments.iter().map(Vec::as_slice).collect();
            connections[step.connection].call(&arguments)?;
            gauge.requests.fetch_add(1, Ordering::Relaxed);
        }
        if asked.is_multiple_of(SWEPT_AFTER) {
            sweep(address)?;
        }
    }
    Ok(())
}

fn sweep(address: &str) -> io::Result<()> {
    let mut connection = open(address)?;
    for database in SEQUENCE_DATABASES {
        select(&mut connection, database)?;
        connection.call_line("FLUSHDB")?;
    }
    Ok(())
}

/// Commands of the registry that INFO counts no call of.
pub fn uncalled(info: &str) -> Vec<&'static str> {
    let called: Vec<&str> = info.lines().filter_map(|line| line.strip_prefix("cmdstat_")).collect();
    let is_called = |name: &str| {
        let is_its = |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([':', '|']));
        called.iter().any(is_its)
    };
    let may_be_called = |name: &&str| UNCALLABLE.iter().all(|(uncallable, _)| uncallable != name);
    registry::all().map(|spec| spec.full_name).filter(may_be_called).filter(|name| !is_called(name)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use wire::registry;

    use super::{Generator, RARE, uncalled};
    use crate::soak::churn::WAYS;

    /// Half an hour shall not have to pass before somebody notices that nobody calls a new command.
    #[test]
    fn every_command_is_called_by_somebody() {
        let generator = Generator::new(0, true);
        let sequences = (0..3000).map(|seed| generator.sequence(seed, None)).filter(|sequence| !sequence.exclusive);
        let of_sequences = sequences.flat_map(|sequence| sequence.steps).map(|step| step.arguments[0].clone());
        let lines = RARE.iter().copied().chain(WAYS.iter().flat_map(|(request, _)| request.split("\r\n")));
        let of_lines = lines.map(|line| line.split(' ').next().unwrap_or_default().into());
        // Who sweeps calls it.
        let called: BTreeSet<Vec<u8>> = of_sequences.chain(of_lines).chain([b"FLUSHDB".to_vec()]).collect();
        let names = called.iter().map(|name| String::from_utf8_lossy(name).to_lowercase());
        let info: String = names.map(|name| format!("cmdstat_{name}:calls=1\r\n")).collect();
        assert_eq!(uncalled(&info), Vec::<&str>::new());
    }

    #[test]
    fn what_was_not_called_is_named() {
        let all: String = registry::all().map(|spec| format!("cmdstat_{}:calls=1\r\n", spec.full_name)).collect();
        assert_eq!(uncalled(&all), Vec::<&str>::new());
        assert_eq!(uncalled(&all.replace("cmdstat_get:", "cmdstat_config|get:")), ["get"]);
        let container = all.replace("cmdstat_client:", "cmdstat_client|list:");
        assert_eq!(uncalled(&container), Vec::<&str>::new());
    }
}
