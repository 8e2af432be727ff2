//! Judges ratios, prints them, and keeps them in `bench/results/`.

use std::fs;
use std::process::Command;

use serde::Serialize;
use serde_json::{Value, json};

use super::options::Options;
use super::slice::{Rounds, Slice};
use super::statistics::Median;
use crate::{Outcome, process, workspace};

/// What a measure must reach. The 95 % bound on the unfavourable side decides, not the median.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bar {
    /// The upper bound must not exceed this.
    AtMost(f64),
    /// The lower bound must not fall below this.
    AtLeast(f64),
    /// Context: nothing is judged.
    None,
}

/// One judged line.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The load.
    pub cell: String,
    /// What was measured.
    pub subject: String,
    /// Against what.
    pub against: String,
    /// Of what the ratio (or value) is.
    pub metric: &'static str,
    /// Median ratio (or value).
    pub median: f64,
    /// 95 % bounds of the median.
    pub low: f64,
    /// See `low`.
    pub high: f64,
    /// Spread: the smallest.
    pub min: f64,
    /// Spread: the largest.
    pub max: f64,
    /// Pairs.
    pub pairs: usize,
    /// The bar in words.
    pub bar: String,
    /// What to reach for, in words.
    pub reach: String,
    /// PASS, FAIL, or nothing where there is no bar.
    pub verdict: &'static str,
    /// Median of the subject in the metric's own unit, where the row is a ratio.
    pub subject_value: Option<f64>,
    /// Median of the other side.
    pub against_value: Option<f64>,
    /// Median of cores used by anything else during the subject's slices.
    pub foreign_cores: Option<f64>,
}

impl Row {
    fn judged(cell: &str, subject: &str, against: &str, metric: &'static str, median: Median, bar: Bar) -> Row {
        let (text, verdict) = match bar {
            Bar::AtMost(most) => (format!("<= {most}"), if median.high <= most { "PASS" } else { "FAIL" }),
            Bar::AtLeast(least) => (format!(">= {least}"), if median.low >= least { "PASS" } else { "FAIL" }),
            Bar::None => (String::new(), ""),
        };
        Row {
            cell: cell.to_owned(),
            subject: subject.to_owned(),
            against: against.to_owned(),
            metric,
            median: median.value,
            low: median.low,
            high: median.high,
            min: median.min,
            max: median.max,
            pairs: median.count,
            bar: text,
            reach: String::new(),
            verdict,
            subject_value: None,
            against_value: None,
            foreign_cores: None,
        }
    }

    /// With a value to reach for beyond the bar.
    pub fn reach(&mut self, reach: &str) {
        self.reach = reach.to_owned();
    }

    fn markdown(&self) -> String {
        let values = match (self.subject_value, self.against_value) {
            (Some(subject), Some(against)) => format!("{} / {}", number(subject), number(against)),
            _ => String::new(),
        };
        format!(
            "| {} | {} | {} | {} | **{}** | {}–{} | {}–{} | {} | {} | {} | {} | {} |",
            self.cell,
            self.subject,
            self.against,
            self.metric,
            number(self.median),
            number(self.low),
            number(self.high),
            number(self.min),
            number(self.max),
            self.pairs,
            values,
            self.bar,
            self.reach,
            self.verdict
        )
    }
}

/// Three figures are what these measurements carry.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

/// A number of a slice that two entrants are compared by.
pub struct Metric {
    /// In words, with its unit.
    pub name: &'static str,
    /// Taken from a slice.
    pub of: fn(&Slice) -> f64,
}

/// Server CPU per request.
pub const CPU: Metric = Metric { name: "server CPU us/request", of: |slice| slice.us_per_request };
/// Throughput.
pub const THROUGHPUT: Metric = Metric { name: "requests/s", of: |slice| slice.per_second };
/// Mean latency.
pub const LATENCY: Metric = Metric { name: "mean latency us", of: |slice| slice.mean_us };

/// The rows of one comparison.
#[derive(Debug)]
pub struct Results {
    name: &'static str,
    rows: Vec<Row>,
    notes: Vec<String>,
    slices: Vec<Value>,
}

impl Results {
    /// No rows yet.
    pub fn new(name: &'static str) -> Results {
        Results { name, rows: Vec::new(), notes: Vec::new(), slices: Vec::new() }
    }

    /// Keeps the raw slices of a cell.
    pub fn keep(&mut self, rounds: &Rounds) {
        for (entrant, name) in rounds.names.iter().enumerate() {
            let median = |of| Median::of(&rounds.column(entrant, of)).map_or(f64::NAN, |median| median.value);
            println!(
                "  {:<16} {name:<24} {:>8.3} us/request {:>9.0}/s  p50 {:>7.1} us  p99 {:>7.1} us  \
                 cores: server {:.2} generator {:.2} foreign {:.2}",
                rounds.cell,
                median(|slice| slice.us_per_request),
                median(|slice| slice.per_second),
                median(|slice| slice.p50_us),
                median(|slice| slice.p99_us),
                median(|slice| slice.server_cores),
                median(|slice| slice.generator_cores),
                median(|slice| slice.foreign_cores),
            );
            self.slices.push(json!({
                "cell": rounds.cell, "server": name,
                "us_per_request": rounds.column(entrant, |slice| slice.us_per_request),
                "per_second": rounds.column(entrant, |slice| slice.per_second),
                "mean_us": rounds.column(entrant, |slice| slice.mean_us),
                "p99_us": rounds.column(entrant, |slice| slice.p99_us),
                "foreign_cores": rounds.column(entrant, |slice| slice.foreign_cores),
            }));
        }
    }

    /// Judges entrant `subject` against entrant `against` by the ratio of `metric` in each round.
    pub fn compare(
        &mut self,
        rounds: &Rounds,
        (subject, against): (usize, usize),
        metric: &Metric,
        bar: Bar,
    ) -> &mut Row {
        let (ours, theirs) = (rounds.column(subject, metric.of), rounds.column(against, metric.of));
        let ratios: Vec<f64> = ours.iter().zip(&theirs).map(|(ours, theirs)| ours / theirs).collect();
        let median = Median::of(&ratios).expect("a comparison has at least one pair");
        let names = [subject, against].map(|entrant| rounds.names[entrant].as_str());
        let mut row = Row::judged(&rounds.cell, names[0], names[1], metric.name, median, bar);
        let value = |column: &[f64]| Median::of(column).map(|median| median.value);
        row.subject_value = value(&ours);
        row.against_value = value(&theirs);
        row.foreign_cores = value(&rounds.column(subject, |slice| slice.foreign_cores));
        self.add(row)
    }

    /// Judges plain values.
    pub fn value(&mut self, cell: &str, subject: &str, metric: &'static str, values: &[f64], bar: Bar) -> Outcome<()> {
        let median = Median::of(values).ok_or_else(|| format!("{cell}: nothing was measured for {subject}"))?;
        self.add(Row::judged(cell, subject, "", metric, median, bar));
        Ok(())
    }

    /// Something a reader must know.
    pub fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        println!("  note: {note}");
        self.notes.push(note);
    }

    fn add(&mut self, row: Row) -> &mut Row {
        println!(
            "{:<5}{:<16} {}{}{}, {}: {} (95 % {}–{}, spread {}–{}, {} pairs) {}",
            row.verdict,
            row.cell,
            row.subject,
            if row.against.is_empty() { "" } else { " against " },
            row.against,
            row.metric,
            number(row.median),
            number(row.low),
            number(row.high),
            number(row.min),
            number(row.max),
            row.pairs,
            row.bar
        );
        self.rows.push(row);
        self.rows.last_mut().expect("a row was just added")
    }

    /// Appends the run to `bench/results/<date>-<name>.json` and writes the table beside it. Whether every bar was met.
    pub fn save(self, options: &Options) -> Outcome<bool> {
        if self.rows.is_empty() {
            println!("nothing was measured, nothing is kept");
            return Ok(false);
        }
        let date = process::output(Command::new("date").args(["-u", "+%F"]))?.trim().to_owned();
        let folder = workspace::root().join("bench/results");
        fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        let machine = machine();
        let commit = commit();
        let run = json!({
            "name": self.name, "date": date, "commit": commit, "machine": machine,
            "pairs": options.pairs, "slice_seconds": options.slice_seconds, "durability": options.durability,
            "keys": options.keys, "notes": self.notes, "rows": self.rows, "slices": self.slices,
        });
        let path = folder.join(format!("{date}-{}.json", self.name));
        let mut runs: Vec<Value> = match fs::read_to_string(&path) {
            Ok(text) => serde_json::from_str(&text)
                .map_err(|error| format!("{} is damaged ({error}): move it away", path.display()))?,
            Err(_) => Vec::new(),
        };
        runs.push(run);
        let text = serde_json::to_string(&runs).map_err(|error| error.to_string())?;
        let write = |path: &std::path::Path, text: &str| {
            fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
        };
        write(&path, &text)?;
        let head = format!(
            "# {} ({date}, commit {commit})\n\n{machine}. {} pairs of {} s, server pinned to one CPU, generator to \
             another; `{}` durability where the comparison does not say otherwise. Ratios are subject / against; the \
             95 % bound of the median decides.\n",
            self.name, options.pairs, options.slice_seconds, options.durability
        );
        let table = "| load | subject | against | of | median | 95 % | spread | n | values | bar | reach | verdict |\n\
                     |---|---|---|---|---|---|---|---|---|---|---|---|";
        let rows: Vec<String> = self.rows.iter().map(Row::markdown).collect();
        let notes: String = self.notes.iter().map(|note| format!("- {note}\n")).collect();
        write(&path.with_extension("md"), &format!("{head}\n{table}\n{}\n\n{notes}", rows.join("\n")))?;
        let failed = self.rows.iter().filter(|row| row.verdict == "FAIL").count();
        let judged = self.rows.iter().filter(|row| !row.verdict.is_empty()).count();
        println!("{} of {judged} bars met; kept in bench/results/{date}-{}.md", judged - failed, self.name);
        Ok(failed == 0)
    }
}

/// What the numbers were taken on; no name of a host.
fn machine() -> String {
    let cpus = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown CPU");
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let kernel = kernel.trim().split('-').next().unwrap_or("");
    format!("{cpus} CPUs ({}), Linux {kernel}", model.trim_start_matches([' ', '\t', ':']))
}

fn commit() -> String {
    let git = |arguments: &[&str]| {
        process::output(Command::new("git").args(arguments).current_dir(workspace::root())).unwrap_or_default()
    };
    let changed = if git(&["status", "--porcelain", "--untracked-files=no"]).is_empty() { "" } else { "+changes" };
    format!("{}{changed}", git(&["rev-parse", "--short=10", "HEAD"]).trim())
}

#[cfg(test)]
mod tests {
    use super::{Bar, Median, Row};

    fn verdict(values: &[f64], bar: Bar) -> &'static str {
        let median = Median::of(values).expect("values");
        Row::judged("cell", "a", "b", "us", median, bar).verdict
    }

    #[test]
    fn the_bound_decides_and_not_the_median() {
        let values: Vec<f64> = (0..15).map(|n| 0.80 + 0.02 * f64::from(n)).collect();
        // Median 0.94, bounds 0.86 and 1.02.
        assert_eq!(verdict(&values, Bar::AtMost(1.0)), "FAIL");
        assert_eq!(verdict(&values, Bar::AtMost(1.05)), "PASS");
        assert_eq!(verdict(&values, Bar::AtLeast(0.9)), "FAIL");
        assert_eq!(verdict(&values, Bar::AtLeast(0.85)), "PASS");
        assert_eq!(verdict(&values, Bar::None), "");
    }
}
