//! `durability`: what `interval` costs over `memory`, and what `commit` reaches beside `appendfsync always`.

use super::options::Options;
use super::programs::{self, Zerohop};
use super::results::{Bar, CPU, Results, THROUGHPUT};
use super::server::{Server, Start};
use super::slice::{Entrant, Load, Rounds, interleaved, preload};
use crate::Outcome;

const COMMIT_CELLS: [(usize, f64, f64); 2] = [(1, 1.5, 2.0), (16, 2.0, 3.0)];

/// Starts of the servers of which pairs are taken.
const STARTS: usize = 5;
/// At the rates of these loads, all keys several times.
const STEADY_SECONDS: f64 = 3.0;

/// Runs every backend.
pub fn run(options: &Options, results: &mut Results) -> Outcome<()> {
    if options.wants("set-P16") {
        interval(options, results)?;
    }
    let cells = COMMIT_CELLS.into_iter().filter(|(pipeline, ..)| options.wants(&name_of(*pipeline)));
    commit(&cells.collect::<Vec<_>>(), options, results)
}

fn name_of(pipeline: usize) -> String {
    format!("set-P{pipeline}-fsync")
}

/// Over several starts of the servers: where memory and files lie makes as much of a difference from start to start as what is
/// measured (`docs/status.md`), and no bound of the pairs of one start shows that.
fn interval(options: &Options, results: &mut Results) -> Outcome<()> {
    let load = Load::new("set", 16, options.keys);
    // Rounds in which each comes at each place as often as at any other.
    let pairs = options.pairs.div_ceil(STARTS).next_multiple_of(4);
    let of_a_start = &Options { pairs, ..options.clone() };
    for backend in &options.backends {
        let (mut short, mut steady) = (None, None);
        for _ in 0..STARTS {
            let stores = ["interval", "memory"].map(|mode| Zerohop::new(backend, mode).start());
            let [interval, memory] = stores;
            let nulls = [programs::null_log(backend), programs::null(backend, "set")];
            let [log, nothing] = nulls;
            let started = [interval, memory, log, nothing].map(Start::ready);
            let [Ok(interval), Ok(memory), Ok(log), Ok(nothing)] = started else {
                started.into_iter().filter_map(Result::err).for_each(|message| results.absent(message));
                break;
            };
            for server in [&interval, &memory] {
                preload(server, &load)?;
            }
            let entrants = [&interval, &memory, &log, &nothing].map(|server| Entrant::new(server, &load));
            Rounds::join(&mut short, interleaved("set-P16", &entrants, of_a_start)?);
            // For so long that every run the log asks for is made meanwhile: of a slice's, some are made behind it.
            let long = &Options { slice_seconds: STEADY_SECONDS, pairs: 2, ..options.clone() };
            Rounds::join(&mut steady, interleaved("set-P16 steady", &entrants[..2], long)?);
        }
        let (Some(short), Some(steady)) = (short, steady) else { continue };
        results.keep(&short);
        results.compare(&short, (0, 1), &CPU, Bar::AtMost(1.25)).reach(Bar::AtMost(1.15));
        // What the same bytes cost who does nothing else with them: the part that is the kernel's.
        results.compare(&short, (2, 3), &CPU, Bar::None);
        floor(&short, results)?;
        results.keep(&steady);
        results.compare(&steady, (0, 1), &CPU, Bar::None);
    }
    Ok(())
}

fn commit(cells: &[(usize, f64, f64)], options: &Options, results: &mut Results) -> Outcome<()> {
    if cells.is_empty() {
        return Ok(());
    }
    let redis = programs::redis_like("redis-server", Some("always"))?.ready()?;
    let valkey = programs::redis_like("valkey-server", Some("always"))?.ready()?;
    let zerohops = programs::zerohops(options, results, |backend| Zerohop::new(backend, "commit"));
    let servers: Vec<&Server> =
        [&redis, &valkey].into_iter().chain(zerohops.iter().map(|(_, server)| server)).collect();
    // A disk may stall for longer than a short slice.
    let options = &Options { slice_seconds: options.slice_seconds.max(1.0), ..options.clone() };
    for &(pipeline, bar, reach) in cells {
        let load = Load::new("set", pipeline, options.keys);
        let entrants: Vec<Entrant<'_>> = servers.iter().map(|server| Entrant::new(server, &load)).collect();
        let rounds = interleaved(&name_of(pipeline), &entrants, options)?;
        results.keep(&rounds);
        for zerohop in 2..servers.len() {
            for peer in [0, 1] {
                let row = results.compare(&rounds, (zerohop, peer), &THROUGHPUT, Bar::AtLeast(bar));
                row.reach(Bar::AtLeast(reach));
            }
        }
    }
    Ok(())
}

/// What `interval` would cost over `memory` if its log and runs cost no more than who only writes as many bytes pays for them.
fn floor(rounds: &Rounds, results: &mut Results) -> Outcome<()> {
    let [memory, log, nothing] = [1, 2, 3].map(|entrant| rounds.column(entrant, CPU.of));
    let least: Vec<f64> = (0..memory.len()).map(|round| memory[round] + log[round] - nothing[round]).collect();
    let names = (format!("{} and the writes alone", rounds.names[1]), &rounds.names[1]);
    results.ratios((&rounds.cell, CPU.name), (&names.0, &least), (names.1, &memory), Bar::None)?;
    Ok(())
}
