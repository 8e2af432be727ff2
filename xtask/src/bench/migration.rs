//! `migration` (G1, G2): requests that clients get answered while all keys go to another end, if they ask as fast as they are answered.
//!
//! The program `migration` of crate `bench` has five ways to migrate as variants of one small pair of servers, and moves slots of Zerohop
//! by one order and by many; here its numbers are judged. Rates are bounded far below what CPUs do, so nothing is pinned.

use std::collections::BTreeMap;

use ports::PortBlock;
use serde::Deserialize;

use super::options::Options;
use super::programs::built;
use super::results::{Bar, Results};
use super::stores::{self, program};
use crate::Outcome;

/// G1: requests during a migration, of the best of the others, in every cell of the grid.
const GAIN_MIN: f64 = 1.065;
/// G2: against each of three, in one cell.
const GAINS_MIN: [(&str, f64); 3] = [("source_based", 1.32), ("writes", 1.57), ("at_once", 1.78)];
/// Against the source alone: twice the natural logarithm of two is what arithmetic allows.
const GAIN_REACH: f64 = 1.386;
/// Where nobody is saturated nothing is to be gained, nor lost.
const KEPT_MIN: f64 = 0.99;
/// Length of a migration over that of the source-based one.
const LONGER_MAX: f64 = 1.1;
const STALL_MS_MAX: f64 = 10.0;
const LEASE_MS: &str = "5000";
/// Pairs that are migrated.
const KEYS: u64 = 2_000_000;
/// Seconds of a migration of the pair, and of one for a look.
const SECONDS: f64 = 6.0;
const LOOK_SECONDS: f64 = 2.0;
const BASELINES: [&str; 4] = ["source_based", "at_once", "writes", "stopped"];
/// Who migrates in pieces, and who that is to be compared with.
const CURSOR: &str = "cursor";
const PRODUCT: (&str, &str) = ("zerohop_pieces", "zerohop_whole");
const ARMS: usize = 7;

/// What the program tells of one migration; see `crates/bench/src/migration/mod.rs`.
#[derive(Deserialize)]
struct Slice {
    write_percent: u32,
    budget_percent: u32,
    load_percent: Option<u32>,
    seen: Seen,
}

#[derive(Deserialize)]
struct Seen {
    arm: String,
    steady_per_second: f64,
    per_second: f64,
    move_seconds: f64,
    model_per_second: Option<f64>,
    p99_ms: f64,
    longest_ms: f64,
    corrections: u64,
    failed: BTreeMap<String, u64>,
    wrong: u64,
    end_cores: Option<f64>,
    client_cores: f64,
}

/// A number of a migration.
type Part = fn(&Seen) -> f64;

/// A load: SETs in a hundred, the source's rate in hundredths, and hundredths of that where it is not saturated.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Cell(u32, u32, Option<u32>);

impl Cell {
    /// The grid; the cell of G2; one that does not saturate.
    fn all() -> Vec<Cell> {
        let grid = [100, 70, 40].into_iter().flat_map(|budget| [0, 10, 20, 30].map(|write| Cell(write, budget, None)));
        grid.chain([Cell(5, 100, None), Cell(10, 100, Some(30))]).collect()
    }

    fn name(self) -> String {
        let Cell(write, budget, load) = self;
        format!("w{write}-s{budget}{}", if load.is_some() { "-unsaturated" } else { "" })
    }

    fn argument(self) -> String {
        let Cell(write, budget, load) = self;
        format!("{write}:{budget}{}", load.map_or(String::new(), |load| format!(":{load}")))
    }
}

/// All cells, or those that were asked for.
pub fn run(options: &Options, results: &mut Results) -> Outcome<()> {
    let cells: Vec<Cell> = Cell::all().into_iter().filter(|cell| options.wants(&cell.name())).collect();
    if cells.is_empty() {
        return Err("no cell has that name: w0 to w30 and s100, s70, s40 are known, and unsaturated".to_owned());
    }
    let (keys, length) = (options.keys_asked.unwrap_or(KEYS), if options.is_look() { LOOK_SECONDS } else { SECONDS });
    results.note(format!(
        "wN: N of a hundred requests SETs; sN: the source may serve N hundredths of the destination's 20,000 a second; 64 closed loops; \
         {keys} pairs of 4 and 64 bytes. Pair: a migration takes {length} s whatever the way, copying costs a tenth of the destination's \
         rate at either end. zerohop: {}, rates bounded at clients, copying at its own pace and not charged",
        options.cluster_durability()
    ));
    let block = PortBlock::take().map_err(|error| error.to_string())?;
    let mut command = program("migration")?;
    command.args(["--port", &block.first().to_string(), "--rounds", &options.rounds.to_string()]);
    command.args(["--keys", &keys.to_string(), "--length", &length.to_string()]);
    command.arg("--zerohop").arg(built("zerohop")).args(["--durability", options.cluster_durability()]);
    // Nobody fails here, and a lease that ends while keys are filled in would end the run.
    command.args(["--lease-ms", LEASE_MS]);
    command.args(cells.iter().flat_map(|cell| ["--cell".to_owned(), cell.argument()]));
    let told = stores::slices("migration", &mut command, options.rounds * cells.len() * ARMS)?;
    told.stores.into_iter().for_each(|store| results.note(store));
    cells.into_iter().try_for_each(|cell| judge(cell, &told.slices, results))
}

fn judge(cell: Cell, slices: &[Slice], results: &mut Results) -> Outcome<()> {
    let Cell(write, budget, load) = cell;
    let is_it =
        |slice: &&Slice| (slice.write_percent, slice.budget_percent, slice.load_percent) == (write, budget, load);
    let mut arms: BTreeMap<&str, Vec<&Seen>> = BTreeMap::new();
    slices.iter().filter(is_it).for_each(|slice| arms.entry(&slice.seen.arm).or_default().push(&slice.seen));
    let name = cell.name();
    for (arm, seen) in &arms {
        keep(&name, arm, seen, results);
        reach(&name, arm, seen, results)?;
    }
    let column = |arm: &str, of: Part| arms.get(arm).map(|seen| seen.iter().map(|seen| of(seen)).collect::<Vec<f64>>());
    let mut compare = |metric, (ours, theirs): (&str, &str), of: Part, bar: Bar| {
        let (Some(ours_seen), Some(theirs_seen)) = (column(ours, of), column(theirs, of)) else { return Ok(()) };
        let row = results.ratios((&name, metric), (ours, &ours_seen), (theirs, &theirs_seen), bar)?;
        if metric == RATE && matches!(theirs, "source_based" | "zerohop_whole") && load.is_none() {
            row.reach(Bar::AtLeast(GAIN_REACH));
        }
        Ok::<(), String>(())
    };
    for baseline in BASELINES {
        compare(RATE, (CURSOR, baseline), |seen| seen.per_second, bar(cell, baseline))?;
    }
    compare(RATE, PRODUCT, |seen| seen.per_second, bar(cell, BASELINES[0]))?;
    for pair in [(CURSOR, BASELINES[0]), PRODUCT] {
        compare("s of a migration", pair, |seen| seen.move_seconds, Bar::AtMost(LONGER_MAX))?;
        compare("p99 of a request", pair, |seen| seen.p99_ms, Bar::None)?;
    }
    for arm in [CURSOR, PRODUCT.0] {
        let Some(seen) = arms.get(arm) else { continue };
        // A wait for a token is the load's own; where all wait for them no stall is to be seen.
        let bar = if load.is_some() { Bar::AtMost(STALL_MS_MAX) } else { Bar::None };
        let longest: Vec<f64> = seen.iter().map(|seen| seen.longest_ms).collect();
        results.value(&name, arm, "ms, the longest request", &longest, bar)?;
    }
    Ok(())
}

/// What is judged.
const RATE: &str = "requests/s over a migration";

/// What a ratio against this one has to reach.
fn bar(cell: Cell, baseline: &str) -> Bar {
    let of_pair = GAINS_MIN.iter().find(|(name, _)| *name == baseline);
    match (cell, of_pair) {
        (Cell(_, _, Some(_)), _) => Bar::AtLeast(KEPT_MIN),
        (Cell(5, 100, None), Some((_, least))) => Bar::AtLeast(*least),
        _ => Bar::AtLeast(GAIN_MIN),
    }
}

/// What each round showed, for programs.
fn keep(cell: &str, arm: &str, seen: &[&Seen], results: &mut Results) {
    let parts: [(&str, Part); 8] = [
        ("steady_per_second", |seen| seen.steady_per_second),
        ("per_second", |seen| seen.per_second),
        ("move_seconds", |seen| seen.move_seconds),
        ("p99_ms", |seen| seen.p99_ms),
        ("longest_ms", |seen| seen.longest_ms),
        ("corrections", |seen| seen.corrections as f64),
        ("end_cores", |seen| seen.end_cores.unwrap_or(f64::NAN)),
        ("client_cores", |seen| seen.client_cores),
    ];
    let columns = parts.map(|(name, of)| (name, seen.iter().map(|seen| of(seen)).collect::<Vec<f64>>()));
    let columns: Vec<(&str, &[f64])> = columns.iter().map(|(name, values)| (*name, values.as_slice())).collect();
    results.keep_values(cell, arm, &columns);
}

/// What an arm reached of what arithmetic allows, and that nothing failed.
fn reach(cell: &str, arm: &str, seen: &[&Seen], results: &mut Results) -> Outcome<()> {
    let of_model = seen.iter().filter_map(|seen| Some(seen.per_second / seen.model_per_second?));
    let of_model: Vec<f64> = of_model.collect();
    if !of_model.is_empty() {
        results.value(cell, arm, "of what arithmetic allows", &of_model, Bar::None)?;
    }
    let flaws: u64 = seen.iter().map(|seen| seen.wrong + seen.failed.values().sum::<u64>()).sum();
    let first = seen.iter().flat_map(|seen| seen.failed.keys()).next();
    first.into_iter().for_each(|text| results.note(format!("{cell}: {arm}: {text}")));
    results.value(cell, arm, "requests failed, or not as they were set", &[flaws as f64], Bar::AtMost(0.0))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five rounds of every arm: requests a second, and what the cursor's migration took over that of the others.
    fn slices(cell: Cell, rates: [f64; ARMS], longer: f64, wrong: u64) -> Vec<Slice> {
        let arms = ["source_based", CURSOR, "at_once", "writes", "stopped", PRODUCT.1, PRODUCT.0];
        let one = |(arm, rate): (&str, f64)| {
            let load = cell.2.map_or("null".to_owned(), |load| load.to_string());
            let seconds = if arm == CURSOR { longer } else { 1.0 };
            let text = format!(
                r#"{{"write_percent":{},"budget_percent":{},"load_percent":{load},"seen":{{"arm":"{arm}","steady_per_second":1,
                    "per_second":{rate},"move_seconds":{seconds},"model_per_second":null,"p50_ms":1,"p99_ms":1,"longest_ms":9,
                    "corrections":1,"failed":{{}},"wrong":{wrong},"end_cores":null,"client_cores":0.5}}}}"#,
                cell.0, cell.1
            );
            serde_json::from_str(&text).expect("a slice")
        };
        (0..5).flat_map(|_| arms.into_iter().zip(rates).map(one)).collect()
    }

    /// The bars that were missed, by who was compared with.
    fn missed(cell: Cell, rates: [f64; ARMS], longer: f64, wrong: u64) -> Vec<String> {
        let mut results = Results::new("migration");
        judge(cell, &slices(cell, rates, longer, wrong), &mut results).expect("everything is there");
        let failed = results.rows.iter().filter(|row| row.verdict == "FAIL");
        failed.map(|row| if row.against.is_empty() { row.subject.clone() } else { row.against.clone() }).collect()
    }

    #[test]
    fn each_baseline_has_its_bar() {
        let (grid, best) = (Cell(30, 40, None), Cell(5, 100, None));
        let rates = [10.0, 18.0, 10.0, 11.0, 10.0, 10.0, 14.0];
        assert!(missed(grid, rates, 1.0, 0).is_empty() && missed(best, rates, 1.0, 0).is_empty());
        let beaten = |place: usize, rate: f64, cell| {
            let mut rates = rates;
            rates[place] = rate;
            missed(cell, rates, 1.0, 0)
        };
        assert_eq!(beaten(3, 17.0, grid), ["writes"]);
        assert_eq!(beaten(3, 11.6, best), ["writes"], "18 is 1.55 of it");
        assert_eq!(beaten(2, 10.2, best), ["at_once"]);
        assert_eq!(beaten(0, 13.7, best), ["source_based"]);
        assert_eq!(beaten(4, 17.5, best), ["stopped"], "there it is the grid's");
        assert_eq!(beaten(6, 13.1, best), ["zerohop_whole"]);
    }

    #[test]
    fn a_longer_migration_is_no_gain_and_a_wrong_answer_no_answer() {
        let rates = [10.0, 20.0, 10.0, 10.0, 10.0, 10.0, 20.0];
        let cell = Cell(0, 100, None);
        assert_eq!(missed(cell, rates, 1.2, 0), ["source_based"]);
        assert_eq!(missed(cell, rates, 1.0, 1).len(), ARMS);
        let unsaturated = Cell(10, 100, Some(30));
        let even = [10.0; ARMS];
        assert!(missed(unsaturated, even, 1.0, 0).is_empty());
        assert_eq!(missed(cell, even, 1.0, 0).len(), BASELINES.len() + 1);
    }

    #[test]
    fn cells_are_asked_for_by_their_parts() {
        let all = Cell::all();
        assert_eq!(
            (all.len(), all[13].name(), all[13].argument()),
            (14, "w10-s100-unsaturated".into(), "10:100:30".into())
        );
        assert_eq!((all[11].name(), all[11].argument()), ("w30-s40".into(), "30:40".into()));
    }
}
