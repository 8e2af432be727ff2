//! Files outside the tick: at start, at a clean end, and for the offline check. All of it blocks.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use base::street::UNFINISHED_SUFFIX;

/// How much of a file is read at a time, bytes.
pub const READ_CHUNK_BYTES: usize = 1 << 20;

/// Makes the entries of a directory durable: a file whose entry is lost in a power cut is lost whole.
///
/// # Errors
/// When the directory cannot be opened or synced.
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// File names of a directory, sorted, so that nothing depends on the order of the disk. Names that are no UTF-8 are
/// none of ours and left out.
///
/// # Errors
/// When the directory cannot be read.
pub fn list_directory(directory: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        if let Ok(name) = entry?.file_name().into_string() {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Reads a whole file in pieces of at most [`READ_CHUNK_BYTES`]; `take` gets the offset and the bytes and says whether
/// to go on.
///
/// # Errors
/// When the file cannot be opened or read.
pub fn read_in_chunks(path: &Path, mut take: impl FnMut(u64, &[u8]) -> bool) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut chunk = vec![0u8; READ_CHUNK_BYTES];
    let mut offset = 0;
    loop {
        match file.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                if !take(offset, &chunk[..count]) {
                    return Ok(());
                }
                offset += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Writes bytes of a file again as they are, and syncs it: after a failed sync the kernel takes pages for written that
/// never were, and only writing them makes the next sync do its work.
///
/// # Errors
/// When the file cannot be read, written or synced; `to` behind its end included.
pub fn rewrite(path: &Path, from: u64, to: u64) -> io::Result<()> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let mut chunk = vec![0u8; READ_CHUNK_BYTES];
    let mut offset = from;
    while offset < to {
        let count = chunk.len().min((to - offset) as usize);
        file.read_exact_at(&mut chunk[..count], offset)?;
        file.write_all_at(&chunk[..count], offset)?;
        offset += count as u64;
    }
    file.sync_all()
}

/// Gives back what a file has behind its first `bytes`; a shorter one stays as it is.
///
/// # Errors
/// When the file cannot be opened or cut.
pub fn trim(path: &Path, bytes: u64) -> io::Result<()> {
    match fs::metadata(path)?.len() > bytes {
        true => OpenOptions::new().write(true).open(path)?.set_len(bytes),
        false => Ok(()),
    }
}

/// Who may read a file that was not there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// Whom the process lets read what it makes (its umask).
    AsUsual,
    /// Its owner: it may hold a secret.
    Owner,
}

/// Replaces a file so that after a crash at any moment either the old or the new content is there, whole: write
/// beside it, sync, rename over it, sync the directory. Who may read an old one may read the new one, and nobody else; `readers` says it
/// where there is none.
///
/// # Errors
/// When any of these steps fails; the old content is then still there.
pub fn replace_file(path: &Path, content: &[u8], readers: Readers) -> io::Result<()> {
    let (Some(directory), Some(_)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{} names no file", path.display())));
    };
    let beside = unfinished(path);
    let mode = if readers == Readers::Owner { 0o600 } else { 0o666 };
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&beside)?;
    match fs::metadata(path) {
        // Before anything is in it: who must not read the old content must not read the new.
        Ok(old) => file.set_permissions(old.permissions())?,
        // What an earlier process left unfinished was perhaps for everybody.
        Err(error) if error.kind() == io::ErrorKind::NotFound && readers == Readers::Owner => {
            file.set_permissions(fs::Permissions::from_mode(mode))?;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    sync_directory(if directory.as_os_str().is_empty() { Path::new(".") } else { directory })
}

/// Writes bytes into a file that is there, and makes them durable; it gets longer where they go beyond its end.
///
/// # Errors
/// When the file is not there or cannot be written or synced; any part of the bytes may then be in it or not.
pub fn write_file(path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    file.write_all_at(bytes, offset)?;
    file.sync_data()
}

/// The whole content of a file.
///
/// # Errors
/// When it cannot be read, or is longer than `bytes_max`.
pub fn read_file(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    File::open(path)?.take(bytes_max.saturating_add(1)).read_to_end(&mut content)?;
    match content.len() as u64 > bytes_max {
        true => Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("longer than {bytes_max} bytes"))),
        false => Ok(content),
    }
}

/// Removes a file; one that is not there is fine.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// The file beside `path` that has its name once it is whole.
pub(crate) fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(UNFINISHED_SUFFIX);
    PathBuf::from(name)
}

/// The right of one process to a data directory, held until dropped or until the process dies, however it dies.
#[derive(Debug)]
pub struct DirectoryLock {
    file: File,
    path: PathBuf,
}

/// Why a directory could not be locked.
#[derive(Debug)]
pub enum LockError {
    /// Another process holds it; `holder` is what it wrote about itself.
    Held {
        /// Text of the lock file, trimmed.
        holder: String,
    },
    /// The lock file cannot be made or written.
    Io(io::Error),
}

impl DirectoryLock {
    /// Locks the file at `path` (made if absent) and writes `about` into it, for whoever finds it locked.
    ///
    /// # Errors
    /// [`LockError::Held`] when another process has it.
    pub fn acquire(path: &Path, about: &str) -> Result<DirectoryLock, LockError> {
        let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let mut file = open.map_err(LockError::Io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                file.read_to_string(&mut holder).map_err(LockError::Io)?;
                return Err(LockError::Held { holder: holder.trim().to_owned() });
            }
            Err(TryLockError::Error(error)) => return Err(LockError::Io(error)),
        }
        let lock = DirectoryLock { file, path: path.to_owned() };
        lock.write(about).map_err(LockError::Io)?;
        Ok(lock)
    }

    /// Replaces what the lock says about its holder (for example once the port is known).
    ///
    /// # Errors
    /// When the lock file cannot be written.
    pub fn write(&self, about: &str) -> io::Result<()> {
        let mut file = &self.file;
        file.set_len(0)?;
        file.seek(io::SeekFrom::Start(0))?;
        file.write_all(about.as_bytes())
    }

    /// The lock file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        // Closing is not enough: a child that another thread is starting has the file open until it runs its program.
        if let Err(error) = self.file.unlock() {
            eprintln!("zerohop: {} stays locked: {error}", self.path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::MetadataExt;

    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("zerohop-files-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        directory
    }

    #[test]
    fn a_file_is_replaced_and_listed() {
        let directory = scratch("replace");
        let path = directory.join("b");
        replace_file(&path, b"old", Readers::AsUsual).unwrap();
        replace_file(&path, b"new", Readers::AsUsual).unwrap();
        fs::write(directory.join("a"), vec![7u8; READ_CHUNK_BYTES + 5]).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(list_directory(&directory).unwrap(), ["a", "b"]);
        let mut seen = Vec::new();
        read_in_chunks(&directory.join("a"), |offset, bytes| {
            assert_eq!(offset, seen.len() as u64);
            seen.extend_from_slice(bytes);
            true
        })
        .unwrap();
        assert_eq!(seen, vec![7u8; READ_CHUNK_BYTES + 5]);
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_secret_is_for_its_owner_and_who_may_read_stays() {
        let directory = scratch("readers");
        let path = directory.join("secret");
        let readers = || fs::metadata(&path).unwrap().mode() & 0o777;
        fs::write(unfinished(&path), b"left by an earlier process").unwrap();
        fs::set_permissions(unfinished(&path), fs::Permissions::from_mode(0o644)).unwrap();
        replace_file(&path, b"one", Readers::Owner).unwrap();
        assert_eq!((readers(), fs::read(&path).unwrap().as_slice()), (0o600, &b"one"[..]));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        replace_file(&path, b"two", Readers::Owner).unwrap();
        assert_eq!(readers(), 0o640, "somebody decided so");
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_segment_has_all_its_room_and_gives_it_back() {
        let directory = scratch("trim");
        let (path, room) = (directory.join("segment"), 8 << 20);
        let (segment, header) = (base::SegmentNumber(0), vec![7; 64]);
        let new = crate::NewSegment { segment, header, bytes: room };
        let file = crate::create_segment(&path, &new).unwrap();
        assert_eq!(file.metadata().unwrap().len(), room);
        file.write_all_at(&[8; 1000], 64).unwrap();
        rewrite(&path, 64, 1064).unwrap();
        assert!(rewrite(&path, 64, room + 1).is_err());
        trim(&path, 1064).unwrap();
        assert_eq!(fs::read(&path).unwrap(), [vec![7; 64], vec![8; 1000]].concat());
        assert!(file.metadata().unwrap().blocks() * 512 < room / 2);
        trim(&path, 5000).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 1064, "a shorter file stays as it is");
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_lock_is_exclusive_and_names_its_holder() {
        let directory = scratch("lock");
        let path = directory.join("lock");
        let lock = DirectoryLock::acquire(&path, "pid 1 port 2\n").unwrap();
        match DirectoryLock::acquire(&path, "other") {
            Err(LockError::Held { holder }) => assert_eq!(holder, "pid 1 port 2"),
            other => panic!("{other:?}"),
        }
        // As in a child that has not begun its program yet.
        let duplicate = lock.file.try_clone().unwrap();
        drop(lock);
        assert!(DirectoryLock::acquire(&path, "").is_ok());
        drop(duplicate);
        fs::remove_dir_all(&directory).unwrap();
    }
}
