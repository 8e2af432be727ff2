//! `failover`: how long nobody could write after `kill -9` of the node that served, and what those saw whom others served.
//!
//! The program `failover` of crate `bench` starts the store, writes, kills, starts again and counts; here its numbers are judged.
//! Everything of a store shares the machine with its writers and nothing is pinned: these are waits, no costs.

use serde::Deserialize;
use serde::de::IgnoredAny;

use ports::PortBlock;

use super::options::Options;
use super::programs::built;
use super::progress::Progress;
use super::results::{Bar, Results};
use super::server::outranking;
use crate::{Outcome, peers, process, workspace};

const GAP_MS_MAX: f64 = 1500.0;
const GAP_MS_REACH: f64 = 300.0;
/// p99 of others' writes during failovers over that of all before them.
const OTHERS_MAX: f64 = 1.5;
const OTHERS_REACH: f64 = 1.1;
/// Kills of ours for one of the peer's, which takes tens of seconds.
const KILLS_PER_PEER_KILL: usize = 10;

/// A line of the program.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Killed(IgnoredAny),
    Report(Report),
}

/// What all kills of one store showed; see `crates/bench/src/failover/report.rs`.
#[derive(Deserialize)]
struct Report {
    store: String,
    counters: usize,
    gaps_ms: Vec<f64>,
    others_gaps_ms: Vec<f64>,
    /// For each kill, whether the killed node led the managers; nothing where the store does not tell.
    led: Vec<Option<bool>>,
    steady: Percentiles,
    others: Percentiles,
    /// Of the others, those of slots that the killed node had nothing of.
    apart: Option<Percentiles>,
    acknowledged: u64,
    lost: u64,
    unasked: u64,
    in_doubt: u64,
    readable: usize,
}

#[derive(Deserialize)]
struct Percentiles {
    p50_ms: f64,
    p99_ms: f64,
}

/// Ours, then the peer's.
pub fn run(options: &Options, results: &mut Results) -> Outcome<()> {
    results.note(
        "the gap of a kill is the longest time from an acknowledgement to the next one of a counter of which the killed node was \
         first; others are the counters of which it was not. Nothing is pinned: a store's processes and its writers share all CPUs",
    );
    if options.wants("zerohop") {
        let program = built("zerohop").display().to_string();
        let report = kills(("zerohop", &["--zerohop", &program]), options.kills, results)?;
        let gaps = Gaps::of(&report)?;
        judge("zerohop", &report, &gaps, true, results)?;
    }
    if options.wants("valkey") {
        let program = peers::find_or_fetch("valkey-server")?.program.display().to_string();
        let count = options.kills.div_ceil(KILLS_PER_PEER_KILL);
        let report = kills(("valkey", &["--valkey", &program]), count, results)?;
        let gaps = Gaps::of(&report)?;
        judge("valkey", &report, &gaps, false, results)?;
    }
    Ok(())
}

/// Runs the program, and shows how far it is.
fn kills((name, words): (&str, &[&str]), count: usize, results: &mut Results) -> Outcome<Report> {
    let block = PortBlock::take().map_err(|error| error.to_string())?;
    let folder = workspace::root().join("target/bench-data");
    std::fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    // As a server's: gone when this chore is, and all that it started with it.
    let mut command = outranking("setpriv");
    command.args(["--pdeathsig", "KILL"]).arg(built("failover")).args(words);
    command.args(["--port", &block.first().to_string(), "--kills", &count.to_string(), "--directory"]).arg(&folder);
    let mut progress = Progress::new(&format!("failover of {name}"), count);
    let (mut done, mut report, mut problem) = (0, None, None);
    let succeeded = process::lines(&mut command, |line| {
        match serde_json::from_str(line) {
            Ok(Line::Killed(_)) => {
                done += 1;
                progress.show(done);
            }
            Ok(Line::Report(whole)) => report = Some(whole),
            Err(error) => problem = Some(format!("{line:?} is not understood: {error}")),
        }
        false
    })?;
    drop(progress);
    let report: Report = match (problem, report) {
        (None, Some(report)) if succeeded => report,
        (problem, _) => {
            let problem = problem.unwrap_or_else(|| "what it said stands above".to_owned());
            return Err(format!("{name}: it ended after {done} of {count} kills: {problem}"));
        }
    };
    let Report { store, counters, acknowledged, in_doubt, .. } = &report;
    results.note(format!(
        "{store}: {count} kills, {counters} counters, {acknowledged} increments acknowledged, {in_doubt} never answered"
    ));
    let led = |led: &Option<bool>| led.map_or(f64::NAN, |led| f64::from(u8::from(led)));
    let led: Vec<f64> = report.led.iter().map(led).collect();
    let columns = [("gap_ms", &report.gaps_ms), ("others_gap_ms", &report.others_gaps_ms), ("led", &led)];
    results.keep_values("kills", store, &columns.map(|(name, values)| (name, values.as_slice())));
    Ok(report)
}

/// The gaps of all kills, by nearest rank.
struct Gaps(Vec<f64>);

impl Gaps {
    fn of(report: &Report) -> Outcome<Gaps> {
        Gaps::sorted(report.gaps_ms.clone()).ok_or_else(|| format!("{}: nothing was killed", report.store))
    }

    /// Those of the kills in which the killed node led the managers, or did not; none if there were none, or nobody told.
    fn of_led(report: &Report, led: bool) -> Option<Gaps> {
        let kills = report.gaps_ms.iter().zip(&report.led);
        Gaps::sorted(kills.filter(|(_, told)| **told == Some(led)).map(|(gap, _)| *gap).collect())
    }

    fn sorted(mut gaps: Vec<f64>) -> Option<Gaps> {
        gaps.sort_by(f64::total_cmp);
        (!gaps.is_empty()).then_some(Gaps(gaps))
    }

    fn percentile(&self, percent: usize) -> f64 {
        self.0[(self.0.len() * percent).div_ceil(100).max(1) - 1]
    }
}

fn judge(cell: &str, report: &Report, gaps: &Gaps, is_ours: bool, results: &mut Results) -> Outcome<()> {
    let bar = |bar: Bar| if is_ours { bar } else { Bar::None };
    let store = report.store.as_str();
    for (metric, percent) in [("ms without a write, p50", 50), ("ms without a write, p90", 90)] {
        results.value(cell, store, metric, &[gaps.percentile(percent)], Bar::None)?;
    }
    let row =
        results.value(cell, store, "ms without a write, p99", &[gaps.percentile(99)], bar(Bar::AtMost(GAP_MS_MAX)))?;
    row.reach(bar(Bar::AtMost(GAP_MS_REACH)));
    results.value(cell, store, "ms without a write, longest", &[gaps.percentile(100)], Bar::None)?;
    for (metric, led) in [("ms, the killed one led the managers", true), ("ms, the killed one led nobody", false)] {
        if let Some(Gaps(gaps)) = Gaps::of_led(report, led) {
            results.value(cell, store, metric, &gaps, Bar::None)?;
        }
    }
    if let Some(apart) = &report.apart {
        let (slots, steady) = (format!("{store}, slots apart from it"), format!("{store}, all before"));
        results.ratio(cell, "p99 of a write", (&slots, apart.p99_ms), (&steady, report.steady.p99_ms));
    }
    let (during, before) = ([report.others.p99_ms], [report.steady.p99_ms]);
    let names = [format!("{store}, others during"), format!("{store}, all before")];
    let (during, before) = ((names[0].as_str(), &during[..]), (names[1].as_str(), &before[..]));
    results
        .ratios((cell, "p99 of a write"), during, before, bar(Bar::AtMost(OTHERS_MAX)))?
        .reach(bar(Bar::AtMost(OTHERS_REACH)));
    let medians = ((names[0].as_str(), report.others.p50_ms), (names[1].as_str(), report.steady.p50_ms));
    results.ratio(cell, "p50 of a write", medians.0, medians.1);
    let unkept = report.lost + report.unasked;
    results.value(cell, store, "acknowledged and gone, or never asked for", &[unkept as f64], bar(Bar::AtMost(0.0)))?;
    let unreadable = report.counters - report.readable;
    results.value(cell, store, "counters that cannot be read", &[unreadable as f64], bar(Bar::AtMost(0.0)))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Gaps, Line, Results, judge};

    const REPORT: &str = r#"{"report":{"store":"zerohop 0","counters":2,"gaps_ms":[30,10,20,400],"others_gaps_ms":[1,1,1,1],"led":[true,null,false,true],
        "steady":{"p50_ms":1,"p99_ms":2,"max_ms":3,"count":9},"others":{"p50_ms":1,"p99_ms":4,"max_ms":9,"count":9},
        "acknowledged":90,"lost":0,"unasked":0,"in_doubt":1,"readable":2,"errors":{}}}"#;

    fn rows(text: &str) -> Vec<(String, &'static str, f64)> {
        let Ok(Line::Report(report)) = serde_json::from_str(text) else { panic!("{text}") };
        let mut results = Results::new("failover");
        judge("zerohop", &report, &Gaps::of(&report).expect("gaps"), true, &mut results).expect("everything is there");
        results.rows.iter().map(|row| (row.metric.to_owned(), row.verdict, row.median)).collect()
    }

    #[test]
    fn a_report_is_read_and_judged() {
        let all = rows(REPORT);
        let of = |metric: &str| all.iter().find(|row| row.0.ends_with(metric)).map(|row| (row.1, row.2));
        assert_eq!(of("p50"), Some(("", 20.0)));
        assert_eq!(of("without a write, p99"), Some(("PASS", 400.0)));
        assert_eq!(of("p99 of a write"), Some(("FAIL", 2.0)), "twice the steady one");
        assert_eq!(of("never asked for"), Some(("PASS", 0.0)));
        assert_eq!(of("led the managers"), Some(("", 215.0)), "30 and 400");
        assert_eq!(of("led nobody"), Some(("", 20.0)));
        let untold = rows(&REPORT.replace("true", "null").replace("false", "null"));
        assert!(!untold.iter().any(|row| row.0.contains("killed one led")), "{untold:?}");
    }

    #[test]
    fn what_is_lost_or_cannot_be_read_is_a_bar_missed() {
        let lost = rows(&REPORT.replace("\"lost\":0", "\"lost\":1"));
        assert!(lost.contains(&("acknowledged and gone, or never asked for".to_owned(), "FAIL", 1.0)));
        let unread = rows(&REPORT.replace("\"readable\":2", "\"readable\":1"));
        assert!(unread.contains(&("counters that cannot be read".to_owned(), "FAIL", 1.0)));
        let slow = rows(&REPORT.replace("400", "1600"));
        assert!(slow.contains(&("ms without a write, p99".to_owned(), "FAIL", 1600.0)));
    }
}
