//! The suite `power`: a machine that loses its power under load, a few rounds on one disk. `power-rest`, in a shard, goes on
//! with its seed, and `power-cluster` puts Redis that syncs once a second in its place, which has to be caught, and cuts a
//! cluster in the machine once: the fixed set has no time for that. Hundreds of rounds are a campaign: `cargo x campaign power`, with `--nodes 3` of a cluster.

use super::{Company, Context, Counts, Suite, Turn, commit_number};
use crate::power::{LOSER_ROUNDS, NODES, Subject};
use crate::{Outcome, kill, needs, power};

/// Rounds of the commit's seed in every run; a round starts a machine that is emulated, which takes seconds. The third is the
/// first of `interval`.
const ROUNDS: u64 = 3;
/// Rounds of that seed, and of the next one, in the shard: the first ones again, because each stands on those before.
const ROUNDS_OF_SHARD: u64 = 4;
/// And of a cluster: the first cut meets slots on their way.
const ROUNDS_OF_CLUSTER: u64 = 1;

/// Each round counts as one test.
pub const POWER: Suite = Suite {
    name: "power",
    about: "power cuts of a virtual machine whose disk loses what was not flushed",
    needs: &[&needs::QEMU, &needs::MKE2FS, &needs::GUEST],
    budget_seconds: 90,
    turn: Turn::Fixed,
    company: Company::SideBySide,
    run: |context| {
        let (zerohop, seed) = (context.zerohop()?, commit_number(&context.commit));
        campaigns(context, &[(Subject::Zerohop(&zerohop), 1, seed, ROUNDS)])
    },
};

/// The same with more time.
pub const POWER_REST: Suite = Suite {
    name: "power-rest",
    about: "more rounds of `power`, of two seeds",
    needs: &[&needs::QEMU, &needs::MKE2FS, &needs::GUEST],
    budget_seconds: 180,
    turn: Turn::Shard("disks"),
    company: Company::SideBySide,
    run: |context| {
        let (zerohop, seed) = (context.zerohop()?, commit_number(&context.commit));
        let ours = Subject::Zerohop(&zerohop);
        campaigns(context, &[(ours, 1, seed, ROUNDS_OF_SHARD), (ours, 1, seed + 1, ROUNDS_OF_SHARD)])
    },
};

/// Each round counts as one test, and so does the loser.
pub const POWER_CLUSTER: Suite = Suite {
    name: "power-cluster",
    about: "a power cut of a cluster in a virtual machine; Redis with everysec must be caught",
    needs: &[&needs::QEMU, &needs::MKE2FS, &needs::GUEST, &needs::REDIS],
    budget_seconds: 180,
    turn: Turn::Shard("power-cluster"),
    company: Company::SideBySide,
    run: |context| {
        let (zerohop, seed) = (context.zerohop()?, commit_number(&context.commit));
        let (ours, redis) = (Subject::Zerohop(&zerohop), Subject::Redis("everysec"));
        campaigns(context, &[(redis, 1, seed, LOSER_ROUNDS), (ours, NODES, seed, ROUNDS_OF_CLUSTER)])
    },
};

/// Each with its subject, its nodes, its seed and its rounds.
fn campaigns(context: &Context, all: &[(Subject<'_>, u64, u64, u64)]) -> Outcome<Counts> {
    let mut counts = Counts::default();
    for (subject, nodes, seed, rounds) in all {
        let mut command = power::cluster_command(subject, *nodes, *seed, None)?;
        counts.add(context.counted(command.args(["--rounds", &rounds.to_string()]))?);
    }
    Ok(counts)
}

/// What must be caught beside the one of `power-cluster`: a part of the harness each.
pub const POWER_LOSERS: Suite = Suite {
    name: "power-losers",
    about: "power cuts that must be noticed: a reply before its sync, Redis without syncs, a disk that nobody flushes",
    needs: &[&needs::QEMU, &needs::MKE2FS, &needs::GUEST, &needs::REDIS],
    budget_seconds: 300,
    turn: Turn::Shard("losers"),
    company: Company::SideBySide,
    run: lose,
};

/// A seed whose first cut takes what M1 acknowledged too early.
const PLANTED_SEED: u64 = 3;
/// The bug that a process which dies alone does not show.
const BUG_OF_MACHINE: &str = "M1";

fn lose(context: &Context) -> Outcome<Counts> {
    let (planted, zerohop) = (kill::planted_binary()?, context.zerohop()?);
    let losers = [
        (Subject::Zerohop(&planted), Some(BUG_OF_MACHINE)),
        (Subject::Redis("no"), None),
        (Subject::ZerohopUnflushed(&zerohop), None),
    ];
    let mut counts = Counts::default();
    for (subject, bug) in losers {
        let mut command = power::cluster_command(&subject, 1, PLANTED_SEED, bug)?;
        counts.add(context.counted(command.args(["--rounds", &LOSER_ROUNDS.to_string()]))?);
    }
    Ok(counts)
}
