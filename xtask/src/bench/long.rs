//! `long`: what small requests of other clients suffer while somebody sets and gets values of 512 MiB, and while nine in ten requests are
//! for one key (AT-25).

use std::time::Instant;

use super::neighbour::{Neighbour, moved_bytes};
use super::options::Options;
use super::programs::{self, Zerohop};
use super::results::{Bar, Results};
use super::server::Server;
use super::slice::{Entrant, Load, preload, quiet_slice};
use crate::Outcome;

/// Requests a second of the others: few enough that they wait for nothing but what is measured.
const PER_SECOND: &str = "20000";
const METRIC: &str = "p99 beside values of 512 MiB over p99 alone";
const RATIO_MAX: f64 = 2.0;
/// About as long as a value takes to come and to go in `memory`; in `interval`, where the disk sets the pace, it takes longer.
const LONG_SLICE_SECONDS: f64 = 2.0;
const LONG_VALUES: [&str; 4] = ["--value-bytes", "536870912", "--connections", "1"];

/// Of 50,000 requests a second nine in ten are for one key.
const HOT_PER_SECOND: &str = "45000";
const OTHERS_PER_SECOND: &str = "5000";
const HOT_METRIC: &str = "p99 beside a key with nine of ten requests over p99 beside as many for all keys";

/// Every backend in `memory` and `interval`; Redis and Valkey without persistence for context.
pub fn run(options: &Options, results: &mut Results) -> Outcome<()> {
    results
        .note(format!("others: open loop, {PER_SECOND} GET a second, or SET, over 50 connections; both generators on one CPU, which the measured one has first: it sleeps until a request is due (one that spun left the other nothing). Alone: the client with long values stands still in the middle of one"));
    for durability in ["memory", "interval"] {
        for backend in &options.backends {
            let server = Zerohop::new(backend, durability).start().ready()?;
            measure(durability, (&server, Bar::AtMost(RATIO_MAX)), options, results)?;
        }
    }
    for peer in ["redis-server", "valkey-server"] {
        let server = programs::redis_like(peer, None)?.ready()?;
        measure("memory", (&server, Bar::None), options, results)?;
    }
    Ok(())
}

fn measure(durability: &str, server: (&Server, Bar), options: &Options, results: &mut Results) -> Outcome<()> {
    let reads = Cell::new(format!("long-{durability}"), ("get", PER_SECOND), server, options)?;
    beside_long_values(reads, results)?;
    let writes = Cell::new(format!("long-{durability}-writes"), ("set", PER_SECOND), server, options)?;
    beside_long_values(writes, results)?;
    let hot = Cell::new(format!("hot-{durability}"), ("get", OTHERS_PER_SECOND), server, options)?;
    beside_a_hot_key(hot, results)
}

/// One cell on one server.
struct Cell<'a> {
    name: String,
    server: &'a Server,
    bar: Bar,
    entrant: Entrant<'a>,
    options: Options,
}

impl<'a> Cell<'a> {
    /// `None` unless it is wanted; with its keys set.
    fn new(
        name: String,
        (operation, per_second): (&str, &str),
        (server, bar): (&'a Server, Bar),
        options: &Options,
    ) -> Outcome<Option<Cell<'a>>> {
        if !options.wants(&name) {
            return Ok(None);
        }
        preload(server, &Load::new("set", 1, options.keys))?;
        let load = Load::new(operation, 1, options.keys).with(&["--rate", per_second]).going_first();
        Ok(Some(Cell { name, server, bar, entrant: Entrant::new(server, &load), options: options.clone() }))
    }

    fn p99_us(&self) -> Outcome<f64> {
        Ok(quiet_slice(&self.entrant, &self.options, &mut 0)?.p99_us)
    }

    fn tell(
        &self,
        metric: &'static str,
        sides: [&str; 2],
        p99s_us: &[Vec<f64>; 2],
        results: &mut Results,
    ) -> Outcome<()> {
        let [without, with] = p99s_us;
        let ratios: Vec<f64> = with.iter().zip(without).map(|(with, without)| with / without).collect();
        results.value(&self.name, &self.server.name, metric, &ratios, self.bar)?;
        for (side, p99s_us) in sides.iter().zip(p99s_us) {
            results.value(&format!("{}-{side}", self.name), &self.server.name, "p99, us", p99s_us, Bar::None)?;
        }
        Ok(())
    }
}

/// Somebody sets and gets values of 512 MiB beside, or stands still in the middle of it.
fn beside_long_values(cell: Option<Cell<'_>>, results: &mut Results) -> Outcome<()> {
    let Some(mut cell) = cell else { return Ok(()) };
    cell.options.slice_seconds = LONG_SLICE_SECONDS;
    // A key of this cell's own: what the one before sent last may be set after everything was removed.
    let prefix: String = cell.name.split('-').filter_map(|word| word.chars().next()).chain([':']).collect();
    let mut neighbour = Neighbour::steady(cell.server, &[&["--key-prefix", &*prefix], &LONG_VALUES[..]].concat())?;
    let (mut p99s_us, mut megabytes_per_second) = ([Vec::new(), Vec::new()], Vec::new());
    for _ in 0..cell.options.pairs {
        neighbour.stand_still()?;
        p99s_us[0].push(cell.p99_us()?);
        neighbour.go_on()?;
        let (begun, before) = (Instant::now(), moved_bytes(cell.server)?);
        p99s_us[1].push(cell.p99_us()?);
        let moved = moved_bytes(cell.server)? - before;
        megabytes_per_second.push(moved / 1e6 / begun.elapsed().as_secs_f64());
    }
    cell.tell(METRIC, ["alone", "beside"], &p99s_us, results)?;
    let metric = "received and sent beside, MB a second";
    results.value(&format!("{}-beside", cell.name), &cell.server.name, metric, &megabytes_per_second, Bar::None)?;
    drop(neighbour);
    cell.server.ask("FLUSHALL").map(|_| ())
}

/// Somebody asks for all keys often beside, or for one.
fn beside_a_hot_key(cell: Option<Cell<'_>>, results: &mut Results) -> Outcome<()> {
    let Some(cell) = cell else { return Ok(()) };
    let all_keys = cell.options.keys.to_string();
    let mut p99s_us = [Vec::new(), Vec::new()];
    for _ in 0..cell.options.pairs {
        for (p99s_us, (prefix, keys)) in p99s_us.iter_mut().zip([("all:", &*all_keys), ("hot:", "1")]) {
            let words = ["--key-prefix", prefix, "--keys", keys, "--rate", HOT_PER_SECOND, "--sleep"];
            let _neighbour = Neighbour::start(cell.server, &words)?;
            p99s_us.push(cell.p99_us()?);
        }
    }
    cell.tell(HOT_METRIC, ["all-keys", "one-key"], &p99s_us, results)
}
