//! What the server and its files say about themselves: the announcement of a start, `zerohop check`, INFO, names of files.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

/// The lines `recovery: …` of a start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Keys that came from runs.
    pub run_keys: u64,
    /// Records that were replayed.
    pub records: u64,
    /// Logs that were cut at a torn tail.
    pub torn_tails: u64,
    /// Logs that were cut before an incomplete unit.
    pub incomplete_units: u64,
}

impl Recovery {
    /// Reads them from all that the server has printed; `None` if it announced no recovery.
    pub fn parse(output: &str) -> Option<Recovery> {
        let mut recovery = None;
        for line in output.lines().filter_map(|line| line.strip_prefix("recovery: ")) {
            let found: &mut Recovery = recovery.get_or_insert_default();
            if let Some((keys, rest)) = line.split_once(" keys from runs, ") {
                found.run_keys = keys.parse().ok()?;
                found.records = rest.split(' ').next()?.parse().ok()?;
            }
            found.torn_tails += u64::from(line.starts_with("a torn tail"));
            found.incomplete_units += u64::from(line.starts_with("an incomplete unit"));
        }
        recovery
    }

    /// Adds another one.
    pub fn add(&mut self, other: &Recovery) {
        self.run_keys += other.run_keys;
        self.records += other.records;
        self.torn_tails += other.torn_tails;
        self.incomplete_units += other.incomplete_units;
    }
}

/// What `zerohop check` prints of a directory that it finds good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Check {
    /// Keys of all databases.
    pub keys: u64,
    /// Records that a start would replay.
    pub records: u64,
}

impl Check {
    /// Reads it; `None` if it does not say that the directory would start.
    pub fn parse(output: &str) -> Option<Check> {
        let mut lines = output.lines();
        let mut check = lines.next()?.ends_with(": it would start").then(Check::default)?;
        for line in lines {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                ["records", records] => check.records = records.parse().ok()?,
                ["database", _, keys, "keys,", ..] => check.keys += keys.parse::<u64>().ok()?,
                _ => {}
            }
        }
        Some(check)
    }
}

/// Where a thread panicked, and with which words.
pub fn panic(output: &str) -> Option<String> {
    let mut lines = output.lines().skip_while(|line| !line.contains("panicked at "));
    lines.next().map(|place| format!("{place} {}", lines.next().unwrap_or_default()))
}

/// The number behind `name:` in a reply to INFO.
pub fn gauge(info: &[u8], name: &str) -> Option<u64> {
    let text = String::from_utf8_lossy(info);
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')?.trim().parse().ok())
}

/// Segments of the last incarnation's logs that are not there any more, because runs replace them.
///
/// # Errors
/// Those of reading the directory.
pub fn segments_given_back(directory: &Path) -> io::Result<u64> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    Ok(given_back(names.iter().map(String::as_str)))
}

/// `incarnation-core-segment.log`: of the last incarnation, the lowest segment of each core.
fn given_back<'a>(names: impl Iterator<Item = &'a str>) -> u64 {
    let mut lowest: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for name in names {
        let parts: Vec<&str> = name.strip_suffix(".log").map_or_else(Vec::new, |stem| stem.split('-').collect());
        let [incarnation, core, segment] = parts[..] else { continue };
        let Ok(segment) = segment.parse::<u64>() else { continue };
        lowest.entry((incarnation, core)).and_modify(|low| *low = segment.min(*low)).or_insert(segment);
    }
    let last = lowest.keys().next_back().map(|(incarnation, _)| *incarnation);
    lowest.iter().filter(|((incarnation, _), _)| Some(*incarnation) == last).map(|(_, segment)| segment).sum()
}

#[cfg(test)]
mod tests {
    use super::{Check, Recovery, gauge, given_back, panic};

    #[test]
    fn announcements_are_read() {
        let output = "zerohop: warning: few files\n\
                      recovery: 30000 keys from runs, 12 records from the log (73.2 MiB) in 0.12 s\n\
                      recovery: a torn tail, not known to be acknowledged, was cut: 1.log at offset 3\n\
                      recovery: an incomplete unit, not known to be acknowledged, was cut: 2.log at offset 3\nbackend: epoll\n";
        let recovery = Recovery { run_keys: 30000, records: 12, torn_tails: 1, incomplete_units: 1 };
        assert_eq!(Recovery::parse(output), Some(recovery));
        assert_eq!(Recovery::parse("recovery: a new store\n"), Some(Recovery::default()));
        assert_eq!(Recovery::parse("backend: epoll\n"), None);
    }

    #[test]
    fn checks_are_read() {
        let output = "d: it would start\n  store        00\n  runs         64 of slot groups, with 29 keys\n  \
                      records      7\n  database 0   30 keys, 0 with a time to live\n  database 3   2 keys, 0 with a\n";
        assert_eq!(Check::parse(output), Some(Check { keys: 32, records: 7 }));
        assert_eq!(Check::parse("d: no store was ever started here\n"), None);
    }

    #[test]
    fn a_panic_is_found_in_what_was_printed() {
        let output = "ready on 1\nthread 'core-3' panicked at a.rs:64:43:\nrange end 44\nstack backtrace:\n";
        assert_eq!(panic(output), Some("thread 'core-3' panicked at a.rs:64:43: range end 44".to_owned()));
        assert_eq!(panic("ready on 1\n"), None);
    }

    #[test]
    fn gauges_and_names_are_read() {
        let info = b"$60\r\n# Persistence\r\nruns_published_bytes:9\r\nruns_published:302\r\n\r\n";
        assert_eq!(gauge(info, "runs_published"), Some(302));
        assert_eq!(gauge(info, "runs"), None);
        let names = ["00000001-000-0000000009.log", "00000002-000-0000000016.log", "00000002-000-0000000017.log"];
        let others = ["00000002-001-0000000003.log", "MANIFEST", "g00-00000001-0000000000009396.run"];
        assert_eq!(given_back(names.into_iter().chain(others)), 19);
    }
}
