//! The suite `faults`: I/O errors below the binary, any call of its life failing, and a disk that fills and is freed.

use std::path::Path;
use std::process::Command;

use super::{Context, Counts, Suite, Turn, commit_number};
use crate::{Outcome, kill, needs, process, workspace};

/// The seed that every commit is asked; with it a run's end fails while others settle with it.
const FIXED_SEED: u64 = 1;
/// Trials of one seed.
const TRIALS: u64 = 30;
/// Cases of the part that needs a disk of its own, for the count of what is not tested.
const DISK_CASES: usize = 30;
/// Ways to a place where a file system may be mounted: as nobody, where the kernel allows it, or as root.
const NAMESPACES: [&[&str]; 2] = [&["--map-root-user", "--mount"], &["--mount"]];

/// Each case counts as one test.
pub const FAULTS: Suite = Suite {
    name: "faults",
    about: "EIO, ENOSPC, short writes and failing syncs below the binary, and a disk that fills: nothing lost, refused by name, no restart",
    needs: &[&needs::COMPILER],
    budget_seconds: 240,
    turn: Turn::Fixed,
    run,
};

fn run(context: &Context) -> Outcome<Counts> {
    let (proof, zerohop) = (workspace::checked_program("proof")?, context.zerohop()?);
    let tools = (&*proof, &*zerohop);
    let mut command = Command::new(&proof);
    command.args(["faults", "errors"]);
    let mut counts = counted(context, command, (tools, FIXED_SEED, None))?;
    for seed in [FIXED_SEED, commit_number(&context.commit)] {
        let mut command = Command::new(&proof);
        command.args(["faults", "calls", "--trials", &TRIALS.to_string()]);
        counts.add(counted(context, command, (tools, seed, None))?);
    }
    let Some(namespace) = NAMESPACES.into_iter().find(|namespace| may_mount(namespace)) else {
        println!(
            "  NOT TESTED: no file system may be mounted here, so no disk fills (unshare --map-root-user --mount)"
        );
        counts.add(Counts { skipped: DISK_CASES, ..Counts::default() });
        return Ok(counts);
    };
    let mut command = Command::new("unshare");
    command.args(namespace).arg("--").arg(&proof).args(["faults", "full-disk"]);
    counts.add(counted(context, command, (tools, FIXED_SEED, None))?);
    Ok(counts)
}

fn may_mount(namespace: &[&str]) -> bool {
    let mut command = Command::new("unshare");
    command.args(namespace).args(["--", "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", "/tmp"]);
    command.output().is_ok_and(|output| output.status.success())
}

/// A command of `proof faults`; with a planted bug it is one test, that some case is wrong.
pub(super) fn counted(
    context: &Context,
    mut command: Command,
    ((_, zerohop), seed, planted): ((&Path, &Path), u64, Option<&str>),
) -> Outcome<Counts> {
    command.arg("--zerohop").arg(zerohop).args(["--seed", &seed.to_string()]);
    kill::plant(&mut command, planted);
    println!("  again: {}", process::describe(&command));
    context.counted(&mut command)
}
