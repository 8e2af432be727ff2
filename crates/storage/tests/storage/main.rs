//! Integration tests of `storage`: the store against a model, the log through every kind of crash and damage.
#![allow(clippy::unwrap_used, clippy::disallowed_types)]

mod changes;
mod model;
mod store_model;
