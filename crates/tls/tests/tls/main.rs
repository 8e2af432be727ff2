//! The layer between a street and a machine that are both of this test: no socket, no clock, every byte where we want it.
#![allow(clippy::unwrap_used)]

mod certificates;
mod conversation;
mod dials;
mod endings;
mod files;
mod rig;
