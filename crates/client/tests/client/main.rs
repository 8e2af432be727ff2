//! Integration tests of `client`: the batcher under random schedules, collapsing under a history checker.
#![allow(clippy::unwrap_used, clippy::disallowed_types)]

mod batcher;
mod collapse;
mod history;
