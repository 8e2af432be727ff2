//! `traffic` (G3): bytes that are there because slots went elsewhere, at clients and between nodes, of all that is said meanwhile.
//!
//! The program `moves` of crate `bench` moves a thousand slots under load, and counts; here the shares are judged.

use ports::PortBlock;
use serde::Deserialize;

use super::options::Options;
use super::programs::built;
use super::progress::Progress;
use super::results::{Bar, Results};
use super::stores::program;
use crate::{Outcome, peers, process};

/// Extra bytes of clients over all of theirs, percent.
const CLIENTS_PERCENT_MAX: f64 = 0.05;
/// What nodes say of the table over all that they send and receive, percent.
const NODES_PERCENT_MAX: f64 = 0.1;
/// Keys in the moved slots: a move that is over at once has nothing to share its corrections with.
const KEYS: u64 = 1_000_000;
const STORES: [&str; 2] = ["zerohop", "valkey"];

/// A line of the program; see `crates/bench/src/moves/mod.rs`.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Round(Of<Round>),
    Broken(Broken),
    Report(Of<serde_json::Value>),
}

/// What was seen of one of the stores.
#[derive(Deserialize)]
struct Of<T> {
    subject: String,
    seen: T,
}

#[derive(Deserialize)]
struct Broken {
    subject: String,
    problem: String,
}

#[derive(Deserialize)]
struct Round {
    move_seconds: f64,
    during: Window,
    traffic: Option<Traffic>,
}

#[derive(Deserialize)]
struct Window {
    seconds: f64,
    count: u64,
    bytes: u64,
    extra_bytes: u64,
}

#[derive(Deserialize)]
struct Traffic {
    steady: NodeTraffic,
    steady_seconds: f64,
    during: NodeTraffic,
}

#[derive(Deserialize)]
struct NodeTraffic {
    table: u64,
    keys: u64,
}

impl Round {
    /// Bytes that clients sent and received because they did not know who serves a slot, percent of all of theirs.
    fn clients_percent(&self) -> f64 {
        self.during.extra_bytes as f64 / self.during.bytes as f64 * 100.0
    }

    /// Bytes that nodes said of the table beyond what they say in as long a time without a move, percent of all that nodes sent and
    /// received: to and from clients, and among each other.
    fn nodes_percent(&self) -> Option<f64> {
        let traffic = self.traffic.as_ref()?;
        let usual = traffic.steady.table as f64 / traffic.steady_seconds * self.during.seconds;
        let all = self.during.bytes + traffic.during.table + traffic.during.keys;
        Some((traffic.during.table as f64 - usual).max(0.0) / all as f64 * 100.0)
    }
}

/// Both stores in turn, or one of them.
pub fn run(options: &Options, results: &mut Results) -> Outcome<()> {
    let keys = options.keys_asked.unwrap_or(KEYS);
    let cell = format!("traffic-{keys}-keys");
    results.note(
        "slots 0 to 999 go from node to node under the load of `moves`, each of whose 48 workers has sixteen requests on their way in a closed loop. \
         Clients: MOVED and ASK with the requests that met them, ASKING, and CLUSTER SLOTS, from the order until 0.2 s after the end, over \
         all their bytes. Nodes: what goes over the ports of managers (the peer's bus) beyond what does in a steady stretch of that \
         length, over that, links and clients together. The peer sends keys that move to its port for clients, which is in none of \
         these",
    );
    let block = PortBlock::take().map_err(|error| error.to_string())?;
    let mut command = program("moves")?;
    command.args([
        "--port",
        &block.first().to_string(),
        "--rounds",
        &options.rounds.to_string(),
        "--traffic",
        "--saturate",
    ]);
    command.args(["--keys", &keys.to_string(), "--durability", options.cluster_durability()]);
    let wanted: Vec<&str> = STORES.into_iter().filter(|store| options.wants(store)).collect();
    for store in &wanted {
        command.arg(format!("--{store}"));
        match *store {
            "zerohop" => command.arg(built("zerohop")),
            _ => command.arg(peers::find_or_fetch("valkey-server")?.program),
        };
    }
    let total = wanted.len() * options.rounds;
    let (mut progress, mut rounds) = (Progress::new(&cell, total), Vec::new());
    let succeeded = process::lines(&mut command, |line| {
        match serde_json::from_str(line) {
            Ok(Line::Round(round)) => rounds.push(round),
            Ok(Line::Broken(Broken { subject, problem })) => results.absent(format!("{cell}: {subject}: {problem}")),
            // What is lost or refused is the business of `moves`.
            Ok(Line::Report(Of { subject, seen })) => results.note(format!("{subject}: {}", seen["store"])),
            Err(error) => results.absent(format!("{cell}: {line:?} is not understood: {error}")),
        }
        progress.show(rounds.len());
        false
    })?;
    drop(progress);
    if !succeeded {
        results.absent(format!("{cell}: it ended after {} of {total} moves: what it said stands above", rounds.len()));
    }
    wanted.into_iter().try_for_each(|store| judge(&cell, store, &rounds, results))
}

fn judge(cell: &str, store: &'static str, rounds: &[Of<Round>], results: &mut Results) -> Outcome<()> {
    let of_store = || rounds.iter().filter(|round| round.subject == store).map(|round| &round.seen);
    let bar = |bar: Bar| if store == STORES[0] { bar } else { Bar::None };
    let clients: Vec<f64> = of_store().map(Round::clients_percent).collect();
    let nodes: Vec<f64> = of_store().filter_map(Round::nodes_percent).collect();
    let per_second = |round: &Round| round.during.count as f64 / round.during.seconds;
    let kept: [(&str, Vec<f64>); 7] = [
        ("move_seconds", of_store().map(|round| round.move_seconds).collect()),
        ("seconds", of_store().map(|round| round.during.seconds).collect()),
        ("client_bytes", of_store().map(|round| round.during.bytes as f64).collect()),
        ("client_extra_bytes", of_store().map(|round| round.during.extra_bytes as f64).collect()),
        ("table_bytes", of_store().filter_map(|round| Some(round.traffic.as_ref()?.during.table as f64)).collect()),
        ("requests_per_second", of_store().map(per_second).collect()),
        ("link_bytes", of_store().filter_map(|round| Some(round.traffic.as_ref()?.during.keys as f64)).collect()),
    ];
    let kept: Vec<(&str, &[f64])> = kept.iter().map(|(name, values)| (*name, values.as_slice())).collect();
    results.keep_values(cell, store, &kept);
    for (name, values) in [kept[0], kept[5], kept[3], kept[4]] {
        let metric = match name {
            "move_seconds" => "s of a move",
            "requests_per_second" => "requests/s meanwhile",
            "client_extra_bytes" => "extra bytes of clients",
            _ => "bytes of the table's ports",
        };
        results.value(cell, store, metric, values, Bar::None)?;
    }
    results.value(cell, store, "extra of clients, %", &clients, bar(Bar::AtMost(CLIENTS_PERCENT_MAX)))?;
    results.value(cell, store, "extra among nodes, %", &nodes, bar(Bar::AtMost(NODES_PERCENT_MAX)))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round of 2 s with 20 MB of clients, 30 MB of links, and 1 kB of the table's ports in a usual second.
    fn round(store: &str, extra: u64, table: u64) -> Of<Round> {
        let text = format!(
            r#"{{"round":{{"subject":"{store}","seen":{{"move_seconds":1.8,"whole_seconds":1,
                "during":{{"seconds":2,"count":5,"bytes":20000000,"extra_bytes":{extra}}},
                "traffic":{{"steady":{{"table":3000,"keys":5}},"steady_seconds":3,"during":{{"table":{table},"keys":29000000}}}}}}}}}}"#
        );
        let Ok(Line::Round(round)) = serde_json::from_str(&text) else { panic!("{text}") };
        round
    }

    #[test]
    fn what_is_usual_is_no_extra() {
        let seen = round("zerohop", 5000, 1_002_000).seen;
        assert!((seen.clients_percent() - 0.025).abs() < 1e-9, "{}", seen.clients_percent());
        let percent = seen.nodes_percent().expect("it was counted");
        assert!((percent - 1_000_000.0 / 50_002_000.0 * 100.0).abs() < 1e-3, "{percent}");
        assert_eq!(round("zerohop", 0, 500).seen.nodes_percent(), Some(0.0), "less than usual is none");
    }

    fn verdicts(store: &'static str, extra: u64, table: u64) -> Vec<&'static str> {
        let mut results = Results::new("traffic");
        judge("cell", store, &[round(store, extra, table)], &mut results).expect("values");
        results.rows[4..].iter().map(|row| row.verdict).collect()
    }

    #[test]
    fn both_shares_of_ours_are_judged() {
        assert_eq!(verdicts("zerohop", 9_000, 50_000), ["PASS", "PASS"]);
        assert_eq!(verdicts("zerohop", 11_000, 60_000), ["FAIL", "FAIL"]);
        assert_eq!(verdicts("valkey", 11_000, 60_000), ["", ""]);
    }
}
