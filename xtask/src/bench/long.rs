//! `long`: what small requests of other clients suffer while somebody sets and gets values of 512 MiB, and while nine in ten requests are
//! for one key (AT-25).

use std::time::{Duration, Instant};

use super::neighbour::{Neighbour, moved_bytes};
use super::options::Options;
use super::programs::{self, Zerohop};
use super::quiet_machine::QuietMachine;
use super::results::{Bar, Results};
use super::server::Server;
use super::slice::{Entrant, Load, preload, quiet_slice};
use super::statistics::Median;
use crate::Outcome;

/// Requests a second of the others: few enough that they wait for nothing but what is measured.
const PER_SECOND: &str = "20000";
const METRIC: &str = "p99 beside values of 512 MiB over p99 alone";
const RATIO_MAX: f64 = 2.0;
/// About as long as a value takes to come and to go in `memory`; in `interval`, where the disk sets the pace, it takes longer.
const LONG_SLICE_SECONDS: f64 = 2.0;
const LONG_VALUE_BYTES: f64 = 536_870_912.0;
const LONG_VALUES: [&str; 4] = ["--value-bytes", "536870912", "--connections", "1"];

/// Of 50,000 requests a second nine in ten are for one key.
const HOT_PER_SECOND: &str = "45000";
const OTHERS_PER_SECOND: &str = "5000";
const HOT_METRIC: &str = "p99 beside a key with nine of ten requests over p99 beside as many for all keys";

/// Every backend in `memory` and `interval`; Redis and Valkey without persistence for context.
pub fn run(options: &Options, results: &mut Results) -> Outcome<()> {
    let _quiet = QuietMachine::new(results);
    results
        .note(format!("others: open loop, {PER_SECOND} GET a second, or SET, over 50 connections; both generators on one CPU, which the measured one has first: it sleeps until a request is due (one that spun left the other nothing). Alone: the client with long values stands still in the middle of one"));
    for durability in ["memory", "interval"] {
        for backend in &options.backends {
            let server = Zerohop::new(backend, durability).start().ready()?;
            let limit = (durability == "interval").then_some(&**backend);
            measure(durability, (&server, Bar::AtMost(RATIO_MAX)), limit, options, results)?;
        }
    }
    for peer in ["redis-server", "valkey-server"] {
        let server = programs::redis_like(peer, None)?.ready()?;
        measure("memory", (&server, Bar::None), None, options, results)?;
    }
    Ok(())
}

/// `limit` is the backend of a server that does nothing, which is measured in the same way.
fn measure(
    durability: &str,
    server: (&Server, Bar),
    limit: Option<&str>,
    options: &Options,
    results: &mut Results,
) -> Outcome<()> {
    for (operation, suffix) in [("get", ""), ("set", "-writes")] {
        let name = format!("long-{durability}{suffix}");
        let Some(cell) = Cell::new(name.clone(), (operation, PER_SECOND), server, options)? else { continue };
        let megabytes_per_second = beside_long_values(cell, results)?;
        if let Some(backend) = limit {
            // A store receives as many as it sends.
            let received = megabytes_per_second / 2.0;
            let nothing = programs::null_long(backend, operation, received).ready()?;
            beside_nothing(&name, (operation, received), &nothing, options, results)?;
        }
    }
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
        Ok(Some(Cell::of(name, (operation, per_second), (server, bar), options)))
    }

    /// With whatever keys there are.
    fn of(
        name: String,
        (operation, per_second): (&str, &str),
        (server, bar): (&'a Server, Bar),
        options: &Options,
    ) -> Cell<'a> {
        let load = Load::new(operation, 1, options.keys).with(&["--rate", per_second]).going_first();
        Cell { name, server, bar, entrant: Entrant::new(server, &load), options: options.clone() }
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

/// Somebody sets and gets values of 512 MiB beside, or stands still in the middle of it; megabytes a second that they were.
fn beside_long_values(mut cell: Cell<'_>, results: &mut Results) -> Outcome<f64> {
    cell.options.slice_seconds = LONG_SLICE_SECONDS;
    // A key of this cell's own: what the one before sent last may be set after everything was removed.
    let prefix: String = cell.name.split('-').filter_map(|word| word.chars().next()).chain([':']).collect();
    let mut neighbour = Neighbour::steady(cell.server, &[&["--key-prefix", &*prefix], &LONG_VALUES[..]].concat())?;
    let mut megabytes_per_second = Vec::new();
    let p99s_us = in_turns(&cell, &mut neighbour, |p99_us| {
        let (begun, before) = (Instant::now(), moved_bytes(cell.server)?);
        let p99_us = p99_us()?;
        megabytes_per_second.push((moved_bytes(cell.server)? - before) / 1e6 / begun.elapsed().as_secs_f64());
        Ok(p99_us)
    })?;
    cell.tell(METRIC, ["alone", "beside"], &p99s_us, results)?;
    let metric = "received and sent beside, MB a second";
    results.value(&format!("{}-beside", cell.name), &cell.server.name, metric, &megabytes_per_second, Bar::None)?;
    drop(neighbour);
    cell.server.ask("FLUSHALL")?;
    Median::of(&megabytes_per_second).map(|median| median.value).ok_or_else(|| "no pair was measured".to_owned())
}

/// The limit of the machine: the same beside a server that moves as many bytes to and from sockets and disk, and does nothing else.
fn beside_nothing(
    name: &str,
    (operation, megabytes_per_second): (&str, f64),
    server: &Server,
    options: &Options,
    results: &mut Results,
) -> Outcome<()> {
    let options = Options { slice_seconds: LONG_SLICE_SECONDS, ..options.clone() };
    let cell = Cell::of(name.to_owned(), (operation, PER_SECOND), (server, Bar::None), &options);
    let for_value = Duration::from_secs_f64(LONG_VALUE_BYTES / 1e6 / megabytes_per_second);
    let mut neighbour = Neighbour::behind(server, &LONG_VALUES, for_value)?;
    let p99s_us = in_turns(&cell, &mut neighbour, |p99_us| p99_us())?;
    cell.tell(METRIC, ["alone", "beside"], &p99s_us, results)
}

/// The p99 of as many slices while the neighbour stands still and while it goes on.
fn in_turns(
    cell: &Cell<'_>,
    neighbour: &mut Neighbour<'_>,
    mut beside: impl FnMut(&dyn Fn() -> Outcome<f64>) -> Outcome<f64>,
) -> Outcome<[Vec<f64>; 2]> {
    let mut p99s_us = [Vec::new(), Vec::new()];
    for _ in 0..cell.options.pairs {
        neighbour.stand_still()?;
        p99s_us[0].push(cell.p99_us()?);
        neighbour.go_on()?;
        p99s_us[1].push(beside(&|| cell.p99_us())?);
    }
    Ok(p99s_us)
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
