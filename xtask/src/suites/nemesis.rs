//! The suite `nemesis`: real nodes as one cluster that are killed, stopped, cut off and slowed while clients write and slots move, for a
//! fixed seed, and for one of the commit with proxies before some of the clients; the histories judged twice. Hours of it are a campaign: `cargo x campaign nemesis`.

use std::path::{Path, PathBuf};

use super::{Company, Context, Counts, Suite, Turn, commit_number};
use crate::nemesis::Scene;
use crate::{Outcome, needs, nemesis, process, workspace};

/// The seed that every commit is asked.
const FIXED_SEED: u64 = 1;
/// Seconds of faults of one seed.
const SECONDS: u64 = 16;

/// The same where a bug has to be noticed.
pub(super) const PLANTED_SECONDS: u64 = 40;
/// A lease that machines bear which do much else; the campaign has shorter ones.
const LEASE_MS: u64 = 700;

/// Each check of a run counts as one test, and each history that is judged again.
pub const NEMESIS: Suite = Suite {
    name: "nemesis",
    about: "three real nodes killed, stopped, cut off and slowed under 20 clients while slots move, and once under twelve more behind two proxies: nothing lost, twice or read too late",
    needs: &[],
    budget_seconds: 140,
    turn: Turn::Fixed,
    company: Company::SideBySide,
    run,
};

fn run(context: &Context) -> Outcome<Counts> {
    if context.may_install {
        nemesis::install_needs()?;
    }
    let (proof, zerohop) = (workspace::checked_program("proof")?, context.zerohop()?);
    let mut counts = one(context, (&proof, &zerohop), FIXED_SEED, None)?;
    let of_commit = commit_number(&context.commit);
    counts.add(scene(context, (&proof, &zerohop), PROXIES, (of_commit, None))?);
    counts.add(recheck(context, &[nemesis::folder(FIXED_SEED), PROXIES.folder(of_commit)])?);
    Ok(counts)
}

/// A run of one seed with something else than faults alone; with a planted bug it is one test.
pub(super) fn scene(
    context: &Context,
    programs: (&Path, &Path),
    scene: Scene,
    (seed, planted): (u64, Option<&str>),
) -> Outcome<Counts> {
    let mut command = scene.command(programs, seed, planted)?;
    command.args(["--lease-ms", &LEASE_MS.to_string()]);
    println!("  again: {}", process::describe(&command));
    context.counted(&mut command)
}

/// A run of one seed; with a planted bug it is one test.
pub(super) fn one(
    context: &Context,
    (proof, zerohop): (&Path, &Path),
    seed: u64,
    planted: Option<&str>,
) -> Outcome<Counts> {
    let seconds = if planted.is_some() { PLANTED_SECONDS } else { SECONDS };
    let mut command = nemesis::command((proof, zerohop), seed, seconds, planted);
    command.args(["--lease-ms", &LEASE_MS.to_string()]);
    println!("  again: {}", process::describe(&command));
    context.counted(&mut command)
}

/// Slots to and fro under load, and processes that are not what they say: for every commit of their shard.
pub const NEMESIS_SCENES: Suite = Suite {
    name: "nemesis-scenes",
    about: "slots to and fro under load with a long value and a crowded slot while ends of the move are killed; processes that are not what they say; clients that ask through proxies and the library",
    needs: &[],
    budget_seconds: 300,
    turn: Turn::Shard("scenes"),
    company: Company::SideBySide,
    run: run_scenes,
};

/// A part of AT-07: the whole of it is in the campaign.
const FIRE: Scene = Scene::Fire { rounds: 5, long_mib: 8, many_keys: 20_000 };
const PROXIES: Scene = Scene::Proxies { seconds: SECONDS };
const LIBRARY: Scene = Scene::ProxiesAndLibrary { seconds: SECONDS };

fn run_scenes(context: &Context) -> Outcome<Counts> {
    if context.may_install {
        nemesis::install_needs()?;
    }
    let (proof, zerohop) = (workspace::checked_program("proof")?, context.zerohop()?);
    let mut counts = Counts::default();
    for one in [Scene::Strangers, FIRE, LIBRARY] {
        counts.add(scene(context, (&proof, &zerohop), one, (FIXED_SEED, None))?);
    }
    counts.add(recheck(context, &[LIBRARY.folder(FIXED_SEED)])?);
    Ok(counts)
}

/// The same histories by another program in another language.
fn recheck(context: &Context, folders: &[PathBuf]) -> Outcome<Counts> {
    if !needs::PYTHON.is_met() {
        println!("  NOT TESTED: the histories are not judged again without Python");
        return Ok(Counts { skipped: folders.len(), ..Counts::default() });
    }
    let mut command = context.command(needs::PYTHON.program);
    command.arg(nemesis::RECHECK).args(folders);
    context.counted(&mut command)
}
