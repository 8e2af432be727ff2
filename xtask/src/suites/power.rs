//! The suite `power`: a machine that loses its power under load, a few rounds on one disk, and Redis that syncs once a second
//! in its place, which has to be caught. Hundreds of rounds are a campaign: `cargo x campaign power`.

use super::{Context, Counts, Suite, Turn, commit_number};
use crate::power::{LOSER_ROUNDS, Subject};
use crate::{Outcome, kill, needs, power};

/// Rounds of the commit's seed; a round starts a machine that is emulated, which takes seconds.
const ROUNDS: u64 = 4;

/// Each round counts as one test, and so does the loser.
pub const POWER: Suite = Suite {
    name: "power",
    about: "power cuts of a virtual machine whose disk loses what was not flushed; Redis with everysec must be caught",
    needs: &[&needs::QEMU, &needs::MKE2FS, &needs::GUEST, &needs::REDIS],
    budget_seconds: 120,
    turn: Turn::Fixed,
    run,
};

fn run(context: &Context) -> Outcome<Counts> {
    let (zerohop, seed) = (context.zerohop()?, commit_number(&context.commit));
    let mut counts = Counts::default();
    for (subject, rounds) in [(Subject::Zerohop(&zerohop), ROUNDS), (Subject::Redis("everysec"), LOSER_ROUNDS)] {
        let mut command = power::command(&subject, seed, None)?;
        counts.add(context.counted(command.args(["--rounds", &rounds.to_string()]))?);
    }
    Ok(counts)
}

/// What must be caught, beside the gate's one: a part of the harness each.
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
