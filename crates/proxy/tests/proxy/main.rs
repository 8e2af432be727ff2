//! The proxy's machine on a street of the tests' own: whole lives of callers, connections and stores.
#![allow(clippy::unwrap_used)]

mod classes;
mod cluster;
mod headroom;
mod learn;
mod lives;
mod members;
mod several;
mod store;
mod street;
mod turns;
