//! Zerohop as a library: a persistent key-value store inside the process, without a server.
//!
//! It is the engine of the server: the same memory, log, checkpoints and recovery, and the same directory. What one of
//! them wrote, the other opens, with any number of cores.
//!
//! ```
//! # fn main() -> Result<(), zerohop::Error> {
//! # let scratch = zerohop::testing::Scratch::new("lib");
//! # let directory = scratch.path();
//! use zerohop::Store;
//!
//! let store = Store::open(directory)?;
//! store.put(b"greeting", b"hello")?;
//! assert_eq!(store.append(b"greeting", b" world")?, 11);
//! assert_eq!(store.get(b"greeting")?.expect("it was put").to_vec(), b"hello world");
//! store.close()?;
//!
//! let store = Store::open(directory)?;
//! assert!(store.delete(b"greeting")?);
//! assert!(store.get(b"greeting")?.is_none());
//! # Ok(())
//! # }
//! ```
//!
//! Two more doors to the same data: [`Client`] for a server that runs elsewhere, and [`serve`](mod@serve) for a program that serves its own
//! protocol from one.
//!
//! # Keys and values
//!
//! Keys are 0 to 65,535 bytes, values 0 to 512 MiB ([`limits`]); both are any bytes. All data lives in memory as well, unless
//! [`Options::memory_limit`] says how much may. The
//! keys are those of the server's database 0; strings are what this library reads and writes, and a list that the server made is
//! [`Error::WrongType`] here, except that it can be overwritten and deleted.
//!
//! Every key belongs to one of 16,384 [partitions](Partition), by its hash tag or the whole of it. A key's [`Version`] is the
//! number of its last write within its partition; versions never go back, also not over restarts.
//!
//! # What a returned call has survived
//!
//! | [`Durability`] | a write returns after | it survives |
//! |---|---|---|
//! | `Memory` | the change in memory | nothing |
//! | `Interval` (default) | its log write was handed to the operating system | the death of the process; a power cut costs at most the last second |
//! | `Commit` | the sync of its log group, shared by all threads that wait | a power cut |
//!
//! In `Commit` a read that saw a value whose sync is under way waits for it too: nobody sees what might not survive.
//!
//! # Threads
//!
//! [`Store`] is `Send` and `Sync`, and a clone is another handle of the same store. Calls take turns: one lock guards the
//! engine, held for a microsecond or two by a short call and never during a sync. A thread of the store makes checkpoints,
//! syncs, and removes expired keys, in steps of well under a millisecond each. What holds the lock longer is said where it
//! does. `docs/internals/embedded.md` of the repository has the whole picture.
//!
//! # Errors
//!
//! Every call that can fail returns [`Error`], which says what to do. After [`Error::LogFailed`] the store takes no writes any
//! more: what was not acknowledged may or may not be there when it is opened again.

#![deny(missing_docs)]

mod batch;
mod checks;
pub mod client;
mod close;
mod commit;
mod engine;
mod entries;
mod error;
mod journal;
mod keeper;
mod long_put;
mod open;
mod options;
mod partition;
pub mod serve;
mod store;
#[doc(hidden)]
pub mod testing;
mod tiering;
mod value;
mod wait;

pub use base::Version;
pub use batch::Batch;
pub use client::Client;
pub use entries::{Entries, Entry, Snapshot};
pub use error::Error;
pub use io::BlockMemory;
pub use options::{Durability, Options};
pub use partition::Partition;
pub use store::Store;
pub use value::Value;
pub use wait::{Condition, Waited};

/// What is too much.
pub mod limits {
    pub use base::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX, WAITERS_MAX};

    /// Bytes of the keys and values of one [`Batch`](crate::Batch), and 64 bytes more for each of its changes.
    pub const BATCH_BYTES_MAX: usize = 1 << 30;

    const _: () = assert!(BATCH_BYTES_MAX < base::limits::LOG_UNIT_BYTES_MAX);
}

/// The part of the README about this library.
#[doc = include_str!("../../../README.md")]
#[cfg(doctest)]
pub struct Readme;
