//! `horizon`: what it costs a GET of a key that nobody writes to ask whether what it sees is committed, while others write.
//!
//! Both arms are one program, the release build with planted bugs; in one of them M48 leaves the question out. CPU is that of stores of
//! three processes with chains of two under GETs and SETs; instructions are counted of one node that is a cluster of its own, where a
//! GET behind a SET of the same tick has to ask.

use ports::PortBlock;
use serde::Deserialize;

use super::instructions::per_request;
use super::options::Options;
use super::programs;
use super::results::{Bar, Results};
use super::server::Start;
use super::stores::{self, program};
use crate::{Outcome, kill};

/// CPU of a GET that asks over one that does not.
const COST_MAX: f64 = 1.01;
const KEYS: u64 = 200_000;
const SETS_PER_SECOND: u32 = 2000;
const PIPELINES: [(usize, &str); 2] = [(16, "get-P16"), (1, "get-P1")];
const ARMS: [&str; 2] = ["asked", "unasked"];
const BUG: (&str, &str) = ("PLANTED_BUG", "M48");
/// GETs for each SET where instructions are counted, so that most GETs of a batch are behind one.
const RATIO: &str = "15:1";
const COUNTED: &str = "instructions-P16";
/// Under a program that counts everything takes fifty times as long.
const LEASE_MS: &str = "60000";

/// What the program tells of one slice; see `crates/bench/src/clean_reads.rs`.
#[derive(Deserialize)]
struct Slice {
    pipeline: usize,
    asks: bool,
    us_per_get: f64,
    per_second: f64,
    sets_per_second: f64,
    foreign_cores: f64,
}

/// CPU, then instructions.
pub fn run(options: &Options, results: &mut Results) -> Outcome<()> {
    let zerohop = kill::planted_release_binary()?;
    // The ordinary one was moved away with it.
    programs::build()?;
    results.note(format!(
        "two stores of three processes, chains of two, on CPU 0, the generator on CPU 1; {} durability; 48 connections read {KEYS} keys, \
         {SETS_PER_SECOND} SETs a second go to as many others, and their CPU is in both arms; the unasked arm is planted bug M48 of the same \
         build",
        options.cluster_durability()
    ));
    let block = PortBlock::take().map_err(|error| error.to_string())?;
    let mut command = program("clean-reads")?;
    command.arg("--zerohop").arg(&zerohop).args(["--port", &block.first().to_string()]);
    command.args(["--pairs", &options.pairs.to_string(), "--slice", &options.slice_seconds.to_string()]);
    command.args(["--warm-up", &options.warm_up_seconds.to_string()]);
    command.args(["--keys", &options.keys_asked.unwrap_or(KEYS).to_string(), "--rate", &SETS_PER_SECOND.to_string()]);
    command.args(["--durability", options.cluster_durability()]);
    let slices = stores::slices("horizon", &mut command, options.pairs * ARMS.len() * PIPELINES.len())?.slices;
    judge(&slices, results)?;
    drop(block);
    let arm = |name: &str| {
        let words = ["serve", "--cluster", "new", "--chain-length", "1", "--lease-ms", LEASE_MS, "--io", "epoll"];
        let directory = ["--port", "{port}", "--durability", "interval", "--dir", "{dir}/data"];
        let mut start = Start::new(name, &zerohop, &[&words[..], &directory].concat());
        start.environment.extend((name == ARMS[1]).then(|| (BUG.0.to_owned(), BUG.1.to_owned())));
        per_request(&["--ratio", RATIO], 16, || Ok(start.clone())).map(|(_, count)| count)
    };
    match (arm(ARMS[0]), arm(ARMS[1])) {
        (Ok(asked), Ok(unasked)) => {
            results.ratio(COUNTED, "user instructions/request", (ARMS[0], asked), (ARMS[1], unasked));
        }
        // They explain the CPU; it is judged without them.
        (Err(message), _) | (_, Err(message)) => results.note(format!("instructions are not counted: {message}")),
    }
    Ok(())
}

fn judge(slices: &[Slice], results: &mut Results) -> Outcome<()> {
    for (pipeline, cell) in PIPELINES {
        let column = |arm: &str, of: fn(&Slice) -> f64| -> Vec<f64> {
            let is_it = |slice: &&Slice| slice.pipeline == pipeline && slice.asks == (arm == ARMS[0]);
            slices.iter().filter(is_it).map(of).collect()
        };
        for arm in ARMS {
            let kept: [(&str, Vec<f64>); 4] = [
                ("us_per_get", column(arm, |slice| slice.us_per_get)),
                ("per_second", column(arm, |slice| slice.per_second)),
                ("sets_per_second", column(arm, |slice| slice.sets_per_second)),
                ("foreign_cores", column(arm, |slice| slice.foreign_cores)),
            ];
            let kept: Vec<(&str, &[f64])> = kept.iter().map(|(name, values)| (*name, values.as_slice())).collect();
            results.keep_values(cell, arm, &kept);
        }
        let [asked, unasked] = ARMS.map(|arm| column(arm, |slice| slice.us_per_get));
        let metric = "CPU us/GET, with the SETs";
        results.ratios((cell, metric), (ARMS[0], &asked), (ARMS[1], &unasked), Bar::AtMost(COST_MAX))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdicts(asked: f64, unasked: f64) -> Vec<&'static str> {
        let mut slices = Vec::new();
        for _ in 0..5 {
            for (pipeline, _) in PIPELINES {
                for (asks, cost) in [(false, unasked), (true, asked)] {
                    let text = format!(
                        r#"{{"pipeline":{pipeline},"asks":{asks},"us_per_get":{cost},"per_second":1,"sets_per_second":1,
                            "foreign_cores":0}}"#
                    );
                    slices.push(serde_json::from_str(&text).expect("a slice"));
                }
            }
        }
        let mut results = Results::new("horizon");
        judge(&slices, &mut results).expect("everything is there");
        results.rows.iter().map(|row| row.verdict).collect()
    }

    #[test]
    fn who_asks_may_cost_a_hundredth_more() {
        assert_eq!(verdicts(1.005, 1.0), ["PASS", "PASS"]);
        assert_eq!(verdicts(1.02, 1.0), ["FAIL", "FAIL"]);
        assert_eq!(verdicts(0.9, 1.0), ["PASS", "PASS"]);
    }
}
