//! `durability`: what `interval` costs over `memory`, and what `commit` reaches beside `appendfsync always`.

use super::options::Options;
use super::programs::{self, Zerohop};
use super::results::{Bar, CPU, Results, THROUGHPUT};
use super::slice::{Entrant, Load, interleaved, preload};
use crate::Outcome;

/// Runs every backend.
pub fn run(options: &Options, results: &mut Results) -> Outcome<()> {
    let set = |pipeline| Load::new("set", pipeline, options.keys);
    let redis = programs::redis_like("redis-server", Some("always"))?.ready()?;
    let valkey = programs::redis_like("valkey-server", Some("always"))?.ready()?;
    let peers = [&redis, &valkey];
    for backend in &options.backends {
        let modes = ["memory", "interval", "commit"].map(|mode| Zerohop::new(backend, mode).start().ready());
        let [Ok(memory), Ok(interval), Ok(commit)] = modes else {
            modes.into_iter().filter_map(Result::err).for_each(|message| println!("NOT MEASURED: {message}"));
            continue;
        };
        for server in [&memory, &interval] {
            preload(server, &set(1))?;
        }
        let entrants = [Entrant::new(&interval, &set(16)), Entrant::new(&memory, &set(16))];
        let rounds = interleaved("set-P16", &entrants, options)?;
        results.keep(&rounds);
        results.compare(&rounds, (0, 1), &CPU, Bar::AtMost(1.25)).reach("<= 1.15");
        // A disk may stall for longer than a short slice.
        let options = &Options { slice_seconds: options.slice_seconds.max(1.0), ..options.clone() };
        for (pipeline, bar, reach) in [(1, 1.5, ">= 2"), (16, 2.0, ">= 3")] {
            let cell = format!("set-P{pipeline}-fsync");
            let servers = std::iter::once(&commit).chain(peers);
            let entrants: Vec<Entrant<'_>> = servers.map(|server| Entrant::new(server, &set(pipeline))).collect();
            let rounds = interleaved(&cell, &entrants, options)?;
            results.keep(&rounds);
            results.compare(&rounds, (0, 1), &THROUGHPUT, Bar::AtLeast(bar)).reach(reach);
            results.compare(&rounds, (0, 2), &THROUGHPUT, Bar::AtLeast(bar)).reach(reach);
        }
    }
    Ok(())
}
