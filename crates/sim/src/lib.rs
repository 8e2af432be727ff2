//! Ring 4: the dream street. The same shard that runs on io_uring and epoll runs here on a virtual clock, network and
//! disk with faults, and independent checkers judge what its clients saw.
//!
//! - [`street`], [`network`], [`disk`], [`agenda`]: the world, and [`faults`] in it
//! - [`node`]: what is run
//! - [`swarm`], [`workload`], [`client`], [`history`]: what is done
//! - [`checker`], [`own_model`], [`waiters`]: what must hold
//! - [`run`]: seed in, [`verdict`] out; [`coverage`]: what many seeds met
//! - [`town`]: the same for several nodes, with a network between them
//!
//! `docs/internals/simulator.md` says what each fault means and what the simulator cannot see.

pub mod agenda;
pub mod checker;
pub mod client;
pub mod coverage;
pub mod damage;
pub mod disk;
mod effects;
pub mod faults;
mod fickle_watch;
pub mod history;
pub mod network;
pub mod node;
pub mod own;
pub mod own_model;
mod own_world;
pub mod run;
pub mod shard_node;
pub mod street;
pub mod swarm;
pub mod town;
pub mod trace;
pub mod verdict;
pub mod waiters;
pub mod workload;
