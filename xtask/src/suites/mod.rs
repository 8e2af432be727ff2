//! The registry of suites: what `cargo x test` runs, in order. A new suite is one file and one line in [`SUITES`].

mod applications;
mod cargo_tests;
mod damage;
mod demo;
mod differential;
mod dist;
mod faults;
mod fuzz;
mod house;
mod kill;
mod nemesis;
mod outside;
mod overload;
mod planted;
mod power;
mod proxy;
mod python;
mod simulator;

use std::path::PathBuf;
use std::process::Command;

use crate::needs::{self, Need};
use crate::{Outcome, peers, process, workspace};

/// Tests counted by their outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Tests that passed.
    pub passed: usize,
    /// Tests that failed.
    pub failed: usize,
    /// Tests that did not run, with their reason printed.
    pub skipped: usize,
}

impl Counts {
    /// One test with this verdict.
    pub fn one(passed: bool) -> Counts {
        Counts { passed: usize::from(passed), failed: usize::from(!passed), skipped: 0 }
    }

    /// `N passed, N failed[, N skipped]` -> counts.
    pub fn parse(line: &str) -> Option<Counts> {
        let mut parts = line.trim().split(", ");
        let mut count = |what: &str| parts.next()?.strip_suffix(what)?.trim_end().parse::<usize>().ok();
        let (passed, failed) = (count("passed")?, count("failed")?);
        let skipped = count("skipped").unwrap_or(0);
        Some(Counts { passed, failed, skipped })
    }

    /// Adds `other`.
    pub fn add(&mut self, other: Counts) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

/// When a suite runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// In every run.
    Fixed,
    /// In runs whose commit chooses this shard.
    Shard(&'static str),
}

/// Beside what a suite runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Company {
    /// Nothing: it keeps every processor busy by itself, or others wait for what it builds.
    Alone,
    /// Others of its kind.
    SideBySide,
}

/// One suite.
pub struct Suite {
    /// Its name, for `--only`.
    pub name: &'static str,
    /// What it proves, in one line.
    pub about: &'static str,
    /// What it needs from the machine besides cargo.
    pub needs: &'static [&'static Need],
    /// Seconds it may take on two cores; beyond it the run says so.
    pub budget_seconds: u64,
    /// When it runs.
    pub turn: Turn,
    /// Beside what.
    pub company: Company,
    /// Runs it. An error means the suite could not do its work and counts as one failure.
    pub run: fn(&Context) -> Outcome<Counts>,
}

/// All suites, cheapest verdict first.
pub const SUITES: &[Suite] = &[
    house::FORMAT,
    house::TIDY,
    house::DENY,
    cargo_tests::CLIPPY,
    cargo_tests::DOCUMENTATION,
    cargo_tests::BUILD,
    cargo_tests::UNIT_TESTS,
    cargo_tests::INTEGRATION_TESTS,
    cargo_tests::DOC_TESTS,
    differential::DIFFERENTIAL,
    proxy::PROXY,
    overload::OVERLOAD,
    outside::ACL,
    outside::SPLIT,
    outside::HOSTILE,
    outside::PACKAGE_INDEX,
    outside::PYTHON_CLIENTS,
    outside::REDIS_PY,
    outside::GO_CLIENT,
    outside::NODE_CLIENTS,
    outside::JAVA_CLIENTS,
    outside::RUST_CLIENT,
    applications::APPLICATIONS,
    damage::DAMAGE,
    kill::KILL,
    nemesis::NEMESIS,
    faults::FAULTS,
    power::POWER,
    simulator::SEEDS,
    fuzz::FUZZ,
    dist::ARTEFACTS,
    python::PYTHON,
    demo::DEMO,
    proxy::SENTINEL,
    faults::FAULTS_REST,
    power::POWER_REST,
    power::POWER_CLUSTER,
    nemesis::NEMESIS_SCENES,
    planted::PLANTED,
    planted::PLANTED_SHARD,
    planted::PLANTED_CLUSTER,
    planted::PLANTED_PROCESSES,
    power::POWER_LOSERS,
];

/// What a suite is given.
pub struct Context {
    /// The root of the repository.
    pub root: PathBuf,
    /// The commit under test; it chooses the shard.
    pub commit: String,
    /// Whether what a suite needs may be installed.
    pub may_install: bool,
}

impl Context {
    /// A command that finds the programs `cargo x test` installed, started at the root.
    pub fn command(&self, program: &str) -> Command {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(peers::program_folder()).chain(std::env::split_paths(&path));
        let joined = std::env::join_paths(folders).expect("folders of PATH hold no separator");
        let program = needs::find(program).unwrap_or_else(|| program.into());
        let mut command = Command::new(program);
        command.current_dir(&self.root).env("PATH", joined);
        command
    }

    /// Builds the binary `zerohop` with its assertions on (profile `checked`) and names it.
    pub fn zerohop(&self) -> Outcome<PathBuf> {
        workspace::checked_program("zerohop")
    }

    /// Runs a program whose last line of counts is `N passed, N failed[, N skipped]`, and shows what it prints.
    pub fn counted(&self, command: &mut Command) -> Outcome<Counts> {
        let mut last = None;
        let succeeded = process::lines(command, |line| {
            last = Counts::parse(line).or(last);
            true
        })?;
        let counts = last.ok_or_else(|| format!("`{}` ended without its counts", process::describe(command)))?;
        if !succeeded && counts.failed == 0 {
            return Err(format!("`{}` failed although it counts no failure", process::describe(command)));
        }
        Ok(counts)
    }
}

/// The commit's first twelve digits: what a suite draws from it.
fn commit_number(commit: &str) -> u64 {
    commit.get(..12).and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{Context, Counts};
    use std::process::Command;

    #[test]
    fn lines_of_counts_are_read() {
        assert_eq!(Counts::parse("3 passed, 1 failed"), Some(Counts { passed: 3, failed: 1, skipped: 0 }));
        assert_eq!(Counts::parse("3 passed, 1 failed, 2 skipped"), Some(Counts { passed: 3, failed: 1, skipped: 2 }));
        assert_eq!(Counts::parse("passed, failed"), None);
        assert_eq!(Counts::parse("test result: ok. 3 passed; 1 failed"), None);
    }

    #[test]
    fn a_program_that_fails_or_does_not_count_is_an_error() {
        let context = Context { root: std::env::temp_dir(), commit: "f".repeat(40), may_install: false };
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            context.counted(&mut command)
        };
        assert_eq!(shell("echo 2 passed, 0 failed"), Ok(Counts { passed: 2, failed: 0, skipped: 0 }));
        assert_eq!(shell("echo 2 passed, 1 failed; exit 1"), Ok(Counts { passed: 2, failed: 1, skipped: 0 }));
        assert!(shell("echo 2 passed, 0 failed; exit 1").is_err());
        assert!(shell("true").is_err());
    }

    #[test]
    fn a_commit_has_a_number_of_its_own() {
        assert_eq!(super::commit_number(&"c835ea7f00d1".repeat(4)), 0xc835_ea7f_00d1);
        assert_eq!(super::commit_number("not a commit"), 0);
    }
}
