//! The real binary killed under load, again and again on one data directory: nothing acknowledged is lost, nothing is
//! invented, units are whole.
//!
//! ```text
//!   plan      what a seed draws: cores, durability, backend, load, ending
//!   load      clients; maker, long: their requests; book, stripe: what they know; state: what a key holds
//!   round     start, judge, load, end, check        verdict: every key read back and held against the books
//!   campaign  the rounds, and the evidence of a wrong one        told: what the server says about itself
//! ```
//!
//! The moment of an end is drawn in acknowledged bytes and published runs; it still differs from run to run. The verdict does
//! not depend on it: what may be found follows from what was sent and what was acknowledged alone.

pub(crate) mod book;
mod campaign;
pub(crate) mod load;
mod long;
mod maker;
pub(crate) mod plan;
mod round;
mod state;
mod stripe;
pub(crate) mod told;
pub(crate) mod verdict;

pub use campaign::{Options, Verdict, run};
