//! Backups: a data directory as it was at one moment, in another directory. `docs/internals/backup.md` draws the bytes.
//!
//! ```text
//!  source (a running node's files, or a directory nobody uses) ─ plan ─► copy ─► look at the copy ─► BACKUP
//!                                                   base ────────┘
//!  BACKUP + bases ─► verify ─► copy ─► recovery ─► MANIFEST
//! ```
//!
//! - [`description`]: the file `BACKUP`
//! - `plan`: what a base has already
//! - [`target`]: the directory that becomes a backup
//! - [`source`]: what there is to copy
//! - [`copy`]: bytes and digests
//! - [`set`]: a backup and its bases, as files of a data directory
//! - [`restore`]: back to a data directory

mod copy;
pub mod description;
mod plan;
mod restore;
mod set;
mod source;
mod target;

pub use copy::take;
pub use description::{ChainPoint, DESCRIPTION_FILE_NAME, Description};
pub use directory::is_backup;
pub use restore::restore;
pub use set::{BackupSet, read_description};
pub use source::{Hold, Listed, Offline, Source};
pub use target::Target;

use std::path::Path;

use directory::DirectoryError;

/// Told bytes done and bytes to do.
pub type Progress<'a> = dyn FnMut(u64, u64) + 'a;

/// Why there is no backup, or no restored store. The texts say what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackupError {
    /// Another process uses a directory; what it says about itself.
    InUse(String),
    /// What was asked for is not possible, or the operating system refused something.
    Failed(String),
    /// Bytes are not what they were: names file and offset, or file and digest.
    Damaged(String),
}

impl std::fmt::Display for BackupError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (BackupError::InUse(text) | BackupError::Failed(text) | BackupError::Damaged(text)) = self;
        formatter.write_str(text)
    }
}

impl std::error::Error for BackupError {}

impl BackupError {
    fn io(what: &str, path: &Path, error: &std::io::Error) -> BackupError {
        BackupError::Failed(format!("cannot {what} {}: {error}", path.display()))
    }
}

impl From<DirectoryError> for BackupError {
    fn from(error: DirectoryError) -> BackupError {
        match error {
            DirectoryError::Held(holder) => BackupError::InUse(holder),
            DirectoryError::Io(text) => BackupError::Failed(text),
            DirectoryError::Refused(text) => BackupError::Damaged(text),
        }
    }
}
