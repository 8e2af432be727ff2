//! Judges ratios by their bounds, and prints them.

use serde::Serialize;
use serde_json::{Value, json};

use super::slice::{Rounds, Slice};
use super::statistics::Median;
use crate::Outcome;

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

impl Bar {
    /// Whether the bound on the unfavourable side meets it.
    fn is_met(self, low: f64, high: f64) -> Option<bool> {
        match self {
            Bar::AtMost(most) => Some(high <= most),
            Bar::AtLeast(least) => Some(low >= least),
            Bar::None => None,
        }
    }

    fn in_words(self) -> String {
        match self {
            Bar::AtMost(most) => format!("<= {most}"),
            Bar::AtLeast(least) => format!(">= {least}"),
            Bar::None => String::new(),
        }
    }
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
    /// Whether what to reach for was reached, judged as the bar is.
    pub reached: Option<bool>,
    /// Median of the subject in the metric's own unit, where the row is a ratio.
    pub subject_value: Option<f64>,
    /// Median of the other side.
    pub against_value: Option<f64>,
    /// Median of cores used by anything else during the subject's slices.
    pub foreign_cores: Option<f64>,
}

impl Row {
    fn judged(cell: &str, subject: &str, against: &str, metric: &'static str, median: Median, bar: Bar) -> Row {
        let verdict = match bar.is_met(median.low, median.high) {
            Some(true) => "PASS",
            Some(false) => "FAIL",
            None => "",
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
            bar: bar.in_words(),
            reach: String::new(),
            verdict,
            reached: None,
            subject_value: None,
            against_value: None,
            foreign_cores: None,
        }
    }

    /// With a value to reach for beyond the bar.
    pub fn reach(&mut self, reach: Bar) {
        self.reach = reach.in_words();
        self.reached = reach.is_met(self.low, self.high);
    }

    /// A line of the table under [`TABLE_HEAD`].
    pub fn markdown(&self) -> String {
        let values = match (self.subject_value, self.against_value) {
            (Some(subject), Some(against)) => format!("{} / {}", number(subject), number(against)),
            _ => String::new(),
        };
        format!(
            "| {} | {} | {} | {} | **{}** | {}–{} | {}–{} | {} | {} | {} | {} | {} | {} |",
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
            self.verdict,
            self.reach,
            in_words(self.reached),
        )
    }
}

/// The head of the table that rows are lines of.
pub const TABLE_HEAD: &str = "| load | subject | against | of | median | 95 % | spread | n | values | bar | met | reach for | reached |\n\
                              |---|---|---|---|---|---|---|---|---|---|---|---|---|";

/// `yes`, `no`, or nothing where there was no question.
pub fn in_words(answer: Option<bool>) -> &'static str {
    match answer {
        Some(true) => "yes",
        Some(false) => "no",
        None => "",
    }
}

/// Three figures are what these measurements carry.
pub fn number(value: f64) -> String {
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
    /// The comparison.
    pub name: &'static str,
    /// What was judged.
    pub rows: Vec<Row>,
    /// What a reader must know.
    pub notes: Vec<String>,
    /// The raw numbers.
    pub slices: Vec<Value>,
    /// What could not be measured, and why. A bar that was not measured is not met.
    pub absent: Vec<String>,
}

impl Results {
    /// No rows yet.
    pub fn new(name: &'static str) -> Results {
        Results { name, rows: Vec::new(), notes: Vec::new(), slices: Vec::new(), absent: Vec::new() }
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
        let foreign = Median::of(&rounds.column(subject, |slice| slice.foreign_cores));
        let names = [subject, against].map(|entrant| rounds.names[entrant].as_str());
        let row = self.ratios((&rounds.cell, metric.name), (names[0], &ours), (names[1], &theirs), bar);
        let row = row.expect("a comparison has at least one pair");
        row.foreign_cores = foreign.map(|median| median.value);
        row
    }

    /// Judges plain values.
    pub fn value(
        &mut self,
        cell: &str,
        subject: &str,
        metric: &'static str,
        values: &[f64],
        bar: Bar,
    ) -> Outcome<&mut Row> {
        let median = Median::of(values).ok_or_else(|| format!("{cell}: nothing was measured for {subject}"))?;
        Ok(self.add(Row::judged(cell, subject, "", metric, median, bar)))
    }

    /// Judges `subject` against `against` by the ratio of what each round measured of them.
    pub fn ratios(
        &mut self,
        (cell, metric): (&str, &'static str),
        subject: (&str, &[f64]),
        against: (&str, &[f64]),
        bar: Bar,
    ) -> Outcome<&mut Row> {
        let ratios: Vec<f64> = subject.1.iter().zip(against.1).map(|(ours, theirs)| ours / theirs).collect();
        let median = Median::of(&ratios).ok_or_else(|| format!("{cell}: nothing was measured"))?;
        let mut row = Row::judged(cell, subject.0, against.0, metric, median, bar);
        let value = |column: &[f64]| Median::of(column).map(|median| median.value);
        (row.subject_value, row.against_value) = (value(subject.1), value(against.1));
        Ok(self.add(row))
    }

    /// Keeps what each round measured.
    pub fn keep_values(&mut self, cell: &str, subject: &str, columns: &[(&str, &[f64])]) {
        let mut kept = json!({ "cell": cell, "server": subject });
        for (metric, values) in columns {
            kept[*metric] = json!(values);
        }
        self.slices.push(kept);
    }

    /// The ratio of two single numbers, for context.
    pub fn ratio(&mut self, cell: &str, metric: &'static str, subject: (&str, f64), against: (&str, f64)) {
        let Some(median) = Median::of(&[subject.1 / against.1]) else { return };
        let mut row = Row::judged(cell, subject.0, against.0, metric, median, Bar::None);
        (row.subject_value, row.against_value) = (Some(subject.1), Some(against.1));
        self.add(row);
    }

    /// Something a reader must know.
    pub fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        println!("  note: {note}");
        self.notes.push(note);
    }

    /// Something that was to be measured and was not.
    pub fn absent(&mut self, message: impl Into<String>) {
        let message = message.into();
        println!("  NOT MEASURED: {message}");
        self.absent.push(message);
    }

    /// Whether every bar was measured and met.
    pub fn all_met(&self) -> bool {
        self.absent.is_empty() && !self.rows.is_empty() && self.rows.iter().all(|row| row.verdict != "FAIL")
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

    #[test]
    fn what_to_reach_for_is_judged_by_the_bound_too() {
        let values: Vec<f64> = (0..15).map(|n| 0.80 + 0.02 * f64::from(n)).collect();
        let mut row = Row::judged("cell", "a", "b", "us", Median::of(&values).expect("values"), Bar::AtMost(1.05));
        row.reach(Bar::AtMost(0.95));
        // The median of 0.94 would reach it.
        assert_eq!((row.verdict, row.reach.as_str(), row.reached), ("PASS", "<= 0.95", Some(false)));
    }

    #[test]
    fn what_was_not_measured_is_not_met() {
        let mut results = super::Results::new("some");
        assert!(!results.all_met());
        results.value("cell", "a", "us", &[1.0], Bar::AtMost(2.0)).expect("a value");
        assert!(results.all_met());
        results.absent("uring does not start");
        assert!(!results.all_met());
    }
}
