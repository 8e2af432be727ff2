//! `fan-out`: a gateway on `zerohop::serve` against gateways of the other ways to ask many instances at once (D1 to D3).
//!
//! The program `fan-out` of crate `bench` starts a store of twenty instances on CPU 1, beside the generator, and all gateways on CPU 0, and
//! loads these in turn; `crates/bench/src/fan_out` says how each is built. A gateway's throughput counts where its processor was full, or
//! where the other one had room left: else it was not the gateway that was measured.

use std::path::PathBuf;

use ports::PortBlock;
use serde::Deserialize;

use super::options::Options;
use super::programs::built;
use super::results::{Bar, Results};
use super::statistics::Median;
use super::stores::{Told, program, slices};
use crate::{Outcome, process, workspace};

const KEYS: u64 = 1_000_000;
const DELAY_US: u64 = 100;
const WAYS: [&str; 6] = ["threads", "pool", "on-demand", "split-1", "split-2", "split-4"];
const WIDTHS: [usize; 4] = [1, 5, 10, 20];
const VALUE_BYTES: [usize; 2] = [100, 20_000];
/// The load that is offered, too.
const OFFERED: (usize, usize) = (5, 100);
/// D3: p99 of the others over ours, at a rate that the best of them just bears.
const P99_MIN: f64 = 1.9;
/// Context switches of ours over those of the others.
const SWITCHES_MAX: f64 = 1.0 / 3.0;
/// A processor that is busier than this is full.
const FULL: f64 = 0.95;
/// Store and generator busier than this may be what was measured.
const LOAD_MAX: f64 = 0.8;

/// D1 and D2: throughput of ours over that of a way.
fn throughput_bar(width: usize, value_bytes: usize, way: &str) -> Bar {
    match (width, value_bytes, way) {
        (20, 100, "on-demand") => Bar::AtLeast(1.25),
        (20, 20_000, "on-demand") => Bar::AtLeast(1.34),
        (1, 100, "split-1" | "split-2" | "split-4") => Bar::AtLeast(1.2),
        _ => Bar::None,
    }
}

/// What the program tells of one slice; see `crates/bench/src/fan_out/measure.rs`.
#[derive(Deserialize)]
struct Slice {
    width: usize,
    value_bytes: usize,
    offered: Option<f64>,
    subject: String,
    per_second: f64,
    us_per_request: f64,
    switches: f64,
    p50_us: f64,
    p99_us: f64,
    gateway_cores: f64,
    load_cores: f64,
    foreign_cores: f64,
    unsent: f64,
}

/// A number of a slice.
type Part = fn(&Slice) -> f64;

/// All slices of one load.
struct Cell<'a> {
    name: String,
    width: usize,
    value_bytes: usize,
    slices: Vec<&'a Slice>,
}

/// Every load that was asked for.
pub fn run(options: &Options, results: &mut Results) -> Outcome<()> {
    let keys = options.keys_asked.unwrap_or(KEYS);
    let mut loads = Vec::new();
    let mut parts = 0;
    for value_bytes in VALUE_BYTES {
        for width in WIDTHS {
            let is_offered = (width, value_bytes) == OFFERED && options.wants(&name(width, value_bytes, true));
            if is_offered || options.wants(&name(width, value_bytes, false)) {
                loads.push(format!("{width}-{value_bytes}{}", if is_offered { "-offered" } else { "" }));
                parts += 1 + usize::from(is_offered);
            }
        }
    }
    results.note(format!(
        "64 clients, each asks for 1 to 20 of {keys} keys by one MGET and waits; 20 instances on one thread, each reply {DELAY_US} us after its \
         request, share CPU 1 with the generator; offered: Poisson, 95 % of what the best of the others bears in this run"
    ));
    let block = PortBlock::take().map_err(|error| error.to_string())?;
    let mut command = program("fan-out")?;
    command.args(["--port", &block.first().to_string(), "--pairs", &options.pairs.to_string()]);
    command.args(["--slice", &options.slice_seconds.to_string(), "--warm-up", &options.warm_up_seconds.to_string()]);
    command.args(["--keys", &keys.to_string(), "--delay-us", &DELAY_US.to_string(), "--cells", &loads.join(",")]);
    command.arg("--gateway").arg(built("gateway")).arg("--integrated").arg(integrated()?);
    command.args(["--io", &options.backends.join(",")]);
    let total = parts * options.pairs * (WAYS.len() + options.backends.len());
    let Told { slices, .. } = slices::<Slice>("fan-out", &mut command, total)?;
    judge(&slices, &options.backends, results)
}

/// The gateway on `zerohop::serve`.
fn integrated() -> Outcome<PathBuf> {
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--release", "--quiet", "--package", "zerohop", "--example", "fan_out_gateway"]);
    if process::shown(&mut cargo)? {
        Ok(workspace::root().join("target/release/examples/fan_out_gateway"))
    } else {
        Err("the gateway to measure does not build".to_owned())
    }
}

fn name(width: usize, value_bytes: usize, is_offered: bool) -> String {
    format!("{width}-{value_bytes}B{}", if is_offered { "-offered" } else { "" })
}

fn judge(slices: &[Slice], backends: &[String], results: &mut Results) -> Outcome<()> {
    for is_offered in [false, true] {
        for (value_bytes, width) in VALUE_BYTES.into_iter().flat_map(|bytes| WIDTHS.map(|width| (bytes, width))) {
            let is_of = |slice: &&Slice| {
                (slice.width, slice.value_bytes, slice.offered.is_some()) == (width, value_bytes, is_offered)
            };
            let name = name(width, value_bytes, is_offered);
            let cell = Cell { name, width, value_bytes, slices: slices.iter().filter(is_of).collect() };
            if cell.slices.is_empty() {
                continue;
            }
            cell.keep(results);
            for ours in backends.iter().map(|backend| format!("integrated-{backend}")) {
                if is_offered { cell.judge_waits(&ours, results)? } else { cell.judge_throughput(&ours, results)? }
            }
        }
    }
    Ok(())
}

impl Cell<'_> {
    fn column(&self, subject: &str, of: Part) -> Vec<f64> {
        self.slices.iter().filter(|slice| slice.subject == subject).map(|slice| of(slice)).collect()
    }

    fn median(&self, subject: &str, of: Part) -> f64 {
        Median::of(&self.column(subject, of)).map_or(f64::NAN, |median| median.value)
    }

    fn keep(&self, results: &mut Results) {
        let mut subjects: Vec<&str> = self.slices.iter().map(|slice| slice.subject.as_str()).collect();
        subjects.sort_unstable();
        subjects.dedup();
        for subject in subjects {
            let parts: [(&str, Part); 10] = [
                ("per_second", |slice| slice.per_second),
                ("us_per_request", |slice| slice.us_per_request),
                ("switches", |slice| slice.switches),
                ("p50_us", |slice| slice.p50_us),
                ("p99_us", |slice| slice.p99_us),
                ("gateway_cores", |slice| slice.gateway_cores),
                ("load_cores", |slice| slice.load_cores),
                ("foreign_cores", |slice| slice.foreign_cores),
                ("offered", |slice| slice.offered.unwrap_or_default()),
                ("unsent", |slice| slice.unsent),
            ];
            let kept: Vec<(&str, Vec<f64>)> =
                parts.iter().map(|(name, of)| (*name, self.column(subject, *of))).collect();
            let kept: Vec<(&str, &[f64])> = kept.iter().map(|(name, values)| (*name, values.as_slice())).collect();
            results.keep_values(&self.name, subject, &kept);
            let median = |of| self.median(subject, of);
            println!(
                "  {:<16} {subject:<18} {:>8.0}/s {:>7.1} us/request {:>6.2} switches  p50 {:>7.0} us  p99 {:>7.0} us  cores: gateway {:.2} \
                 load {:.2} foreign {:.2}",
                self.name,
                median(|slice| slice.per_second),
                median(|slice| slice.us_per_request),
                median(|slice| slice.switches),
                median(|slice| slice.p50_us),
                median(|slice| slice.p99_us),
                median(|slice| slice.gateway_cores),
                median(|slice| slice.load_cores),
                median(|slice| slice.foreign_cores),
            );
        }
    }

    fn judge_throughput(&self, ours: &str, results: &mut Results) -> Outcome<()> {
        for way in WAYS {
            let bar = throughput_bar(self.width, self.value_bytes, way);
            let mut compare = |metric, of: Part, bar| {
                let (mine, theirs) = (self.column(ours, of), self.column(way, of));
                results.ratios((&self.name, metric), (ours, &mine), (way, &theirs), bar).map(drop)
            };
            compare("requests/s", |slice| slice.per_second, bar)?;
            compare("CPU us/request", |slice| slice.us_per_request, Bar::None)?;
            if bar != Bar::None {
                compare("context switches/request", |slice| slice.switches, Bar::AtMost(SWITCHES_MAX))?;
                let (gateway, load) =
                    (self.median(way, |slice| slice.gateway_cores), self.median(way, |slice| slice.load_cores));
                if gateway < FULL && load > LOAD_MAX {
                    results.absent(format!(
                        "{}: what {way} bears: store and generator took {load:.2} of their processor, the gateway {gateway:.2} of its own",
                        self.name
                    ));
                }
            }
        }
        Ok(())
    }

    /// How much longer one in a hundred waits with each of the others.
    fn judge_waits(&self, ours: &str, results: &mut Results) -> Outcome<()> {
        for way in WAYS {
            for (metric, of, bar) in [
                ("1 / p99", (|slice| 1.0 / slice.p99_us) as Part, Bar::AtLeast(P99_MIN)),
                ("1 / p50", |slice| 1.0 / slice.p50_us, Bar::None),
            ] {
                let (mine, theirs) = (self.column(ours, of), self.column(way, of));
                results.ratios((&self.name, metric), (ours, &mine), (way, &theirs), bar)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slices of all gateways: what ours bears and what the others do; how long one in a hundred waits; how full the processors are.
    fn verdicts(bears: (f64, f64), waits: (f64, f64), cores: (f64, f64)) -> (Vec<&'static str>, usize) {
        let mut slices = Vec::new();
        for _ in 0..5 {
            for subject in WAYS.into_iter().chain(["integrated-uring"]) {
                let of = |(ours, theirs): (f64, f64)| if subject == "integrated-uring" { ours } else { theirs };
                for (width, offered) in [(1, "null"), (5, "100.0")] {
                    let text = format!(
                        r#"{{"width":{width},"value_bytes":100,"offered":{offered},"subject":"{subject}","per_second":{},
                            "us_per_request":1,"switches":{},"p50_us":1,"p99_us":{},"gateway_cores":{},"load_cores":{},
                            "foreign_cores":0,"unsent":0}}"#,
                        of(bears),
                        of((1.0, 4.0)),
                        of(waits),
                        cores.0,
                        cores.1
                    );
                    slices.push(serde_json::from_str(&text).expect("a slice"));
                }
            }
        }
        let mut results = Results::new("fan-out");
        judge(&slices, &["uring".to_owned()], &mut results).expect("everything is there");
        let judged = |metric: &str| {
            let rows = results.rows.iter().filter(|row| row.metric == metric && !row.verdict.is_empty());
            let mut verdicts: Vec<&'static str> = rows.map(|row| row.verdict).collect();
            verdicts.dedup();
            verdicts
        };
        let all = ["requests/s", "context switches/request", "1 / p99"].into_iter().flat_map(judged).collect();
        (all, results.absent.len())
    }

    #[test]
    fn more_throughput_fewer_switches_and_shorter_waits_are_wanted() {
        assert_eq!(verdicts((130.0, 100.0), (100.0, 200.0), (1.0, 0.5)), (vec!["PASS"; 3], 0));
        assert_eq!(verdicts((110.0, 100.0), (100.0, 180.0), (1.0, 0.5)), (vec!["FAIL", "PASS", "FAIL"], 0));
    }

    #[test]
    fn what_the_load_limited_was_not_measured() {
        assert_eq!(verdicts((130.0, 100.0), (100.0, 200.0), (0.9, 0.9)).1, 3, "the three that are split");
        assert_eq!(verdicts((130.0, 100.0), (100.0, 200.0), (0.96, 0.9)).1, 0);
    }
}
