//! The load generator: many connections, few threads, and as little work per request as a kernel allows, because it has
//! one core and the server it measures has the other.
//!
//! ```text
//!  plan ─► generator thread (one epoll loop)                                  ┌─► report (people, JSON)
//!            key, operation ─► request bytes ─► connection ─► server          │
//!            latency ◄─ scanner ◄─ reply bytes ◄──────────────┘   server's CPU┘
//! ```
//!
//! **Closed loop** (the default): every connection keeps `pipeline` requests outstanding, and sends the next when a
//! reply arrives. It finds the cost of a request and the highest throughput; its latencies flatter a slow server,
//! because a client that waits does not send.
//!
//! **Open loop** (`rate`): requests have intended start times, drawn before anything happens, and latency counts from
//! the intended time even when no connection was free to send (coordinated omission; Gil Tene, 2013).

pub mod connection;
pub mod control;
pub mod dial;
pub mod generator;
pub mod keys;
pub mod measure;
pub mod plan;
pub mod preload;
mod problem;
pub mod process;
pub mod report;
pub mod request;
pub mod route;
pub mod run;
pub mod scan;
pub mod zipf;

pub use plan::LoadPlan;
pub use report::Report;
pub use run::{pin, run};
