//! Ring 3: the chain. What the first of a chain sends to those behind it, what they make of it, and up to where the promise of
//! an acknowledgement holds.
//!
//! ```text
//!   first                                       follower
//!   log group ─► Lead: frames, backlog ──link──► Follow ─► store and log
//!   horizon  ◄── persisted            ◄────────  its own log's promise
//! ```
//!
//! - `compare`: what a follower has of a slot before it is filled
//! - [`copies`]: how many followers have what
//! - `forgotten`: slots that were swept here, which a first may count on
//! - `fresh`: what a follower may show to readers
//! - [`lead`]: the end of a link that sends
//! - [`follow`]: the end that takes
//! - `peer`: one connection, whole frames out of bytes
//! - [`links`]: all links of an instance
//! - `reads`: readers of copies
//! - [`standing`]: how the links stand
//! - [`wanted`]: what followers are to hold, and hold
//!
//! The design is docs/internals/cluster.md.

mod compare;
pub mod copies;
pub mod follow;
mod forgotten;
mod fresh;
mod lanes;
pub mod lead;
pub mod links;
mod pace;
mod peer;
#[cfg(test)]
mod places;
mod reads;
pub mod standing;
pub mod wanted;

pub use copies::Depth;
pub use links::Links;
pub use standing::{Fills, FollowStanding, LeadStanding};
pub use wanted::Held;
