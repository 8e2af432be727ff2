//! `cargo x deny`: licences, duplicate versions and sources of every crate we build with, judged by `deny.toml`. The
//! file is cargo-deny's own; this reads the three lists we use, so that nothing needs to be installed to check them.

use std::collections::BTreeMap;
use std::process::ExitCode;

use serde::Deserialize;

use crate::{Outcome, process, workspace};

/// The one place crates come from.
const SOURCE: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// The workspaces whose lock files are judged.
const WORKSPACES: [&str; 3] = ["Cargo.toml", "fuzz/Cargo.toml", "python/Cargo.toml"];

#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

/// The lists of `deny.toml`.
#[derive(Debug, Default)]
struct Rules {
    licences: Vec<String>,
    duplicates: Vec<String>,
}

/// `cargo x deny`.
pub fn run(arguments: &[String]) -> Outcome<ExitCode> {
    if !arguments.is_empty() {
        return Err("deny takes no arguments; its lists are in deny.toml".to_owned());
    }
    let (passed, failed) = check_all()?;
    println!("deny: {passed} crates in order, {failed} not");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Judges every crate of the lock file that is built on Linux; (crates in order, findings).
pub fn check_all() -> Outcome<(usize, usize)> {
    let text =
        std::fs::read_to_string(workspace::root().join("deny.toml")).map_err(|error| format!("deny.toml: {error}"))?;
    let rules = Rules { licences: list(&text, "licenses", "allow"), duplicates: list(&text, "bans", "skip") };
    let (mut crates, mut failed) = (0, 0);
    for manifest in WORKSPACES {
        let mut metadata = workspace::cargo();
        metadata.args(["metadata", "--format-version", "1", "--locked", "--manifest-path", manifest]);
        metadata.args(["--filter-platform", "x86_64-unknown-linux-gnu"]);
        let json = process::output(&mut metadata)?;
        let metadata: Metadata = serde_json::from_str(&json).map_err(|error| format!("{manifest}: {error}"))?;
        let findings = judge(&metadata.packages, &rules);
        for finding in &findings {
            println!("deny: {manifest}: {finding}");
        }
        crates += metadata.packages.len();
        failed += findings.len();
    }
    Ok((crates.saturating_sub(failed), failed))
}

fn judge(packages: &[Package], rules: &Rules) -> Vec<String> {
    let mut findings = Vec::new();
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        versions.entry(&package.name).or_default().push(&package.version);
        let (name, version) = (&package.name, &package.version);
        match &package.license {
            None => findings.push(format!("{name} {version} names no licence")),
            Some(licence) if !permits(licence, &rules.licences) => {
                findings.push(format!("{name} {version} has the licence `{licence}`, which deny.toml does not allow"));
            }
            Some(_) => {}
        }
        if package.source.as_deref().is_some_and(|source| source != SOURCE) {
            findings.push(format!("{name} {version} comes from elsewhere than the public registry"));
        }
    }
    for (name, all) in versions.into_iter().filter(|(_, all)| all.len() > 1) {
        let skipped = all.iter().filter(|version| rules.duplicates.contains(&format!("{name}@{version}"))).count();
        if all.len() - skipped > 1 {
            findings.push(format!("{name} is here in versions {}: agree on one", all.join(", ")));
        }
    }
    findings
}

/// The strings of the array `key` in `[section]`.
fn list(toml: &str, section: &str, key: &str) -> Vec<String> {
    let uncommented: String =
        toml.lines().map(|line| line.split('#').next().unwrap_or_default()).collect::<Vec<_>>().join("\n");
    let header = format!("[{section}]");
    let body = uncommented.split(&header).nth(1).unwrap_or_default().split("\n[").next().unwrap_or_default();
    let array = body.split(&format!("\n{key} = [")).nth(1).and_then(|rest| rest.split(']').next()).unwrap_or_default();
    array.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Whether an SPDX expression can be met by allowed licences: `OR` needs one side, `AND` both.
fn permits(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    any_of(&words, &mut at, allowed) && at == words.len()
}

fn any_of(words: &[&str], at: &mut usize, allowed: &[String]) -> bool {
    let mut permitted = all_of(words, at, allowed);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        permitted |= all_of(words, at, allowed);
    }
    permitted
}

fn all_of(words: &[&str], at: &mut usize, allowed: &[String]) -> bool {
    let mut permitted = term(words, at, allowed);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        permitted &= term(words, at, allowed);
    }
    permitted
}

fn term(words: &[&str], at: &mut usize, allowed: &[String]) -> bool {
    let Some(word) = words.get(*at) else { return false };
    *at += 1;
    if *word == "(" {
        let permitted = any_of(words, at, allowed);
        let closed = words.get(*at) == Some(&")");
        *at += 1;
        return permitted && closed;
    }
    let mut licence = (*word).to_owned();
    if words.get(*at) == Some(&"WITH") {
        licence = format!("{licence} WITH {}", words.get(*at + 1).copied().unwrap_or_default());
        *at += 2;
    }
    allowed.contains(&licence)
}

#[cfg(test)]
mod tests {
    use super::{Package, Rules, SOURCE, judge, list, permits};

    fn package(name: &str, version: &str, license: Option<&str>) -> Package {
        let source = Some(SOURCE.to_owned());
        Package { name: name.to_owned(), version: version.to_owned(), license: license.map(str::to_owned), source }
    }

    #[test]
    fn expressions_are_judged_as_written() {
        let allowed = ["MIT".to_owned(), "Apache-2.0".to_owned(), "Unicode-3.0".to_owned()];
        for good in ["MIT", "MIT OR GPL-3.0", "GPL-3.0/MIT", "(MIT OR X) AND Unicode-3.0"] {
            assert!(permits(good, &allowed), "{good}");
        }
        for bad in ["GPL-3.0", "MIT AND GPL-3.0", "(MIT OR X) AND Y", "", "(MIT", "Apache-2.0 WITH exception"] {
            assert!(!permits(bad, &allowed), "{bad}");
        }
    }

    #[test]
    fn a_licence_a_duplicate_and_a_strange_source_are_caught() {
        let rules = Rules { licences: vec!["MIT".to_owned()], duplicates: vec!["c@1.0.0".to_owned()] };
        let mut packages = vec![package("a", "1.0.0", Some("GPL-3.0")), package("b", "1.0.0", Some("MIT"))];
        packages.push(package("b", "2.0.0", Some("MIT")));
        packages.extend([package("c", "1.0.0", Some("MIT")), package("c", "2.0.0", Some("MIT"))]);
        packages.push(Package { source: Some("git+x".to_owned()), ..package("d", "1.0.0", None) });
        let findings = judge(&packages, &rules);
        for (finding, start) in findings.iter().zip(["a 1.0.0 has", "d 1.0.0 names", "d 1.0.0 comes", "b is here"]) {
            assert!(finding.starts_with(start), "{finding}");
        }
        assert_eq!(findings.len(), 4, "{findings:?}");
    }

    #[test]
    fn lists_are_read_from_their_section() {
        let text = "[bans]\nskip = [\"a@1\"]\n[licenses]\nallow = [\n  \"MIT\", # why\n  \"ISC\",\n]\n";
        assert_eq!(list(text, "licenses", "allow"), ["MIT", "ISC"]);
        assert_eq!(list(text, "bans", "skip"), ["a@1"]);
        assert!(list(text, "bans", "allow").is_empty());
    }
}
