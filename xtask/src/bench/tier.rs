//! `tier`: GETs of a data set that is four times the memory, against RocksDB in a memory cgroup of the same limit.
//!
//! ```text
//!  group ── zerohop on CPU 0, its values on the disk   ◄── the generator on CPU 1
//!  group ── RocksDB, 16 threads that call Get, on both CPUs; and on CPU 0 for context
//! ```

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use super::memory_group::MemoryGroup;
use super::options::Options;
use super::programs::{Zerohop, built};
use super::progress::Progress;
use super::results::{Bar, Results};
use super::server::Server;
use super::slice::{Entrant, Load, preload, quiet_slice};
use super::tier_peer::{Line, RocksDb, Settings};
use crate::{Outcome, process};

/// The data set is so many times the limit.
const FACTOR: u64 = 4;
const KEY_BYTES: u64 = 15;
const VALUE_BYTES: u64 = 1000;
/// Values of which less fits, because keys stay in memory.
const SHORT_VALUE_BYTES: u64 = 132;
/// What `--memory-limit` is, of the group's limit: log and runs pass through the page cache, and the kernel counts its own.
const SERVER_PERCENT: u64 = 94;
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
/// What INFO says may be so old.
const INFO_AGE: Duration = Duration::from_millis(300);

const RATE: &str = "GET/s";
const KILLS: &str = "kills by the system for memory";

/// Ours and its group; in this order, because a group must be empty before it goes.
struct Ours {
    server: Server,
    group: MemoryGroup,
}

struct Theirs {
    store: RocksDb,
    group: MemoryGroup,
}

/// Who reads.
#[derive(Clone, Copy)]
enum Who {
    Ours { index: usize, pipeline: usize },
    Theirs { cpus: &'static str },
}

/// What one slice showed.
#[derive(Clone, Copy)]
struct Sample {
    per_second: f64,
    cpu_us: f64,
    /// Of the disk, over GETs; what the kernel counts for the process.
    disk_bytes: f64,
    /// As a client sees it; not known of a library.
    p50_us: f64,
    p99_us: f64,
    /// Values that came back, over GETs.
    fetches: f64,
}

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
    let group = MemoryGroup::new("rocksdb", limit_bytes)?;
    let loaded = ours.iter().try_for_each(|store| load(store, options.keys, results)).and_then(|()| {
        let settings = Settings {
            keys: options.keys,
            value_bytes: VALUE_BYTES,
            cache_bytes: limit_bytes * CACHE_PERCENT / 100,
            threads: THREADS,
        };
        let (store, line) = RocksDb::loaded(settings, &group)?;
        results.note(format!("rocksdb: loaded and compacted in {:.0} s", line.wall_s));
        Ok(store)
    });
    let mut theirs = match loaded {
        Ok(store) => Theirs { store, group },
        Err(message) => {
            judge_kills("load", &ours, Some(&group), results)?;
            return Err(message);
        }
    };
    for distribution in distributions {
        let measured = measure_distribution(distribution, &ours, &mut theirs, options, results);
        judge_kills(distribution, &ours, Some(&theirs.group), results)?;
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

fn load_of(distribution: &str, pipeline: usize, keys: u64) -> Load {
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
fn judge_kills(cell: &str, ours: &[Ours], theirs: Option<&MemoryGroup>, results: &mut Results) -> Outcome<()> {
    let groups = ours.iter().map(|ours| (ours.server.name.as_str(), &ours.group));
    for (name, group) in groups.chain(theirs.map(|group| ("rocksdb", group))) {
        results.value(cell, name, KILLS, &[group.readings()?.kills as f64], Bar::AtMost(0.0))?;
    }
    Ok(())
}

fn measure_distribution(
    distribution: &str,
    ours: &[Ours],
    theirs: &mut Theirs,
    options: &Options,
    results: &mut Results,
) -> Outcome<()> {
    let options = Options { slice_seconds: slice_seconds(options), ..options.clone() };
    let pipelines: Vec<usize> =
        PIPELINES.into_iter().filter(|pipeline| options.wants(&cell(distribution, *pipeline))).collect();
    let of_ours =
        (0..ours.len()).flat_map(|index| pipelines.iter().map(move |&pipeline| Who::Ours { index, pipeline }));
    let entrants: Vec<Who> = of_ours.chain([Who::Theirs { cpus: "0,1" }, Who::Theirs { cpus: "0" }]).collect();
    let settling = Options { slice_seconds: SETTLING_SECONDS, ..options.clone() };
    for index in 0..ours.len() {
        sample(Who::Ours { index, pipeline: pipelines[0] }, distribution, ours, theirs, &settling)?;
    }
    sample(Who::Theirs { cpus: "0,1" }, distribution, ours, theirs, &settling)?;
    let mut samples: Vec<Vec<Sample>> = entrants.iter().map(|_| Vec::new()).collect();
    let mut progress = Progress::new(distribution, options.pairs * entrants.len());
    for round in 0..options.pairs {
        for turn in 0..entrants.len() {
            let index = (round + turn) % entrants.len();
            samples[index].push(sample(entrants[index], distribution, ours, theirs, &options)?);
            progress.show(round * entrants.len() + turn + 1);
        }
    }
    let (of_ours, of_theirs) = samples.split_at(entrants.len() - 2);
    for (who, samples) in entrants.iter().zip(of_ours) {
        let Who::Ours { index, pipeline } = who else { continue };
        judge(
            &cell(distribution, *pipeline),
            (&ours[*index].server.name, samples),
            (&of_theirs[0], &of_theirs[1]),
            results,
        )?;
    }
    for ours in ours {
        results.note(format!("{distribution}: {}: {}", ours.server.name, told(ours)?));
    }
    let readings = theirs.group.readings()?;
    results.note(format!(
        "{distribution}: rocksdb: its group has {} bytes and was at its limit {} times",
        readings.used_bytes, readings.reclaims
    ));
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
    results.value(cell, name, "p50, us", &column(ours, |sample| sample.p50_us), Bar::None)?;
    results.value(cell, name, "p99, us", &column(ours, |sample| sample.p99_us), Bar::None)?;
    results.value(cell, name, "values fetched per GET", &column(ours, |sample| sample.fetches), Bar::None)?;
    for (name, samples) in [(name, ours), ("rocksdb", both), ("rocksdb-cpu0", one)] {
        let columns = [column(samples, of_rate), column(samples, of_cpu), column(samples, of_disk)];
        let named = [(RATE, &columns[0][..]), ("cpu_us", &columns[1]), ("disk_bytes", &columns[2])];
        results.keep_values(cell, name, &named);
    }
    Ok(())
}

fn sample(who: Who, distribution: &str, ours: &[Ours], theirs: &mut Theirs, options: &Options) -> Outcome<Sample> {
    match who {
        Who::Ours { index, pipeline } => sample_ours(&ours[index].server, distribution, pipeline, options),
        Who::Theirs { cpus } => {
            let before = disk_bytes(theirs.store.pid())?;
            let Line { gets, wall_s, cpu_s } = theirs.store.read(distribution, options.slice_seconds, cpus)?;
            let bytes = disk_bytes(theirs.store.pid())? - before;
            let gets = gets.max(1) as f64;
            Ok(Sample {
                per_second: gets / wall_s,
                cpu_us: cpu_s * 1e6 / gets,
                disk_bytes: bytes / gets,
                p50_us: f64::NAN,
                p99_us: f64::NAN,
                fetches: f64::NAN,
            })
        }
    }
}

fn sample_ours(server: &Server, distribution: &str, pipeline: usize, options: &Options) -> Outcome<Sample> {
    let entrant = Entrant::new(server, &load_of(distribution, pipeline, options.keys));
    let read = || -> Outcome<[f64; 3]> {
        std::thread::sleep(INFO_AGE);
        let info = server.ask("INFO everything")?;
        Ok([disk_bytes(server.pid())?, number(&info, "keyspace_hits")?, number(&info, "values_fetched")?])
    };
    let before = read()?;
    let slice = quiet_slice(&entrant, options, &mut 0)?;
    let after = read()?;
    // The warm-up counts in these, too, and in what they are divided by.
    let gets = (after[1] - before[1]).max(1.0);
    Ok(Sample {
        per_second: slice.per_second,
        cpu_us: slice.us_per_request,
        disk_bytes: (after[0] - before[0]) / gets,
        p50_us: slice.p50_us,
        p99_us: slice.p99_us,
        fetches: (after[2] - before[2]) / gets,
    })
}

fn number(info: &str, name: &str) -> Outcome<f64> {
    let value = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')?.trim().parse().ok());
    value.ok_or_else(|| format!("INFO has no number {name}"))
}

/// What a process had the disk read, all its threads, those that ended included.
fn disk_bytes(pid: u32) -> Outcome<f64> {
    let path = format!("/proc/{pid}/io");
    let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    number(&text, "read_bytes")
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
    judge_kills("fits", std::slice::from_ref(&ours), None, results)?;
    written?;
    rest(&ours.server)?;
    let keys: f64 = ours.server.ask("DBSIZE")?.trim_start_matches(':').parse().map_err(|_| "DBSIZE is no number")?;
    let factor = keys * record_bytes as f64 / limit_bytes as f64;
    results.value("fits", &ours.server.name, "data set of 15 B + 132 B over the limit", &[factor], Bar::None)?;
    results.note(format!("fits: {}", told(&ours)?));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn a_number_is_found_by_its_whole_name() {
        let text = "rchar: 7\r\nxread_bytes:1\r\nread_bytes: 4096\r\ncancelled_write_bytes: 0";
        assert_eq!(number(text, "read_bytes"), Ok(4096.0));
        assert!(number(text, "bytes").is_err_and(|message| message.contains("bytes")));
    }
}
