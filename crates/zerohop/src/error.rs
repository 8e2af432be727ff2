//! What can go wrong, and what to do about it.

use directory::DirectoryError;

/// Why a call failed. Unless a case says otherwise, nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// Another process, or another [`Store`](crate::Store) of this one, has the directory open.
    Held {
        /// What the holder says about itself; empty if it says nothing.
        holder: String,
    },
    /// The directory is damaged, of another format, or holds something else. The text names file and offset, and what to do.
    Refused(String),
    /// The operating system refused something while the directory was opened or closed. The text names the file.
    Io(String),
    /// The key is longer than a key may be.
    KeyTooLong {
        /// How long it is, bytes.
        bytes: usize,
    },
    /// The value is, or would become, longer than a value may be.
    ValueTooLong {
        /// Whose value.
        key: Vec<u8>,
        /// How long it is or would be, bytes.
        bytes: u64,
    },
    /// A batch is larger than what one log group may hold.
    BatchTooLong {
        /// How large it is, as [`limits::BATCH_BYTES_MAX`](crate::limits::BATCH_BYTES_MAX) counts, bytes.
        bytes: usize,
    },
    /// The key holds something else than a string: a list that the server made.
    WrongType {
        /// Which key.
        key: Vec<u8>,
        /// What it holds.
        holds: &'static str,
    },
    /// The slot group of the key has no address left: 32 GiB of records.
    GroupFull {
        /// Which key.
        key: Vec<u8>,
    },
    /// A memory limit together with [`Durability::Memory`](crate::Durability::Memory), which has no disk to leave values to.
    LimitWithoutDisk,
    /// The memory limit is reached, and no value can leave memory any more. Delete keys, or open the store with a higher one.
    MemoryFull {
        /// [`Options::memory_limit`](crate::Options::memory_limit).
        bytes_max: usize,
    },
    /// A value that is on the disk cannot be read, and nothing was dropped. The text names file and offset.
    Unreadable(String),
    /// The log has no room for more, because the disk is full. The text names the file. Free some room and write again: the store
    /// tries to make its next segment every second.
    DiskFull(String),
    /// Writing or syncing the log failed, and the store takes no write any more. The text names the file. Whether changes that
    /// were not acknowledged are there after the next opening is not known; what was acknowledged is.
    LogFailed(String),
    /// The last checkpoint at the end could not be written. Everything is in the log, and the next opening replays it.
    NotCheckpointed(String),
    /// More calls of [`Store::wait`](crate::Store::wait) at once than [`limits::WAITERS_MAX`](crate::limits::WAITERS_MAX).
    TooManyWaiters,
    /// The store was closed.
    Closed,
}

impl std::fmt::Display for Error {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use crate::limits::{BATCH_BYTES_MAX, KEY_BYTES_MAX, VALUE_BYTES_MAX, WAITERS_MAX};
        match self {
            Error::Held { holder } if holder.is_empty() => {
                formatter.write_str("the directory is in use; close its user first")
            }
            Error::Held { holder } => write!(formatter, "the directory is in use by {holder}; close that first"),
            Error::Refused(text) | Error::Io(text) => formatter.write_str(text),
            Error::KeyTooLong { bytes } => {
                write!(formatter, "a key of {bytes} bytes is too long; at most {KEY_BYTES_MAX} are possible")
            }
            Error::ValueTooLong { key, bytes } => write!(
                formatter,
                "a value of {bytes} bytes is too long for {}; at most {VALUE_BYTES_MAX} are possible: use several keys",
                shown(key)
            ),
            Error::BatchTooLong { bytes } => write!(
                formatter,
                "a batch of {bytes} bytes is too long; at most {BATCH_BYTES_MAX} are possible: commit in parts"
            ),
            Error::WrongType { key, holds } => {
                write!(formatter, "{} holds a {holds}, not a string; delete or overwrite it", shown(key))
            }
            Error::GroupFull { key } => {
                write!(formatter, "no room for {}: its slot group has 32 GiB of records; delete some", shown(key))
            }
            Error::LimitWithoutDisk => formatter.write_str(
                "a memory limit needs a disk to leave values to: open a directory, with durability interval or commit",
            ),
            Error::MemoryFull { bytes_max } => {
                write!(formatter, "the memory limit of {bytes_max} bytes is reached: delete keys, or raise it")
            }
            Error::Unreadable(text) => {
                write!(formatter, "the value cannot be read, and nothing was dropped: {text}; mend the disk")
            }
            Error::DiskFull(text) => write!(formatter, "the log has no room: {text}; free some and write again"),
            Error::LogFailed(text) => {
                write!(
                    formatter,
                    "the log failed, and nothing is written any more: {text}; mend the disk, then open again"
                )
            }
            Error::NotCheckpointed(text) => {
                write!(formatter, "nothing is lost, but the next opening has to replay the log: {text}")
            }
            Error::TooManyWaiters => write!(formatter, "more than {WAITERS_MAX} waits at once"),
            Error::Closed => formatter.write_str("the store was closed; open it again"),
        }
    }
}

impl std::error::Error for Error {}

impl From<DirectoryError> for Error {
    fn from(error: DirectoryError) -> Error {
        match error {
            DirectoryError::Held(holder) => Error::Held { holder },
            DirectoryError::Io(text) => Error::Io(text),
            DirectoryError::Refused(text) => Error::Refused(text),
        }
    }
}

/// A key as an error shows it: what can be read of it, and not all of a long one.
fn shown(key: &[u8]) -> String {
    const BYTES_SHOWN: usize = 64;
    let start = &key[..key.len().min(BYTES_SHOWN)];
    let rest = if key.len() > BYTES_SHOWN { "…" } else { "" };
    format!("the key \"{}{rest}\"", start.escape_ascii())
}
