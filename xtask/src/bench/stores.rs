//! Programs of crate `bench` that start stores of several processes, and tell what they see by lines of JSON.

use std::process::Command;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::programs::built;
use super::progress::Progress;
use super::server::outranking;
use crate::{Outcome, process, workspace};

/// A line of such a program.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line<T> {
    /// What was measured.
    Slice(T),
    /// What was started, in words.
    Store(String),
}

/// What a program told.
pub struct Told<T> {
    /// Slices in their order.
    pub slices: Vec<T>,
    /// Its stores in words.
    pub stores: Vec<String>,
}

/// The command that starts program `name`, with its directory. It is gone when this chore is, and all that it started with it.
pub fn program(name: &str) -> Outcome<Command> {
    let folder = workspace::root().join("target/bench-data");
    std::fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    let mut command = outranking("setpriv");
    command.args(["--pdeathsig", "KILL"]).arg(built(name)).arg("--directory").arg(&folder);
    Ok(command)
}

/// Runs the program, which is to tell `total` slices, and shows how far it is.
pub fn slices<T: DeserializeOwned>(cell: &str, command: &mut Command, total: usize) -> Outcome<Told<T>> {
    let mut progress = Progress::new(cell, total);
    let (mut told, mut problem) = (Told { slices: Vec::new(), stores: Vec::new() }, None);
    let succeeded = process::lines(command, |line| {
        if let Err(text) = told.take(line) {
            problem = Some(text);
        }
        progress.show(told.slices.len());
        false
    })?;
    drop(progress);
    match problem {
        None if succeeded => Ok(told),
        problem => {
            let problem = problem.unwrap_or_else(|| "what it said stands above".to_owned());
            Err(format!("it ended after {} of {total} slices: {problem}", told.slices.len()))
        }
    }
}

impl<T: DeserializeOwned> Told<T> {
    fn take(&mut self, line: &str) -> Outcome<()> {
        match serde_json::from_str(line) {
            Ok(Line::Slice(slice)) => self.slices.push(slice),
            Ok(Line::Store(store)) => self.stores.push(store),
            Err(error) => return Err(format!("{line:?} is not understood: {error}")),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn echo(lines: &str) -> Command {
        let mut command = Command::new("printf");
        command.arg(lines);
        command
    }

    #[test]
    fn slices_and_stores_are_told_apart() {
        let told: Told<u32> = slices("x", &mut echo(r#"{"store":"a"}\n{"slice":3}\n{"slice":4}\n"#), 2).expect("lines");
        assert_eq!((told.slices, told.stores), (vec![3, 4], vec!["a".to_owned()]));
    }

    #[test]
    fn what_is_not_understood_and_a_program_that_fails_are_errors() {
        let strange: Outcome<Told<u32>> = slices("x", &mut echo(r#"{"slice":"a"}\n"#), 1);
        assert!(strange.is_err_and(|problem| problem.contains("not understood")));
        let failed: Outcome<Told<u32>> = slices("x", &mut Command::new("false"), 2);
        assert!(failed.is_err_and(|problem| problem.contains("0 of 2")));
    }
}
