//! Real power cuts: a whole machine with its own kernel, file system and page cache, on a disk with a volatile cache, loses
//! its power under load; what was promised must be there when it has started again.
//!
//! ```text
//!   clients (kill::load) ──TCP──► guest: kernel, ext4, server ──NBD──► disk: writes that were not flushed are volatile
//!                                    │ console: check, recovery, ticks
//!   plan  what a seed draws        guest  the virtual machine        disk  what is durable, and what a cut takes
//!   round start, judge, load, cut  clock  what was promised by when  nbd   how the machine reaches the disk
//!   campaign  the rounds           book and judge: those of the kill campaign
//! ```

mod campaign;
mod clock;
mod disk;
mod guest;
mod nbd;
mod plan;
mod round;

pub use campaign::{Options, Verdict, run};
pub use guest::Machine;
pub use plan::Subject;
