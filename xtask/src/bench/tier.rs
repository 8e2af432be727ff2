//! `tier`: GETs of a data set that is four times the memory, against RocksDB in a memory cgroup of the same limit.
//!
//! ```text
//!  group ── zerohop on CPU 0, its values on the disk   ◄── the generator on CPU 1
//!  group ── RocksDB, 16 threads that call Get, on both CPUs; and on CPU 0 for context
//!  group ── zerohop as a library, the same threads
//! ```

use std::process::Command;
use std::time::{Duration, Instant};

use super::memory_group::{MemoryGroup, Readings};
use super::options::Options;
use super::programs::{Zerohop, built};
use super::progress::Progress;
use super::results::{Bar, Results};
use super::server::Server;
use super::slice::{Load, preload};
use super::tier_peer::{Library, Settings};
use super::tier_sample::{Sample, Who, sample};
use crate::{Outcome, process};

/// The data set is so many times the limit.
const FACTOR: u64 = 4;
const KEY_BYTES: u64 = 15;
const VALUE_BYTES: u64 = 1000;
/// Values of which less fits, because keys stay in memory.
const SHORT_VALUE_BYTES: u64 = 132;
/// What `--memory-limit` is, of the group's limit: log and runs pass through the page cache, and the kernel counts its own.
const SERVER_PERCENT: u64 = 94;
/// What the library may take, of the group's limit: its program and what is free in its allocators come on top.
const LIBRARY_PERCENT: u64 = 84;
/// RocksDB's block cache, of the group's limit; the rest is for its tables' page cache.
const CACHE_PERCENT: u64 = 50;
const THREADS: usize = 16;
const PIPELINES: [usize; 2] = [1, 16];
const DISTRIBUTIONS: [&str; 2] = ["uniform", "zipf"];
/// A slice that waits for a disk is longer than others.
const SLICE_SECONDS_MIN: f64 = 2.0;
/// Load before the first round, until what is popular is in memory.
const SETTLING_SECONDS: f64 = 15.0;
/// A store rests when it takes less than this part of a core for [`REST_LOOKS`] looks.
const REST_CORES_MAX: f64 = 0.03;
const REST_LOOKS: usize = 3;
const REST_LOOK: Duration = Duration::from_secs(1);
const REST_WITHIN: Duration = Duration::from_secs(180);

/// Both CPUs.
const BOTH: &str = "0,1";
const RATE: &str = "GET/s";
const KILLS: &str = "kills by the system for memory";

/// Ours and its group; in this order, because a group must be empty before it goes.
pub struct Ours {
    pub server: Server,
    group: MemoryGroup,
}

/// A store that is called, and its group.
pub struct Called {
    pub store: Library,
    group: MemoryGroup,
}

/// RocksDB, and what is compared with it besides the servers.
pub struct Libraries {
    pub rocksdb: Called,
    pub zerohop: Called,
}

impl Libraries {
    fn groups(&self) -> [(&'static str, &MemoryGroup); 2] {
        [&self.rocksdb, &self.zerohop].map(|called| (called.store.name(), &called.group))
    }
}

/// Who reads.
/// Both data sets: values of 1000 bytes are judged, of 132 bytes it is told how much fits.
pub fn run(options: &Options, results: &mut Results) -> Outcome<()> {
    let limit_bytes = options.keys * (KEY_BYTES + VALUE_BYTES) / FACTOR;
    note_settings(options, limit_bytes, results);
    let wishes = |distribution: &&str| PIPELINES.iter().any(|pipeline| options.wants(&cell(distribution, *pipeline)));
    let distributions: Vec<&str> = DISTRIBUTIONS.into_iter().filter(wishes).collect();
    if !distributions.is_empty() {
        measure(&distributions, limit_bytes, options, results)?;
    }
    if options.wants("fits") {
        let backend = options.backends.first().ok_or("no backend was asked for")?;
        show_what_fits(backend, limit_bytes, results)?;
    }
    Ok(())
}

fn note_settings(options: &Options, limit_bytes: u64, results: &mut Results) {
    results.note(format!(
        "{} keys of {KEY_BYTES} B with {VALUE_BYTES} B of random letters, {FACTOR} times the limit of {limit_bytes} bytes that each \
         store's memory cgroup has, page cache included; no swap; no compression on either side; slices of {} s",
        options.keys,
        slice_seconds(options)
    ));
    results.note(format!(
        "zerohop: one core, durability interval, --memory-limit {} ({SERVER_PERCENT} % of the group's), --when-full tier; 50 \
         connections",
        limit_bytes * SERVER_PERCENT / 100
    ));
    results.note(format!(
        "rocksdb: {THREADS} threads, block cache of {CACHE_PERCENT} % of the limit with index and filters in it, the rest for the page \
         cache, blooms of 10 bits, write buffers of an eighth of the cache, otherwise its defaults; compacted as a whole before it is \
         read; on both CPUs, and pinned to CPU 0 as rocksdb-cpu0"
    ));
    results.note(format!(
        "zerohop-library: zerohop::Store with a memory limit of {LIBRARY_PERCENT} % of the group's, durability Interval; {THREADS} threads \
         on both CPUs"
    ));
}

fn slice_seconds(options: &Options) -> f64 {
    if options.is_look() { options.slice_seconds } else { options.slice_seconds.max(SLICE_SECONDS_MIN) }
}

fn cell(distribution: &str, pipeline: usize) -> String {
    format!("{distribution}-P{pipeline}")
}

fn measure(distributions: &[&str], limit_bytes: u64, options: &Options, results: &mut Results) -> Outcome<()> {
    let mut ours = Vec::new();
    for backend in &options.backends {
        match started(backend, limit_bytes) {
            Ok(store) => ours.push(store),
            Err(message) => results.absent(message),
        }
    }
    let groups = ["rocksdb", "library"].map(|name| MemoryGroup::new(name, limit_bytes));
    let [theirs, library] = groups;
    let (theirs, library) = (theirs?, library?);
    let loaded = ours.iter().try_for_each(|store| load(store, options.keys, results)).and_then(|()| {
        let settings = |percent| Settings {
            keys: options.keys,
            value_bytes: VALUE_BYTES,
            memory_bytes: limit_bytes * percent / 100,
            threads: THREADS,
        };
        let stores = [
            Library::rocksdb(settings(CACHE_PERCENT), &theirs)?,
            Library::zerohop(settings(LIBRARY_PERCENT), &library)?,
        ];
        Ok(stores.map(|(store, line)| {
            results.note(format!("{}: loaded in {:.0} s", store.name(), line.wall_s));
            store
        }))
    });
    let mut libraries = match loaded {
        Ok([rocksdb, zerohop]) => Libraries {
            rocksdb: Called { store: rocksdb, group: theirs },
            zerohop: Called { store: zerohop, group: library },
        },
        Err(message) => {
            judge_kills("load", &ours, &[("rocksdb", &theirs), ("zerohop-library", &library)], results)?;
            return Err(message);
        }
    };
    for distribution in distributions {
        let measured = measure_distribution(distribution, &ours, &mut libraries, options, results);
        judge_kills(distribution, &ours, &libraries.groups(), results)?;
        measured?;
    }
    Ok(())
}

fn started(backend: &str, limit_bytes: u64) -> Outcome<Ours> {
    let group = MemoryGroup::new(backend, limit_bytes)?;
    let mut start = Zerohop::new(backend, "interval").start();
    let limit = (limit_bytes * SERVER_PERCENT / 100).to_string();
    start.words.extend(["--memory-limit", &limit, "--when-full", "tier"].map(str::to_owned));
    start.words = group.around(&start.words);
    Ok(Ours { server: start.ready()?, group })
}

pub fn load_of(distribution: &str, pipeline: usize, keys: u64) -> Load {
    let value_bytes = VALUE_BYTES.to_string();
    Load::new("get", pipeline, keys).with(&["--value-bytes", &value_bytes, "--distribution", distribution])
}

fn load(ours: &Ours, keys: u64, results: &mut Results) -> Outcome<()> {
    let began = Instant::now();
    preload(&ours.server, &load_of("uniform", 1, keys))?;
    let loaded_s = began.elapsed().as_secs_f64();
    rest(&ours.server)?;
    let name = &ours.server.name;
    results.note(format!(
        "{name}: loaded in {loaded_s:.0} s, at rest {:.0} s later",
        began.elapsed().as_secs_f64() - loaded_s
    ));
    results.note(format!("{name}: {}", told(ours)?));
    Ok(())
}

/// Waits until a store has done what it does by itself, and its files are on the disk.
fn rest(server: &Server) -> Outcome<()> {
    process::output(Command::new("sync").arg("-f").arg(server.folder()))?;
    let began = Instant::now();
    let mut quiet_looks = 0;
    while quiet_looks < REST_LOOKS {
        let before = server.run_time_ns()?;
        std::thread::sleep(REST_LOOK);
        let cores = (server.run_time_ns()? - before) as f64 / REST_LOOK.as_nanos() as f64;
        quiet_looks = if cores < REST_CORES_MAX { quiet_looks + 1 } else { 0 };
        if began.elapsed() > REST_WITHIN {
            return Err(format!("{} is not at rest within {REST_WITHIN:?} of the load", server.name));
        }
    }
    Ok(())
}

/// Where the values are, and what the group says.
fn told(ours: &Ours) -> Outcome<String> {
    let info = ours.server.ask("INFO zerohop")?;
    let wanted =
        ["cold_keys", "clean_value_bytes", "dirty_value_bytes", "values_cooled", "values_fetched", "fetch_failures"];
    let fields: Vec<&str> = info
        .lines()
        .map(str::trim)
        .filter(|line| line.split_once(':').is_some_and(|(name, _)| wanted.contains(&name)))
        .collect();
    let resident = ours.server.memory_bytes("VmRSS")?;
    let readings = ours.group.readings()?;
    Ok(format!(
        "{}; resident {resident}, the group has {} bytes and was at its limit {} times",
        fields.join(", "),
        readings.used_bytes,
        readings.reclaims
    ))
}

/// A store that the system killed is a failure with that name, whatever else it looks like.
fn judge_kills(cell: &str, ours: &[Ours], called: &[(&str, &MemoryGroup)], results: &mut Results) -> Outcome<()> {
    let groups = ours.iter().map(|ours| (ours.server.name.as_str(), &ours.group));
    for (name, group) in groups.chain(called.iter().copied()) {
        results.value(cell, name, KILLS, &[group.readings()?.kills as f64], Bar::AtMost(0.0))?;
    }
    Ok(())
}

fn measure_distribution(
    distribution: &str,
    ours: &[Ours],
    libraries: &mut Libraries,
    options: &Options,
    results: &mut Results,
) -> Outcome<()> {
    let options = Options { slice_seconds: slice_seconds(options), ..options.clone() };
    let pipelines: Vec<usize> =
        PIPELINES.into_iter().filter(|pipeline| options.wants(&cell(distribution, *pipeline))).collect();
    let of_ours =
        (0..ours.len()).flat_map(|index| pipelines.iter().map(move |&pipeline| Who::Ours { index, pipeline }));
    let called = [Who::Library { cpus: BOTH }, Who::Theirs { cpus: BOTH }, Who::Theirs { cpus: "0" }];
    let entrants: Vec<Who> = of_ours.chain(called).collect();
    let settling = Options { slice_seconds: SETTLING_SECONDS, ..options.clone() };
    for index in 0..ours.len() {
        sample(Who::Ours { index, pipeline: pipelines[0] }, distribution, ours, libraries, &settling)?;
    }
    for who in [Who::Library { cpus: BOTH }, Who::Theirs { cpus: BOTH }] {
        sample(who, distribution, ours, libraries, &settling)?;
    }
    let mut samples: Vec<Vec<Sample>> = entrants.iter().map(|_| Vec::new()).collect();
    let mut progress = Progress::new(distribution, options.pairs * entrants.len());
    for round in 0..options.pairs {
        for turn in 0..entrants.len() {
            let index = (round + turn) % entrants.len();
            samples[index].push(sample(entrants[index], distribution, ours, libraries, &options)?);
            progress.show(round * entrants.len() + turn + 1);
        }
    }
    let (of_ours, of_theirs) = samples.split_at(entrants.len() - 2);
    for (who, samples) in entrants.iter().zip(of_ours) {
        let (cell, name) = match who {
            Who::Ours { index, pipeline } => (cell(distribution, *pipeline), ours[*index].server.name.as_str()),
            Who::Library { .. } | Who::Theirs { .. } => {
                (format!("{distribution}-called"), libraries.zerohop.store.name())
            }
        };
        judge(&cell, (name, samples), (&of_theirs[0], &of_theirs[1]), results)?;
    }
    for ours in ours {
        results.note(format!("{distribution}: {}: {}", ours.server.name, told(ours)?));
    }
    for (name, group) in libraries.groups() {
        let Readings { used_bytes, reclaims, .. } = group.readings()?;
        results.note(format!(
            "{distribution}: {name}: its group has {used_bytes} bytes and was at its limit {reclaims} times"
        ));
    }
    Ok(())
}

fn judge(
    cell: &str,
    (name, ours): (&str, &[Sample]),
    (both, one): (&[Sample], &[Sample]),
    results: &mut Results,
) -> Outcome<()> {
    let column = |samples: &[Sample], of: fn(&Sample) -> f64| samples.iter().map(of).collect::<Vec<f64>>();
    let of_disk: fn(&Sample) -> f64 = |sample| sample.disk_bytes;
    let of_cpu: fn(&Sample) -> f64 = |sample| sample.cpu_us;
    let of_rate: fn(&Sample) -> f64 = |sample| sample.per_second;
    let rate = column(ours, of_rate);
    results
        .ratios((cell, RATE), (name, &rate), ("rocksdb", &column(both, of_rate)), Bar::AtLeast(1.0))?
        .reach(Bar::AtLeast(1.5));
    results.ratios((cell, RATE), (name, &rate), ("rocksdb-cpu0", &column(one, of_rate)), Bar::None)?;
    for (metric, of) in [("CPU us per GET", of_cpu), ("bytes from the disk per GET", of_disk)] {
        results.ratios((cell, metric), (name, &column(ours, of)), ("rocksdb", &column(both, of)), Bar::None)?;
    }
    let clients: [(&str, Vec<f64>); 3] = [
        ("p50, us", column(ours, |sample| sample.p50_us)),
        ("p99, us", column(ours, |sample| sample.p99_us)),
        ("values fetched per GET", column(ours, |sample| sample.fetches)),
    ];
    for (metric, values) in clients.iter().filter(|(_, values)| values.iter().all(|value| !value.is_nan())) {
        results.value(cell, name, metric, values, Bar::None)?;
    }
    for (name, samples) in [(name, ours), ("rocksdb", both), ("rocksdb-cpu0", one)] {
        let columns = [column(samples, of_rate), column(samples, of_cpu), column(samples, of_disk)];
        let named = [(RATE, &columns[0][..]), ("cpu_us", &columns[1]), ("disk_bytes", &columns[2])];
        results.keep_values(cell, name, &named);
    }
    Ok(())
}

/// Writes short values until four times the limit was sent, and tells how much of it is there.
fn show_what_fits(backend: &str, limit_bytes: u64, results: &mut Results) -> Outcome<()> {
    let ours = started(backend, limit_bytes)?;
    let record_bytes = KEY_BYTES + SHORT_VALUE_BYTES;
    let count = (FACTOR * limit_bytes / record_bytes).to_string();
    let mut generator = Command::new(built("load-generator"));
    generator
        .args(["--target", &format!("127.0.0.1:{}", ours.server.port), "--pin", "1", "--op", "set", "--pipeline", "16"])
        .args(["--distribution", "sequential", "--keys", &count, "--requests", &count]);
    let written = process::output(&mut generator);
    judge_kills("fits", std::slice::from_ref(&ours), &[], results)?;
    written?;
    rest(&ours.server)?;
    let keys: f64 = ours.server.ask("DBSIZE")?.trim_start_matches(':').parse().map_err(|_| "DBSIZE is no number")?;
    let factor = keys * record_bytes as f64 / limit_bytes as f64;
    results.value("fits", &ours.server.name, "data set of 15 B + 132 B over the limit", &[factor], Bar::None)?;
    results.note(format!("fits: {}", told(&ours)?));
    Ok(())
}
