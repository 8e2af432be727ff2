//! `mget`: fifty keys at once by redis-py's cluster client, here and in Valkey, in turn.
//!
//! The program `mget` of crate `bench` starts both stores of three processes on CPU 0 and a client for each on CPU 1; here its numbers are
//! judged. Most of what a call takes is the client's own, so the store's CPU for a call stands beside.

use ports::PortBlock;
use serde::Deserialize;

use super::options::Options;
use super::programs::built;
use super::results::{Bar, Results};
use super::stores::{Told, program, slices};
use crate::needs::{self, Need, PYTHON, REDIS_PY};
use crate::{Outcome, peers, workspace};

const THROUGHPUT_MIN: f64 = 1.0;
const P50_MAX: f64 = 1.0;
const KEYS: u64 = 200_000;
const BATCH: usize = 50;
const OURS: &str = "zerohop";
const THEIRS: &str = "valkey";

/// What the program tells of one slice; see `crates/bench/src/mget.rs`.
#[derive(Deserialize)]
struct Slice {
    subject: String,
    per_second: f64,
    p50_us: f64,
    p99_us: f64,
    store_us: f64,
    foreign_cores: f64,
}

/// A number of a slice.
type Part = fn(&Slice) -> f64;

/// Both stores, in turn.
pub fn run(options: &Options, results: &mut Results) -> Outcome<()> {
    have_client()?;
    let keys = options.keys_asked.unwrap_or(KEYS);
    results.note(format!(
        "{BATCH} of {keys} keys of 15 bytes with values of 132 by `mget_nonatomic` of redis-py, one call after the other; each value's length \
         is looked at. Three processes of each store on CPU 0, its client on CPU 1; {} durability here, the peer keeps nothing and has one \
         copy",
        options.cluster_durability()
    ));
    let block = PortBlock::take().map_err(|error| error.to_string())?;
    let mut command = program("mget")?;
    command.args(["--port", &block.first().to_string(), "--pairs", &options.pairs.to_string()]);
    command.args(["--slice", &options.slice_seconds.to_string(), "--warm-up", &options.warm_up_seconds.to_string()]);
    command.args(["--keys", &keys.to_string(), "--batch", &BATCH.to_string()]);
    command.args(["--durability", options.cluster_durability()]).arg("--python").arg(needs::python());
    command.arg("--client").arg(workspace::root().join("bench/clients/mget.py"));
    command.arg("--zerohop").arg(built("zerohop"));
    command.arg("--valkey").arg(peers::find_or_fetch("valkey-server")?.program);
    let Told { slices, stores } = slices::<Slice>("mget", &mut command, 2 * options.pairs)?;
    stores.into_iter().for_each(|store| results.note(store));
    judge(&slices, results)
}

/// redis-py, installed where that is allowed.
fn have_client() -> Outcome<()> {
    let missing = || [&PYTHON, &REDIS_PY].into_iter().filter(|need| !need.is_met()).collect::<Vec<&Need>>();
    needs::install(&missing())?;
    match missing()[..] {
        [] => Ok(()),
        [need, ..] => Err(format!("{} is missing: {}", need.name, need.advice())),
    }
}

fn judge(slices: &[Slice], results: &mut Results) -> Outcome<()> {
    let cell = format!("mget-{BATCH}");
    let column = |subject: &str, of: Part| slices.iter().filter(|slice| slice.subject == subject).map(of).collect();
    for subject in [OURS, THEIRS] {
        let kept: [(&str, Vec<f64>); 5] = [
            ("per_second", column(subject, |slice| slice.per_second)),
            ("p50_us", column(subject, |slice| slice.p50_us)),
            ("p99_us", column(subject, |slice| slice.p99_us)),
            ("store_us", column(subject, |slice| slice.store_us)),
            ("foreign_cores", column(subject, |slice| slice.foreign_cores)),
        ];
        let kept: Vec<(&str, &[f64])> = kept.iter().map(|(name, values)| (*name, values.as_slice())).collect();
        results.keep_values(&cell, subject, &kept);
    }
    let rows: [(&'static str, Part, Bar); 4] = [
        ("MGETs/s", |slice| slice.per_second, Bar::AtLeast(THROUGHPUT_MIN)),
        ("p50 of an MGET", |slice| slice.p50_us, Bar::AtMost(P50_MAX)),
        ("p99 of an MGET", |slice| slice.p99_us, Bar::None),
        ("CPU us/MGET of the store", |slice| slice.store_us, Bar::None),
    ];
    for (metric, of, bar) in rows {
        let (ours, theirs): (Vec<f64>, Vec<f64>) = (column(OURS, of), column(THEIRS, of));
        results.ratios((&cell, metric), (OURS, &ours), (THEIRS, &theirs), bar)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdicts(ours: f64, theirs: f64) -> Vec<&'static str> {
        let mut slices = Vec::new();
        for round in 0..5 {
            for (subject, p50) in [(THEIRS, theirs), (OURS, ours)] {
                let text = format!(
                    r#"{{"subject":"{subject}","per_second":{},"p50_us":{},"p99_us":9,"store_us":1,"foreign_cores":0}}"#,
                    1e6 / p50,
                    p50 + f64::from(round)
                );
                slices.push(serde_json::from_str(&text).expect("a slice"));
            }
        }
        let mut results = Results::new("mget");
        judge(&slices, &mut results).expect("everything is there");
        results.rows.iter().map(|row| row.verdict).collect()
    }

    #[test]
    fn more_calls_and_shorter_ones_are_wanted() {
        assert_eq!(verdicts(900.0, 1000.0), ["PASS", "PASS", "", ""]);
        assert_eq!(verdicts(1000.0, 1000.0), ["PASS", "PASS", "", ""]);
        assert_eq!(verdicts(1100.0, 1000.0), ["FAIL", "FAIL", "", ""]);
    }

    #[test]
    fn a_store_that_was_not_measured_is_an_error() {
        let mut results = Results::new("mget");
        assert!(judge(&[], &mut results).is_err());
    }
}
