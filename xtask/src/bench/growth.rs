//! `growth`: what eight times the keys cost one GET. Every access misses the caches in both; prefetching decides.

use super::options::Options;
use super::programs::{self, Zerohop};
use super::results::{Bar, CPU, Results};
use super::server::Server;
use super::slice::{Entrant, Load, interleaved, preload};
use crate::Outcome;

const GROWTH: u64 = 8;

/// Runs every backend, and Redis and Valkey for context.
pub fn run(options: &Options, results: &mut Results) -> Outcome<()> {
    let loads = [options.keys, options.keys * GROWTH].map(|keys| Load::new("get", 16, keys));
    let mut servers: Vec<(bool, [Server; 2])> = Vec::new();
    for backend in &options.backends {
        let start = || Zerohop::new(backend, &options.durability).start().ready();
        match (start(), start()) {
            (Ok(small), Ok(large)) => servers.push((true, [small, large])),
            (Err(message), _) | (_, Err(message)) => results.absent(message),
        }
    }
    for peer in ["redis-server", "valkey-server"] {
        servers.push((false, [programs::redis_like(peer, None)?.ready()?, programs::redis_like(peer, None)?.ready()?]));
    }
    for (_, pair) in &servers {
        for (server, load) in pair.iter().zip(&loads) {
            preload(server, load)?;
        }
    }
    let entrants: Vec<Entrant<'_>> = servers
        .iter()
        .flat_map(|(_, pair)| {
            pair.iter()
                .zip(&loads)
                .map(|(server, load)| Entrant::new(server, load).named(&format!("{}M", load.keys / 1_000_000)))
        })
        .collect();
    let rounds = interleaved("get-P16", &entrants, options)?;
    results.keep(&rounds);
    for (pair, (is_zerohop, _)) in servers.iter().enumerate() {
        let bar = if *is_zerohop { Bar::AtMost(1.3) } else { Bar::None };
        let reach = if *is_zerohop { Bar::AtMost(1.15) } else { Bar::None };
        results.compare(&rounds, (2 * pair + 1, 2 * pair), &CPU, bar).reach(reach);
    }
    Ok(())
}
