//! `long`: what small requests of other clients suffer while somebody sets and gets values of 512 MiB, and while nine in ten requests are
//! for one key (AT-25).

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::options::Options;
use super::programs::{self, Zerohop, built};
use super::results::{Bar, Results};
use super::server::Server;
use super::slice::{Entrant, Load, preload, quiet_slice};
use crate::Outcome;

/// Requests a second of the others: few enough that they wait for nothing but what is measured.
const PER_SECOND: &str = "20000";
const METRIC: &str = "p99 beside values of 512 MiB over p99 alone";
const RATIO_MAX: f64 = 2.0;
/// The other generator makes its value first.
const NEIGHBOUR_BEGINS_AFTER: Duration = Duration::from_millis(700);
/// A pair takes seconds: the other generator makes its value anew.
const PAIRS_MAX: usize = 9;

/// Of 50,000 requests a second nine in ten are for one key.
const HOT_PER_SECOND: &str = "45000";
const OTHERS_PER_SECOND: &str = "5000";
const HOT_METRIC: &str = "p99 beside a key with nine of ten requests over p99 beside as many for all keys";

/// Who is beside the measured client in one half of a pair, if anybody is; the number is that of all keys.
type Beside = fn(&Server, u64) -> Outcome<Option<Neighbour>>;

/// What is compared with what.
struct Disturbance {
    name: &'static str,
    metric: &'static str,
    /// Of the measured client.
    per_second: &'static str,
    pairs_max: usize,
    /// Without, and with it.
    sides: [(&'static str, Beside); 2],
}

const DISTURBANCES: [Disturbance; 2] = [
    Disturbance {
        name: "long",
        metric: METRIC,
        per_second: PER_SECOND,
        pairs_max: PAIRS_MAX,
        sides: [("alone", |_, _| Ok(None)), ("beside", |server, _| Neighbour::with_long_values(server).map(Some))],
    },
    Disturbance {
        name: "hot",
        metric: HOT_METRIC,
        per_second: OTHERS_PER_SECOND,
        pairs_max: usize::MAX,
        sides: [
            ("all-keys", |server, keys| Neighbour::often(server, "all:", keys).map(Some)),
            ("one-key", |server, _| Neighbour::often(server, "hot:", 1).map(Some)),
        ],
    },
];

/// A client beside the one that is measured; it ends with its slice.
struct Neighbour(Child);

impl Neighbour {
    /// Sets and gets values of 512 MiB.
    fn with_long_values(server: &Server) -> Outcome<Neighbour> {
        let words = ["--key-prefix", "long:", "--keys", "1", "--value-bytes", "536870912", "--connections", "1"];
        Neighbour::start(server, &[&words[..], &["--preload"]].concat())
    }

    /// Sets and gets so many keys, often.
    fn often(server: &Server, prefix: &str, keys: u64) -> Outcome<Neighbour> {
        let keys = keys.to_string();
        Neighbour::start(server, &["--key-prefix", prefix, "--keys", &keys, "--rate", HOT_PER_SECOND, "--sleep"])
    }

    fn start(server: &Server, words: &[&str]) -> Outcome<Neighbour> {
        // It runs when the measured one sleeps, and ends at once when that wakes.
        let child = Command::new("chrt")
            .args(["--idle", "0"])
            .arg(built("load-generator"))
            .args(["--target", &format!("127.0.0.1:{}", server.port), "--pin", "1", "--warm-up", "0", "--json"])
            .args(["--ratio", "1:1", "--requests", "100000000"])
            .args(words)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("the client beside does not start: {error}"))?;
        std::thread::sleep(NEIGHBOUR_BEGINS_AFTER);
        Ok(Neighbour(child))
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        if let Err(error) = self.0.kill().and_then(|()| self.0.wait()) {
            eprintln!("the client beside does not end: {error}");
        }
    }
}

/// Every backend in `memory` and `interval`; Redis and Valkey without persistence for context.
pub fn run(options: &Options, results: &mut Results) -> Outcome<()> {
    results
        .note(format!("others: open loop, {PER_SECOND} GET a second over 50 connections; both generators on one CPU, which the measured one has first: it sleeps until a request is due (one that spun left the other nothing)"));
    for durability in ["memory", "interval"] {
        for backend in &options.backends {
            let server = Zerohop::new(backend, durability).start().ready()?;
            for disturbance in &DISTURBANCES {
                measure(disturbance, durability, (&server, Bar::AtMost(RATIO_MAX)), options, results)?;
            }
        }
    }
    for peer in ["redis-server", "valkey-server"] {
        let server = programs::redis_like(peer, None)?.ready()?;
        for disturbance in &DISTURBANCES {
            measure(disturbance, "memory", (&server, Bar::None), options, results)?;
        }
    }
    Ok(())
}

fn measure(
    disturbance: &Disturbance,
    durability: &str,
    (server, bar): (&Server, Bar),
    options: &Options,
    results: &mut Results,
) -> Outcome<()> {
    let cell = format!("{}-{durability}", disturbance.name);
    if !options.wants(&cell) {
        return Ok(());
    }
    let load = Load::new("get", 1, options.keys).with(&["--rate", disturbance.per_second]).going_first();
    preload(server, &Load::new("set", 1, options.keys))?;
    let entrant = Entrant::new(server, &load);
    let mut p99s_us = [Vec::new(), Vec::new()];
    for _ in 0..options.pairs.min(disturbance.pairs_max) {
        for (p99s_us, (_, neighbour)) in p99s_us.iter_mut().zip(disturbance.sides) {
            let _neighbour = neighbour(server, options.keys)?;
            p99s_us.push(quiet_slice(&entrant, options, &mut 0)?.p99_us);
        }
    }
    let [without, with] = &p99s_us;
    let ratios: Vec<f64> = with.iter().zip(without).map(|(with, without)| with / without).collect();
    results.value(&cell, &server.name, disturbance.metric, &ratios, bar)?;
    for (p99s_us, (side, _)) in p99s_us.iter().zip(disturbance.sides) {
        results.value(&format!("{cell}-{side}"), &server.name, "p99, us", p99s_us, Bar::None)?;
    }
    Ok(())
}
