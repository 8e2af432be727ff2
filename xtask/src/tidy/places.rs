//! Rule: danger and machines have an address: `unsafe` only where the table says, no machine path, no registry host.

use super::{Finding, House};
use crate::rust_source::word_positions;

/// Where `unsafe` may stand.
const UNSAFE_HOMES: &[&str] = &["crates/io/", "crates/bench/", "crates/base/src/prefetch.rs"];

/// Folders that exist on one machine only, spelled so that this file is clean.
const MACHINE_FOLDERS: &[&str] =
    &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/tmp/", "wt")];

/// What hosts of package registries are called.
const REGISTRY_WORDS: &[&str] =
    &["registry", "crates.io", "pypi", "npmjs", "maven", "golang.org", "mirror", "artifactory"];

pub fn check(house: &House) -> Vec<Finding> {
    let mut findings = stray_unsafe(house);
    for file in house.files.iter().filter(|file| !matches!(file.path.as_str(), "Cargo.lock" | "LICENSE")) {
        for (index, line) in file.text.lines().enumerate() {
            let mut report = |message: String| {
                findings.push(Finding { path: file.path.clone(), line: index + 1, message });
            };
            if let Some(folder) = MACHINE_FOLDERS.iter().find(|folder| names_folder(line, folder)) {
                report(format!("`{folder}` is a path of one machine: use a path from the root, or a temporary folder"));
            }
            if let Some(host) = registry_host(line) {
                report(format!("`{host}` is a registry: let the package client use the one it is configured with"));
            }
        }
    }
    findings
}

fn stray_unsafe(house: &House) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in house.rust_files() {
        if UNSAFE_HOMES.iter().any(|home| file.file.path.starts_with(home)) {
            continue;
        }
        for (number, line, _) in file.lines().filter(|(_, line, _)| !word_positions(line, "unsafe").is_empty()) {
            let column = word_positions(line, "unsafe")[0];
            let message = format!("`unsafe` (column {}) belongs in crates/io behind a safe function", column + 1);
            findings.push(file.finding(number, message));
        }
    }
    findings
}

/// Whether `line` names `folder` as an absolute path, not as the tail of a longer one.
fn names_folder(line: &str, folder: &str) -> bool {
    let is_tail = |before: char| before.is_alphanumeric() || matches!(before, '.' | '-' | '_' | '/' | '}' | '*');
    line.match_indices(folder).any(|(at, _)| !line[..at].ends_with(is_tail))
}

fn registry_host(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("://")?;
    let host = rest.split(['/', '"', '\'', ' ', ')', '>']).next().unwrap_or_default();
    if REGISTRY_WORDS.iter().any(|word| host.contains(word)) { Some(host) } else { registry_host(rest) }
}

#[cfg(test)]
mod tests {
    use super::{House, check};

    fn lines_caught(path: &str, text: &str) -> Vec<usize> {
        check(&House::of(&[(path, text)])).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn unsafe_outside_its_homes_is_caught() {
        let text = "fn a() { unsafe { b() } }\n// unsafe\nconst unsafe_op: u8 = 1;\n";
        assert_eq!(lines_caught("crates/wire/src/a.rs", text), [1]);
        assert!(lines_caught("crates/io/src/a.rs", text).is_empty());
    }

    #[test]
    fn machine_paths_are_caught() {
        let text = format!("see {}x\nand frame{}y\n", concat!("/wo", "rk/"), concat!("/wo", "rk/"));
        assert_eq!(lines_caught("docs/a.md", &text), [1]);
    }

    #[test]
    fn registry_hosts_are_caught() {
        let scheme = concat!("https:", "//");
        let text = format!("http://localhost/\n\"{scheme}registry.example/x\"\nhttp://a {scheme}my-mirror.example\n");
        assert_eq!(lines_caught("tests/package-lock.json", &text), [2, 3]);
    }
}
