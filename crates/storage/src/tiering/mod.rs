//! Values that are in a run and not in memory (`docs/internals/tiering.md`).
//!
//! ```text
//!  dirty ── run published: the walk noted where ──► clean ── memory presses ──► cold
//!    ▲                                                ▲                           │
//!    └── any change of the key                        └──── read and verified ────┘
//! ```
//!
//! - `place`: where a run has a value, in five bytes of its record
//! - `count`: how many values are in which state
//! - `note`: places of a run that is being written
//! - `cold`: what has to be read, and whether what was read is it

pub(crate) mod cold;
mod count;
mod note;
mod place;

pub use cold::{ColdValue, NotIt};

pub(crate) use count::Tally;
pub(crate) use note::Note;
pub use place::Place;
pub(crate) use place::{OFFSET_MAX, PLACE_BYTES};

/// Shortest value that may go cold, bytes: a shorter one is hardly longer than its place and the slot's rounding.
pub const COLD_VALUE_BYTES_MIN: usize = 32;

#[cfg(test)]
mod tests;
