//! The suite that proves the others can fail: the one extra build that carries planted bugs (AT-01), each of which a
//! named test must catch.

use super::cargo_tests::cargo_test;
use super::{Counts, Suite, Turn};
use crate::{Outcome, workspace};

/// Tests of every crate that has the feature `planted`.
pub const PLANTED: Suite = Suite {
    name: "planted",
    about: "planted bugs, each caught by a named test of the build that carries them",
    needs: &[],
    budget_seconds: 300,
    turn: Turn::Shard("planted"),
    run: |_| run(),
};

fn run() -> Outcome<Counts> {
    let crates: Vec<String> = workspace::packages()?
        .into_iter()
        .filter(|package| package.features.contains_key("planted"))
        .map(|package| package.name)
        .collect();
    let mut arguments = vec!["--profile".to_owned(), "checked".to_owned()];
    for name in &crates {
        arguments.extend(["--package".to_owned(), name.clone(), "--features".to_owned(), format!("{name}/planted")]);
    }
    cargo_test(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
}
