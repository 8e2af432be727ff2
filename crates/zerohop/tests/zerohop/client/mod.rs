//! The client against a server that does what a test wants.

mod cluster;
mod futures;
mod lives;
mod lonely;
mod parts;
pub mod puppet;
mod submitted;
mod trouble;
