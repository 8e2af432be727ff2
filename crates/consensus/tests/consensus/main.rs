//! The members of a group in worlds whose only chance is a seed; their files; their edges. The build with planted bugs runs
//! what must catch them and nothing else: a planted bug is one for the whole process.

mod commands;
mod coverage;
mod disk;
mod harm;
mod judge;
mod sample;
mod swarm;
mod world;

#[cfg(not(feature = "planted"))]
mod formats;
#[cfg(not(feature = "planted"))]
mod members;
#[cfg(feature = "planted")]
mod planted;
#[cfg(not(feature = "planted"))]
mod worlds;
