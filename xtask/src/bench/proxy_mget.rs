//! `proxy-mget`: fifty keys at once over three nodes, through the proxy before a cluster and through twemproxy.
//!
//! ```text
//!  CPU 0   three stores as a cluster, the proxy on each backend │ three of the same each on its own, twemproxy │ null servers
//!  CPU 1   generator
//! ```
//!
//! twemproxy knows no cluster: it asks each server for its share in one `MGET`. Redis in a cluster takes keys of one slot in a
//! request, so the proxy sends it fifty parts, and that difference is part of what is measured. Zerohop takes one request a node.
//!
//! Beside them a proxy that does nothing before three servers that do nothing: one request and one answer each of the lengths that these have.
//! What it is against twemproxy no program can be much below.

use super::options::Options;
use super::programs::{self, Zerohop, redis_like};
use super::proxy::{proxy, twemproxy};
use super::results::{Bar, CPU, Metric, Results, THROUGHPUT};
use super::server::Server;
use super::slice::{Entrant, Load, interleaved, preload};
use crate::Outcome;
use std::time::{Duration, Instant};

const NODES: usize = 3;
const SLOTS: usize = 16_384;
/// Slots go to instances by so many.
const SLOTS_OF_GROUP: usize = 256;
/// Of the cluster's nodes; it keeps nobody out who can read this.
const TOKEN: &str = "0123456789abcdef0123456789abcdef";
/// How long nodes that join may take to get their share, and how often it is looked at.
const SHARES_WITHIN: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(100);
const KEYS_PER_REQUEST: usize = 50;
/// p50 against twemproxy's.
const P50_MAX: f64 = 0.5;
const P50: Metric = Metric { name: "p50 us", of: |slice| slice.p50_us };

/// Cells by their connections.
const CELLS: [(&str, usize); 2] = [("mget-50-lonely", 1), ("mget-50", 50)];

/// Stores on their own, and as many that are a cluster.
struct Stores {
    alone: Vec<Server>,
    members: Vec<Server>,
    /// Where clients of the cluster ask its members, from their ports on.
    port_shift: u16,
}

/// Runs every cell before both kinds of stores.
pub fn run(options: &Options, results: &mut Results) -> Outcome<()> {
    results.note(format!("15 B keys, 132 B values, {} keys over {NODES} stores; CPU is theirs, too", options.keys));
    for kind in ["redis", "zerohop"] {
        let cells = CELLS.map(|(name, connections)| (format!("{name}-{kind}"), connections));
        if cells.iter().any(|(name, _)| options.wants(name)) {
            let stores = if kind == "redis" { redis()? } else { zerohop(options)? };
            before(options, results, &stores, &cells)?;
        }
    }
    Ok(())
}

fn before(options: &Options, results: &mut Results, stores: &Stores, cells: &[(String, usize)]) -> Outcome<()> {
    let Stores { alone, members, port_shift } = stores;
    let twemproxy = twemproxy(&ports(alone))?.ready()?;
    let shares = (0..NODES).map(|place| (KEYS_PER_REQUEST + place) / NODES);
    let nulls = shares.map(|keys| programs::null_many(keys).ready()).collect::<Outcome<Vec<Server>>>()?;
    let null = programs::null_fan_out(KEYS_PER_REQUEST, &nulls).ready()?;
    let seeds: Vec<u16> = ports(members).iter().map(|port| port + port_shift).collect();
    let proxies = programs::started(options, results, |backend| proxy(backend, &seeds).ready());
    let keys = Load::new("get", 1, options.keys);
    preload(&twemproxy, &keys)?;
    for (_, server) in proxies.iter().take(1) {
        preload(server, &keys)?;
    }
    for (name, connections) in cells.iter().filter(|(name, _)| options.wants(name)) {
        let load = Load::new("mget", 1, options.keys).with(&["--keys-per-request", &KEYS_PER_REQUEST.to_string()]);
        let load = load.connections(*connections);
        let mut entrants =
            vec![Entrant::new(&twemproxy, &beside(&load, alone)), Entrant::new(&null, &beside(&load, &nulls))];
        entrants.extend(proxies.iter().map(|(_, server)| Entrant::new(server, &beside(&load, members))));
        let rounds = interleaved(name, &entrants, options)?;
        results.keep(&rounds);
        for place in 1..entrants.len() {
            results.compare(&rounds, (place, 0), &P50, if place == 1 { Bar::None } else { Bar::AtMost(P50_MAX) });
            results.compare(&rounds, (place, 0), &CPU, Bar::None);
            results.compare(&rounds, (place, 0), &THROUGHPUT, Bar::None);
        }
    }
    Ok(())
}

fn redis() -> Outcome<Stores> {
    let (alone, members) = (started(&[])?, started(&["--cluster-enabled", "yes"])?);
    join(&members)?;
    Ok(Stores { alone, members, port_shift: 0 })
}

/// Nodes of one core, of the first backend asked for, without second copies.
fn zerohop(options: &Options) -> Outcome<Stores> {
    let backend = options.backends.first().ok_or("no backend was asked for")?;
    let store = Zerohop::new(backend, options.cluster_durability());
    let alone = (0..NODES).map(|_| store.start().ready()).collect::<Outcome<Vec<Server>>>()?;
    let mut members: Vec<Server> = Vec::new();
    for number in 0..NODES {
        let mut start = store.start();
        let place = match members.first() {
            None => vec!["--cluster".to_owned(), "new".to_owned()],
            Some(first) => vec!["--join".to_owned(), format!("127.0.0.1:{}", first.port)],
        };
        start.words.extend(place);
        let machine = format!("m{number}");
        start.words.extend(["--token", TOKEN, "--machine", &machine].map(str::to_owned));
        members.push(start.ready()?);
        members[0].await_cluster()?;
    }
    members[0].expect("ZH.CLUSTER CONFIGURE CHAIN-LENGTH 1", "+OK")?;
    await_shares(&members[0])?;
    Ok(Stores { alone, members, port_shift: 1 })
}

/// Waits until each node serves what is its due, and nothing moves any more.
fn await_shares(server: &Server) -> Outcome<()> {
    let deadline = Instant::now() + SHARES_WITHIN;
    loop {
        let status = server.ask("CLUSTER NODES")?;
        let shares: Vec<usize> = status.lines().map(slots_of).collect();
        if shares.len() == NODES && shares.iter().all(|slots| slots.abs_diff(SLOTS / NODES) < SLOTS_OF_GROUP) {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(format!("slots are not shared out within {SHARES_WITHIN:?}: {shares:?}"));
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Slots of a line of `CLUSTER NODES`.
fn slots_of(line: &str) -> usize {
    let range = |word: &str| {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        Some(last.parse::<usize>().ok()? + 1 - first.parse::<usize>().ok()?)
    };
    line.split(' ').skip(8).filter_map(range).sum()
}

fn started(more: &[&str]) -> Outcome<Vec<Server>> {
    (0..NODES)
        .map(|_| {
            let mut start = redis_like("redis-server", None)?;
            start.words.extend(more.iter().map(|word| (*word).to_owned()));
            start.ready()
        })
        .collect()
}

fn ports(servers: &[Server]) -> Vec<u16> {
    servers.iter().map(|server| server.port).collect()
}

/// The load with the CPU of these counted in.
fn beside(load: &Load, servers: &[Server]) -> Load {
    servers.iter().fold(load.clone(), |load, server| load.with(&["--beside-pid", &server.pid().to_string()]))
}

/// Makes a cluster of them, a stretch of slots each, and waits until all of them say that it serves.
fn join(servers: &[Server]) -> Outcome<()> {
    for (place, server) in servers.iter().enumerate() {
        let (first, end) = (place * SLOTS / NODES, (place + 1) * SLOTS / NODES);
        server.expect(&format!("CLUSTER ADDSLOTSRANGE {first} {}", end - 1), "+OK")?;
        server.expect(&format!("CLUSTER MEET 127.0.0.1 {}", servers[0].port), "+OK")?;
    }
    servers.iter().try_for_each(Server::await_cluster)
}

#[cfg(test)]
mod tests {
    use super::slots_of;

    #[test]
    fn slots_are_those_of_all_ranges_of_a_line() {
        let line = "07c3 127.0.0.1:30004@31004,host4 master - 0 1426238317239 4 connected 0-5460 9000 10000-10001";
        assert_eq!(slots_of(line), 5464);
        assert_eq!(slots_of("07c3 127.0.0.1:30004@31004 myself,master - 0 0 1 connected"), 0);
    }
}
