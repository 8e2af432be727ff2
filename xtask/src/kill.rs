//! The kill campaign of `proof`: which binary it kills and with which arguments, for `cargo x campaign kill` and the suites.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Outcome, process, workspace};

/// The variable that plants a bug in a binary that carries them, and tells `proof` that it has to be noticed.
const PLANTED_VARIABLE: &str = "PLANTED_BUG";

/// What carries planted bugs: nodes and proxies read which one it is to be.
const PLANTED_FEATURES: &str = "server/planted,proxy/planted";

/// The binary that people get.
pub fn release_binary() -> Outcome<PathBuf> {
    build(&["--release", "--package", "cli", "--bin", "zerohop"])?;
    Ok(workspace::target_folder().join("release/zerohop"))
}

/// A binary that carries planted bugs, out of the way of the others.
pub fn planted_binary() -> Outcome<PathBuf> {
    build(&["--profile", "checked", "--package", "cli", "--bin", "zerohop", "--features", PLANTED_FEATURES])?;
    keep_planted("checked", "zerohop")
}

/// Moved, not copied: nobody may find it where an ordinary build puts its own.
fn keep_planted(profile: &str, name: &str) -> Outcome<PathBuf> {
    let folder = workspace::tools_folder().join("planted");
    let kept = folder.join(name);
    std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::rename(workspace::target_folder().join(profile).join("zerohop"), &kept))
        .map_err(|error| format!("{}: {error}", kept.display()))?;
    Ok(kept)
}

/// The same as people get it but for the bugs, for measurements that compare what it does with what it does without a step.
pub fn planted_release_binary() -> Outcome<PathBuf> {
    build(&["--release", "--package", "cli", "--bin", "zerohop", "--features", PLANTED_FEATURES])?;
    keep_planted("release", "zerohop-release")
}

/// A campaign of `zerohop` with this seed; `planted` names the bug that it has to notice.
pub fn command(proof: &Path, zerohop: &Path, seed: u64, planted: Option<&str>) -> Command {
    proof_command("kill", (proof, zerohop), seed, planted)
}

/// A soak of `zerohop` on two cores in `interval`, of so many seconds.
pub fn soak_command(proof: &Path, zerohop: &Path, (seed, seconds): (u64, u64), planted: Option<&str>) -> Command {
    let mut command = proof_command("soak", (proof, zerohop), seed, planted);
    command.args(["--seconds", &seconds.to_string(), "--cores", "2", "--durability", "interval"]);
    command
}

/// What one of the tools that start `zerohop` themselves is called with.
pub fn proof_command(tool: &str, (proof, zerohop): (&Path, &Path), seed: u64, planted: Option<&str>) -> Command {
    let mut command = Command::new(proof);
    command.arg(tool).arg("--zerohop").arg(zerohop).args(["--seed", &seed.to_string()]);
    plant(&mut command, planted);
    command
}

/// Names the bug that the binary carries, if it carries one.
pub fn plant(command: &mut Command, planted: Option<&str>) {
    match planted {
        Some(bug) => command.env(PLANTED_VARIABLE, bug),
        None => command.env_remove(PLANTED_VARIABLE),
    };
}

fn build(arguments: &[&str]) -> Outcome<()> {
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--quiet"]).args(arguments);
    if process::shown(&mut cargo)? {
        Ok(())
    } else {
        Err("what the campaign needs does not build; see above".to_owned())
    }
}
