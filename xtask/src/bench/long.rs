//! `long`: what small requests of other clients suffer while somebody sets and gets values of 512 MiB.

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
const LONG_BEGINS_AFTER: Duration = Duration::from_millis(700);
/// A pair takes seconds: the other generator makes its value anew.
const PAIRS_MAX: usize = 9;

/// The client with the long values; it ends with its slice.
struct LongClient(Child);

impl LongClient {
    fn start(server: &Server) -> Outcome<LongClient> {
        let child = Command::new("nice")
            .args(["-n", "19"])
            .arg(built("load-generator"))
            .args(["--target", &format!("127.0.0.1:{}", server.port), "--pin", "1", "--warm-up", "0", "--json"])
            .args(["--ratio", "1:1", "--key-prefix", "long:", "--keys", "1", "--value-bytes", "536870912"])
            .args(["--connections", "1", "--preload", "--requests", "1000000"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("the client with long values does not start: {error}"))?;
        std::thread::sleep(LONG_BEGINS_AFTER);
        Ok(LongClient(child))
    }
}

impl Drop for LongClient {
    fn drop(&mut self) {
        if let Err(error) = self.0.kill().and_then(|()| self.0.wait()) {
            eprintln!("the client with long values does not end: {error}");
        }
    }
}

/// Every backend in `memory` and `interval`; Redis and Valkey without persistence for context.
pub fn run(options: &Options, results: &mut Results) -> Outcome<()> {
    results
        .note(format!("others: open loop, {PER_SECOND} GET a second over 50 connections; both generators on one CPU"));
    for durability in ["memory", "interval"] {
        for backend in &options.backends {
            let start = Zerohop::new(backend, durability).start();
            measure(&format!("long-{durability}"), &start.ready()?, Bar::AtMost(RATIO_MAX), options, results)?;
        }
    }
    for peer in ["redis-server", "valkey-server"] {
        measure("long-memory", &programs::redis_like(peer, None)?.ready()?, Bar::None, options, results)?;
    }
    Ok(())
}

fn measure(cell: &str, server: &Server, bar: Bar, options: &Options, results: &mut Results) -> Outcome<()> {
    if !options.wants(cell) {
        return Ok(());
    }
    let load = Load::new("get", 1, options.keys).with(&["--rate", PER_SECOND]);
    preload(server, &Load::new("set", 1, options.keys))?;
    let entrant = Entrant::new(server, &load);
    let p99_us = || quiet_slice(&entrant, options, &mut 0).map(|slice| slice.p99_us);
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    for _ in 0..options.pairs.min(PAIRS_MAX) {
        alone.push(p99_us()?);
        let _client = LongClient::start(server)?;
        beside.push(p99_us()?);
    }
    let ratios: Vec<f64> = beside.iter().zip(&alone).map(|(beside, alone)| beside / alone).collect();
    results.value(cell, &server.name, METRIC, &ratios, bar)?;
    results.value(&format!("{cell}-alone"), &server.name, "p99, us", &alone, Bar::None)?;
    results.value(&format!("{cell}-beside"), &server.name, "p99, us", &beside, Bar::None)?;
    Ok(())
}
