//! Runs: all keys of one slot group as they were around one moment, in a file that replaces everything before it.
//!
//! ```text
//!            begin                      end
//!   log  ──────┼─────────────────────────┼──────────►        replay: before begin, skipped: the run has it
//!              │ slices of the group     │                           begin to end, by versions: the run may have it
//!   run        [■■■■■][■■■■][■■■■■■][end]                            behind end, everything
//! ```
//!
//! A run is written in slices while its group changes (a fuzzy checkpoint: ARIES, TODS 1992, section 5.4), so nothing is
//! copied first and no tick is long. Replay repairs it: what a key's version in the run covers already is skipped.
//!
//! - [`mod@format`]: the bytes
//! - [`writer`]: from a group to a run
//! - `cold`: values that are copied from the run before
//! - [`load`]: from runs to groups

mod cold;
pub mod format;
pub mod load;
pub mod writer;

pub use cold::Stretch;
pub use format::{Cut, RunEnd, RunHeader};
pub use load::Cuts;
pub use writer::{RunWriter, Slice};
