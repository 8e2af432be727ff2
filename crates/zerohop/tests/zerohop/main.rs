//! The store as a library and the client, through their public interface; and the store's directory, as a server reads it.
#![allow(clippy::unwrap_used)]

mod basics;
mod client;
mod crash;
mod example;
mod fixture;
mod model;
mod reading;
mod sequence;
mod serve;
mod threads;
mod tiering;
