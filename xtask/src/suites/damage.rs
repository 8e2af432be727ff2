//! The suite `damage`: copies of a store harmed file by file, for fixed seeds and for one of the commit.

use std::path::Path;

use super::{Company, Context, Counts, Suite, Turn, commit_number};
use crate::{Outcome, kill, process, workspace};

/// The seeds that every commit is asked: any, and one that zeroes the last page of the log, with all that told of fifteen
/// acknowledged writes.
const FIXED_SEEDS: [u64; 2] = [8, LAST_PAGE_SEED];

/// A seed with a case that the store cannot know, so that the border of that is judged.
pub(super) const LAST_PAGE_SEED: u64 = 148_610_044_219_335;

/// Each harmed directory counts as one test.
pub const DAMAGE: Suite = Suite {
    name: "damage",
    about: "bits flipped, pages zeroed, files cut, emptied, removed, swapped, replaced by older ones: all that was acknowledged, or a refusal",
    needs: &[],
    budget_seconds: 60,
    turn: Turn::Fixed,
    company: Company::SideBySide,
    run: |context| {
        let (proof, zerohop) = (workspace::checked_program("proof")?, context.zerohop()?);
        let mut counts = Counts::default();
        for seed in FIXED_SEEDS.into_iter().chain([commit_number(&context.commit)]) {
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
