//! `chains`: what the second and the third member of a chain cost, in CPU of all members and in what a client waits.
//!
//! The program `chains` of crate `bench` starts three stores of three processes, with chains of 1, 2 and 3, and loads them in turn. All
//! processes are on CPU 0 and the generator is on CPU 1, as everywhere: what other machines would do at the same time is done one after
//! the other here, so the wait for another member is longer than it would be there.

use ports::PortBlock;
use serde::Deserialize;

use super::options::Options;
use super::programs::built;
use super::results::{Bar, Results};
use super::stores::{self, program};
use crate::Outcome;

/// CPU of a SET over all members, chains of two over chains of one.
const SECOND_MAX: f64 = 2.2;
const SECOND_REACH: f64 = 1.7;
/// p50 of a SET, chains of three over chains of two.
const THIRD_MAX: f64 = 1.05;
/// Stores, and loads for each.
const LENGTHS: usize = 3;
const CELLS: usize = 2;

/// What the program tells of one slice; see `crates/bench/src/chains.rs`.
#[derive(Deserialize)]
struct Slice {
    cell: String,
    length: usize,
    us_per_request: f64,
    per_second: f64,
    p50_us: f64,
    p99_us: f64,
    foreign_cores: f64,
}

/// Both loads.
pub fn run(options: &Options, results: &mut Results) -> Outcome<()> {
    results.note(format!(
        "stores of three processes on CPU 0, one loaded and two idle; {} durability; saturated: 48 connections, 16 SETs on the way on \
         each; unsaturated: 2,000 SETs a second one by one, counted from when they were due",
        options.cluster_durability()
    ));
    judge(&slices(options)?, results)
}

fn slices(options: &Options) -> Outcome<Vec<Slice>> {
    let block = PortBlock::take().map_err(|error| error.to_string())?;
    let mut command = program("chains")?;
    command.arg("--zerohop").arg(built("zerohop")).args(["--port", &block.first().to_string()]);
    command.args(["--pairs", &options.pairs.to_string(), "--slice", &options.slice_seconds.to_string()]);
    command.args(["--warm-up", &options.warm_up_seconds.to_string(), "--keys", &options.keys.to_string()]);
    command.args(["--durability", options.cluster_durability()]);
    Ok(stores::slices("chains", &mut command, options.pairs * LENGTHS * CELLS)?.slices)
}

fn judge(slices: &[Slice], results: &mut Results) -> Outcome<()> {
    let names: [String; LENGTHS] = [1, 2, 3].map(|length| format!("chains of {length}"));
    for cell in ["saturated", "unsaturated"] {
        for (length, name) in (1..).zip(&names) {
            let of = |of: fn(&Slice) -> f64| column(slices, cell, length, of);
            let columns = [
                ("us_per_request", of(|slice| slice.us_per_request)),
                ("per_second", of(|slice| slice.per_second)),
                ("p50_us", of(|slice| slice.p50_us)),
                ("p99_us", of(|slice| slice.p99_us)),
                ("foreign_cores", of(|slice| slice.foreign_cores)),
            ];
            let columns: Vec<(&str, &[f64])> =
                columns.iter().map(|(name, values)| (*name, values.as_slice())).collect();
            results.keep_values(cell, name, &columns);
        }
    }
    let mut compare =
        |cell, metric, (subject, against): (usize, usize), of: fn(&Slice) -> f64, bar: Bar, reach: Bar| {
            let (ours, theirs) = (column(slices, cell, subject, of), column(slices, cell, against, of));
            let sides =
                ((names[subject - 1].as_str(), ours.as_slice()), (names[against - 1].as_str(), theirs.as_slice()));
            results.ratios((cell, metric), sides.0, sides.1, bar).map(|row| row.reach(reach))
        };
    let cpu = "CPU us/SET of all members";
    let cost: fn(&Slice) -> f64 = |slice| slice.us_per_request;
    compare("saturated", cpu, (2, 1), cost, Bar::AtMost(SECOND_MAX), Bar::AtMost(SECOND_REACH))?;
    compare("saturated", cpu, (3, 1), cost, Bar::None, Bar::None)?;
    compare("saturated", cpu, (3, 2), cost, Bar::None, Bar::None)?;
    let wait: fn(&Slice) -> f64 = |slice| slice.p50_us;
    compare("unsaturated", "p50 of a SET", (3, 2), wait, Bar::AtMost(THIRD_MAX), Bar::None)?;
    compare("unsaturated", "p50 of a SET", (2, 1), wait, Bar::None, Bar::None)?;
    compare("saturated", "p50 of a SET", (3, 2), wait, Bar::None, Bar::None)
}

/// One number of every slice of a store under a load, in the order of the rounds.
fn column(slices: &[Slice], cell: &str, length: usize, of: fn(&Slice) -> f64) -> Vec<f64> {
    slices.iter().filter(|slice| slice.cell == cell && slice.length == length).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slices(costs: [f64; 3], waits: [f64; 3]) -> Vec<Slice> {
        let mut all = Vec::new();
        for round in 0..5 {
            for cell in ["saturated", "unsaturated"] {
                for index in [2, 0, 1] {
                    let (cost, wait) = (costs[index] + f64::from(round), waits[index]);
                    let text = format!(
                        r#"{{"cell":"{cell}","length":{},"us_per_request":{cost},"per_second":1,"p50_us":{wait},"p99_us":9,
                            "foreign_cores":0}}"#,
                        index + 1
                    );
                    all.push(serde_json::from_str(&text).expect("a slice"));
                }
            }
        }
        all
    }

    fn verdicts(costs: [f64; 3], waits: [f64; 3]) -> Vec<(&'static str, String, Option<bool>)> {
        let mut results = Results::new("chains");
        judge(&slices(costs, waits), &mut results).expect("everything is there");
        let judged = results.rows.iter().filter(|row| !row.verdict.is_empty());
        judged.map(|row| (row.verdict, row.subject.clone(), row.reached)).collect()
    }

    #[test]
    fn the_second_costs_and_the_third_delays() {
        let both = |first: &'static str, reached, second: &'static str| {
            vec![(first, "chains of 2".to_owned(), Some(reached)), (second, "chains of 3".to_owned(), None)]
        };
        assert_eq!(verdicts([10.0, 16.0, 20.0], [100.0, 120.0, 125.0]), both("PASS", true, "PASS"));
        assert_eq!(verdicts([10.0, 21.0, 20.0], [100.0, 120.0, 127.0]), both("PASS", false, "FAIL"));
        assert_eq!(verdicts([10.0, 23.0, 20.0], [100.0, 120.0, 120.0]), both("FAIL", false, "PASS"));
    }
}
