//! Plans: what the table should be asked for. Pure functions of one table, each a list of actions that carry its version, so that
//! an action that was overtaken is refused and the next plan is made of the table as it is then.
//!
//! - [`join`], [`share_out`], [`rebalance`], [`drain`]: slots move to where they are missing ([`mover`])
//! - [`replacements`], [`detachment`], [`fill_up`], [`mend`]: chains get the members that they lack ([`filler`]); [`trim`]: and lose surplus ones;
//!   [`spread`]: copies go to where they are missing
//! - [`violations`]: what is not as it should be, for `status`
//!
//! A `Replace` whose `counted` is set is not proposed by who planned it: it goes to the first of the chain, which proposes it
//! when it waits for whoever would take over.

/// Who lacks less than this part of its share is left as it is: a balance that is never quite reached would move for ever.
const TOLERATED: u32 = 8;

mod chains;
mod filler;
mod loads;
mod mover;
mod violations;

pub use chains::{detachment, fill_up, is_settled, mend, replacements, spread, trim, with_members};
pub use mover::{drain, join, rebalance, share_out};
pub use violations::{Violation, violations};
