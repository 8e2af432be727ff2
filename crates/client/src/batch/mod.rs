//! When requests that wait for one destination are sent: one batcher, five policies, deadlines beside all of them.
//!
//! ```text
//!            ┌───────────────── Batcher (one per destination) ─────────────────┐
//!  push ────►│ split ─┬─► relaxed bucket ── policy: when? ──┐                  │
//!   (qos)    │        │        ▲ first, where order asks    ├─► due: one write │──► upstream
//!            │        └─► urgent bucket ── deadline: when? ─┘                  │
//!            │  deadline − estimate ◄── latency model, tuner ◄── answered      │◄── last reply
//!            └─────────────────────────────────────────────────────────────────┘
//! ```
//!
//! A batch is a whole bucket, or both: encoded requests one after the other, as they go on the wire. The server sees a
//! pipelined write and nothing else. What is promised by each policy is in `docs/internals/batching.md`.

mod answer;
mod batcher;
mod bucket;
mod callers;
pub mod collapse;
mod config;
mod edf;
mod fixed;
mod immediate;
mod in_flight;
mod latency_model;
mod policy;
mod qos;
mod restraint;
mod self_clocked;
mod split;
mod standing;
mod stout;
mod tuner;

pub use answer::{Batch, BatchAnswer, BatchOutcome, BatchTicket};
pub use batcher::{Batcher, Refused};
pub use config::{
    BatchBounds, BatcherConfig, EdfConfig, FixedConfig, LatencyPrior, PolicyConfig, StoutConfig, TunerConfig,
};
pub use latency_model::LatencyModel;
pub use qos::Qos;
