//! Policies over loads (T1 to T4): 32 tiers, 4 stores, from a trickle to nearly all that the stores can do.

use super::figures::row;
use super::world::{Outcome, Setup, Shard, UNHURRIED, run};
use client::batch::*;
use std::sync::OnceLock;

/// Requests per second of all tiers.
const LOADS: [f64; 9] = [300.0, 1e3, 3e3, 8e3, 16e3, 40e3, 80e3, 120e3, 160e3];
/// Where the batch sizes of T4 end: 95 % of what four stores can do at all.
const HIGHEST_LOAD: f64 = 190e3;
const INTERVALS_MS: [u64; 6] = [1, 5, 20, 40, 80, 160];

pub fn of(policy: PolicyConfig) -> BatcherConfig {
    BatcherConfig { policy, ..BatcherConfig::default() }
}

/// One policy at one load. Few requests take long to show anything, many do not.
pub fn at_load(policy: PolicyConfig, load: f64, seed: u64) -> Outcome {
    with_tiers(32, policy, load, seed)
}

/// The same with another number of tiers.
pub fn with_tiers(tiers: usize, policy: PolicyConfig, load: f64, seed: u64) -> Outcome {
    let seconds = if load < 5e3 { 24 } else { 6 };
    let until_us = seconds * 1_000_000;
    run(Setup {
        tiers,
        shards: 4,
        shard: Shard::STORE,
        config: &|_| of(policy),
        loads: &[(until_us, load)],
        classes: UNHURRIED,
        counted_from_us: until_us / 2,
        seed,
    })
}

/// Mean latency of a policy at each load, milliseconds.
pub struct Line {
    pub name: String,
    pub means_ms: Vec<f64>,
}

fn line(name: &str, policy: PolicyConfig) -> Line {
    let mean_ms = |(i, load): (usize, &f64)| at_load(policy, *load, i as u64).latency.mean_ms();
    Line { name: name.to_owned(), means_ms: LOADS.iter().enumerate().map(mean_ms).collect() }
}

/// All policies at all loads; simulated once for all tests.
struct Table {
    self_clocked: Line,
    stout: Line,
    immediate: Line,
    pipelined: Vec<Line>,
    stop_and_wait: Vec<Line>,
}

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let fixed = |kind: &str, config: fn(u64) -> FixedConfig| {
            let line = |ms: &u64| line(&format!("{kind} {ms} ms"), PolicyConfig::Fixed(config(ms * 1000)));
            INTERVALS_MS.iter().map(line).collect::<Vec<Line>>()
        };
        let table = Table {
            self_clocked: line("self-clocked", PolicyConfig::SelfClocked),
            stout: line("stout", PolicyConfig::Stout(StoutConfig::default())),
            immediate: line("immediate", PolicyConfig::Immediate),
            pipelined: fixed("pipelined", FixedConfig::pipelined),
            stop_and_wait: fixed("stop-and-wait", FixedConfig::stop_and_wait),
        };
        println!("\nMean latency in ms; 32 tiers, 4 stores of 0.5 ms + 0.02 ms per request, 0.3 ms round trip");
        println!("{}", row("requests/s", LOADS));
        let ours = [&table.self_clocked, &table.stout, &table.immediate];
        for line in ours.into_iter().chain(&table.pipelined).chain(&table.stop_and_wait) {
            println!("{}   area {:.1}", row(&line.name, line.means_ms.iter().copied()), area(line));
        }
        table
    })
}

/// The area under the logarithm of the latency, over the logarithm of the load.
fn area(line: &Line) -> f64 {
    let points: Vec<(f64, f64)> = LOADS.iter().zip(&line.means_ms).map(|(load, ms)| (load.ln(), ms.ln())).collect();
    points.windows(2).map(|pair| (pair[1].0 - pair[0].0) * (pair[0].1 + pair[1].1) / 2.0).sum()
}

/// T1: at the lightest load against the interval that is best at the heaviest, which only the longest one carries.
#[test]
fn light_load_is_not_paid_for_heavy_load() {
    let table = table();
    let at_highest =
        |ms: &u64| at_load(PolicyConfig::Fixed(FixedConfig::pipelined(ms * 1000)), HIGHEST_LOAD, 4).latency.mean_ms();
    let means_ms = INTERVALS_MS.map(|ms| at_highest(&ms));
    println!("{}", row("pipelined at 190,000/s", means_ms));
    let best =
        (0..INTERVALS_MS.len()).min_by(|&a, &b| means_ms[a].total_cmp(&means_ms[b])).expect("there are intervals");
    let tuned = &table.pipelined[best];
    for ours in [&table.self_clocked, &table.stout] {
        let ratio = tuned.means_ms[0] / ours.means_ms[0];
        println!("T1: {} against {} at {} requests/s: {ratio:.1}x", ours.name, tuned.name, LOADS[0]);
        assert!(ratio >= 34.0, "{} is {ratio:.1} times quicker", ours.name);
    }
}

/// Whether a policy keeps up: answers take a quarter of a second in the mean, unanswered requests counted by how long they waited.
fn is_sustained(policy: PolicyConfig, load: f64) -> bool {
    let outcome = at_load(policy, load, 3);
    outcome.latency.mean_ms() < 250.0 && outcome.refused == 0
}

/// The highest of loads in steps of a fifth that is sustained.
fn sustainable(policy: PolicyConfig) -> f64 {
    let mut load = 2000.0;
    while load < 200e3 && is_sustained(policy, load * 1.2) {
        load *= 1.2;
    }
    load
}

/// T2: how much load is carried, against the interval that is best at light load.
#[test]
fn heavy_load_is_not_paid_for_light_load() {
    let fixed = |us| PolicyConfig::Fixed(FixedConfig::pipelined(us));
    let (one, five) = (sustainable(fixed(1000)), sustainable(fixed(5000)));
    println!("T2: pipelined 1 ms carries {one:.0} requests/s, 5 ms {five:.0}");
    for (name, policy) in
        [("self-clocked", PolicyConfig::SelfClocked), ("stout", PolicyConfig::Stout(StoutConfig::default()))]
    {
        let ours = sustainable(policy);
        println!("T2: {name} carries {ours:.0} requests/s: {:.1}x, {:.1}x", ours / one, ours / five);
        assert!(ours >= 3.0 * one && ours >= 3.0 * five, "{name}: {ours} against {one} and {five}");
    }
}

/// T3: over all loads below any fixed interval.
#[test]
fn no_fixed_interval_is_as_good_over_all_loads() {
    let table = table();
    for ours in [&table.self_clocked, &table.stout] {
        for fixed in &table.pipelined {
            assert!(area(ours) < area(fixed), "{} {:.1}, {} {:.1}", ours.name, area(ours), fixed.name, area(fixed));
        }
    }
    for fixed in &table.stop_and_wait {
        let ours = &table.self_clocked;
        assert!(area(ours) < area(fixed), "{} {:.1}, {} {:.1}", ours.name, area(ours), fixed.name, area(fixed));
    }
}

/// T4: batches grow by two orders of magnitude with the load, without a parameter.
#[test]
fn batches_grow_with_the_load() {
    for (name, policy) in
        [("self-clocked", PolicyConfig::SelfClocked), ("stout", PolicyConfig::Stout(StoutConfig::default()))]
    {
        let mean = |load| at_load(policy, load, 1).batch_mean(3_000_000);
        let (lightest, heaviest) = (mean(LOADS[0]), mean(HIGHEST_LOAD));
        println!("T4: {name}: {lightest:.2} requests per batch at {}/s, {heaviest:.1} at {HIGHEST_LOAD}/s", LOADS[0]);
        assert!(heaviest >= 100.0 * lightest, "{name}: from {lightest} to {heaviest}");
    }
}
