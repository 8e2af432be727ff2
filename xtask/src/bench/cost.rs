//! `peers`: server CPU per request, Zerohop beside the null server, Redis and Valkey.

use super::options::Options;
use super::programs::{self, Zerohop};
use super::results::{Bar, CPU, Results};
use super::server::Server;
use super::slice::{Entrant, Load, interleaved, preload};
use crate::Outcome;

/// One line of the table of measures; bars are (io_uring, epoll).
struct Cell {
    name: &'static str,
    op: &'static str,
    pipeline: usize,
    connections: usize,
    redis: (f64, f64),
    valkey: (f64, f64),
    /// Bar against the null server on the same backend.
    null: Bar,
    null_reach: Bar,
}

impl Cell {
    /// A pipelined cell: the same bar against both peers, none against the null server.
    const fn pipelined(name: &'static str, op: &'static str, pipeline: usize, bars: (f64, f64)) -> Cell {
        Cell {
            name,
            op,
            pipeline,
            connections: 50,
            redis: bars,
            valkey: bars,
            null: Bar::None,
            null_reach: Bar::AtMost(1.25),
        }
    }

    const fn of_500_connections(name: &'static str, op: &'static str, pipeline: usize, bars: (f64, f64)) -> Cell {
        Cell { connections: 500, null_reach: Bar::None, ..Cell::pipelined(name, op, pipeline, bars) }
    }

    const fn single(name: &'static str, op: &'static str) -> Cell {
        Cell {
            redis: (0.92, 1.0),
            valkey: (0.85, 0.95),
            null: Bar::AtMost(1.15),
            null_reach: Bar::AtMost(1.06),
            ..Cell::pipelined(name, op, 1, (0.0, 0.0))
        }
    }
}

const CELLS: &[Cell] = &[
    Cell::single("get-P1", "get"),
    Cell::single("set-P1", "set"),
    Cell::pipelined("get-P16", "get", 16, (0.60, 0.70)),
    Cell::pipelined("set-P16", "set", 16, (0.50, 0.55)),
    Cell::pipelined("get-P64", "get", 64, (0.50, 0.60)),
    Cell::pipelined("set-P64", "set", 64, (0.40, 0.45)),
    Cell::of_500_connections("get-P1-500c", "get", 1, (0.88, 1.0)),
    Cell::of_500_connections("set-P1-500c", "set", 1, (0.88, 1.0)),
    Cell::of_500_connections("get-P16-500c", "get", 16, (0.60, 0.70)),
    Cell::of_500_connections("set-P16-500c", "set", 16, (0.60, 0.70)),
];

const MANY_KEYS: &str = "mget-50";

/// Runs every cell that was asked for.
pub fn run(options: &Options, results: &mut Results) -> Outcome<()> {
    let redis = programs::redis_like("redis-server", None)?.ready()?;
    let valkey = programs::redis_like("valkey-server", None)?.ready()?;
    let zerohops = programs::zerohops(options, results, |backend| Zerohop::new(backend, &options.durability));
    for server in [&redis, &valkey].into_iter().chain(zerohops.iter().map(|(_, server)| server)) {
        preload(server, &Load::new("get", 1, options.keys))?;
    }
    results.note(format!("15 B keys, 132 B values, {} keys; Redis and Valkey without persistence", options.keys));
    for cell in CELLS.iter().filter(|cell| options.wants(cell.name)) {
        run_cell(cell, options, results, [&redis, &valkey], &zerohops)?;
    }
    if options.wants(MANY_KEYS) {
        many_keys(options, results, [&redis, &valkey], &zerohops)?;
    }
    Ok(())
}

/// Fifty keys at once, for which no bar was set.
fn many_keys(
    options: &Options,
    results: &mut Results,
    [redis, valkey]: [&Server; 2],
    zerohops: &[(String, Server)],
) -> Outcome<()> {
    let load = Load::new("mget", 1, options.keys).with(&["--keys-per-request", "50"]);
    let servers = [redis, valkey].into_iter().chain(zerohops.iter().map(|(_, server)| server));
    let entrants: Vec<Entrant<'_>> = servers.map(|server| Entrant::new(server, &load)).collect();
    let rounds = interleaved(MANY_KEYS, &entrants, options)?;
    results.keep(&rounds);
    for zerohop in 2..entrants.len() {
        results.compare(&rounds, (zerohop, 0), &CPU, Bar::None);
        results.compare(&rounds, (zerohop, 1), &CPU, Bar::None);
    }
    Ok(())
}

fn run_cell(
    cell: &Cell,
    options: &Options,
    results: &mut Results,
    [redis, valkey]: [&Server; 2],
    zerohops: &[(String, Server)],
) -> Outcome<()> {
    let load = Load::new(cell.op, cell.pipeline, options.keys).connections(cell.connections);
    let nulls = programs::started(options, results, |backend| programs::null(backend, cell.op).ready());
    let servers: Vec<(&str, &Server)> = [("", redis), ("", valkey)]
        .into_iter()
        .chain(nulls.iter().chain(zerohops).map(|(backend, server)| (backend.as_str(), server)))
        .collect();
    let entrants: Vec<Entrant<'_>> = servers.iter().map(|(_, server)| Entrant::new(server, &load)).collect();
    let rounds = interleaved(cell.name, &entrants, options)?;
    results.keep(&rounds);
    for (zerohop, (backend, _)) in servers.iter().enumerate().skip(2 + nulls.len()) {
        let pick = |(uring, epoll): (f64, f64)| if *backend == "uring" { uring } else { epoll };
        if let Some(null) = nulls.iter().position(|(null_backend, _)| null_backend == backend) {
            results.compare(&rounds, (zerohop, 2 + null), &CPU, cell.null).reach(cell.null_reach);
        }
        results.compare(&rounds, (zerohop, 0), &CPU, Bar::AtMost(pick(cell.redis)));
        results.compare(&rounds, (zerohop, 1), &CPU, Bar::AtMost(pick(cell.valkey)));
    }
    // The limit: what a server that does nothing costs on this machine, in the peers' measure.
    for null in 2..2 + nulls.len() {
        results.compare(&rounds, (null, 0), &CPU, Bar::None);
        results.compare(&rounds, (null, 1), &CPU, Bar::None);
    }
    Ok(())
}
