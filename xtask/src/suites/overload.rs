//! The suite `overload`: the proxy with real processes before a store that is asked for more than it can.

use std::path::Path;

use super::outside::BACKENDS;
use super::{Company, Context, Counts, Suite, Turn, commit_number};
use crate::{Outcome, kill, process, workspace};

/// The scenes of AT-15, AT-16 and AT-25, on the backend that the commit chooses: both in every run would be over the budget.
pub const OVERLOAD: Suite = Suite {
    name: "overload",
    about: "tenants with weights and quiet ones beside a loud one, five times too many requests and a store that stands still, a hot key, values of 16 MiB beside small requests: through the proxy",
    needs: &[],
    budget_seconds: 40,
    turn: Turn::Fixed,
    company: Company::Alone,
    run: |context| {
        let (proof, zerohop) = (workspace::checked_program("proof")?, context.zerohop()?);
        let number = commit_number(&context.commit);
        scenes(context, (&proof, &zerohop), (number, BACKENDS[usize::from(number % 2 == 1)]))
    },
};

fn scenes(context: &Context, programs: (&Path, &Path), (seed, backend): (u64, &str)) -> Outcome<Counts> {
    let mut command = kill::proof_command("overload", programs, seed, None);
    command.args(["--io", backend]);
    println!("  again: {}", process::describe(&command));
    context.counted(&mut command)
}

/// Bugs of a proxy, each with the scene that must notice it.
const BUGS: [(&str, &str); 5] =
    [("M70", "tenants"), ("M71", "flood"), ("M72", "flood"), ("M73", "long-value"), ("M14", "hot-key")];

/// With a binary that carries planted bugs: each of them is one test.
pub(super) fn caught(context: &Context, programs: (&Path, &Path)) -> Outcome<Counts> {
    let mut counts = Counts::default();
    for (bug, scene) in BUGS {
        let mut command = kill::proof_command("overload", programs, 1, Some(bug));
        command.args(["--scene", scene]);
        counts.add(context.counted(&mut command)?);
    }
    Ok(counts)
}
