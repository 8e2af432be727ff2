//! Ring 3: commands. Parse arguments, plan, execute: one file per command family.
//!
//! ```text
//!  request ──► execute ──► handler: parse everything, check everything ──► Store::apply (cannot be refused halfway)
//!                             │                                               │
//!                             └──────────── error reply ◄── Failure           └──► reply
//! ```
//!
//! - [`mod@unit`]: what one command may touch, and what it may ask for (to block)
//! - `long`: values that came in blocks
//! - `dispatch`: from a command's id to its handler
//! - `ahead`: keys of commands that have many
//! - `arguments`, `failure`: numbers and options as Redis reads them, and how a command is refused
//! - `strings`, `bits`, `keyspace`, `object`, `expiry`, `lists`, `own`: the families
//! - [`scan`]: what the shard needs for the commands that visit every core

mod ahead;
mod arguments;
mod bits;
mod dispatch;
mod dump;
mod expiry;
mod failure;
mod keyspace;
mod lists;
mod long;
mod object;
mod own;
pub mod scan;
mod strings;
pub mod unit;
mod values;

#[cfg(test)]
mod harness;
#[cfg(test)]
mod keyspace_tests;
#[cfg(test)]
mod own_tests;
#[cfg(test)]
mod property_tests;

pub use dispatch::{execute, resume, resume_on, timed_out};
pub use long::{KEPT, LongArgument, ToStage, key_of_long, may_stage, skip_of_long, takes_long};
pub use unit::{Block, May, Outcome, Reason, Refused, Unit};
