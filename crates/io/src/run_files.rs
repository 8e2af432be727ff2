//! Runs on the disk: written beside their name, then synced, named and made durable under it.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use base::street::UNFINISHED_RUN_SUFFIX;

use crate::files::sync_directory;

/// Writes the next bytes of a run; those at offset 0 make it, or empty one that was left over.
pub(crate) fn write_run(path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
    let is_new = offset == 0;
    let file = OpenOptions::new().write(true).create(is_new).truncate(is_new).open(unfinished(path))?;
    file.write_all_at(bytes, offset)
}

/// Makes runs durable, then gives them their names, then makes those durable: whoever finds a name finds all of the run.
pub(crate) fn publish_runs(paths: &[PathBuf]) -> io::Result<()> {
    for path in paths {
        OpenOptions::new().write(true).open(unfinished(path))?.sync_all()?;
    }
    for path in paths {
        fs::rename(unfinished(path), path)?;
    }
    paths.first().map_or(Ok(()), |path| sync_directory(path.parent().expect("a run lies in the data directory")))
}

/// Removes a run that was not published.
pub(crate) fn drop_run(path: &Path) -> io::Result<()> {
    remove(&unfinished(path))
}

/// Removes a file; one that is not there is fine.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(UNFINISHED_RUN_SUFFIX);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_run_has_its_name_only_when_it_is_whole() {
        let directory = std::env::temp_dir().join(format!("zerohop-runs-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("g00.run");
        write_run(&path, 0, b"of an attempt that failed").unwrap();
        write_run(&path, 0, b"first").unwrap();
        write_run(&path, 5, b" second").unwrap();
        assert!(!path.exists());
        publish_runs(std::slice::from_ref(&path)).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"first second");
        assert!(!unfinished(&path).exists(), "it has one name");
        write_run(&path, 0, b"another").unwrap();
        drop_run(&path).unwrap();
        drop_run(&path).unwrap();
        assert!(publish_runs(std::slice::from_ref(&path)).is_err());
        remove(&path).unwrap();
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
        fs::remove_dir_all(&directory).unwrap();
    }
}
