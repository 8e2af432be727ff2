//! `moves`: a thousand slots go from one node to another while clients read and write, here and in Valkey, in turn.
//!
//! The program `moves` of crate `bench` starts both stores, fills them, moves and counts; here its numbers are judged. Everything
//! shares the machine and nothing is pinned: these are waits, no costs.

use std::collections::BTreeMap;

use ports::PortBlock;
use serde::Deserialize;

use super::host_memory::Provided;
use super::options::Options;
use super::programs::built;
use super::progress::Progress;
use super::results::{Bar, Results};
use super::server::outranking;
use crate::{Outcome, peers, process, workspace};

/// Keys in the moved slots, and how long their move may take, seconds.
const SIZES: [(u64, f64); 2] = [(61_000, 0.4), (1_000_000, 6.0)];
/// p99 during a move over that of the steady run before it.
const P99_MAX: f64 = 1.2;
/// The longest SET during a move, above the longest one of the steady run before it.
const STALL_MS_MAX: f64 = 10.0;
const STALL_MS_REACH: f64 = 3.0;

/// A line of the program; see `crates/bench/src/moves/mod.rs`.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Round(Of<Round>),
    Broken(Broken),
    Report(Of<Report>),
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
    whole_seconds: f64,
    called_off: u64,
    steady: Window,
    during: Window,
    moved: u64,
    asked: u64,
    corrected_again: u64,
    errors: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
struct Window {
    count: u64,
    p99_ms: f64,
    write_ms_max: f64,
    read_ms_max: f64,
}

#[derive(Deserialize)]
struct Report {
    store: String,
    processes: String,
    way: String,
    keys_moved: u64,
    keys: u64,
    audit: Audit,
}

#[derive(Deserialize)]
struct Audit {
    acknowledged: u64,
    lost: u64,
    unasked: u64,
    in_doubt: u64,
    unreadable: u64,
}

/// What is known of one store.
#[derive(Default)]
struct Seen {
    rounds: Vec<Round>,
    report: Option<Report>,
    problem: Option<String>,
}

/// A number of a round.
type Part = fn(&Round) -> f64;

/// Both sizes, or the one that was asked for.
pub fn run(options: &Options, results: &mut Results) -> Outcome<()> {
    let provided = Provided::for_loads();
    results.note(provided.note());
    results.note(
        "slots 0 to 999 go from node to node under an open loop of 12,000 requests a second, one of five a SET, from 48 workers that each \
         know the cluster; keys are those of the moved slots, others have as many or 61 a slot. A window from the order until 0.2 s after \
         its end is paired with one of the same length before it. Nothing is pinned",
    );
    match options.keys_asked {
        Some(keys) => of_size(keys, options, results),
        None => SIZES.iter().try_for_each(|(keys, _)| of_size(*keys, options, results)),
    }
}

fn of_size(keys: u64, options: &Options, results: &mut Results) -> Outcome<()> {
    let cell = format!("moves-{keys}-keys");
    let seen = moves(keys, &cell, options, results)?;
    for (subject, seen) in &seen {
        if let Some(problem) = &seen.problem {
            results.absent(format!("{cell}: {subject} after {} moves: {problem}", seen.rounds.len()));
        }
        judge(&cell, seen, (subject == "zerohop").then_some(keys), results)?;
    }
    let took = |subject: &str| Some(column(&seen.get(subject)?.rounds, |round| round.move_seconds));
    if let (Some(ours), Some(theirs)) = (took("zerohop"), took("valkey"))
        && !ours.is_empty()
        && !theirs.is_empty()
    {
        results.ratios((&cell, "s of a move"), ("zerohop", &ours), ("valkey", &theirs), Bar::None)?;
    }
    Ok(())
}

/// Runs the program, and shows how far it is.
fn moves(keys: u64, cell: &str, options: &Options, results: &mut Results) -> Outcome<BTreeMap<String, Seen>> {
    let block = PortBlock::take().map_err(|error| error.to_string())?;
    let folder = workspace::root().join("target/bench-data");
    std::fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    // As a server's: gone when this chore is, and all that it started with it.
    let mut command = outranking("setpriv");
    command.args(["--pdeathsig", "KILL"]).arg(built("moves")).arg("--directory").arg(&folder);
    command.args(["--port", &block.first().to_string(), "--rounds", &options.rounds.to_string()]);
    command.args(["--keys", &keys.to_string(), "--durability", options.cluster_durability()]);
    let mut stores = 0;
    if options.wants("zerohop") {
        stores += 1;
        command.arg("--zerohop").arg(built("zerohop"));
    }
    if options.wants("valkey") {
        stores += 1;
        command.arg("--valkey").arg(peers::find_or_fetch("valkey-server")?.program);
    }
    let total = stores * options.rounds;
    let mut progress = Progress::new(cell, total);
    let mut all: BTreeMap<String, Seen> = BTreeMap::new();
    let (mut done, mut problem) = (0, None);
    let succeeded = process::lines(&mut command, |line| {
        match serde_json::from_str(line) {
            Ok(Line::Round(Of { subject, seen })) => {
                all.entry(subject).or_default().rounds.push(seen);
                done += 1;
                progress.show(done);
            }
            Ok(Line::Broken(Broken { subject, problem })) => {
                all.entry(subject).or_default().problem = Some(problem);
            }
            Ok(Line::Report(Of { subject, seen })) => all.entry(subject).or_default().report = Some(seen),
            Err(error) => problem = Some(format!("{line:?} is not understood: {error}")),
        }
        false
    })?;
    drop(progress);
    match problem {
        None if succeeded => {}
        None => results.absent(format!("{cell}: it ended after {done} of {total} moves: what it said stands above")),
        Some(problem) => results.absent(format!("{cell}: {problem}")),
    }
    Ok(all)
}

fn judge(cell: &str, seen: &Seen, ours: Option<u64>, results: &mut Results) -> Outcome<()> {
    let Seen { rounds, report: Some(report), .. } = seen else { return Ok(()) };
    let store = report.store.as_str();
    let bar = |bar: Bar| if ours.is_some() { bar } else { Bar::None };
    let Report { processes, way, keys_moved, keys, audit, .. } = report;
    let Audit { acknowledged, in_doubt, .. } = audit;
    let errors = rounds.iter().flat_map(|round| &round.errors);
    let first = errors.clone().next().map_or(String::new(), |(text, _)| format!(", first: {text}"));
    results.note(format!(
        "{cell}: {store}, {processes}: {} moves {way} of {keys_moved} of {keys} keys, {acknowledged} SETs acknowledged, {in_doubt} \
         unanswered, {} ASK{first}",
        rounds.len(),
        rounds.iter().map(|round| round.asked).sum::<u64>()
    ));
    if !rounds.is_empty() {
        judge_rounds(cell, store, rounds, ours, results)?;
    }
    let refused: u64 = errors.map(|(_, count)| count).sum();
    results.value(cell, store, "requests refused or unanswered", &[refused as f64], bar(Bar::AtMost(0.0)))?;
    let unkept = audit.lost + audit.unasked;
    results.value(cell, store, "SETs that are gone, or that nobody sent", &[unkept as f64], bar(Bar::AtMost(0.0)))?;
    let unread = audit.unreadable as f64;
    results.value(cell, store, "keys that cannot be read", &[unread], bar(Bar::AtMost(0.0)))?;
    Ok(())
}

fn judge_rounds(cell: &str, store: &str, rounds: &[Round], ours: Option<u64>, results: &mut Results) -> Outcome<()> {
    let bar = |bar: Bar| if ours.is_some() { bar } else { Bar::None };
    let of = |of: fn(&Round) -> f64| column(rounds, of);
    let (during, steady) = (of(|round| round.during.p99_ms), of(|round| round.steady.p99_ms));
    let kept: [(&str, Part); 6] = [
        ("move_seconds", |round| round.move_seconds),
        ("during_write_ms_max", |round| round.during.write_ms_max),
        ("steady_write_ms_max", |round| round.steady.write_ms_max),
        ("during_requests", |round| round.during.count as f64),
        ("steady_requests", |round| round.steady.count as f64),
        ("corrections", |round| (round.moved + round.asked) as f64),
    ];
    let columns: Vec<(&str, Vec<f64>)> = kept.into_iter().map(|(name, take)| (name, of(take))).collect();
    let mut columns: Vec<(&str, &[f64])> = columns.iter().map(|(name, values)| (*name, values.as_slice())).collect();
    columns.extend([("during_p99_ms", during.as_slice()), ("steady_p99_ms", steady.as_slice())]);
    results.keep_values(cell, store, &columns);

    results.value(cell, store, "s of a move", &of(|round| round.move_seconds), time_bar(ours))?;
    results.value(cell, store, "s until whole again", &of(|round| round.whole_seconds), Bar::None)?;
    let names = [format!("{store}, during"), format!("{store}, before")];
    let (during, steady) = ((names[0].as_str(), during.as_slice()), (names[1].as_str(), steady.as_slice()));
    results.ratios((cell, "p99 of a request"), during, steady, bar(Bar::AtMost(P99_MAX)))?;
    let stalls = of(|round| round.during.write_ms_max - round.steady.write_ms_max);
    results
        .value(cell, store, "ms, longest SET above the one before", &stalls, bar(Bar::AtMost(STALL_MS_MAX)))?
        .reach(bar(Bar::AtMost(STALL_MS_REACH)));
    let stalls = of(|round| round.during.read_ms_max - round.steady.read_ms_max);
    results.value(cell, store, "ms, longest GET above the one before", &stalls, Bar::None)?;
    results.value(cell, store, "corrections of a move", &of(|round| (round.moved + round.asked) as f64), Bar::None)?;
    let called_off = rounds.iter().map(|round| round.called_off).sum::<u64>() as f64;
    results.value(cell, store, "moves called off", &[called_off], bar(Bar::AtMost(0.0)))?;
    // Each move is judged: a key that is corrected twice in one of them is one too many.
    let again: u64 = rounds.iter().map(|round| round.corrected_again).sum();
    results.value(cell, store, "keys corrected again in a move", &[again as f64], bar(Bar::AtMost(0.0)))?;
    Ok(())
}

/// The bar of the smallest size with so many keys; none beyond.
fn time_bar(ours: Option<u64>) -> Bar {
    let size = ours.and_then(|keys| SIZES.iter().find(|(size, _)| keys <= *size));
    size.map_or(Bar::None, |(_, seconds)| Bar::AtMost(*seconds))
}

fn column(rounds: &[Round], of: fn(&Round) -> f64) -> Vec<f64> {
    rounds.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND: &str = r#"{"round":{"subject":"zerohop","seen":{"move_seconds":0.3,"whole_seconds":0.5,"called_off":0,
        "steady":{"seconds":0.5,"count":6000,"p50_ms":1,"p99_ms":4,"write_ms_max":9,"read_ms_max":8},
        "during":{"seconds":0.5,"count":6000,"p50_ms":1,"p99_ms":4.4,"write_ms_max":12,"read_ms_max":8},
        "moved":40,"asked":0,"corrected":40,"corrected_again":0,"errors":{}}}}"#;
    const REPORT: &str = r#"{"report":{"subject":"zerohop","seen":{"store":"zerohop 0","processes":"3","way":"whole",
        "keys_moved":61000,"keys":1000000,
        "audit":{"acknowledged":9,"lost":0,"unasked":0,"in_doubt":0,"unreadable":0}}}}"#;

    fn verdicts(round: &str, report: &str, keys: u64) -> BTreeMap<&'static str, &'static str> {
        let Ok(Line::Round(Of { seen: round, .. })) = serde_json::from_str(round) else { panic!("{round}") };
        let Ok(Line::Report(Of { seen: report, .. })) = serde_json::from_str(report) else { panic!("{report}") };
        let mut results = Results::new("moves");
        let seen = Seen { rounds: vec![round], report: Some(report), problem: None };
        judge("moves", &seen, Some(keys), &mut results).expect("everything is there");
        results.rows.iter().map(|row| (row.metric, row.verdict)).collect()
    }

    #[test]
    fn a_good_move_meets_every_bar() {
        let all = verdicts(ROUND, REPORT, 61_000);
        assert_eq!(all.values().filter(|verdict| **verdict == "PASS").count(), 8, "{all:?}");
        assert!(!all.values().any(|verdict| *verdict == "FAIL"), "{all:?}");
    }

    #[test]
    fn each_flaw_misses_its_own_bar() {
        let round = |from: &str, to: &str| verdicts(&ROUND.replace(from, to), REPORT, 61_000);
        let report = |from: &str, to: &str| verdicts(ROUND, &REPORT.replace(from, to), 61_000);
        let flaws = [
            ("s of a move", round("\"move_seconds\":0.3", "\"move_seconds\":0.5")),
            ("p99 of a request", round("4.4", "4.9")),
            ("moves called off", round("called_off\":0", "called_off\":1")),
            ("ms, longest SET above the one before", round("\"write_ms_max\":12", "\"write_ms_max\":20")),
            ("keys corrected again in a move", round("corrected_again\":0", "corrected_again\":1")),
            ("requests refused or unanswered", round("\"errors\":{}", "\"errors\":{\"TRYAGAIN\":1}")),
            ("SETs that are gone, or that nobody sent", report("\"lost\":0", "\"lost\":1")),
            ("keys that cannot be read", report("\"unreadable\":0", "\"unreadable\":1")),
        ];
        for (metric, all) in flaws {
            let failed: Vec<_> = all.iter().filter(|(_, verdict)| **verdict == "FAIL").map(|(name, _)| *name).collect();
            assert_eq!(failed, [metric]);
        }
    }

    #[test]
    fn more_keys_may_take_longer() {
        assert_eq!(time_bar(Some(61_000)), Bar::AtMost(0.4));
        assert_eq!(time_bar(Some(1_000_000)), Bar::AtMost(6.0));
        assert_eq!((time_bar(Some(2_000_000)), time_bar(None)), (Bar::None, Bar::None));
    }
}
