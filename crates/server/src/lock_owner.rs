//! Who has the lock of a data directory, as far as this user may know: from `/proc`.
//!
//! What the lock's file says is written by who writes to the directory. A check or a backup of a stopped store takes a reader's
//! share and writes nothing, so then it names a process that is gone, and its number may be somebody else's by now.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::port_owner::name_of;

/// A process that holds a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockOwner {
    /// Its id.
    pub process_id: u32,
    /// Its name, as the kernel keeps it (15 bytes).
    pub name: String,
}

/// Those that hold the lock of this file, or a share of it.
pub fn lock_owners(path: &Path) -> Vec<LockOwner> {
    let (Ok(metadata), Ok(table)) = (fs::metadata(path), fs::read_to_string("/proc/locks")) else { return Vec::new() };
    let ids = holders(&table, metadata.ino());
    let owner = |process_id: u32| LockOwner { process_id, name: name_of(process_id) };
    ids.into_iter().filter(|id| has_open(*id, &metadata)).map(owner).collect()
}

/// Processes with a lock of flock(2) on a file of this number, on any file system; the columns are those of `proc_locks(5)`.
fn holders(table: &str, inode: u64) -> Vec<u32> {
    let holder = |line: &str| -> Option<u32> {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, "FLOCK", _, _, process_id, file, ..] = fields[..] else { return None };
        let number: u64 = file.rsplit_once(':')?.1.parse().ok()?;
        (number == inode).then(|| process_id.parse().ok())?
    };
    table.lines().filter_map(holder).collect()
}

/// The table has numbers of devices that are not always those that stat(2) tells.
fn has_open(process_id: u32, file: &fs::Metadata) -> bool {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{process_id}/fd")) else { return false };
    let is_it = |other: fs::Metadata| (other.dev(), other.ino()) == (file.dev(), file.ino());
    descriptors.flatten().any(|entry| fs::metadata(entry.path()).is_ok_and(is_it))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn whoever_has_a_lock_or_a_share_is_found_until_it_lets_go() {
        let path = std::env::temp_dir().join(format!("zerohop-lock-owner-{}", std::process::id()));
        let file = fs::File::create(&path).unwrap();
        let ids = || lock_owners(&path).iter().map(|owner| owner.process_id).collect::<Vec<_>>();
        assert_eq!(ids(), [0; 0]);
        file.lock_shared().unwrap();
        assert_eq!(ids(), [std::process::id()]);
        file.unlock().unwrap();
        file.lock().unwrap();
        assert_eq!(ids(), [std::process::id()]);
        file.unlock().unwrap();
        assert_eq!(ids(), [0; 0]);
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn who_waits_for_a_lock_does_not_have_it() {
        let table = "1: FLOCK  ADVISORY  WRITE 41 fe:00:77 0 EOF\n1: -> FLOCK  ADVISORY  WRITE 42 fe:00:77 0 EOF\n\
                     2: POSIX  ADVISORY  WRITE 43 fe:00:77 0 EOF\n3: FLOCK  ADVISORY  READ 44 fe:00:78 0 EOF\n";
        assert_eq!(holders(table, 77), [41]);
    }
}
