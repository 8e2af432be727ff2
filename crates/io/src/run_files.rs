//! Runs on the disk: written beside their name, past the page cache, then synced, named and made durable under it.
//!
//! Nobody reads a run before the next start, so its pages in the cache would only push out others. Direct writes want
//! whole blocks: bytes gather here until there are enough, and the last block is filled up and cut off again.
//!
//! ```text
//!  make      next.run.new, emptied if it is there ─┐
//!  recycle   old.run, as it is                    ─┴─ write over it ─ cut where much is left ─ sync ─ rename ─► next.run ─ sync directory
//! ```
//!
//! A run says itself where it ends, so what is left of an old one behind it may stay, up to a share: a file that keeps its length has nothing
//! to sync but its content, and one that is cut within a block first reads that block.
//!
//! What is recycled is replaced by another run whose name is durable, so a start removes it unread, whatever is in it by then. Its blocks
//! are there, and a direct write need not find any.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use base::limits::RUN_ROOM_SHARE;

use crate::direct_memory::{ALIGN_BYTES, DirectMemory, WRITE_BYTES};
use crate::files::{remove, unfinished};

/// The run that is being written, by one disk thread.
#[derive(Default)]
pub(crate) struct RunFiles {
    current: Option<RunFile>,
    /// For the run under way; one for all of them, since a first touch of so much memory costs half of what a write does.
    memory: Option<DirectMemory>,
    /// Runs that have their end, or failed to get it, and not yet their name.
    whole: Vec<RunFile>,
    /// Where runs lie, from the first one on.
    directory: Option<File>,
}

struct RunFile {
    /// The name that it will have, and the one that it has.
    path: PathBuf,
    beside: PathBuf,
    file: File,
    is_direct: bool,
    /// Bytes that wait in memory.
    filled: usize,
    /// Bytes in the file.
    written: u64,
    /// How long the file was that it takes the place of.
    old_bytes: u64,
    /// Why its end could not be written.
    failure: Option<String>,
}

impl RunFiles {
    /// Takes the next bytes of a run; those at offset 0 make it, or empty one that was left over, or make it out of the file at `recycle`.
    pub(crate) fn write(
        &mut self,
        path: &Path,
        (offset, bytes): (u64, &[u8]),
        recycle: Option<&Path>,
    ) -> io::Result<()> {
        if offset == 0 {
            self.finish();
            self.whole.retain(|run| run.path != path);
            self.current = Some(RunFile::make(path, recycle)?);
        }
        match &mut self.current {
            Some(run) if run.path == path && run.written + run.filled as u64 == offset => {
                let memory = match &mut self.memory {
                    Some(memory) => memory,
                    none => none.insert(DirectMemory::new()?),
                };
                run.append(bytes, memory)
            }
            _ => Err(io::Error::other("a run is written from its beginning to its end")),
        }
    }

    /// Makes runs durable, then gives them their names, then makes those durable: whoever finds a name finds all of the run.
    pub(crate) fn publish(&mut self, paths: &[PathBuf]) -> io::Result<()> {
        self.finish();
        for path in paths {
            let run = self.whole.iter().find(|run| run.path == *path);
            let run = run.ok_or_else(|| io::Error::other(format!("{} was not written", path.display())))?;
            if let Some(reason) = &run.failure {
                let shown = path.display();
                return Err(io::Error::other(format!("the end of {shown} could not be written: {reason}")));
            }
            run.file.sync_data()?;
        }
        for run in self.whole.iter().filter(|run| paths.contains(&run.path)) {
            fs::rename(&run.beside, &run.path)?;
        }
        self.whole.retain(|run| !paths.contains(&run.path));
        paths.first().map_or(Ok(()), |path| self.sync_directory_of(path))
    }

    fn sync_directory_of(&mut self, path: &Path) -> io::Result<()> {
        let directory = match &self.directory {
            Some(directory) => directory,
            None => self.directory.insert(File::open(path.parent().expect("a run lies in the data directory"))?),
        };
        directory.sync_all()
    }

    /// Removes a run that was not published.
    pub(crate) fn drop_run(&mut self, path: &Path) -> io::Result<()> {
        let current = self.current.take_if(|run| run.path == path);
        let mut dropped = current.into_iter().chain(self.whole.extract_if(.., |run| run.path == path));
        dropped.try_for_each(|run| remove(&run.beside))?;
        remove(&unfinished(path))
    }

    /// No more bytes come to the run under way. That it has no end is no fault of the next one: it is told when this one is published.
    fn finish(&mut self) {
        if let (Some(mut run), Some(memory)) = (self.current.take(), &mut self.memory) {
            run.failure = run.finish(memory).err().map(|error| error.to_string());
            self.whole.push(run);
        }
    }
}

impl RunFile {
    fn make(path: &Path, recycle: Option<&Path>) -> io::Result<RunFile> {
        let (mut reopened, mut made) = (OpenOptions::new(), OpenOptions::new());
        reopened.write(true);
        made.write(true).create(true).truncate(true);
        let old = recycle.and_then(|old| Some((open(&reopened, old).ok()?, old.to_owned())));
        let is_recycled = old.is_some();
        let ((file, is_direct), beside) = match old {
            Some(old) => old,
            None => {
                recycle.map_or(Ok(()), remove)?;
                (open(&made, &unfinished(path))?, unfinished(path))
            }
        };
        let old_bytes = if is_recycled { file.metadata()?.len() } else { 0 };
        Ok(RunFile { path: path.to_owned(), beside, file, is_direct, filled: 0, written: 0, old_bytes, failure: None })
    }

    fn append(&mut self, mut bytes: &[u8], memory: &mut DirectMemory) -> io::Result<()> {
        while !bytes.is_empty() {
            let count = bytes.len().min(WRITE_BYTES - self.filled);
            let (now, later) = bytes.split_at(count);
            memory.bytes_mut()[self.filled..][..count].copy_from_slice(now);
            (self.filled, bytes) = (self.filled + count, later);
            if self.filled == WRITE_BYTES {
                self.write_out(memory.bytes())?;
                (self.written, self.filled) = (self.written + WRITE_BYTES as u64, 0);
            }
        }
        Ok(())
    }

    fn write_out(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.file.write_all_at(bytes, self.written) {
            // Some file systems take the flag and refuse the write; what counts is that the bytes are there.
            Err(error) if self.is_direct && error.kind() == io::ErrorKind::InvalidInput => {
                self.file = OpenOptions::new().write(true).open(&self.beside)?;
                self.is_direct = false;
                self.file.write_all_at(bytes, self.written)
            }
            other => other,
        }
    }

    fn finish(&mut self, memory: &mut DirectMemory) -> io::Result<()> {
        let whole = self.filled.next_multiple_of(ALIGN_BYTES);
        memory.bytes_mut()[self.filled..whole].fill(0);
        self.write_out(&memory.bytes()[..whole])?;
        let bytes = self.written + whole as u64;
        match self.old_bytes > bytes + bytes / RUN_ROOM_SHARE {
            true => self.file.set_len(bytes),
            false => Ok(()),
        }
    }
}

/// For direct writes, which not every file system knows, and whether it does.
fn open(options: &OpenOptions, path: &Path) -> io::Result<(File, bool)> {
    match options.clone().custom_flags(OFlags::DIRECT.bits() as i32).open(path) {
        Ok(file) => Ok((file, true)),
        Err(_) => Ok((options.open(path)?, false)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("zerohop-runs-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        directory
    }

    /// Of a file whose content has no zeros.
    fn content(path: &Path) -> Vec<u8> {
        fs::read(path).unwrap().into_iter().take_while(|byte| *byte != 0).collect()
    }

    #[test]
    fn a_run_has_its_name_only_when_it_is_whole() {
        let directory = scratch("name");
        let path = directory.join("g00.run");
        let mut runs = RunFiles::default();
        runs.write(&path, (0, b"of an attempt that failed"), None).unwrap();
        runs.write(&path, (0, b"first"), None).unwrap();
        runs.write(&path, (5, b" second"), None).unwrap();
        assert!(!path.exists());
        runs.publish(std::slice::from_ref(&path)).unwrap();
        assert_eq!(content(&path), b"first second");
        assert!(!unfinished(&path).exists(), "it has one name");
        runs.write(&path, (0, b"another"), None).unwrap();
        runs.drop_run(&path).unwrap();
        runs.drop_run(&path).unwrap();
        assert!(runs.write(&path, (7, b"of a run that was dropped"), None).is_err());
        assert!(runs.publish(std::slice::from_ref(&path)).is_err());
        remove(&path).unwrap();
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_run_takes_the_place_of_one_that_is_longer_or_shorter_or_gone() {
        let directory = scratch("recycle");
        let path = |number: usize| directory.join(format!("g{number:02}.run"));
        let mut runs = RunFiles::default();
        let long = vec![7; WRITE_BYTES + 3 * ALIGN_BYTES + 5];
        runs.write(&path(0), (0, &long), None).unwrap();
        runs.publish(&[path(0)]).unwrap();
        let first = File::open(path(0)).unwrap();
        for (number, content) in [(1, b"short".to_vec()), (2, vec![8; 2 * WRITE_BYTES]), (3, Vec::new())] {
            // An attempt that came to nothing may have left something there.
            fs::write(unfinished(&path(number)), b"left").unwrap();
            runs.write(&path(number), (0, &content), Some(&path(number - 1))).unwrap();
            assert!(path(number - 1).exists() && !path(number).exists(), "it has its old name");
            runs.publish(&[path(number)]).unwrap();
            assert!(!path(number - 1).exists(), "it has one name");
            let file = fs::read(path(number)).unwrap();
            assert!(file.starts_with(&content), "{number}");
            assert_eq!(file.len(), content.len().next_multiple_of(ALIGN_BYTES), "{number}");
        }
        assert_eq!(first.metadata().unwrap().len(), 0, "it was the same file all the time");
        runs.write(&path(4), (0, b"new"), Some(&path(0))).unwrap();
        runs.publish(&[path(4)]).unwrap();
        assert_eq!(content(&path(4)), b"new", "where there is none to take one is made");
        runs.write(&path(5), (0, b"not wanted"), Some(&path(4))).unwrap();
        runs.drop_run(&path(5)).unwrap();
        assert!(!path(4).exists() && !path(5).exists(), "what it took is gone with it");
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_file_keeps_its_length_where_it_is_a_little_too_long() {
        let directory = scratch("keeps");
        let path = |number: usize| directory.join(format!("g{number:02}.run"));
        let mut runs = RunFiles::default();
        // Of 255 blocks another is less than a 128th, of 254 two are more.
        let cases = [(1, 256, 256), (2, 255, 256), (3, 254, 254), (4, 256, 256), (5, 1, 1)];
        for (number, blocks, file_blocks) in cases {
            let content = vec![number as u8; blocks * ALIGN_BYTES - 100];
            runs.write(&path(number), (0, &content), Some(&path(number - 1))).unwrap();
            runs.publish(&[path(number)]).unwrap();
            let file = fs::read(path(number)).unwrap();
            assert!(file.starts_with(&content), "{number}");
            assert_eq!(file.len() / ALIGN_BYTES, file_blocks, "{number}");
            assert!(file[content.len()..blocks * ALIGN_BYTES].iter().all(|byte| *byte == 0), "{number}");
        }
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_run_whose_end_fails_when_the_next_one_begins_is_never_published() {
        let directory = scratch("end");
        let paths: Vec<PathBuf> = (0..3).map(|number| directory.join(format!("g{number:02}.run"))).collect();
        let mut runs = RunFiles::default();
        runs.write(&paths[0], (0, b"whole"), None).unwrap();
        runs.write(&paths[1], (0, b"its end finds no room"), None).unwrap();
        let current = runs.current.as_mut().unwrap();
        current.file = File::open(unfinished(&current.path)).unwrap();
        current.is_direct = false;
        // They settle together, and the next one has nothing to do with it.
        runs.write(&paths[2], (0, b"whole, too"), None).unwrap();
        assert!(runs.publish(&paths).unwrap_err().to_string().contains("g01.run could not be written"));
        assert!(paths.iter().all(|path| !path.exists()), "none of them has its name");
        for path in &paths {
            runs.drop_run(path).unwrap();
        }
        // Made anew it is as good as any.
        runs.write(&paths[1], (0, b"with its end"), None).unwrap();
        runs.publish(&paths[1..2]).unwrap();
        assert_eq!(content(&paths[1]), b"with its end");
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn runs_of_any_length_are_whole() {
        let directory = scratch("length");
        let content: Vec<u8> = (0..2 * WRITE_BYTES + 2 * ALIGN_BYTES).map(|at| (at / 7) as u8).collect();
        let mut runs = RunFiles::default();
        let mut expected = Vec::new();
        let lengths = [0, 1, ALIGN_BYTES, WRITE_BYTES - 1, WRITE_BYTES, WRITE_BYTES + 1, content.len()];
        for (number, length) in lengths.into_iter().enumerate() {
            let path = directory.join(format!("g{number:02}.run"));
            runs.write(&path, (0, &content[..length.min(64)]), None).unwrap();
            for offset in (64..length).step_by(100_000) {
                runs.write(&path, (offset as u64, &content[offset..length.min(offset + 100_000)]), None).unwrap();
            }
            expected.push((path, &content[..length]));
        }
        let paths: Vec<PathBuf> = expected.iter().map(|(path, _)| path.clone()).collect();
        runs.publish(&paths).unwrap();
        for (path, content) in expected {
            let file = fs::read(&path).unwrap();
            assert!(file.starts_with(content), "{} is not what was written", path.display());
            assert_eq!(file.len(), content.len().next_multiple_of(ALIGN_BYTES));
        }
        fs::remove_dir_all(&directory).unwrap();
    }
}
