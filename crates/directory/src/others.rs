//! Directories of somebody else: backups, and what is no store at all.

use std::path::Path;

use base::street::UNFINISHED_SUFFIX;
use io::files::list_directory;
use storage::log::MANIFEST_FILE_NAME;

use crate::{DirectoryError, LOCK_FILE_NAME};

/// What a backup says about itself; behind it nothing is missing.
pub const BACKUP_FILE_NAME: &str = "BACKUP";
/// Stands in a directory that is to become a backup.
pub const UNFINISHED_BACKUP_FILE_NAME: &str = "UNFINISHED";

/// Whether a directory is a backup, or was to become one.
pub fn is_backup(path: &Path) -> bool {
    [BACKUP_FILE_NAME, UNFINISHED_BACKUP_FILE_NAME].iter().any(|name| path.join(name).exists())
}

/// A node that started in a backup would change it.
pub fn refuse_backup(path: &Path) -> Result<(), DirectoryError> {
    let shown = path.display();
    match is_backup(path) {
        true => Err(DirectoryError::Refused(format!(
            "{shown} is a backup: restore it with `zerohop restore {shown} --to DIRECTORY`"
        ))),
        false => Ok(()),
    }
}

/// A directory without a store that somebody else uses: a new store in it would be an empty start where data was expected, and
/// its files would be among theirs. Hidden files may be there, and what a file system or a start that was broken off leaves.
///
/// # Errors
/// That there is one, and a name in it.
pub fn refuse_foreign(path: &Path) -> Result<(), DirectoryError> {
    let shown = path.display();
    let Ok(names) = list_directory(path) else { return Ok(()) };
    if names.iter().any(|name| is_of_store(name)) {
        return Ok(());
    }
    let is_harmless = |name: &str| {
        name.starts_with('.') || name == "lost+found" || name == LOCK_FILE_NAME || name.ends_with(UNFINISHED_SUFFIX)
    };
    match names.iter().find(|name| !is_harmless(name)) {
        Some(name) => Err(DirectoryError::Refused(format!(
            "{shown} has no store, but something else in it ({name}): name the directory of the store with --dir, or an empty \
             one for a new store"
        ))),
        None => Ok(()),
    }
}

pub(crate) fn is_of_store(name: &str) -> bool {
    name == MANIFEST_FILE_NAME || name.ends_with(".log") || name.ends_with(".run")
}
