//! The proxy's machine on a street of the tests' own: whole lives of callers, connections and stores.
#![allow(clippy::unwrap_used)]

mod admission;
mod busy;
mod classes;
mod cluster;
mod collapse;
mod collapse_histories;
mod counts;
mod crowded;
mod handed;
mod headroom;
#[path = "../../../client/tests/client/history.rs"]
mod history;
mod labels;
mod learn;
mod lives;
mod members;
mod merge;
mod relays;
mod sentinel;
mod several;
mod store;
mod street;
mod tenants;
mod turns;
