//! The suite of the fuzzer: the repository's inputs, and then a fixed number of new ones, drawn by the commit.

use super::{Company, Context, Counts, Suite, Turn};
use crate::fuzz::{self, Bound, CXX, Session, TARGETS};
use crate::{Outcome, needs};

/// Targets that run at a time.
const AT_ONCE: usize = 2;

/// Each target counts as one test.
pub const FUZZ: Suite = Suite {
    name: "fuzz",
    about: "every decoder under libFuzzer with AddressSanitizer: the kept inputs, then new ones drawn by the commit",
    // The C++ compiler is asked for below: without it this suite fails instead of being skipped.
    needs: &[],
    budget_seconds: 240,
    turn: Turn::Shard("fuzz"),
    company: Company::SideBySide,
    run,
};

fn run(context: &Context) -> Outcome<Counts> {
    if context.may_install && !CXX.is_met() {
        needs::install(&[&CXX])?;
    }
    let program = fuzz::build(false)?;
    let seed = u32::from_str_radix(context.commit.get(..8).unwrap_or("1"), 16).unwrap_or(1);
    println!("seed {seed}, from the commit");
    let bound = |runs| Bound::Runs { runs, seed };
    let sessions: Vec<Session> =
        TARGETS.iter().map(|target| Session::new(target, bound(target.gate_runs), 0)).collect();
    let tallies = fuzz::run_all(&program, &sessions, AT_ONCE)?;
    let failed = fuzz::report(&tallies);
    Ok(Counts { passed: tallies.len() - failed, failed, skipped: 0 })
}
