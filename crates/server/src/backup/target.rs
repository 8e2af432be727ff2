//! The directory that becomes a backup: nobody else's, one writer, and no backup before `BACKUP` says so.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use io::files::{DirectoryLock, LockError, Readers, list_directory, replace_file, sync_directory};

use super::BackupError;
use super::description::{DESCRIPTION_FILE_NAME, Description, is_part_file};

/// Name of the file that stands there until the backup is whole; locked by its writer.
pub(super) const UNFINISHED_FILE_NAME: &str = directory::UNFINISHED_BACKUP_FILE_NAME;

/// See the module.
pub struct Target {
    path: PathBuf,
    _lock: DirectoryLock,
    removed: usize,
}

impl Target {
    /// Makes the directory, or empties one in which a backup ended early. `about` is for whoever finds it in use.
    ///
    /// # Errors
    /// When something else is in it, or another backup is written there.
    pub fn prepare(path: &Path, about: &str) -> Result<Target, BackupError> {
        let io = |what: &'static str| move |error: std::io::Error| BackupError::io(what, path, &error);
        let is_new = !path.exists();
        fs::create_dir_all(path).map_err(io("make"))?;
        if is_new {
            fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(io("protect"))?;
        }
        let names = list_directory(path).map_err(io("read"))?;
        let has = |name: &str| names.iter().any(|other| other == name);
        let shown = path.display();
        if has(DESCRIPTION_FILE_NAME) {
            let text = format!(
                "{shown} is a backup already: choose another directory with --to, and name this one with --since to copy only what is new"
            );
            return Err(BackupError::Failed(text));
        }
        let foreign = names.iter().find(|name| !is_own(name));
        if let Some(foreign) = foreign.or(names.first().filter(|_| !has(UNFINISHED_FILE_NAME))) {
            let text =
                format!("{shown} has something else in it ({foreign}): choose an empty or a new directory with --to");
            return Err(BackupError::Failed(text));
        }
        let lock = DirectoryLock::acquire(&path.join(UNFINISHED_FILE_NAME), about).map_err(|error| match error {
            LockError::Held { holder } => {
                BackupError::InUse(format!("another backup is written to {shown}, by {holder}: wait for it"))
            }
            LockError::Io(error) => BackupError::io("lock", path, &error),
        })?;
        // Of a backup that ended early: nothing of it counts.
        let left_over = names.iter().filter(|name| *name != UNFINISHED_FILE_NAME);
        let mut removed = 0;
        for name in left_over {
            fs::remove_file(path.join(name)).map_err(io("empty"))?;
            removed += 1;
        }
        sync_directory(path).map_err(io("sync"))?;
        Ok(Target { path: path.to_owned(), _lock: lock, removed })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Files of a backup that ended early, which were removed.
    pub fn removed(&self) -> usize {
        self.removed
    }

    /// Nothing was copied and nothing comes of it: the directory goes. Where it stays, it is an unfinished backup.
    pub fn abandon(self) {
        let is_empty = list_directory(&self.path).is_ok_and(|names| names == [UNFINISHED_FILE_NAME]);
        if is_empty {
            fs::remove_file(self.path.join(UNFINISHED_FILE_NAME)).and_then(|()| fs::remove_dir(&self.path)).ok();
        }
    }

    /// From here on it is a backup.
    pub(super) fn finish(self, description: &Description) -> Result<(), BackupError> {
        let path = self.path.as_path();
        let io = |what: &'static str| move |error: std::io::Error| BackupError::io(what, path, &error);
        sync_directory(path).map_err(io("sync"))?;
        replace_file(&path.join(DESCRIPTION_FILE_NAME), description.encode().as_bytes(), Readers::AsUsual)
            .map_err(io("write"))?;
        fs::remove_file(path.join(UNFINISHED_FILE_NAME)).map_err(io("tidy up"))?;
        sync_directory(path).map_err(io("sync"))?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        sync_directory(parent).map_err(io("sync"))
    }
}

/// Whether a backup makes files of that name.
fn is_own(name: &str) -> bool {
    let unfinished_description = format!("{DESCRIPTION_FILE_NAME}{}", base::street::UNFINISHED_SUFFIX);
    is_part_file(name) || name == UNFINISHED_FILE_NAME || name == unfinished_description
}
