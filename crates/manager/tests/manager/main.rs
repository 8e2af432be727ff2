//! Whole clusters of managers in worlds whose only chance is a seed: clocks that run wrong, networks that hold things back, disks
//! that forget, processes that die or stand still. The build with planted bugs runs what must catch them and nothing else: a
//! planted bug is one for the whole process.

#![cfg_attr(feature = "planted", allow(dead_code, reason = "the gate's sums are of no use there"))]

mod coverage;
mod disk;
mod judge;
mod swarm;
mod world;

#[cfg(not(feature = "planted"))]
mod losses;
#[cfg(feature = "planted")]
mod planted;
#[cfg(not(feature = "planted"))]
mod worlds;
