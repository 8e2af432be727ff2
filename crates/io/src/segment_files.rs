//! Segments on the disk: made with room that is filled, or out of one that nobody needs any more. Whatever has a segment's name is whole.
//!
//! ```text
//!  create    new.log.new with header and room, sync ─ rename ─► new.log ─ sync directory
//!  recycle   old.log ─ rename ─► new.log.new ─ sync directory ─ header, sync ─ rename ─► new.log ─ sync directory
//!            a start finds: old.log whole │ new.log.new, which it removes              │ new.log whole
//! ```

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use base::SegmentNumber;
use rustix::fs::{FallocateFlags, fallocate};

use crate::files::{remove, sync_directory, unfinished};
use crate::page_cache;

/// How much is zero-filled before the CPU is offered to others, bytes: about 0.1 ms, because on a machine of few CPUs
/// this thread shares one with a core that has clients to answer. It is also what the operating system keeps as one piece of
/// its cache as long as the segment, and those it becomes later, live, where small groups make pages
/// one by one (`docs/internals/data-file.md`, segment).
const ZERO_FILL_BYTES: usize = 256 << 10;

/// A segment to be made.
#[derive(Debug)]
pub struct NewSegment {
    /// Which.
    pub segment: SegmentNumber,
    /// Its header, byte for byte.
    pub header: Vec<u8>,
    /// Room to reserve and to fill, header included: a sync of what is written there later has no metadata to write.
    pub bytes: u64,
}

/// Makes a segment's file, and its directory entry durable. What cannot be completed is removed again, so that it can be
/// tried anew.
pub fn create_segment(path: &Path, new: &NewSegment) -> io::Result<File> {
    let file = make_segment(path, new)?;
    remove_unless(sync_directory(directory_of(path)), path)?;
    Ok(file)
}

/// As [`create_segment`], without making the directory entry durable: whoever makes several does that once.
pub fn make_segment(path: &Path, new: &NewSegment) -> io::Result<File> {
    // A file that is already there holds somebody's data: never truncated, always an error.
    if path.exists() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let beside = unfinished(path);
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&beside)?;
    let made = fill_segment(&file, new).and_then(|()| fs::rename(&beside, path));
    remove_unless(made, &beside)?;
    Ok(file)
}

/// As [`create_segment`], out of the file at `from`. Where that fails, a new one is made.
pub(crate) fn recycle_segment(from: &Path, path: &Path, new: &NewSegment) -> io::Result<File> {
    let beside = unfinished(path);
    rename_segment(from, path, &beside, new).or_else(|_| {
        remove(from)?;
        remove(&beside)?;
        create_segment(path, new)
    })
}

fn rename_segment(from: &Path, path: &Path, beside: &Path, new: &NewSegment) -> io::Result<File> {
    if path.exists() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    fs::rename(from, beside)?;
    // Before anything in it changes: under its old name it would be a damaged segment.
    sync_directory(directory_of(path))?;
    let file = OpenOptions::new().read(true).write(true).open(beside)?;
    file.write_all_at(&new.header, 0)?;
    // It may have grown while its successor was not ready.
    let bytes = file.metadata()?.len();
    if bytes > new.bytes {
        page_cache::forget_range(&file, new.bytes..bytes);
        file.set_len(new.bytes)?;
    }
    reserve(&file, new.bytes)?;
    file.sync_data()?;
    fs::rename(beside, path)?;
    sync_directory(directory_of(path))?;
    Ok(file)
}

fn fill_segment(file: &File, new: &NewSegment) -> io::Result<()> {
    file.write_all_at(&new.header, 0)?;
    reserve(file, new.bytes)?;
    let zeros = vec![0u8; ZERO_FILL_BYTES];
    let mut offset = new.header.len() as u64;
    while offset < new.bytes {
        // Pieces end where the cache's do.
        let end = (offset + 1).next_multiple_of(ZERO_FILL_BYTES as u64).min(new.bytes);
        file.write_all_at(&zeros[..(end - offset) as usize], offset)?;
        offset = end;
        std::thread::yield_now();
    }
    file.sync_data()
}

/// Room for a group that goes beyond what the segment was made with.
pub(crate) fn extend_segment(file: &File, bytes: u64) -> io::Result<()> {
    reserve(file, bytes)
}

/// Room, so that no write finds the disk full, and length, so that a file that was cut off is shorter than it says.
fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    match fallocate(file, FallocateFlags::empty(), 0, bytes) {
        // A file system without reservations promises no room.
        Err(rustix::io::Errno::OPNOTSUPP) => file.set_len(file.metadata()?.len().max(bytes)),
        other => Ok(other?),
    }
}

fn remove_unless(result: io::Result<()>, path: &Path) -> io::Result<()> {
    if result.is_err() {
        fs::remove_file(path)?;
    }
    result
}

fn directory_of(path: &Path) -> &Path {
    path.parent().expect("a segment lies in the data directory")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_segment_becomes_the_next_one() {
        let directory = std::env::temp_dir().join(format!("zerohop-recycle-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let (from, path) = (directory.join("1.log"), directory.join("2.log"));
        let new = |segment: u64, header: &[u8]| NewSegment {
            segment: SegmentNumber(segment),
            header: header.to_vec(),
            bytes: 1 << 20,
        };
        let old = create_segment(&from, &new(1, b"head 1")).unwrap();
        old.write_all_at(&vec![7; 2 << 20], 6).unwrap();
        recycle_segment(&from, &path, &new(2, b"head 2")).unwrap();
        let content = fs::read(&path).unwrap();
        assert_eq!(content[..8], *b"head 2\x07\x07");
        assert_eq!(content.len(), 1 << 20, "what it had grown by is given back");
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);

        // Room for a long group leaves what is there, and never makes a file shorter.
        let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        for (asked, is) in [(3 << 20, 3 << 20), (1 << 20, 3 << 20)] {
            extend_segment(&file, asked).unwrap();
            assert_eq!(file.metadata().unwrap().len(), is);
        }
        let extended = fs::read(&path).unwrap();
        assert!(extended[..1 << 20] == content && extended[1 << 20..].iter().all(|byte| *byte == 0));
        file.set_len(1 << 20).unwrap();

        // One that is not there any more does no harm, and none that is there is replaced.
        let third = recycle_segment(&from, &directory.join("3.log"), &new(3, b"head 3")).unwrap();
        assert_eq!(third.metadata().unwrap().len(), 1 << 20);
        assert!(recycle_segment(&directory.join("3.log"), &path, &new(2, b"again!")).is_err());
        assert_eq!(fs::read(&path).unwrap(), content);
        fs::remove_dir_all(&directory).unwrap();
    }
}
