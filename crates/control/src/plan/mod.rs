//! Plans: what the table should be asked for. Pure functions of one table, each a list of actions that carry its version, so that
//! an action that was overtaken is refused and the next plan is made of the table as it is then.
//!
//! - [`join`], [`rebalance`], [`drain`]: slots move to where they are missing ([`mover`])
//! - [`replacements`], [`fill_up`], [`mend`]: chains get the members that they lack ([`filler`]); [`trim`]: and lose surplus ones
//! - [`violations`]: what is not as it should be, for `status`
//!
//! A `Replace` whose `counted` is set is not proposed by who planned it: it goes to the first of the chain, which proposes it
//! when it waits for whoever would take over.

mod chains;
mod filler;
mod loads;
mod mover;
mod violations;

pub use chains::{fill_up, mend, replacements, trim};
pub use mover::{drain, join, rebalance};
pub use violations::{Violation, violations};
