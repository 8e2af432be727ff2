//! `cargo x bench <name>`: comparisons with peers and with the practical limit, as ratios within one run.
//!
//! Method: the server on CPU 0, the generator on CPU 1; short slices, interleaved and turned by one each round, so that
//! a slow minute of the machine hits everybody; per round the ratio of two entrants; the 95 % bound of the median ratio
//! decides. A slice during which anything else used the machine is repeated. Nothing here gates CI.

mod amplification;
mod archive;
mod callers;
mod chains;
mod checkpoint;
mod cluster_start;
mod conditions;
mod cores;
mod cost;
mod durability;
mod embedded;
mod failover;
mod fan_out;
mod gap_match;
mod gaps;
mod growth;
mod hash;
mod history;
mod horizon;
mod host_memory;
mod idle;
mod info;
mod instructions;
mod long;
mod maintenance;
mod memory;
mod memory_group;
mod memory_limit;
mod memory_scanners;
mod mget;
mod migration;
mod moves;
mod neighbour;
mod options;
mod programs;
mod progress;
mod proxy;
mod proxy_mget;
mod quiet_machine;
mod recovery;
mod results;
mod server;
mod slice;
mod start;
mod statistics;
mod stores;
mod table;
mod tier;
mod tier_peer;
mod tier_sample;
mod tracked_connections;
mod traffic;
mod verdicts;

use std::process::ExitCode;
use std::time::Instant;

use crate::Outcome;
use options::Options;
use results::Results;
use verdicts::Verdicts;

struct Comparison {
    name: &'static str,
    about: &'static str,
    run: fn(&Options, &mut Results) -> Outcome<()>,
}

const COMPARISONS: &[Comparison] = &[
    Comparison { name: "peers", about: "CPU per request against null server, Redis and Valkey", run: cost::run },
    Comparison {
        name: "proxy",
        about: "CPU and latency through the proxy, against Redis alone and through twemproxy",
        run: proxy::run,
    },
    Comparison {
        name: "proxy-mget",
        about: "fifty keys at once over three Redis, through the proxy and through twemproxy",
        run: proxy_mget::run,
    },
    Comparison {
        name: "callers",
        about: "64 callers of one process by Zerohop's client and by others of Rust and Go: operations per CPU second",
        run: callers::run,
    },
    Comparison {
        name: "fan-out",
        about: "a gateway on zerohop::serve against split reactors, pools and threads: throughput and p99 (D1 to D3)",
        run: fan_out::run,
    },
    Comparison { name: "growth", about: "CPU per GET with 1M and with 8M keys", run: growth::run },
    Comparison {
        name: "durability",
        about: "interval against memory; commit against appendfsync always",
        run: durability::run,
    },
    Comparison { name: "cores", about: "two instances against one; one slot against all (Z2)", run: cores::run },
    Comparison { name: "z1", about: "throughput against a thread per request", run: history::run_z1 },
    Comparison { name: "z6", about: "throughput against memcached, persistence on here", run: history::run_z6 },
    Comparison { name: "z9", about: "p99 over mean latency at half load", run: history::run_z9 },
    Comparison { name: "gaps", about: "longest gap between two ticks under load, beside a canary", run: gaps::run },
    Comparison { name: "long", about: "others' p99 while values of 512 MiB come and go", run: long::run },
    Comparison {
        name: "maintenance",
        about: "p99.9 of writes while runs are made, scheduled against synchronised (H1)",
        run: maintenance::run,
    },
    Comparison {
        name: "checkpoint",
        about: "p99.9, longest tick and memory beside runs, an expiry of 1M keys and a backup (AT-18)",
        run: checkpoint::run,
    },
    Comparison {
        name: "amplification",
        about: "bytes to the device per byte written, and the directory per byte that lives",
        run: amplification::run,
    },
    Comparison {
        name: "memory-limit",
        about: "what the process takes while ten times its limit is written",
        run: memory_limit::run,
    },
    Comparison { name: "tier", about: "GETs of a data set four times the memory, against RocksDB", run: tier::run },
    Comparison { name: "start", about: "cold start to the first acknowledged write", run: start::run },
    Comparison { name: "idle", about: "CPU and memory of an empty idle node", run: idle::run },
    Comparison { name: "memory", about: "resident memory per key, worst of 3M to 7M keys", run: memory::run },
    Comparison { name: "recovery", about: "replay of a log, and start of 10M keys, after kill -9", run: recovery::run },
    Comparison {
        name: "failover",
        about: "the gap in writes after kill -9 of a node, and what others wait meanwhile",
        run: failover::run,
    },
    Comparison {
        name: "moves",
        about: "a thousand slots go to another node under load, against Valkey: time, stalls, corrections, losses",
        run: moves::run,
    },
    Comparison {
        name: "chains",
        about: "CPU of a SET over all members of a chain of 1, 2 and 3; what a client waits for the third",
        run: chains::run,
    },
    Comparison {
        name: "cluster-start",
        about: "sixteen processes become one cluster and acknowledge a write",
        run: cluster_start::run,
    },
    Comparison {
        name: "traffic",
        about: "bytes of clients and among nodes that are there because slots went elsewhere, of all (G3)",
        run: traffic::run,
    },
    Comparison {
        name: "migration",
        about: "requests answered while all keys go elsewhere, against four other ways to migrate (G1, G2)",
        run: migration::run,
    },
    Comparison {
        name: "table",
        about: "memory of a node with a table of a thousand nodes and a thousand idle clients; what these are told",
        run: table::run,
    },
    Comparison {
        name: "horizon",
        about: "GETs of what nobody writes while others write, asked whether it is committed and unasked",
        run: horizon::run,
    },
    Comparison {
        name: "mget",
        about: "fifty keys at once by redis-py's cluster client, against a Valkey cluster: calls per second, p50",
        run: mget::run,
    },
    Comparison { name: "embedded", about: "the library against RocksDB, LMDB and others (N1)", run: embedded::run },
    Comparison { name: "hash", about: "speed and evenness of candidate hashes", run: hash::run },
    Comparison { name: "instructions", about: "user-space instructions per request", run: instructions::run },
];

/// Runs the comparison that `arguments` names, or lists them. Exit code 1 when a bar was missed or nothing was measured.
pub fn run(arguments: &[String]) -> Outcome<ExitCode> {
    let Some((name, words)) = arguments.split_first() else {
        println!("cargo x bench <name> {}\n", options::USAGE);
        for comparison in COMPARISONS {
            println!("  {:<14}{}", comparison.name, comparison.about);
        }
        println!("  {:<14}every one of them, one after the other", "all");
        return Ok(ExitCode::FAILURE);
    };
    let chosen: Vec<&Comparison> =
        COMPARISONS.iter().filter(|comparison| name == "all" || comparison.name == name).collect();
    if chosen.is_empty() {
        return Err(format!("no comparison is called `{name}`; `cargo x bench` lists them"));
    }
    let options = Options::of(words)?;
    programs::build()?;
    let mut all_met = true;
    let mut verdicts = Verdicts::default();
    let began = Instant::now();
    for (index, comparison) in chosen.iter().enumerate() {
        let minutes = began.elapsed().as_secs_f64() / 60.0;
        let place = format!("{} of {}, after {minutes:.1} min", index + 1, chosen.len());
        println!("{}: {} ({place})", comparison.name, comparison.about);
        let mut results = Results::new(comparison.name);
        // What was measured before an error is still true.
        if let Err(message) = (comparison.run)(&options, &mut results) {
            results.absent(format!("{} ended early: {message}", comparison.name));
        }
        archive::keep(&results, &options)?;
        all_met &= results.all_met();
        verdicts.add(&results);
    }
    let table = verdicts.table();
    println!("\n{table}");
    if name == "all" {
        archive::keep_all(&options, &table, verdicts.json())?;
    }
    Ok(if all_met { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
