//! The laboratory: batchers of many clients in front of emulated shards, on a virtual clock, with seeds. Figures are printed:
//! `cargo test -p client --test client lab -- --nocapture`.

mod equations;
mod figures;
mod loads;
mod qos;
mod stout;
mod world;
