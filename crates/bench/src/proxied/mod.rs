//! What a store is to its clients directly, and what through a proxy.
//!
//! ```text
//!  bulk: many connections, each a hundred requests ahead ─┐
//!                                                         ├─► address: the store's, or that of a proxy before it
//!  tenant: a few requests a second, each in a hurry ──────┘
//! ```
//!
//! `zerohop demo deadlines` runs [`deadlines`] against a [`stock`] server, `zerohop proxy --try` runs [`glance`] against a server that
//! somebody has. Both know addresses only: what stands behind them is their caller's business.

pub mod apart;
mod bulk;
pub mod deadlines;
pub mod glance;
pub mod latency;
mod pace;
pub mod stock;
pub mod talk;
mod tenant;

pub use deadlines::{Plan, Seen};
pub use stock::Stock;
