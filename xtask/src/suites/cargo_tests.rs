//! Suites that Cargo runs: Clippy, and every test of the workspace.

use super::{Company, Counts, Suite, Turn};
use crate::{Outcome, needs, process, workspace};

/// Clippy twice, warnings refused: over the code with the purity of rings 0-3, and over its tests without it. Then the fuzzing
/// program, which is no part of the workspace.
pub const CLIPPY: Suite = Suite {
    name: "clippy",
    about: "clippy, warnings refused: the code with the purity of rings 0-3, all targets with everything else; the fuzzing \
            program",
    needs: &[&needs::CLIPPY],
    budget_seconds: 240,
    turn: Turn::Fixed,
    company: Company::Alone,
    run: |_| {
        let mut counts = Counts::one(clippy(&["--lib", "--bins", "--examples"], &[])?);
        counts.add(Counts::one(clippy(&["--all-targets"], IMPURE)?));
        counts.add(Counts::one(checks_fuzzing_program()?));
        Ok(counts)
    },
};

/// What is not held to the purity of rings 0-3.
const IMPURE: &[&str] = &["-A", "clippy::disallowed_methods", "-A", "clippy::disallowed_types"];

/// Only one shard builds it, which takes minutes and a C++ compiler: that it compiles is seen in every run.
fn checks_fuzzing_program() -> Outcome<bool> {
    let mut check = workspace::cargo();
    check.args(["clippy", "--quiet", "--manifest-path", "fuzz/Cargo.toml", "--target-dir", "target"]);
    check.args(["--", "-D", "warnings"]).args(IMPURE);
    // Nothing is linked, so libFuzzer need not be there.
    check.env("CUSTOM_LIBFUZZER_PATH", "target/libFuzzer.a");
    process::shown(&mut check)
}

fn clippy(targets: &[&str], lints: &[&str]) -> Outcome<bool> {
    let mut clippy = workspace::cargo();
    clippy.args(["clippy", "--quiet", "--workspace", "--keep-going"]).args(targets);
    clippy.args(["--", "-D", "warnings"]).args(lints);
    process::shown(&mut clippy)
}

/// The documentation of every crate builds and its links arrive.
pub const DOCUMENTATION: Suite = Suite {
    name: "documentation",
    about: "cargo doc: every link between documented items arrives",
    needs: &[],
    budget_seconds: 120,
    turn: Turn::Fixed,
    company: Company::Alone,
    run: |_| {
        let mut doc = workspace::cargo();
        doc.args(["doc", "--quiet", "--workspace", "--no-deps", "--keep-going"]);
        doc.env("RUSTDOCFLAGS", "-D rustdoc::broken_intra_doc_links");
        process::shown(&mut doc).map(Counts::one)
    },
};

/// Everything that the suites below and all others start: built at once, because it takes every processor.
pub const BUILD: Suite = Suite {
    name: "build",
    about: "the workspace with its tests: release speed, assertions on",
    needs: &[],
    budget_seconds: 400,
    turn: Turn::Fixed,
    company: Company::Alone,
    run: |_| process::shown(workspace::cargo().args(["test", "--quiet", "--no-run"]).args(WORKSPACE)).map(Counts::one),
};

/// Tests beside the code.
pub const UNIT_TESTS: Suite = Suite {
    name: "unit-tests",
    about: "cargo test of what stands beside the code",
    needs: &[],
    budget_seconds: 180,
    turn: Turn::Fixed,
    company: Company::SideBySide,
    run: |_| tests_of_workspace(&["--lib", "--bins", "--examples"]),
};

/// Tests from outside.
pub const INTEGRATION_TESTS: Suite = Suite {
    name: "integration-tests",
    about: "cargo test of what stands in the folders `tests`: crates from outside, the simulator's worlds, the binary",
    needs: &[],
    budget_seconds: 400,
    turn: Turn::Fixed,
    company: Company::SideBySide,
    run: |_| tests_of_workspace(&["--test", "*"]),
};

/// Examples in the documentation.
pub const DOC_TESTS: Suite = Suite {
    name: "doc-tests",
    about: "cargo test of the examples in the documentation of crates",
    needs: &[],
    budget_seconds: 60,
    turn: Turn::Fixed,
    company: Company::SideBySide,
    run: |_| tests_of_workspace(&["--doc"]),
};

/// Tests at a time for each core: most wait for processes of their own. Those of `cli` take 41 s so, and 72 s with one each.
const TESTS_PER_CORE: usize = 3;

/// Of the workspace. Whatever is run of it is chosen from the whole: cargo unites the features of what it builds.
const WORKSPACE: [&str; 3] = ["--workspace", "--profile", "checked"];

fn tests_of_workspace(which: &[&str]) -> Outcome<Counts> {
    cargo_test(&[&WORKSPACE[..], which].concat())
}

/// `cargo test` with these arguments, counted by its own result lines.
pub fn cargo_test(arguments: &[&str]) -> Outcome<Counts> {
    let mut counts = Counts::default();
    let mut cargo = workspace::cargo();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    cargo.env("RUST_TEST_THREADS", (cores * TESTS_PER_CORE).to_string());
    cargo.args(["test", "--quiet", "--no-fail-fast"]).args(arguments);
    let succeeded = process::lines(&mut cargo, |line| {
        if let Some(result) = parse_result(line) {
            counts.add(result);
        }
        true
    })?;
    if !succeeded && counts.failed == 0 {
        counts.failed = 1; // it did not build, or a test took the process with it
    }
    if succeeded && counts == Counts::default() {
        return Err("cargo test ran no test at all".to_owned());
    }
    Ok(counts)
}

/// `test result: ok. 3 passed; 0 failed; 1 ignored; …` -> counts.
fn parse_result(line: &str) -> Option<Counts> {
    let rest = line.strip_prefix("test result: ")?;
    let count = |what: &str| {
        let before = rest.split(what).next().filter(|before| before.len() < rest.len())?;
        before.rsplit([' ', '.']).find(|word| !word.is_empty())?.parse().ok()
    };
    Some(Counts { passed: count(" passed")?, failed: count(" failed")?, skipped: count(" ignored")? })
}

#[cfg(test)]
mod tests {
    use super::{Counts, parse_result};

    #[test]
    fn result_lines_are_counted() {
        let line = "test result: FAILED. 31 passed; 2 failed; 1 ignored; 0 measured; 4 filtered out; finished in 0.00s";
        assert_eq!(parse_result(line), Some(Counts { passed: 31, failed: 2, skipped: 1 }));
        assert_eq!(parse_result("test a::b ... ok"), None);
    }
}
