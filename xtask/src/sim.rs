//! `cargo x sim`: the simulator's runner, at release speed with assertions on.

use std::process::ExitCode;

use crate::{Outcome, process, workspace};

/// Hands every argument to the runner.
pub fn run(arguments: &[String]) -> Outcome<ExitCode> {
    let runner = workspace::root().join("crates/sim/src/main.rs");
    if !runner.exists() {
        return Err("crates/sim has no runner (src/main.rs) in this tree".to_owned());
    }
    let mut cargo = workspace::cargo();
    cargo.args(["run", "--quiet", "--profile", "checked", "--package", "sim", "--"]).args(arguments);
    Ok(if process::shown(&mut cargo)? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
