//! The suite `power`: a machine that loses its power under load, a few rounds on one disk. `power-rest`, in a shard, goes on
//! with its seed, and puts Redis that syncs once a second in its place, which has to be caught. Hundreds of rounds are a
//! campaign: `cargo x campaign power`.

use super::{Context, Counts, Suite, Turn, commit_number};
use crate::power::{LOSER_ROUNDS, Subject};
use crate::{Outcome, kill, needs, power};

/// Rounds of the commit's seed in every run; a round starts a machine that is emulated, which takes seconds. The third is the
/// first of `interval`.
const ROUNDS: u64 = 3;
/// Rounds of that seed, and of the next one, in the shard: the first ones again, because each stands on those before.
const ROUNDS_OF_SHARD: u64 = 4;

/// Each round counts as one test.
pub const POWER: Suite = Suite {
    name: "power",
    about: "power cuts of a virtual machine whose disk loses what was not flushed",
    needs: &[&needs::QEMU, &needs::MKE2FS, &needs::GUEST],
    budget_seconds: 90,
    turn: Turn::Fixed,
    run: |context| {
        let zerohop = context.zerohop()?;
        campaigns(context, &[(Subject::Zerohop(&zerohop), commit_number(&context.commit), ROUNDS)])
    },
};

/// Each round counts as one test, and so does the loser.
pub const POWER_REST: Suite = Suite {
    name: "power-rest",
    about: "more rounds of `power`, of two seeds; Redis with everysec must be caught",
    needs: &[&needs::QEMU, &needs::MKE2FS, &needs::GUEST, &needs::REDIS],
    budget_seconds: 180,
    turn: Turn::Shard("disks"),
    run: |context| {
        let (zerohop, seed) = (context.zerohop()?, commit_number(&context.commit));
        let ours = |seed| (Subject::Zerohop(&zerohop), seed, ROUNDS_OF_SHARD);
        campaigns(context, &[ours(seed), ours(seed + 1), (Subject::Redis("everysec"), seed, LOSER_ROUNDS)])
    },
};

/// Each with its subject, its seed and its rounds.
fn campaigns(context: &Context, all: &[(Subject<'_>, u64, u64)]) -> Outcome<Counts> {
    let mut counts = Counts::default();
    for (subject, seed, rounds) in all {
        let mut command = power::command(subject, *seed, None)?;
        counts.add(context.counted(command.args(["--rounds", &rounds.to_string()]))?);
    }
    Ok(counts)
}

/// What must be caught beside the one of `power-rest`: a part of the harness each.
pub const POWER_LOSERS: Suite = Suite {
    name: "power-losers",
    about: "power cuts that must be noticed: a reply before its sync, Redis without syncs, a disk that nobody flushes",
    needs: &[&needs::QEMU, &needs::MKE2FS, &needs::GUEST, &needs::REDIS],
    budget_seconds: 300,
    turn: Turn::Shard("losers"),
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
        let mut command = power::command(&subject, PLANTED_SEED, bug)?;
        counts.add(context.counted(command.args(["--rounds", &LOSER_ROUNDS.to_string()]))?);
    }
    Ok(counts)
}
