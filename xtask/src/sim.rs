//! `cargo x sim`: the simulator's runner, at release speed with assertions on.

use std::process::{Command, ExitCode};

use crate::{Outcome, process, workspace};

/// Hands every argument to the runner.
pub fn run(arguments: &[String]) -> Outcome<ExitCode> {
    let runner = workspace::root().join("crates/sim/src/main.rs");
    if !runner.exists() {
        return Err("crates/sim has no runner (src/main.rs) in this tree".to_owned());
    }
    let mut sim = Command::new(workspace::checked_program("sim")?);
    Ok(if process::shown(sim.args(arguments))? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
