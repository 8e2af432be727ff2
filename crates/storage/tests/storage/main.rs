//! Integration tests of `storage`: the store against a model, the log through every kind of crash and damage.
#![allow(clippy::unwrap_used, clippy::disallowed_types)]

mod changes;
mod crafted;
mod damage;
mod decoders;
mod disk;
mod follow;
mod lives;
mod long_follow;
mod model;
mod node;
mod novoht;
mod openings;
mod planted;
mod round_trip;
mod runs;
mod store_model;
mod units;
