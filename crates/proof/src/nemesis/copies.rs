//! The same at every member (AT-27): once nothing is on its way, each key is read at who serves it and at who has a copy.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use xxhash_rust::xxh3::Xxh3;

use super::doors::{Door, Doors, ask};
use crate::connection::Connection;
use crate::reply::{Reply, show};

/// How long a key may take until it is served, and a copy until it is shown: a follower asks the first of its chain before, and on a
/// busy machine a node may lose its lease at any moment.
const SHOWN_WITHIN: Duration = Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_secs(10);

/// What was compared.
#[derive(Clone, Debug, Default)]
pub(crate) struct Compared {
    pub(crate) keys: usize,
    pub(crate) slots: usize,
    /// Keys that exist, by the values read; and by what the nodes say that they serve.
    pub(crate) exist: u64,
    pub(crate) served: u64,
    /// Of each slot, over its keys and their values at who serves it.
    pub(crate) digests: BTreeMap<i64, u64>,
}

/// Reads every key at all members, and says where they differ; so many keys exist besides.
///
/// # Errors
/// When a node does not answer, or nobody shows a copy.
pub(crate) fn compare(doors: &Doors, keys: &[String], besides: u64) -> Result<(Compared, Vec<String>), String> {
    let words = |error: std::io::Error| error.to_string();
    let open = |door| Connection::open_within(&doors.ground.address(door), doors.patience(PATIENCE));
    let plain = (0..doors.len()).map(|node| open(Door::plain(node)));
    let mut first: Vec<Connection> = plain.collect::<Result<_, _>>().map_err(words)?;
    let mut copies: Vec<(usize, Connection)> = Vec::new();
    for node in 0..doors.len() {
        for core in 0..doors.cores {
            let mut connection = open(Door::of_core(node, core)).map_err(words)?;
            ask(&mut connection, &["READONLY"]).map_err(words)?;
            copies.push((node, connection));
        }
    }
    let shown_within = doors.patience(SHOWN_WITHIN);
    let (mut compared, mut differences) = (Compared::default(), Vec::new());
    let mut hashes: BTreeMap<i64, [Xxh3; 2]> = BTreeMap::new();
    for key in keys {
        let Reply::Integer(slot) = ask(&mut copies[0].1, &["CLUSTER", "KEYSLOT", key]).map_err(words)? else {
            return Err(format!("{key} has no slot"));
        };
        let (server, value) = at_first(&mut first, key, shown_within)?;
        let copy = at_copy(&mut copies, (server, key), shown_within)?;
        compared.exist += u64::from(value != Reply::Nil);
        let of_slot = hashes.entry(slot).or_default();
        for (hash, value) in of_slot.iter_mut().zip([&value, &copy]) {
            hash.update(format!("{key}={value:?};").as_bytes());
        }
        if value != copy && differences.len() < 20 {
            let [value, copy] = [value, copy].map(|reply| show(format!("{reply:?}").as_bytes()));
            differences.push(format!("{key} in slot {slot}: node {server} has {value}, its copy is {copy}"));
        }
    }
    for connection in &mut first {
        let Reply::Integer(keys @ 0..) = ask(connection, &["DBSIZE"]).map_err(words)? else { continue };
        compared.served += keys as u64;
    }
    if compared.served != compared.exist + besides {
        let exist = compared.exist + besides;
        differences.push(format!("nodes serve {} keys, of those written {exist} exist", compared.served));
    }
    (compared.keys, compared.slots) = (keys.len(), hashes.len());
    let wrong = hashes.iter().filter(|(_, [first, second])| first.digest() != second.digest()).count();
    if wrong > 0 {
        differences.push(format!("{wrong} of {} slots have another digest at their copy", hashes.len()));
    }
    compared.digests = hashes.into_iter().map(|(slot, [first, _])| (slot, first.digest())).collect();
    Ok((compared, differences))
}

fn at_first(first: &mut [Connection], key: &str, shown_within: Duration) -> Result<(usize, Reply), String> {
    let begun = Instant::now();
    loop {
        let mut said = Vec::new();
        for (node, connection) in first.iter_mut().enumerate() {
            match ask(connection, &["GET", key]).map_err(|error| error.to_string())? {
                Reply::Error(text) => said.push(String::from_utf8_lossy(&text).into_owned()),
                value => return Ok((node, value)),
            }
        }
        if begun.elapsed() > shown_within {
            return Err(format!("nobody serves {key}: {}", said.join(" | ")));
        }
        std::thread::yield_now();
    }
}

/// The value at a member that does not serve the key.
fn at_copy(
    copies: &mut [(usize, Connection)],
    (server, key): (usize, &str),
    shown_within: Duration,
) -> Result<Reply, String> {
    let begun = Instant::now();
    loop {
        let mut said = Vec::new();
        for (_, connection) in copies.iter_mut().filter(|(node, _)| *node != server) {
            match ask(connection, &["GET", key]).map_err(|error| error.to_string())? {
                Reply::Error(text) => said.push(String::from_utf8_lossy(&text).into_owned()),
                value => return Ok(value),
            }
        }
        if begun.elapsed() > shown_within {
            return Err(format!("nobody shows a copy of {key}: {}", said.join(" | ")));
        }
        std::thread::yield_now();
    }
}
