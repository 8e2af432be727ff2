//! Integration tests of `wire`: what crosses the boundary of the crate, in one binary.
#![allow(clippy::unwrap_used)]

mod attacks;
mod corpus;
mod registry;
mod replies;
mod splits;
