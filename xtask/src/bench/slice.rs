//! One slice: a short closed or open loop against one server, and slices interleaved over several.

use std::time::{Duration, Instant};

use serde::Deserialize;

use super::options::Options;
use super::programs::built;
use super::progress::Progress;
use super::server::{Server, in_real_time, outranking};
use crate::{Outcome, process};

/// A slice during which anything else used more than this many cores is repeated.
const FOREIGN_CORES_MAX: f64 = 0.15;
/// How often a disturbed slice is tried; the quietest try counts, and its disturbance is printed.
const TRIES_MAX: usize = 4;
/// One repetition per so many slices of a cell at most: a machine that is never quiet must not take all day, and the
/// disturbance of what is kept stands beside it.
const SLICES_PER_REPETITION: usize = 4;
/// Servers are at rest when all of them together took less than a fiftieth of this time.
const REST_LOOK: Duration = Duration::from_millis(50);
/// A server that is never at rest is not waited for longer.
const REST_PATIENCE: Duration = Duration::from_secs(2);

/// What a slice sends.
#[derive(Clone, Debug)]
pub struct Load {
    /// Options of the load generator that say what is sent.
    pub words: Vec<String>,
    /// Connections.
    pub connections: usize,
    /// Requests in flight per connection.
    pub pipeline: usize,
    /// Keys.
    pub keys: u64,
    /// CPU of the generator; `None` lets it float.
    pub pin: Option<usize>,
    /// Whether it goes before whoever else has that CPU; it is to sleep, then.
    pub goes_first: bool,
}

impl Load {
    /// `op` on `keys` keys from 50 connections, the generator on CPU 1.
    pub fn new(op: &str, pipeline: usize, keys: u64) -> Load {
        Load { words: vec!["--op".into(), op.into()], connections: 50, pipeline, keys, pin: Some(1), goes_first: false }
    }

    /// With more options of the load generator.
    pub fn with(mut self, words: &[&str]) -> Load {
        self.words.extend(words.iter().map(|word| (*word).to_owned()));
        self
    }

    /// With a generator that sleeps, and goes before whoever else has its CPU.
    pub fn going_first(mut self) -> Load {
        self.goes_first = true;
        self.with(&["--sleep"])
    }

    /// With so many connections.
    pub fn connections(mut self, connections: usize) -> Load {
        self.connections = connections;
        self
    }
}

#[derive(Clone, Debug, Deserialize)]
struct ServerCost {
    us_per_request: f64,
    cores: f64,
}

#[derive(Clone, Debug, Deserialize)]
struct Latency {
    mean: f64,
    p50: f64,
    p99: f64,
    p99_9: f64,
    max: f64,
}

#[derive(Clone, Debug, Deserialize)]
struct LoadReport {
    per_second: f64,
    latency_us: Option<Latency>,
    errors: u64,
    errors_outside: u64,
    first_error: Option<String>,
    misses: u64,
    misses_outside: u64,
    server: Option<ServerCost>,
    generator_cores: f64,
    foreign_cores: Option<f64>,
}

/// What one slice showed.
#[derive(Clone, Copy, Debug)]
pub struct Slice {
    /// Server CPU per request, microseconds.
    pub us_per_request: f64,
    /// Replies per second.
    pub per_second: f64,
    /// Mean latency, microseconds.
    pub mean_us: f64,
    /// Median latency, microseconds.
    pub p50_us: f64,
    /// 99th percentile, microseconds.
    pub p99_us: f64,
    /// 99.9th percentile, microseconds.
    pub p99_9_us: f64,
    /// Longest, microseconds.
    pub max_us: f64,
    /// Cores the server kept busy.
    pub server_cores: f64,
    /// Cores the generator kept busy.
    pub generator_cores: f64,
    /// Cores anything else kept busy.
    pub foreign_cores: f64,
}

/// One server in a comparison, with what is sent to it.
pub struct Entrant<'a> {
    /// Name in tables.
    pub name: String,
    /// The server.
    pub server: &'a Server,
    /// Its load.
    pub load: Load,
}

impl<'a> Entrant<'a> {
    /// Named apart from the same server under another load.
    pub fn named(mut self, what: &str) -> Entrant<'a> {
        self.name = format!("{} {what}", self.name);
        self
    }

    /// `load` on `server`.
    pub fn new(server: &'a Server, load: &Load) -> Entrant<'a> {
        Entrant { name: server.name.clone(), server, load: load.clone() }
    }
}

/// Writes every key of `load` once.
pub fn preload(server: &Server, load: &Load) -> Outcome<()> {
    let mut load = load.clone();
    load.pipeline = 1;
    load.words.push("--preload".into());
    generate(server, &load, 0.05, 0.0).map(|_| ())
}

/// All slices of a cell.
pub struct Rounds {
    /// The load, in a word.
    pub cell: String,
    /// Names of the entrants.
    pub names: Vec<String>,
    /// `slices[round][entrant]`.
    slices: Vec<Vec<Slice>>,
}

impl Rounds {
    /// Those of another start of the same entrants count as more of the same.
    pub fn join(all: &mut Option<Rounds>, more: Rounds) {
        match all {
            Some(all) => all.slices.extend(more.slices),
            None => *all = Some(more),
        }
    }

    /// One number of every slice of an entrant, in the order of the rounds.
    pub fn column(&self, entrant: usize, of: fn(&Slice) -> f64) -> Vec<f64> {
        self.slices.iter().map(|round| of(&round[entrant])).collect()
    }
}

/// `pairs` rounds over all entrants, the order turned by one each round.
pub fn interleaved(cell: &str, entrants: &[Entrant<'_>], options: &Options) -> Outcome<Rounds> {
    let mut rounds = Vec::new();
    let total = options.pairs * entrants.len();
    let mut repetitions_left = total.div_ceil(SLICES_PER_REPETITION);
    let mut progress = Progress::new(cell, total);
    for round in 0..options.pairs {
        let mut slices = vec![None; entrants.len()];
        for (step, index) in order_of(round, entrants.len()).into_iter().enumerate() {
            await_rest(entrants);
            slices[index] = Some(quiet_slice(&entrants[index], options, &mut repetitions_left)?);
            progress.show(round * entrants.len() + step + 1);
        }
        rounds.push(slices.into_iter().flatten().collect());
    }
    let names = entrants.iter().map(|entrant| entrant.name.clone()).collect();
    Ok(Rounds { cell: cell.to_owned(), names, slices: rounds })
}

/// Waits until nobody does any more what its last slice left to be done: whoever has its turn beside that gets less of the CPU,
/// takes more requests at a time, and so pays less for each.
fn await_rest(entrants: &[Entrant<'_>]) {
    let used = || entrants.iter().filter_map(|entrant| entrant.server.run_time_ns().ok()).sum::<u64>();
    let (begun, mut before) = (Instant::now(), used());
    while begun.elapsed() < REST_PATIENCE {
        std::thread::sleep(REST_LOOK);
        let now = used();
        if u128::from(now.saturating_sub(before)) * 50 < REST_LOOK.as_nanos() {
            return;
        }
        before = now;
    }
}

/// Whose turn it is in a round, by the square of Williams: each comes at each place, and behind each other one, equally often. What one
/// leaves to the disk or to caches would else always be the same one's to bear.
fn order_of(round: usize, count: usize) -> Vec<usize> {
    let zigzag = |step: usize| if step % 2 == 1 { step.div_ceil(2) } else { count - step / 2 };
    let mut order: Vec<usize> = (0..count).map(|step| (round + zigzag(step)) % count).collect();
    // Of an odd number only this and its mirror image together are balanced.
    if count % 2 == 1 && round / count % 2 == 1 {
        order.reverse();
    }
    order
}

/// One slice, tried again while the machine is disturbed and repetitions are left.
pub fn quiet_slice(entrant: &Entrant<'_>, options: &Options, repetitions_left: &mut usize) -> Outcome<Slice> {
    let mut quietest: Option<Slice> = None;
    for _ in 0..TRIES_MAX {
        let slice = generate(entrant.server, &entrant.load, options.slice_seconds, options.warm_up_seconds)?;
        if quietest.is_none_or(|best| slice.foreign_cores < best.foreign_cores) {
            quietest = Some(slice);
        }
        if slice.foreign_cores <= FOREIGN_CORES_MAX || *repetitions_left == 0 {
            break;
        }
        *repetitions_left -= 1;
    }
    quietest.ok_or_else(|| "no slice was measured".to_owned())
}

fn generate(server: &Server, load: &Load, seconds: f64, warm_up: f64) -> Outcome<Slice> {
    let generator = built("load-generator");
    let mut command = if load.goes_first { in_real_time(generator) } else { outranking(generator) };
    command
        .args(["--target", &format!("127.0.0.1:{}", server.port), "--server-pid", &server.pid().to_string()])
        .args(["--connections", &load.connections.to_string(), "--pipeline", &load.pipeline.to_string()])
        .args(["--keys", &load.keys.to_string(), "--duration", &seconds.to_string()])
        .args(["--warm-up", &warm_up.to_string(), "--json"])
        .args(&load.words);
    if let Some(cpu) = load.pin {
        command.args(["--pin", &cpu.to_string()]);
    }
    let text = process::output(&mut command)?;
    let report: LoadReport = serde_json::from_str(&text)
        .map_err(|error| format!("the load generator's report is not understood: {error}"))?;
    let name = &server.name;
    // Those of the warm-up are none of the slice's, but whoever answers them does not do what is measured.
    if let Some(error) = report.first_error {
        let count = report.errors + report.errors_outside;
        return Err(format!("{name} answered {count} errors, first: {error}"));
    }
    if report.misses + report.misses_outside > 0 {
        let count = report.misses + report.misses_outside;
        return Err(format!("{name} lacks {count} keys that were loaded"));
    }
    let cost = report.server.ok_or_else(|| format!("the process of {name} cannot be seen"))?;
    let latency = report.latency_us.ok_or_else(|| format!("no request of {name} was measured"))?;
    Ok(Slice {
        us_per_request: cost.us_per_request,
        per_second: report.per_second,
        mean_us: latency.mean,
        p50_us: latency.p50,
        p99_us: latency.p99,
        p99_9_us: latency.p99_9,
        max_us: latency.max,
        server_cores: cost.cores,
        generator_cores: report.generator_cores,
        foreign_cores: report.foreign_cores.unwrap_or(f64::NAN),
    })
}

#[cfg(test)]
mod tests {
    use super::order_of;
    use std::collections::BTreeMap;

    #[test]
    fn each_comes_at_each_place_and_behind_each_other_one_equally_often() {
        for count in 1..8 {
            let (mut places, mut pairs) = (BTreeMap::<_, i32>::new(), BTreeMap::<_, i32>::new());
            for round in 0..2 * count {
                let order = order_of(round, count);
                order.iter().copied().enumerate().for_each(|at| *places.entry(at).or_insert(0) += 1);
                order.windows(2).for_each(|two| *pairs.entry((two[0], two[1])).or_insert(0) += 1);
            }
            assert!(places.len() == count * count && places.values().all(|&times| times == 2), "{count}: {places:?}");
            assert!(
                pairs.len() == count * (count - 1) && pairs.values().all(|&times| times == 2),
                "{count}: {pairs:?}"
            );
        }
    }
}
