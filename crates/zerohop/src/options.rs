//! How a store is opened.

use std::path::Path;

use crate::{Error, Store};

/// What a write survives once its call has returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Nothing: there is no log. A directory that is opened so is read, and never written.
    Memory,
    /// The death of the process. A power cut costs at most the last second.
    #[default]
    Interval,
    /// A power cut.
    Commit,
}

/// How a store is opened; made by [`Store::options`].
///
/// ```
/// # fn main() -> Result<(), zerohop::Error> {
/// # let scratch = zerohop::testing::Scratch::new("options");
/// # let directory = scratch.path();
/// use zerohop::{Durability, Store};
///
/// let store = Store::options().durability(Durability::Commit).open(directory)?;
/// store.put(b"balance", b"100")?; // survives a power cut from here on
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub(crate) durability: Durability,
    pub(crate) memory_bytes_max: Option<usize>,
    pub(crate) checkpoint_bytes: Option<u64>,
}

impl Options {
    /// What writes survive; [`Durability::Interval`] if nothing is said.
    pub fn durability(mut self, durability: Durability) -> Options {
        self.durability = durability;
        self
    }

    /// What the store may take in memory, bytes: index, keys and values, not what its program takes beside them. Above it the values
    /// used longest ago, strings of 32 bytes to 64 KiB, leave memory and are read from the disk when somebody asks for them.
    /// Keys stay, at 52 bytes and more each. Without it everything stays in memory.
    ///
    /// What is free in the allocator comes on top, and where many threads read the C library's keeps some for each of them. A program
    /// whose memory is bounded should have [`BlockMemory`](crate::BlockMemory) as its `#[global_allocator]`.
    ///
    /// ```
    /// # fn main() -> Result<(), zerohop::Error> {
    /// # let scratch = zerohop::testing::Scratch::new("memory-limit");
    /// # let directory = scratch.path();
    /// let store = zerohop::Store::options().memory_limit(256 << 20).open(directory)?;
    /// # store.put(b"key", b"value")
    /// # .map(drop)
    /// # }
    /// ```
    pub fn memory_limit(mut self, bytes: usize) -> Options {
        self.memory_bytes_max = Some(bytes);
        self
    }

    /// Checkpoints of a slot group come with every so many bytes of log at the latest; for tests.
    #[doc(hidden)]
    pub fn checkpoint_bytes(mut self, bytes: u64) -> Options {
        self.checkpoint_bytes = Some(bytes);
        self
    }

    /// Opens the store in `directory`, and makes both if they are not there. Loads all of it, so it takes the longer
    /// the more there is.
    ///
    /// # Errors
    /// [`Error::Held`] when somebody has it open, [`Error::Refused`] when it is damaged,
    /// [`Error::LimitWithoutDisk`], [`Error::Io`] for everything that the
    /// operating system refuses.
    pub fn open(self, directory: impl AsRef<Path>) -> Result<Store, Error> {
        Store::open_with(directory.as_ref(), &self)
    }
}
