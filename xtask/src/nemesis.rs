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

/// What is done to a cluster, besides faults of every kind while slots move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scene {
    /// Slots go to and fro so many times under load, with a value of so many mebibytes and a slot of so many keys among them.
    Fire { rounds: u64, long_mib: u64, many_keys: u64 },
    /// Processes that are not what they say.
    Strangers,
}

/// AT-07 as it is written.
pub const WHOLE_FIRE: Scene = Scene::Fire { rounds: 20, long_mib: 64, many_keys: 100_000 };

impl Scene {
    /// The same seed with this scene; its folder is another one than that of the faults.
    pub fn command(self, (proof, zerohop): (&Path, &Path), seed: u64, planted: Option<&str>) -> Command {
        let mut command = kill::proof_command("nemesis", (proof, zerohop), seed, planted);
        match self {
            Scene::Fire { rounds, long_mib, many_keys } => {
                command.args(["--scene", "fire", "--rounds", &rounds.to_string()]);
                command.args(["--long-mib", &long_mib.to_string(), "--many-keys", &many_keys.to_string()]);
            }
            Scene::Strangers => {
                command.args(["--scene", "strangers"]);
            }
        }
        command.arg("--folder").arg(self.folder(seed));
        command
    }

    /// Where its history lies.
    pub fn folder(self, seed: u64) -> PathBuf {
        let name = if self == Scene::Strangers { "strangers" } else { "fire" };
        workspace::target_folder().join("nemesis").join(format!("{name}-{seed}"))
    }
}

/// So many seconds of faults by this seed; `planted` names the bug that has to be noticed.
pub fn command((proof, zerohop): (&Path, &Path), seed: u64, seconds: u64, planted: Option<&str>) -> Command {
    let mut command = kill::proof_command("nemesis", (proof, zerohop), seed, planted);
    command.args(["--seconds", &seconds.to_string(), "--folder"]).arg(folder(seed));
    command
}
