//! One table of everything that has a bar or something to reach for: what `cargo x bench all` ends with.

use std::fmt::Write;

use serde_json::{Value, json};

use super::results::{Results, Row, in_words, number};

/// The verdicts of several comparisons.
#[derive(Debug, Default)]
pub struct Verdicts {
    rows: Vec<(&'static str, Row)>,
    absent: Vec<(&'static str, String)>,
}

impl Verdicts {
    /// With those of one more comparison. Rows of context stay in its own table.
    pub fn add(&mut self, results: &Results) {
        let judged = results.rows.iter().filter(|row| !row.verdict.is_empty() || row.reached.is_some());
        self.rows.extend(judged.map(|row| (results.name, row.clone())));
        self.absent.extend(results.absent.iter().map(|what| (results.name, what.clone())));
    }

    /// The table, as Markdown that a terminal shows well.
    pub fn table(&self) -> String {
        let mut text = String::from(
            "| measure | load | subject | against | of | bar | median | bound | met | reach for | reached |\n\
             |---|---|---|---|---|---|---|---|---|---|---|\n",
        );
        for (name, row) in &self.rows {
            let line = format!(
                "| {name} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                row.cell,
                row.subject,
                row.against,
                row.metric,
                row.bar,
                number(row.median),
                number(deciding_bound(row)),
                in_words(is_met(row)),
                row.reach,
                in_words(row.reached),
            );
            writeln!(text, "{line}").expect("writing to a String cannot fail");
        }
        for (name, what) in &self.absent {
            writeln!(text, "| {name} | NOT MEASURED: {what} | | | | | | | no | | |")
                .expect("writing to a String cannot fail");
        }
        let of = |met: bool| self.rows.iter().filter(|(_, row)| is_met(row) == Some(met)).count();
        writeln!(text, "\n{} bars met, {} missed, {} not measured", of(true), of(false), self.absent.len())
            .expect("writing to a String cannot fail");
        text
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let rows = self.rows.iter().map(|(name, row)| {
            json!({
                "measure": name, "load": row.cell, "subject": row.subject, "against": row.against,
                "of": row.metric, "bar": row.bar, "median": row.median, "bound": deciding_bound(row),
                "spread": [row.min, row.max], "pairs": row.pairs, "met": is_met(row), "reach": row.reach,
                "reached": row.reached,
            })
        });
        let absent = self.absent.iter().map(|(name, what)| json!({ "measure": name, "not_measured": what }));
        rows.chain(absent).collect()
    }
}

fn is_met(row: &Row) -> Option<bool> {
    (!row.verdict.is_empty()).then_some(row.verdict == "PASS")
}

/// The bound on the side that the bar, or else what to reach for, looks at.
fn deciding_bound(row: &Row) -> f64 {
    let words = if row.bar.is_empty() { &row.reach } else { &row.bar };
    if words.starts_with(">=") { row.low } else { row.high }
}

#[cfg(test)]
mod tests {
    use super::super::results::Bar;
    use super::{Results, Verdicts};

    #[test]
    fn the_table_has_each_verdict_and_what_is_missing() {
        let mut results = Results::new("z1");
        let values: Vec<f64> = (0..15).map(|n| 2.9 + 0.1 * f64::from(n)).collect();
        results
            .value("get", "zerohop-epoll", "x", &values, Bar::AtLeast(3.0))
            .expect("values")
            .reach(Bar::AtLeast(4.0));
        results.value("get", "context", "x", &values, Bar::None).expect("values");
        results.absent("uring");
        let mut verdicts = Verdicts::default();
        verdicts.add(&results);
        let table = verdicts.table();
        assert!(table.contains("| >= 3 | 3.600 | 3.200 | yes | >= 4 | no |"), "{table}");
        assert!(!table.contains("context") && table.contains("NOT MEASURED: uring"), "{table}");
        assert!(table.contains("1 bars met, 0 missed, 1 not measured"), "{table}");
        let json = verdicts.json();
        assert_eq!((json[0]["bound"].as_f64(), json[0]["met"].as_bool()), (Some(3.2), Some(true)));
        assert_eq!(json.as_array().map(Vec::len), Some(2));
    }
}
