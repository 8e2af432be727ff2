//! The client against a server that does what a test wants.

mod cluster;
mod futures;
mod lives;
mod lonely;
pub mod puppet;
mod submitted;
mod trouble;
