//! `z1`, `z6`, `z9`: claims of the ZHT thesis, repeated here.

use super::options::Options;
use super::programs::{self, Zerohop};
use super::results::{Bar, CPU, Results, THROUGHPUT};
use super::slice::{Entrant, Load, interleaved, preload, quiet_slice};
use crate::Outcome;

/// Z1 (section 2.2.4): an event loop reaches at least 3 times the throughput of a thread per request.
pub fn run_z1(options: &Options, results: &mut Results) -> Outcome<()> {
    let threads = programs::thread_per_request().ready()?;
    let zerohops = programs::zerohops(options, results, |backend| Zerohop::new(backend, &options.durability));
    let load = Load::new("get", 1, options.keys).connections(256);
    let servers: Vec<_> = std::iter::once(&threads).chain(zerohops.iter().map(|(_, server)| server)).collect();
    for server in &servers {
        preload(server, &load)?;
    }
    let entrants: Vec<Entrant<'_>> = servers.iter().map(|server| Entrant::new(server, &load)).collect();
    let rounds = interleaved("z1-get-256c", &entrants, options)?;
    results.keep(&rounds);
    for zerohop in 1..servers.len() {
        results.compare(&rounds, (zerohop, 0), &THROUGHPUT, Bar::AtLeast(3.0));
    }
    Ok(())
}

/// Z6 (section 2.3.5.1): throughput against memcached, which keeps nothing; `interval` durability here.
pub fn run_z6(options: &Options, results: &mut Results) -> Outcome<()> {
    let memcached = programs::memcached()?.ready()?;
    let zerohops = programs::zerohops(options, results, |backend| Zerohop::new(backend, "interval"));
    let speaks_memcached = |load: &Load| load.clone().with(&["--memcached"]);
    let load = Load::new("get", 1, options.keys);
    preload(&memcached, &speaks_memcached(&load))?;
    for (_, server) in &zerohops {
        preload(server, &load)?;
    }
    for (op, pipeline) in [("get", 1), ("set", 1), ("get", 16), ("set", 16)] {
        let cell = format!("z6-{op}-P{pipeline}");
        if !options.wants(&cell) {
            continue;
        }
        let load = Load::new(op, pipeline, options.keys);
        let first = Entrant::new(&memcached, &speaks_memcached(&load));
        let others = zerohops.iter().map(|(_, server)| Entrant::new(server, &load));
        let entrants: Vec<Entrant<'_>> = std::iter::once(first).chain(others).collect();
        let rounds = interleaved(&cell, &entrants, options)?;
        results.keep(&rounds);
        for zerohop in 1..entrants.len() {
            results.compare(&rounds, (zerohop, 0), &THROUGHPUT, Bar::AtLeast(0.95));
            results.compare(&rounds, (zerohop, 0), &CPU, Bar::None);
        }
    }
    Ok(())
}

/// Z9 (table 2.1): p99 over mean latency at moderate load. Open loop at half of what a closed loop reaches. The null servers
/// show what this machine allows: whatever stops a CPU for milliseconds is in their p99, too.
pub fn run_z9(options: &Options, results: &mut Results) -> Outcome<()> {
    let closed = Load::new("get", 1, options.keys);
    let redis = programs::redis_like("redis-server", None)?.ready()?;
    let valkey = programs::redis_like("valkey-server", None)?.ready()?;
    let zerohops = programs::zerohops(options, results, |backend| Zerohop::new(backend, &options.durability));
    let nulls = programs::started(options, results, |backend| programs::null(backend, "get").ready());
    let mut entrants = Vec::new();
    let stores = [&redis, &valkey].into_iter().chain(zerohops.iter().map(|(_, server)| server));
    for server in stores.clone() {
        preload(server, &closed)?;
    }
    for server in stores.chain(nulls.iter().map(|(_, server)| server)) {
        let saturated = quiet_slice(&Entrant::new(server, &closed), options, &mut 3)?;
        let half = format!("{:.0}", saturated.per_second / 2.0);
        entrants.push(Entrant::new(server, &closed.clone().with(&["--rate", &half])));
    }
    let rounds = interleaved("z9-half-load", &entrants, options)?;
    results.keep(&rounds);
    for (name, index) in rounds.names.iter().zip(0..) {
        let ratios = rounds.column(index, |slice| slice.p99_us / slice.mean_us);
        let bar = if name.starts_with("zerohop") { Bar::AtMost(1.86) } else { Bar::None };
        results.value("z9-half-load", name, "p99 / mean latency", &ratios, bar)?;
    }
    Ok(())
}
