//! Integration tests of `session`: reply order against a model, requests in every split, commands of a connection.
#![allow(clippy::unwrap_used, clippy::disallowed_types)]

mod commands;
mod input;
mod output_model;
mod rig;
mod transactions;
