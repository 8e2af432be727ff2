//! `proxy-mget`: fifty keys at once over three nodes, through the proxy before a cluster and through twemproxy.
//!
//! ```text
//!  CPU 0   three Redis as a cluster, the proxy on each backend │ three Redis each on its own, twemproxy     one is loaded
//!  CPU 1   generator
//! ```
//!
//! twemproxy knows no cluster: it asks each server for its share in one `MGET`. Nodes of a cluster take keys of one slot in a
//! request, so the proxy sends them fifty parts. That difference is part of what is measured.

use super::options::Options;
use super::programs::{self, redis_like};
use super::proxy::{proxy, twemproxy};
use super::results::{Bar, CPU, Metric, Results, THROUGHPUT};
use super::server::Server;
use super::slice::{Entrant, Load, interleaved, preload};
use crate::Outcome;

const NODES: usize = 3;
const KEYS_PER_REQUEST: &str = "50";
/// p50 against twemproxy's.
const P50_MAX: f64 = 0.5;
const P50: Metric = Metric { name: "p50 us", of: |slice| slice.p50_us };

/// Cells by their connections.
const CELLS: [(&str, usize); 2] = [("mget-50-lonely", 1), ("mget-50", 50)];

/// Runs every cell.
pub fn run(options: &Options, results: &mut Results) -> Outcome<()> {
    let (alone, members) = (started(&[])?, started(&["--cluster-enabled", "yes"])?);
    join(&members)?;
    let twemproxy = twemproxy(&ports(&alone))?.ready()?;
    let proxies = programs::started(options, results, |backend| proxy(backend, &ports(&members)).ready());
    let keys = Load::new("get", 1, options.keys);
    preload(&twemproxy, &keys)?;
    for (_, server) in proxies.iter().take(1) {
        preload(server, &keys)?;
    }
    results.note(format!("15 B keys, 132 B values, {} keys over {NODES} Redis; CPU is theirs, too", options.keys));
    for (name, connections) in CELLS {
        if !options.wants(name) {
            continue;
        }
        let load = Load::new("mget", 1, options.keys).with(&["--keys-per-request", KEYS_PER_REQUEST]);
        let load = load.connections(connections);
        let mut entrants = vec![Entrant::new(&twemproxy, &beside(&load, &alone))];
        entrants.extend(proxies.iter().map(|(_, server)| Entrant::new(server, &beside(&load, &members))));
        let rounds = interleaved(name, &entrants, options)?;
        results.keep(&rounds);
        for place in 1..entrants.len() {
            results.compare(&rounds, (place, 0), &P50, Bar::AtMost(P50_MAX));
            results.compare(&rounds, (place, 0), &CPU, Bar::None);
            results.compare(&rounds, (place, 0), &THROUGHPUT, Bar::None);
        }
    }
    Ok(())
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
    const SLOTS: usize = 16_384;
    for (place, server) in servers.iter().enumerate() {
        let (first, end) = (place * SLOTS / NODES, (place + 1) * SLOTS / NODES);
        server.expect(&format!("CLUSTER ADDSLOTSRANGE {first} {}", end - 1), "+OK")?;
        server.expect(&format!("CLUSTER MEET 127.0.0.1 {}", servers[0].port), "+OK")?;
    }
    servers.iter().try_for_each(Server::await_cluster)
}
