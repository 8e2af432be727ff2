//! Ring 1: the address book. Key to slot to instance, and what CLUSTER answers about it.
//!
//! - [`slot`]: the hash slot of a key
//! - [`table`]: which instance owns which slots, one value with a version number
//! - [`slots`]: a set of slots
//! - [`view`]: who holds which slots in a cluster of several nodes
//! - [`book`]: the instances of a node or of a cluster as clients are told of them
//! - [`nodes`]: the same in the words of CLUSTER NODES

pub mod book;
pub mod nodes;
pub mod slot;
pub mod slots;
pub mod table;
pub mod view;

pub use book::{AddressBook, Holders, Listed};
pub use slot::{crc16, hash_tag, slot_of};
pub use slots::SlotSet;
pub use table::{Endpoint, Epoch, Instance, InstanceId, NodeTable, SlotRange, SlotRangeError, home};
pub use view::{Chain, ClusterView, INSTANCE_PORT_OFFSET, Moving, NodePlace};
