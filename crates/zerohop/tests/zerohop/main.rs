//! The store as a library, through its public interface; and its directory, as a server reads it.
#![allow(clippy::unwrap_used)]

mod basics;
mod crash;
mod example;
mod fixture;
mod model;
mod reading;
mod sequence;
mod threads;
