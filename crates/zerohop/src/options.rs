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
    pub(crate) checkpoint_bytes: Option<u64>,
}

impl Options {
    /// What writes survive; [`Durability::Interval`] if nothing is said.
    pub fn durability(mut self, durability: Durability) -> Options {
        self.durability = durability;
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
    /// [`Error::Held`] when somebody has it open, [`Error::Refused`] when it is damaged, [`Error::Io`] for everything that the
    /// operating system refuses.
    pub fn open(self, directory: impl AsRef<Path>) -> Result<Store, Error> {
        Store::open_with(directory.as_ref(), &self)
    }
}
