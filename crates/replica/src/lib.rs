//! Ring 3: the chain. What the first of a chain sends to those behind it, what they make of it, and up to where the promise of
//! an acknowledgement holds.
//!
//! ```text
//!   first                                       follower
//!   log group ─► Lead: frames, backlog ──link──► Follow ─► store and log
//!   horizon  ◄── persisted            ◄────────  its own log's promise
//! ```
//!
//! - [`lead`]: the end of a link that sends
//! - [`follow`]: the end that takes
//! - `peer`: one connection, whole frames out of bytes
//! - [`links`]: all links of an instance
//! - [`wanted`]: what followers are to hold, and hold
//!
//! The design is docs/internals/cluster.md.

pub mod follow;
pub mod lead;
pub mod links;
mod peer;
pub mod wanted;

pub use links::Links;
pub use wanted::Held;
