//! The suites `faults` and `faults-rest`: I/O errors below the binary, any call of its life failing, the power failing before any
//! call, and a disk that fills and is freed. A third of each in every run, the others in a shard; every case is in one of them.

use std::path::Path;
use std::process::Command;

use super::{Company, Context, Counts, Suite, Turn, commit_number};
use crate::{Outcome, kill, needs, process, workspace};

/// The seed that every commit is asked; with it a run's end fails while others settle with it.
const FIXED_SEED: u64 = 1;
/// Trials of one seed.
const TRIALS: u64 = 30;
/// Power cuts of one seed: two of these are the sample of AT-06.
const CRASHES: u64 = 150;
/// The third of every run, as `proof faults` numbers them.
const FIXED_THIRD: &str = "0";
/// The thirds of the shard.
const OTHER_THIRDS: &str = "1,2";
const ALL_THIRDS: &str = "0,1,2";
/// Cases of the part that needs a disk of its own, for the count of what is not tested: of one third.
const DISK_CASES: usize = 10;
/// Ways to a place where a file system may be mounted: as nobody, where the kernel allows it, or as root.
const NAMESPACES: [&[&str]; 2] = [&["--map-root-user", "--mount"], &["--mount"]];

/// Each case counts as one test.
pub const FAULTS: Suite = Suite {
    name: "faults",
    about: "EIO, ENOSPC, short writes and failing syncs below the binary, its end and the power's before any call, and a disk that fills: nothing lost, refused by name, no restart",
    needs: &[&needs::COMPILER],
    budget_seconds: 115,
    turn: Turn::Fixed,
    company: Company::SideBySide,
    run: |context| run(context, FIXED_THIRD),
};

/// The cases that a run of every commit has no time for.
pub const FAULTS_REST: Suite = Suite {
    name: "faults-rest",
    about: "the other two thirds of the cases of `faults`",
    needs: &[&needs::COMPILER],
    budget_seconds: 300,
    turn: Turn::Shard("disks"),
    company: Company::SideBySide,
    run: |context| run(context, OTHER_THIRDS),
};

fn run(context: &Context, thirds: &str) -> Outcome<Counts> {
    let (proof, zerohop) = (workspace::checked_program("proof")?, context.zerohop()?);
    let tools = (&*proof, &*zerohop);
    let mut command = Command::new(&proof);
    command.args(["faults", "errors", "--thirds", thirds]);
    let mut counts = counted(context, command, (tools, FIXED_SEED, None))?;
    for seed in [FIXED_SEED, commit_number(&context.commit)] {
        let mut command = Command::new(&proof);
        command.args(["faults", "calls", "--thirds", thirds, "--trials", &TRIALS.to_string()]);
        counts.add(counted(context, command, (tools, seed, None))?);
    }
    counts.add(crashes(context, tools, thirds)?);
    let Some(namespace) = NAMESPACES.into_iter().find(|namespace| may_mount(namespace)) else {
        println!(
            "  NOT TESTED: no file system may be mounted here, so no disk fills (unshare --map-root-user --mount)"
        );
        counts.add(Counts { skipped: DISK_CASES * thirds.split(',').count(), ..Counts::default() });
        return Ok(counts);
    };
    let mut command = Command::new("unshare");
    command.args(namespace).arg("--").arg(&proof).args(["faults", "full-disk", "--thirds", thirds]);
    counts.add(counted(context, command, (tools, FIXED_SEED, None))?);
    Ok(counts)
}

/// The commit's seed, and in the shard the fixed one, too, whole.
fn crashes(context: &Context, tools: (&Path, &Path), thirds: &str) -> Outcome<Counts> {
    let fixed = (thirds == OTHER_THIRDS).then_some((FIXED_SEED, ALL_THIRDS));
    let mut counts = Counts::default();
    for (seed, thirds) in [(commit_number(&context.commit), thirds)].into_iter().chain(fixed) {
        let mut command = Command::new(tools.0);
        command.args(["faults", "crashes", "--thirds", thirds, "--trials", &CRASHES.to_string()]);
        counts.add(counted(context, command, (tools, seed, None))?);
    }
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

#[cfg(test)]
mod tests {
    use super::{ALL_THIRDS, FIXED_THIRD, OTHER_THIRDS};

    #[test]
    fn every_third_is_in_every_run_or_in_the_shard() {
        assert_eq!(format!("{FIXED_THIRD},{OTHER_THIRDS}"), ALL_THIRDS);
    }
}
