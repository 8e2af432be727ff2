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
    /// So many seconds of faults while slots move, with proxies between some of the clients and the nodes.
    Proxies { seconds: u64 },
    /// The same, and with the library's client.
    ProxiesAndLibrary { seconds: u64 },
}

/// Proxies of a run that has some: one that collapses writes and one that does not.
const PROXIES: u64 = 2;

/// Planted bugs of proxies, with the seed of a run in which they are known to show.
pub const BUGS_OF_PROXIES: [(&str, u64); 3] = [("M13", 1), ("M14", 1), ("M60", 1)];

/// AT-07 as it is written.
pub const WHOLE_FIRE: Scene = Scene::Fire { rounds: 20, long_mib: 64, many_keys: 100_000 };

impl Scene {
    /// The same seed with this scene; its folder is another one than that of the faults.
    ///
    /// # Errors
    /// When what it needs besides does not build.
    pub fn command(self, (proof, zerohop): (&Path, &Path), seed: u64, planted: Option<&str>) -> Outcome<Command> {
        let mut command = kill::proof_command("nemesis", (proof, zerohop), seed, planted);
        match self {
            Scene::Fire { rounds, long_mib, many_keys } => {
                command.args(["--scene", "fire", "--rounds", &rounds.to_string()]);
                command.args(["--long-mib", &long_mib.to_string(), "--many-keys", &many_keys.to_string()]);
            }
            Scene::Strangers => {
                command.args(["--scene", "strangers"]);
            }
            Scene::Proxies { seconds } | Scene::ProxiesAndLibrary { seconds } => {
                command.args(["--seconds", &seconds.to_string(), "--proxies", &PROXIES.to_string()]);
            }
        }
        if matches!(self, Scene::ProxiesAndLibrary { .. }) {
            command.arg("--library").arg(workspace::checked_example("library_gate")?);
        }
        command.arg("--folder").arg(self.folder(seed));
        Ok(command)
    }

    /// Where its history lies.
    pub fn folder(self, seed: u64) -> PathBuf {
        let name = match self {
            Scene::Fire { .. } => "fire",
            Scene::Strangers => "strangers",
            Scene::Proxies { .. } => "proxies",
            Scene::ProxiesAndLibrary { .. } => "library",
        };
        workspace::target_folder().join("nemesis").join(format!("{name}-{seed}"))
    }
}

/// So many seconds of faults by this seed; `planted` names the bug that has to be noticed.
pub fn command((proof, zerohop): (&Path, &Path), seed: u64, seconds: u64, planted: Option<&str>) -> Command {
    let mut command = kill::proof_command("nemesis", (proof, zerohop), seed, planted);
    command.args(["--seconds", &seconds.to_string(), "--folder"]).arg(folder(seed));
    command
}
