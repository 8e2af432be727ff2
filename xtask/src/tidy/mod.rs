//! The house rules of `ARCHITECTURE.md` as a program: each rule is one file with a planted violation in its tests.

mod allowance;
mod commands_page;
mod edges;
mod headers;
mod limits_page;
mod links;
mod modules;
mod places;
mod purity;
mod size;
mod table;
mod words;

use std::process::ExitCode;

use crate::rust_source::RustSource;
use crate::workspace::{self, Package, TextFile};
use crate::{Outcome, process};

/// Everything the rules look at.
pub struct House {
    /// Tracked text files.
    pub files: Vec<TextFile>,
    /// The crates and their edges.
    pub packages: Vec<Package>,
}

/// One broken rule at one place.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    /// Path from the root.
    pub path: String,
    /// Line, counted from 1.
    pub line: usize,
    /// What is wrong and what to write instead.
    pub message: String,
}

/// One rule.
struct Rule {
    name: &'static str,
    check: fn(&House) -> Vec<Finding>,
}

const RULES: &[Rule] = &[
    Rule { name: "crate-edges", check: edges::check_workspace_edges },
    Rule { name: "third-party", check: edges::check_third_party },
    Rule { name: "dependency-reasons", check: edges::check_reasons },
    Rule { name: "purity", check: purity::check },
    Rule { name: "file-header", check: headers::check },
    Rule { name: "dead-files", check: modules::check_declared },
    Rule { name: "test-binaries", check: modules::check_test_binaries },
    Rule { name: "size", check: size::check },
    Rule { name: "words", check: words::check },
    Rule { name: "places", check: places::check },
    Rule { name: "links", check: links::check },
    Rule { name: "limits-page", check: limits_page::check },
    Rule { name: "commands-page", check: commands_page::check },
];

impl House {
    /// The repository as it stands on disk.
    fn open() -> Outcome<House> {
        Ok(House { files: workspace::text_files()?, packages: workspace::packages()? })
    }

    /// The text of the file at `path`.
    fn text(&self, path: &str) -> Option<&str> {
        self.files.iter().find(|file| file.path == path).map(|file| file.text.as_str())
    }

    /// All Rust files, with whether the whole file is a test.
    fn rust_files(&self) -> Vec<RustFile<'_>> {
        let mut rust: Vec<RustFile> = self
            .files
            .iter()
            .filter(|file| file.path.ends_with(".rs"))
            .map(|file| RustFile { file, source: RustSource::new(&file.text), is_test: is_test_path(&file.path) })
            .collect();
        let declared: Vec<String> = rust
            .iter()
            .flat_map(|file| {
                let folder = module_folder(&file.file.path);
                file.source.test_modules().into_iter().map(move |name| format!("{folder}{name}"))
            })
            .collect();
        for file in &mut rust {
            let is_declared = |module: &String| {
                file.file.path == format!("{module}.rs") || file.file.path.starts_with(&format!("{module}/"))
            };
            file.is_test |= declared.iter().any(is_declared);
        }
        rust
    }
}

/// One Rust file of the house.
struct RustFile<'a> {
    file: &'a TextFile,
    source: RustSource,
    is_test: bool,
}

impl RustFile<'_> {
    /// Lines of code with their numbers and whether they are tests.
    fn lines(&self) -> impl Iterator<Item = (usize, &str, bool)> {
        self.source.lines().map(|(number, line, test)| (number, line, test || self.is_test))
    }

    /// A finding at `line` of this file.
    fn finding(&self, line: usize, message: impl Into<String>) -> Finding {
        Finding { path: self.file.path.clone(), line, message: message.into() }
    }
}

fn is_test_path(path: &str) -> bool {
    let mut parts = path.split('/').rev();
    let stem = parts.next().unwrap_or_default().trim_end_matches(".rs");
    stem == "tests" || stem.ends_with("_tests") || parts.any(|folder| folder == "tests" || folder == "benches")
}

/// The folder that holds the modules which the file at `path` declares.
fn module_folder(path: &str) -> String {
    let stem = path.trim_end_matches(".rs");
    for root in ["mod", "lib", "main"] {
        if let Some(folder) = stem.strip_suffix(root).filter(|folder| folder.ends_with('/')) {
            return folder.to_owned();
        }
    }
    format!("{stem}/")
}

/// `cargo x tidy`.
pub fn run(arguments: &[String]) -> Outcome<ExitCode> {
    match arguments {
        [] => {}
        [flag] if flag == "--write" => write_pages()?,
        _ => return Err("tidy takes nothing or `--write`".to_owned()),
    }
    let (passed, failed) = check_all()?;
    println!("tidy: {passed} rules kept, {failed} broken");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Writes the pages that are generated from sources.
fn write_pages() -> Outcome<()> {
    let house = House::open()?;
    let pages =
        [(limits_page::PAGE, limits_page::render(&house)), (commands_page::PAGE, commands_page::render(&house.files))];
    for (path, text) in pages {
        std::fs::write(workspace::root().join(path), text).map_err(|error| format!("{path}: {error}"))?;
    }
    Ok(())
}

/// Runs every rule and prints what is broken; (rules kept, rules broken).
pub fn check_all() -> Outcome<(usize, usize)> {
    let house = House::open()?;
    let mut broken = 0;
    for rule in RULES {
        let findings = (rule.check)(&house);
        for finding in &findings {
            println!("{}:{}: {}: {}", finding.path, finding.line, rule.name, finding.message);
        }
        broken += usize::from(!findings.is_empty());
    }
    Ok((RULES.len() - broken, broken))
}

/// Whether every Rust file is formatted.
pub fn is_formatted() -> Outcome<bool> {
    let is_formatted = |rest: &[&str]| process::shown(workspace::cargo().args(["fmt", "--check"]).args(rest));
    // Those that are no members of the workspace stand for themselves.
    Ok(is_formatted(&["--all"])?
        && is_formatted(&["--manifest-path", "fuzz/Cargo.toml"])?
        && is_formatted(&["--manifest-path", "python/Cargo.toml"])?)
}

#[cfg(test)]
mod tests {
    use super::{House, is_test_path};
    use crate::workspace::TextFile;

    impl House {
        /// A house with these files and no crate.
        pub fn of(files: &[(&str, &str)]) -> House {
            let file = |(path, text): &(&str, &str)| TextFile { path: (*path).to_owned(), text: (*text).to_owned() };
            House { files: files.iter().map(file).collect(), packages: Vec::new() }
        }
    }

    #[test]
    fn test_files_are_told_by_path_and_by_declaration() {
        assert!(is_test_path("crates/wire/tests/corpus.rs"));
        assert!(!is_test_path("crates/wire/src/latest.rs"));
        let house = House::of(&[
            ("crates/a/src/lib.rs", "#[cfg(test)]\nmod checks;\nmod real;\n"),
            ("crates/a/src/checks.rs", ""),
            ("crates/a/src/real.rs", ""),
        ]);
        let tests: Vec<bool> = house.rust_files().iter().map(|file| file.is_test).collect();
        assert_eq!(tests, [false, true, false]);
    }
}
