//! Ring 3: one core's machine. Composes session, commands and storage into the tick.
//!
//! ```text
//!  events ─► receive ─► decode ─► route ─► execute ─► append ─► commit ─► reply ─► effects
//!            (receive)  (serve)   (route)  (run)      (commit: three stages)
//!                                    │
//!                                    ├─ another core ─────► hop
//!                                    ├─ another node ─────► foreign       MOVED; member: links carry what is logged
//!                                    ├─ a copy will do ───► copy_reads
//!                                    ├─ several cores ────► unit      lends slot groups
//!                                    ├─ every core's facts ► gather, answer
//!                                    ├─ every core's keys ► each_core     in a cluster, where nobody lends
//!                                    ├─ who may do what ──► access
//!                                    ├─ about to move ────► seal
//!                                    ├─ not now ──────────► waiters
//!                                    ├─ other nodes first ► copies
//!                                    ├─ the disk first ───► pace
//!                                    └─ the next tick ────► put_off
//! ```
//!
//! It never reads a clock, a socket or a file: what it knows it was told in [`base::TickInput`], what it wants stands in
//! [`base::TickOutput`].

pub mod access;
mod answer;
pub mod beside;
mod calls;
pub mod checkpoint;
pub mod claims;
pub mod commit;
mod company;
pub mod connection;
pub mod copies;
mod copy_reads;
mod crowd;
pub mod deliver;
pub mod each_core;
mod exec;
mod execute;
mod expected;
pub mod fetch;
mod foreign;
mod forward;
pub mod gather;
pub mod hop;
pub mod keyspace;
pub mod lend;
mod log_failure;
mod long_unit;
mod maintain;
pub mod member;
pub mod memory;
pub mod node;
mod node_commands;
#[cfg(test)]
mod one_core;
pub mod order;
pub mod owned_request;
pub mod pace;
mod pause;
pub mod pins;
pub mod put_off;
pub mod receive;
mod rest;
pub mod route;
pub mod run;
mod seal;
pub mod serve;
mod several_slots;
pub mod shard;
mod shown;
#[cfg(test)]
mod split_node;
pub mod state;
pub mod statistics;
pub mod strays;
mod tick_time;
pub mod timing;
pub mod transaction;
pub mod unit;
pub mod unit_commit;
mod upload;
pub mod wait;
pub mod waiters;
pub mod wide_waits;
pub mod window;

pub use hop::{Control, HopBatch};
pub use replica::Held;
pub use shard::{Durability, Shard, ShardConfig};
pub use state::NodeState;
