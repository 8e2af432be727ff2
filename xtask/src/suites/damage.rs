//! The suite `damage`: copies of a store harmed file by file, for a fixed seed and for one of the commit.

use std::path::Path;

use super::{Context, Counts, Suite, Turn, commit_number};
use crate::{Outcome, kill, process, workspace};

/// The seed that every commit is asked.
const FIXED_SEED: u64 = 8;

/// Each harmed directory counts as one test.
pub const DAMAGE: Suite = Suite {
    name: "damage",
    about: "bits flipped, pages zeroed, files cut, emptied, removed, swapped, replaced by older ones: all that was acknowledged, or a refusal",
    needs: &[],
    budget_seconds: 60,
    turn: Turn::Fixed,
    run: |context| {
        let (proof, zerohop) = (workspace::checked_program("proof")?, context.zerohop()?);
        let mut counts = Counts::default();
        for seed in [FIXED_SEED, commit_number(&context.commit)] {
            counts.add(harm(context, (&proof, &zerohop), seed, None)?);
        }
        Ok(counts)
    },
};

/// One store; with a planted bug it is one test.
pub(super) fn harm(
    context: &Context,
    (proof, zerohop): (&Path, &Path),
    seed: u64,
    planted: Option<&str>,
) -> Outcome<Counts> {
    let mut command = kill::proof_command("damage", (proof, zerohop), seed, planted);
    println!("  again: {}", process::describe(&command));
    context.counted(&mut command)
}
