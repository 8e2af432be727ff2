//! Ring 0: the words every other crate speaks. No I/O, no clock, no thread, no allocation policy.
//!
//! - [`ids`]: who and where (cores, connections, slots, versions)
//! - [`street`]: what the outside world tells a machine ([`Event`](street::Event)) and what a machine asks of
//!   it ([`Effect`](street::Effect)); `io` and `sim` are the two streets
//! - [`limits`]: every bound of the system on one page, with the sum that justifies it
//! - [`promise`]: what a reply waits for
//! - [`blocks`], [`text`]: the bytes of long values, shared in blocks; of any string, wherever they lie
//! - [`checksum`], [`rng`], [`prefetch`], [`planted`]: small tools the pure rings share

pub mod blocks;
pub mod checksum;
pub mod ids;
pub mod limits;
pub mod planted;
pub mod prefetch;
pub mod promise;
pub mod rng;
pub mod street;
pub mod text;

pub use blocks::{BLOCK_BYTES, BlockRange, Blocks};
pub use ids::{
    ConnectionId, CoreId, Database, InstanceName, LogOrdinal, NodeId, SLOT_COUNT, SLOT_GROUP_COUNT, SLOTS_PER_GROUP,
    SegmentNumber, Slot, SlotGroupId, Version,
};
pub use promise::{Horizon, Lanes, Promise, Scope};
pub use street::{
    Door, Effect, Entrance, Event, LayerRoom, Machine, Now, Span, Stopwatch, TickGap, TickInput, TickOutput,
};
pub use text::Text;
