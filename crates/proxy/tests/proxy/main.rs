//! The proxy's machine on a street of the tests' own: whole lives of callers, connections and stores.

mod learn;
mod lives;
mod street;
mod store;
mod turns;
