//! Ring 1: the address book. Key to slot to instance, and what CLUSTER answers about it.
//!
//! - [`slot`]: the hash slot of a key
//! - [`table`]: which instance owns which slots, one value with a version number
//! - [`nodes`]: the table in the words of CLUSTER NODES

pub mod nodes;
pub mod slot;
pub mod table;

pub use slot::{crc16, hash_tag, slot_of};
pub use table::{Endpoint, Epoch, Instance, InstanceId, NodeTable, SlotRange, SlotRangeError};
