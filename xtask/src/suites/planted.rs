//! The suite that proves the others can fail: the one extra build that carries planted bugs (AT-01), each of which a
//! named test must catch.

use std::path::Path;
use std::process::Command;

use super::cargo_tests::cargo_test;
use super::{Company, Context, Counts, Suite, Turn};
use crate::{Outcome, kill, nemesis, workspace};

/// Crates of a cluster that no single node needs: their tests with planted bugs are a shard of their own.
const OF_CLUSTERS: [&str; 4] = ["consensus", "control", "manager", "replica"];
/// Crates around a whole shard, another one: all of the rest would be too long for one.
const OF_SHARDS: [&str; 3] = ["server", "shard", "sim"];

/// Tests of every crate that has the feature `planted`, but those of clusters and of shards.
pub const PLANTED: Suite = Suite {
    name: "planted",
    about: "planted bugs, each caught by a named test of the build that carries them; of crates in no other `planted-…`",
    needs: &[],
    budget_seconds: 240,
    turn: Turn::Shard("planted"),
    company: Company::SideBySide,
    run: |_| tests(|name| !OF_CLUSTERS.contains(&name) && !OF_SHARDS.contains(&name)),
};

/// Tests of the crates around a shard.
pub const PLANTED_SHARD: Suite = Suite {
    name: "planted-shard",
    about: "planted bugs of server, shard and simulator, each caught by a named test",
    needs: &[],
    budget_seconds: 240,
    turn: Turn::Shard("planted-shard"),
    company: Company::SideBySide,
    run: |_| tests(|name| OF_SHARDS.contains(&name)),
};

/// Tests of the crates of clusters.
pub const PLANTED_CLUSTER: Suite = Suite {
    name: "planted-cluster",
    about: "planted bugs of consensus, control, manager and replica, each caught by a named test",
    needs: &[],
    budget_seconds: 240,
    turn: Turn::Shard("planted-cluster"),
    company: Company::SideBySide,
    run: |_| tests(|name| OF_CLUSTERS.contains(&name)),
};

/// The campaigns with processes, each with a binary that carries a bug it must notice.
pub const PLANTED_PROCESSES: Suite = Suite {
    name: "planted-processes",
    about: "a binary with a planted bug, noticed by each of kill, damage, faults, soak, nemesis and overload",
    needs: &[],
    budget_seconds: 600,
    turn: Turn::Shard("losers"),
    company: Company::SideBySide,
    run: process_with_bug,
};

/// A bug that shows behind any kill -9, whatever the timing: the suite `kill` must notice it.
const BUG_OF_PROCESS: &str = "M7";
/// A bug that shows where closed logs are harmed: the suite `damage` must notice it.
const BUG_OF_DISK: &str = "M16";
/// A bug that takes one write more than the store cannot know of: the suite `damage` must notice it.
const BUG_OF_TAILS: &str = "M46";
/// A leak: a soak must notice it, however short.
const BUG_OF_LEAKS: &str = "M30";
/// 5,000 connections: 600 of them leak.
const SOAK_SECONDS: u64 = 10;

/// Bugs that show where a call below the binary fails: the suite `faults` must notice them, by cases with this in their name.
const BUGS_OF_FAULTS: [(&str, &str); 2] = [("M1", "sync of the log"), ("M10", "second round of runs")];
/// A bug that shows where the power fails before a call: trials of the part `crashes` must notice it.
const BUG_OF_CRASHES: &str = "M1";
const CRASHES: u64 = 60;
/// Bugs that show in what clients of a cluster are told, with the seed of a run: the suite `nemesis` must notice them.
const BUGS_OF_CLUSTERS: [(&str, u64); 2] = [("M2", 1), ("M6", 1)];

/// Runs until one of them has to notice a bug of a proxy.
const SEEDS_OF_PROXIES_MAX: u64 = 3;

fn process_with_bug(context: &Context) -> Outcome<Counts> {
    let (proof, zerohop) = (workspace::checked_program("proof")?, kill::planted_binary()?);
    let mut counts = super::kill::campaign(context, (&proof, &zerohop), 1, Some(BUG_OF_PROCESS))?;
    counts.add(super::damage::harm(context, (&proof, &zerohop), 1, Some(BUG_OF_DISK))?);
    let last_page = super::damage::LAST_PAGE_SEED;
    counts.add(super::damage::harm(context, (&proof, &zerohop), last_page, Some(BUG_OF_TAILS))?);
    let mut soak = kill::soak_command(&proof, &zerohop, (1, SOAK_SECONDS), Some(BUG_OF_LEAKS));
    counts.add(context.counted(&mut soak)?);
    for (bug, seed) in BUGS_OF_CLUSTERS {
        counts.add(super::nemesis::one(context, (&proof, &zerohop), seed, Some(bug))?);
    }
    for (bug, seed) in nemesis::BUGS_OF_PROXIES {
        counts.add(noticed_by_proxies(context, (&proof, &zerohop), (bug, seed))?);
    }
    counts.add(super::overload::caught(context, (&proof, &zerohop))?);
    for (bug, cases) in BUGS_OF_FAULTS {
        let mut command = Command::new(&proof);
        command.args(["faults", "errors", "--only", cases]);
        counts.add(super::faults::counted(context, command, ((&proof, &zerohop), 1, Some(bug)))?);
    }
    let mut command = Command::new(&proof);
    command.args(["faults", "crashes", "--trials", &CRASHES.to_string()]);
    counts.add(super::faults::counted(context, command, ((&proof, &zerohop), 1, Some(BUG_OF_CRASHES)))?);
    Ok(counts)
}

/// What a proxy does wrong with a write whose reply never came shows where that write was carried out: a run may have none.
fn noticed_by_proxies(context: &Context, programs: (&Path, &Path), (bug, seed): (&str, u64)) -> Outcome<Counts> {
    let mut counts = Counts::default();
    for seed in seed..seed + SEEDS_OF_PROXIES_MAX {
        let scene = nemesis::Scene::Proxies { seconds: super::nemesis::PLANTED_SECONDS };
        counts = super::nemesis::scene(context, programs, scene, (seed, Some(bug)))?;
        if counts.failed == 0 {
            break;
        }
    }
    Ok(counts)
}

fn tests(is_meant: impl Fn(&str) -> bool) -> Outcome<Counts> {
    let crates: Vec<String> = workspace::packages()?
        .into_iter()
        .filter(|package| package.features.contains_key("planted") && is_meant(&package.name))
        .map(|package| package.name)
        .collect();
    let mut arguments = vec!["--profile".to_owned(), "checked".to_owned()];
    for name in &crates {
        arguments.extend(["--package".to_owned(), name.clone(), "--features".to_owned(), format!("{name}/planted")]);
    }
    cargo_test(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
}
