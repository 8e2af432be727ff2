//! Runs of `proof nemesis`: with which arguments and programs, for `cargo x campaign nemesis` and the suites.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::needs::{self, Need};
use crate::{Outcome, kill, workspace};

/// What judges a history again, below the root.
pub const RECHECK: &str = "tests/nemesis/recheck.py";

/// Tries to get the programs for networks; without them nodes share the loopback address, and the run says so.
pub fn install_needs() -> Outcome<()> {
    let needs: [&Need; 2] = [&needs::IPROUTE, &needs::NFTABLES];
    let missing: Vec<&Need> = needs.into_iter().filter(|need| !need.is_met()).collect();
    needs::install(&missing)
}

/// Where the history of a seed lies, with its faults and what nodes printed.
pub fn folder(seed: u64) -> PathBuf {
    workspace::target_folder().join("nemesis").join(format!("seed-{seed}"))
}

/// So many seconds of faults by this seed; `planted` names the bug that has to be noticed.
pub fn command((proof, zerohop): (&Path, &Path), seed: u64, seconds: u64, planted: Option<&str>) -> Command {
    let mut command = kill::proof_command("nemesis", (proof, zerohop), seed, planted);
    command.args(["--seconds", &seconds.to_string(), "--folder"]).arg(folder(seed));
    command
}
