//! From a backup to a data directory that a node may open; the manifest comes last, so nothing half of it starts.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use io::files::{DirectoryLock, LockError, Readers, list_directory, replace_file, sync_directory};
use storage::log::MANIFEST_FILE_NAME;
use storage::log::format::{SEGMENT_HEADER_BYTES, room_bytes};

use super::copy::create;
use super::{BackupError, BackupSet, Progress};
use crate::inspection::{Inspection, InspectionError, inspect_contents};
use directory::LOCK_FILE_NAME;

/// Verifies every digest, copies, opens the result as `zerohop check` does, and only then makes it a store. `about` is for
/// whoever finds the directory in use; `verified`, `copied` and `read` are told how far each step is.
///
/// # Errors
/// Damage; or the directory is not empty, or cannot be written. It has no manifest then.
pub fn restore(
    set: &BackupSet,
    to: &Path,
    about: &str,
    (verified, copied, read): (&mut Progress<'_>, &mut Progress<'_>, &mut Progress<'_>),
) -> Result<Inspection, BackupError> {
    let (manifest, manifest_bytes) = set.manifest()?;
    set.verify_digests(verified)?;
    let io = |what: &'static str| move |error: std::io::Error| BackupError::io(what, to, &error);
    let _lock = prepare(to, about)?;
    let total = set.description().total_bytes();
    let mut done = 0;
    for file in set.description().files.iter().filter(|file| file.name != MANIFEST_FILE_NAME) {
        let path = to.join(&file.name);
        let writing = |error: std::io::Error| BackupError::io("write", &path, &error);
        let mut copy = create(&path).map_err(writing)?;
        let mut beginning = Vec::new();
        set.read_file(file, &mut |bytes| {
            copy.write_all(bytes).map_err(writing)?;
            beginning.extend(bytes.iter().take(SEGMENT_HEADER_BYTES - beginning.len()));
            done += bytes.len() as u64;
            copied(done, total);
            Ok(())
        })?;
        copy.set_len(room_bytes(&beginning).max(file.bytes)).map_err(writing)?;
        copy.sync_all().map_err(writing)?;
    }
    sync_directory(to).map_err(io("sync"))?;
    let names = list_directory(to).map_err(io("read"))?;
    let inspection = inspect_contents((to, &names), Some(manifest), read).map_err(|error| match error {
        InspectionError::Directory(error) => BackupError::from(error),
        InspectionError::Damage(damage) => BackupError::Damaged(format!("{}: {damage}", to.display())),
    })?;
    replace_file(&to.join(MANIFEST_FILE_NAME), &manifest_bytes, Readers::AsUsual).map_err(io("write"))?;
    let parent = to.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    sync_directory(parent).map_err(io("sync"))?;
    Ok(inspection)
}

/// An empty directory, which nobody else uses.
fn prepare(to: &Path, about: &str) -> Result<DirectoryLock, BackupError> {
    let io = |what: &'static str| move |error: std::io::Error| BackupError::io(what, to, &error);
    let is_new = !to.exists();
    fs::create_dir_all(to).map_err(io("make"))?;
    if is_new {
        fs::set_permissions(to, fs::Permissions::from_mode(0o700)).map_err(io("protect"))?;
    }
    let is_foreign = |name: &&String| *name != LOCK_FILE_NAME;
    let shown = to.display();
    if let Some(name) = list_directory(to).map_err(io("read"))?.iter().find(is_foreign) {
        let text = format!("{shown} is not empty ({name}): choose a new directory with --to, nothing is overwritten");
        return Err(BackupError::Failed(text));
    }
    let lock = DirectoryLock::acquire(&to.join(LOCK_FILE_NAME), about).map_err(|error| match error {
        LockError::Held { holder } => {
            BackupError::InUse(format!("{shown} is in use by {holder}: choose another directory with --to"))
        }
        LockError::Io(error) => BackupError::io("lock", to, &error),
    })?;
    Ok(lock)
}
