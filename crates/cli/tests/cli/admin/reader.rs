//! A reader of both text formats, after their specifications and strict: what it does not know it refuses.

use std::collections::BTreeMap;

/// A metric as a collector sees it.
#[derive(Debug)]
pub struct Family {
    pub kind: String,
    /// Values by labels, in the order of the text.
    pub samples: BTreeMap<Vec<(String, String)>, f64>,
}

/// Families by the name of their lines.
pub fn read(text: &str, is_open: bool) -> BTreeMap<String, Family> {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let (mut name, mut helped) = (String::new(), String::new());
    let mut lines = text.strip_suffix('\n').expect("the last line ends, too").split('\n').peekable();
    while let Some(line) = lines.next() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            helped = help.split_once(' ').expect("a sentence behind the name").0.to_owned();
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (family, kind) = kind.split_once(' ').unwrap();
            assert_eq!(family, helped, "HELP and TYPE are of one metric");
            assert!(["counter", "gauge"].contains(&kind), "{line}");
            name = match (is_open, kind) {
                (true, "counter") => format!("{family}_total"),
                _ => family.to_owned(),
            };
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            let none = families.insert(name.clone(), Family { kind: kind.to_owned(), samples: BTreeMap::new() });
            assert!(none.is_none(), "{name} is there twice");
        } else if let Some(unit) = line.strip_prefix("# UNIT ") {
            assert!(is_open, "the older format has no units");
            let (family, unit) = unit.split_once(' ').unwrap();
            assert_eq!(family, helped, "{line}");
            assert!(family.ends_with(&format!("_{unit}")), "{line}");
        } else if line == "# EOF" {
            assert!(is_open && lines.peek().is_none(), "the end is at the end");
            return families;
        } else {
            let (labels, value) = sample(line, &name);
            let samples = &mut families.get_mut(&name).expect("TYPE comes first").samples;
            assert!(samples.insert(labels, value).is_none(), "a line is there twice: {line}");
        }
    }
    assert!(!is_open, "the end is missing");
    families
}

/// `name{label="value",…} number`.
fn sample(line: &str, name: &str) -> (Vec<(String, String)>, f64) {
    let rest = line.strip_prefix(name).unwrap_or_else(|| panic!("{line} stands among the lines of {name}"));
    let (labels, number) = match rest.strip_prefix('{') {
        None => (Vec::new(), rest),
        Some(rest) => labels(rest, line),
    };
    let number = number.strip_prefix(' ').unwrap_or_else(|| panic!("{line}"));
    assert!(number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'), "{line}");
    (labels, number.parse().unwrap_or_else(|_| panic!("{line}")))
}

/// Up to the closing brace, and what comes behind it.
fn labels<'a>(mut rest: &'a str, line: &str) -> (Vec<(String, String)>, &'a str) {
    let mut labels = Vec::new();
    loop {
        let (label, behind) = rest.split_once("=\"").unwrap_or_else(|| panic!("{line}"));
        let mut value = String::new();
        let mut characters = behind.char_indices();
        let end = loop {
            match characters.next().unwrap_or_else(|| panic!("{line}")) {
                (at, '"') => break at,
                (_, '\\') => match characters.next() {
                    Some((_, 'n')) => value.push('\n'),
                    Some((_, escaped @ ('"' | '\\'))) => value.push(escaped),
                    _ => panic!("{line}"),
                },
                (_, other) => value.push(other),
            }
        };
        labels.push((label.to_owned(), value));
        match behind[end + 1..].split_at(1) {
            (",", more) => rest = more,
            ("}", number) => return (labels, number),
            _ => panic!("{line}"),
        }
    }
}
