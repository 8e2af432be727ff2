//! How slots are moved: by the store's own order where it has one, key by key where it has not, as the peers' own tools do it.

use std::collections::BTreeSet;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::keys::SLOTS_MOVED;
use crate::cluster::client::connect;
use crate::cluster::standing::Standing;
use crate::load::control::{Reply, ask};

/// How long a move may take before it is believed never to end.
const PATIENCE: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Orders under way at once: those that wait count as ranges of the destination, of which it may have sixteen.
const ORDERS_OPEN: usize = 8;
/// Keys that one MIGRATE takes; more than the peers' tools do, because fewer orders are quicker.
const KEYS_PER_MIGRATE: &str = "100";

/// The way in which a store moves slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// `CLUSTER MIGRATESLOTS`.
    Whole,
    /// `CLUSTER SETSLOT` and `MIGRATE`.
    KeyByKey,
}

impl Way {
    /// The best one that the node on `port` knows.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn of(port: u16) -> Result<Way, String> {
        let help = ask(&mut connection(port)?, &["CLUSTER", "HELP"])?;
        let is_whole = help.list().iter().filter_map(Reply::text).any(|line| line.starts_with("MIGRATESLOTS"));
        Ok(if is_whole { Way::Whole } else { Way::KeyByKey })
    }
}

/// Who serves the first slot, and the node that has copies of the fewest of those that are to move, the next one in turn among equals: to
/// who has one, a move is a change of the table alone.
///
/// # Errors
/// When nobody tells.
pub fn ends(ports: &[u16], standing: Option<&Standing>) -> Result<(u16, u16), String> {
    let from = owner(ports[0], 0)?;
    let place = ports.iter().position(|port| *port == from).ok_or("a node serves that is none of ours")?;
    let others = (1..ports.len()).map(|step| ports[(place + step) % ports.len()]);
    let copies = |port: &u16| standing.map_or(0, |known| copies_of(known, *port));
    let to = others.min_by_key(copies).ok_or("there is no other node")?;
    Ok((from, to))
}

/// Of how many slots that are to move a node has a copy.
fn copies_of(standing: &Standing, port: u16) -> u16 {
    let of_chain = |(first, last, members): &(u16, u16, Vec<u16>)| {
        let last = (*last).min(SLOTS_MOVED - 1);
        if members.contains(&port) && *first <= last { last - first + 1 } else { 0 }
    };
    standing.chains.iter().map(of_chain).sum()
}

/// How a move ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All slots are where they were to go.
    Done,
    /// The store called it off: some may be there.
    CalledOff,
}

/// Moves the slots from one node to another; returns when the store says that it is done.
///
/// # Errors
/// What it refuses, or that it does not end.
pub fn run(way: Way, ports: &[u16], from: u16, to: u16) -> Result<End, String> {
    match way {
        Way::Whole => in_pieces(from, to, &[(0, SLOTS_MOVED - 1)]),
        Way::KeyByKey => key_by_key(ports, from, to).map(|()| End::Done),
    }
}

/// Moves stretches of slots, both ends in them, by `CLUSTER MIGRATESLOTS`, an order for each, of which a few are under way at once; returns
/// when all are where they were to go.
///
/// # Errors
/// What the store refuses, or that it does not end.
pub fn in_pieces(from: u16, to: u16, pieces: &[(u16, u16)]) -> Result<End, String> {
    let (mut source, mut target) = (connection(from)?, connection(to)?);
    let node = id(&mut target)?;
    let before: BTreeSet<String> = moves(&mut source)?.into_iter().map(|(name, _)| name).collect();
    let (begun, mut left) = (Instant::now(), pieces.iter());
    loop {
        let all: Vec<_> = moves(&mut source)?.into_iter().filter(|(name, _)| !before.contains(name)).collect();
        if all.iter().any(|(_, state)| matches!(state.as_str(), "cancelled" | "failed")) {
            return Ok(End::CalledOff);
        }
        let open = all.iter().filter(|(_, state)| state != "success").count();
        for (first, last) in left.by_ref().take(ORDERS_OPEN.saturating_sub(open)) {
            let (first, last) = (first.to_string(), last.to_string());
            order(&mut source, &["CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", &first, &last, "NODE", &node])?;
        }
        let is_done = open == 0 && left.len() == 0 && !all.is_empty();
        if is_done && serves_all(&mut target, to, pieces)? {
            return Ok(End::Done);
        }
        if begun.elapsed() > PATIENCE {
            return Err(format!("the move does not end within {PATIENCE:?}: {all:?}"));
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Names and states of the moves that a node knows of.
fn moves(stream: &mut TcpStream) -> Result<Vec<(String, String)>, String> {
    let reply = ask(stream, &["CLUSTER", "GETSLOTMIGRATIONS"])?;
    let one = |map: &Reply| {
        let of = |name: &str| map.list().chunks_exact(2).find(|pair| pair[0].text() == Some(name))?[1].text();
        Some((of("name")?.to_owned(), of("state")?.to_owned()))
    };
    let all = reply.list().iter().map(one).collect::<Option<_>>();
    all.ok_or_else(|| format!("a move is not understood: {reply:?}"))
}

fn key_by_key(ports: &[u16], from: u16, to: u16) -> Result<(), String> {
    let (mut source, mut target) = (connection(from)?, connection(to)?);
    let others = ports.iter().filter(|port| ![from, to].contains(port));
    let mut others = others.map(|port| connection(*port)).collect::<Result<Vec<_>, _>>()?;
    let (source_id, target_id, port) = (id(&mut source)?, id(&mut target)?, to.to_string());
    for slot in (0..SLOTS_MOVED).map(|slot| slot.to_string()) {
        order(&mut target, &["CLUSTER", "SETSLOT", &slot, "IMPORTING", &source_id])?;
        order(&mut source, &["CLUSTER", "SETSLOT", &slot, "MIGRATING", &target_id])?;
        loop {
            let reply = ask(&mut source, &["CLUSTER", "GETKEYSINSLOT", &slot, KEYS_PER_MIGRATE])?;
            let keys: Vec<&str> = reply.list().iter().filter_map(Reply::text).collect();
            if keys.is_empty() {
                break;
            }
            let words = ["MIGRATE", "127.0.0.1", &port, "", "0", "60000", "KEYS"];
            order(&mut source, &[&words[..], &keys].concat())?;
        }
        for stream in [&mut target, &mut source].into_iter().chain(&mut others) {
            order(stream, &["CLUSTER", "SETSLOT", &slot, "NODE", &target_id])?;
        }
    }
    Ok(())
}

fn connection(port: u16) -> Result<TcpStream, String> {
    let problem = |error: std::io::Error| format!("no connection to port {port}: {error}");
    let stream = connect(port).map_err(problem)?;
    // What is agreed on by several nodes may take its time.
    stream.set_read_timeout(Some(PATIENCE)).map_err(problem)?;
    Ok(stream)
}

fn id(stream: &mut TcpStream) -> Result<String, String> {
    let reply = ask(stream, &["CLUSTER", "MYID"])?;
    reply.text().map(str::to_owned).ok_or_else(|| format!("a node does not tell its id: {reply:?}"))
}

fn order(stream: &mut TcpStream, words: &[&str]) -> Result<(), String> {
    match ask(stream, words)? {
        Reply::Text(text) if text == "OK" => Ok(()),
        reply => Err(format!("{} {} is answered with {reply:?}", words[0], words[1])),
    }
}

/// Whether a node says that it serves all of these slots.
fn serves_all(stream: &mut TcpStream, port: u16, pieces: &[(u16, u16)]) -> Result<bool, String> {
    let reply = ask(stream, &["CLUSTER", "SLOTS"])?;
    let mut served = vec![false; usize::from(base::SLOT_COUNT)];
    for (first, last, owner) in reply.list().iter().filter_map(super::client::entry) {
        let slots = served.get_mut(usize::from(first)..=usize::from(last));
        slots.ok_or("a node tells of slots that there are not")?.fill(owner == port);
    }
    Ok(pieces.iter().all(|(first, last)| (*first..=*last).all(|slot| served[usize::from(slot)])))
}

fn owner(port: u16, slot: u16) -> Result<u16, String> {
    let reply = ask(&mut connection(port)?, &["CLUSTER", "SLOTS"])?;
    let entries: Vec<_> = reply.list().iter().filter_map(super::client::entry).collect();
    let owner = entries.iter().find(|(first, last, _)| (*first..=*last).contains(&slot));
    owner.map(|(_, _, port)| *port).ok_or_else(|| format!("nobody serves slot {slot}: {reply:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_a_copy_of_what_moves_is_counted_by_its_slots() {
        let chains = vec![(0, 499, vec![1, 2]), (500, 1999, vec![1, 3]), (2000, 16383, vec![2, 3])];
        let standing = Standing { leader: None, chains };
        assert_eq!([1, 2, 3, 4].map(|port| copies_of(&standing, port)), [1000, 500, 500, 0]);
    }
}
