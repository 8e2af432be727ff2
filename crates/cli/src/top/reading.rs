//! What `/metrics` said: lines of a name, labels and a value, as Prometheus writes them.

use std::collections::BTreeSet;

/// One line.
#[derive(Clone, Debug, PartialEq)]
struct Line {
    name: String,
    labels: Vec<(String, String)>,
    value: f64,
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading(Vec<Line>);

impl Reading {
    /// Reads all of it; `None`: it is something else.
    pub fn of(text: &str) -> Option<Reading> {
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.map(line_of).collect::<Option<Vec<Line>>>().map(Reading)
    }

    /// The sum of all lines of that name which have these labels; 0 without one.
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        // The sum of nothing is -0 for `Iterator::sum`, and is shown so.
        self.lines(name, labels).fold(0.0, |sum, line| sum + line.value)
    }

    /// The greatest of them; 0 without one.
    pub fn most(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.lines(name, labels).map(|line| line.value).fold(0.0, f64::max)
    }

    /// Whether there is any line of that name.
    pub fn has(&self, name: &str) -> bool {
        self.lines(name, &[]).next().is_some()
    }

    /// All values of a label of that name, in order.
    pub fn values(&self, name: &str, label: &str) -> BTreeSet<String> {
        self.lines(name, &[]).filter_map(|line| Some(line.label(label)?.to_owned())).collect()
    }

    fn lines<'a>(&'a self, name: &'a str, labels: &'a [(&str, &str)]) -> impl Iterator<Item = &'a Line> {
        let fits = move |line: &&Line| {
            line.name == name && labels.iter().all(|(label, value)| line.label(label) == Some(*value))
        };
        self.0.iter().filter(fits)
    }
}

impl Line {
    fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(label, _)| label == name).map(|(_, value)| value.as_str())
    }
}

fn line_of(text: &str) -> Option<Line> {
    let end = text.find(['{', ' '])?;
    let (name, mut rest) = (text[..end].to_owned(), &text[end..]);
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        while !rest.starts_with('}') {
            let (label, behind) = rest.split_once("=\"")?;
            let (value, behind) = quoted(behind)?;
            labels.push((label.to_owned(), value));
            rest = behind.strip_prefix(',').unwrap_or(behind);
        }
        rest = &rest[1..];
    }
    let value = rest.trim().parse().ok()?;
    Some(Line { name, labels, value })
}

/// A label's value, and what is behind its quote.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    loop {
        match characters.next()? {
            (at, '"') => return Some((value, &text[at + 1..])),
            (_, '\\') => value.push(match characters.next()?.1 {
                'n' => '\n',
                other => other,
            }),
            (_, other) => value.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_by_name_and_labels_and_added_up() {
        let text = "# HELP a An a.\na{class=\"x\",core=\"0\"} 1\na{class=\"x\",core=\"1\"} 2.5\na{class=\"y\\\"}\\\\\\n,\",core=\"0\"} 4\nb 7\n";
        let reading = Reading::of(text).unwrap();
        assert_eq!(
            [reading.sum("a", &[]), reading.sum("a", &[("class", "x")]), reading.most("a", &[])],
            [7.5, 3.5, 4.0]
        );
        assert_eq!(
            [reading.sum("b", &[]), reading.sum("c", &[]), reading.sum("b", &[("class", "x")])],
            [7.0, 0.0, 0.0]
        );
        assert_eq!(reading.values("a", "class"), BTreeSet::from(["x".to_owned(), "y\"}\\\n,".to_owned()]));
        assert!(reading.has("b") && !reading.has("c"));
    }

    #[test]
    fn what_is_no_metric_is_none() {
        for text in ["<html>", "a", "a b", "a{b} 1", "a{b=\"c} 1", "a{b=\"c\" 1"] {
            assert_eq!(Reading::of(text), None, "{text}");
        }
        assert_eq!(Reading::of(""), Some(Reading::default()));
    }
}
