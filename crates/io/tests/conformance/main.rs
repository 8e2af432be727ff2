//! One suite for both backends: the same scenarios through real sockets and files.
#![allow(clippy::unwrap_used)]

mod churn;
mod connections;
mod dials;
mod gaps;
mod handover;
mod hops;
mod line_machine;
mod log;
mod named_files;
mod node;
