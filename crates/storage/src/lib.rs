//! Ring 2: the data of one core, in memory and as bytes at rest. Asks for reads and writes, never does them.
//!
//! ```text
//!   Store ─► SlotGroup (64 of them) ─► index ─► heap ─► record          a key's way
//!     │
//!     └────► LogBuffer ─► LogWriter ─► WriteLog effect ···► disk ···► replay ─► Store
//! ```
//!
//! - [`key`]: a key and what is computed from it once
//! - [`index`], [`heap`], [`record`]: from a position to the bytes of a record
//! - [`group`]: 256 slots in one box that can change cores
//! - [`store`]: the one path by which anything changes
//! - [`eviction`], [`recency`]: the memory limit, and what a key is worth to it
//! - `lazy_free`: memory that nothing refers to, given back in steps
//! - [`log`]: the bytes that survive
//! - [`tiering`]: values that are in a run and not in memory
//! - [`mod@run`], [`checkpoint`]: slot groups as files, which replace what the log says of them
//! - [`maintenance`]: how much of a tick goes into all of that, and when

pub mod checkpoint;
pub mod eviction;
pub mod group;
pub mod heap;
pub mod index;
pub mod key;
mod lazy_free;
pub mod log;
mod long_value;
pub mod maintenance;
pub mod recency;
pub mod record;
pub mod run;
pub mod store;
pub mod tiering;

pub use checkpoint::Checkpoints;
pub use eviction::{MemoryLimit, Order, Policy, Room};
pub use group::{DatabaseCount, Record, SlotGroup, Value};
pub use key::Key;
pub use recency::Recency;
pub use record::Form;
pub use store::counters::Lookups;
pub use store::{
    Arriving, Comparison, EXPIRED_KEY_COST, Known, LentPart, Mark, Marks, NotApplied, Pass, PassedStages, ReadCold,
    ScanCursor, SlotCopy, Spent, StageBegin, Store, Tiered, are_of_slots, records_of_slots,
};
pub use tiering::ColdValue;
