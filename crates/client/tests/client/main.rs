//! Integration tests of `client`: the batcher and the desk under random schedules, collapsing under a history checker, and the laboratory that
//! measures policies on a virtual clock.
#![allow(clippy::unwrap_used, clippy::disallowed_types)]

mod batcher;
mod collapse;
mod desk;
mod history;
mod lab;
mod restraint;
