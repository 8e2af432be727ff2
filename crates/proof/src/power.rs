//! Real power cuts: a whole machine with its own kernel, file system and page cache, on a disk with a volatile cache, loses
//! its power under load; what was promised must be there when it has started again.
//!
//! ```text
//!   clients (kill::load) ──TCP──► guest: kernel, ext4, server ──NBD──► disk: writes that were not flushed are volatile
//!                                    │ console: check, recovery, ticks
//!   rig   all of that                guest    the virtual machine        disk  what is durable, and what a cut takes
//!   node  one node, or Redis         plan     what a seed draws          nbd   how the machine reaches the disk
//!   round start, judge, load, cut    clock    what was promised by when  console  what the guest prints
//!   campaign  the rounds             cluster  nodes that lose their power together
//! ```
//!
//! Books and judge of one node are those of the kill campaign, clients and judge of a cluster those of the nemesis campaign.

mod campaign;
mod clock;
mod cluster;
mod console;
mod disk;
mod guest;
mod nbd;
mod node;
mod plan;
mod rig;
mod round;

pub use campaign::{Options, Verdict, run};
pub use guest::Machine;
pub use plan::Subject;
