//! The simulator's tests. The build with planted bugs runs nothing else: a planted bug is one for the whole process.

#![allow(clippy::unwrap_used)]

mod toy;

#[cfg(not(feature = "planted"))]
mod checkers;
#[cfg(not(feature = "planted"))]
mod lists;
#[cfg(not(feature = "planted"))]
mod named_files;
#[cfg(not(feature = "planted"))]
mod on_shard;
#[cfg(not(feature = "planted"))]
mod on_toy;
#[cfg(feature = "planted")]
mod planted;
#[cfg(feature = "planted")]
mod planted_towns;
#[cfg(not(feature = "planted"))]
mod towns;
