//! Integration tests of `control`: random histories of the table and what must hold of each, and the rules by example.
#![allow(clippy::unwrap_used, clippy::disallowed_types)]

mod histories;
mod leases;
mod plans;
mod rig;
mod rules;
