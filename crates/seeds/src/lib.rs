//! Ring 4: what tests of whole worlds have in common, each of which a seed draws.
//!
//! - [`trace`]: everything that happened, as text
//! - [`mod@coverage`]: what runs met, counted by name
//! - [`runner`]: worlds by the hundred, each run twice and compared
//!
//! The worlds themselves are in the tests of `consensus` and `manager`. The simulator, which is a program, has its own.

pub mod coverage;
pub mod runner;
pub mod trace;

pub use coverage::Counts;
pub use runner::{Verdict, Wish, keep_every_promise, many, number, once, twice};
pub use trace::Trace;
