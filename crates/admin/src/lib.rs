//! Ring 4: what operators' programs read of a node. One machine beside the cores, on a street of its own.
//!
//! ```text
//!  collector ─► http ─► admin ─► round: a question to every core, and to the manager ─► hops
//!                         │                        their answers, or a second without ─► Sample
//!                         ├─► registry ─► exposition        /metrics
//!                         └─► health                        /healthz, /livez
//!  docs/metrics.md ◄─ reference ◄─ registry
//! ```
//!
//! `port`, `http` and `exposition` know nothing of nodes: the proxy serves its own numbers by them.
//!
//! It does nothing itself: time, bytes and answers come in with a tick, effects and hops go out. The design is
//! docs/internals/metrics.md.

mod admin;
pub mod exposition;
mod health;
pub mod http;
pub mod port;
pub mod reference;
pub mod registry;
#[cfg(test)]
mod rig;
mod round;
pub mod sample;

pub use admin::{Admin, Start};
