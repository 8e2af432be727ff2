//! One read of a run: the stretch that was asked for, widened to what a direct read wants, and the memory that it goes to.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::OFlags;

/// What direct reads are aligned to, bytes.
const ALIGN_BYTES: u64 = 4096;

/// A read that is to be done.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub token: u64,
    pub path: PathBuf,
    pub offset: u64,
    pub bytes: usize,
}

impl Job {
    /// What is said of one that failed.
    pub fn failure(&self, error: &io::Error) -> String {
        format!("{} at offset {}: {error}", self.path.display(), self.offset)
    }
}

/// An open run.
#[derive(Debug)]
pub(crate) struct RunFile {
    pub file: File,
    pub is_direct: bool,
}

/// Runs that are open, for all who read them.
#[derive(Clone, Default)]
pub(crate) struct OpenRuns(Arc<Mutex<HashMap<PathBuf, Arc<RunFile>>>>);

impl OpenRuns {
    /// The run at `path`, opened if it is not yet.
    pub fn get(&self, path: &Path) -> io::Result<Arc<RunFile>> {
        if let Some(file) = self.lock().get(path) {
            return Ok(Arc::clone(file));
        }
        let mut options = OpenOptions::new();
        options.read(true);
        let direct = options.clone().custom_flags(OFlags::DIRECT.bits() as i32).open(path);
        let is_direct = direct.is_ok();
        // Not every file system knows direct reads.
        let file = Arc::new(RunFile { file: direct.or_else(|_| options.open(path))?, is_direct });
        self.lock().insert(path.to_owned(), Arc::clone(&file));
        Ok(file)
    }

    /// These files go: their room is free only once nobody has them open.
    pub fn forget(&self, paths: &[PathBuf]) {
        let mut open = self.lock();
        paths.iter().for_each(|path| drop(open.remove(path)));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PathBuf, Arc<RunFile>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A job's bytes and those around them.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    /// In the file.
    first: u64,
    /// Bytes from there on.
    whole: usize,
    /// Of them, those before what was asked for.
    skipped: usize,
}

impl Stretch {
    fn of(job: &Job) -> Stretch {
        let first = job.offset / ALIGN_BYTES * ALIGN_BYTES;
        let end = (job.offset + job.bytes as u64).next_multiple_of(ALIGN_BYTES);
        Stretch { first, whole: (end - first) as usize, skipped: (job.offset - first) as usize }
    }

    /// Bytes that have to be there. The file's end need not be aligned: a short read is whole if it has what was asked for.
    fn wanted(self, job: &Job) -> usize {
        self.skipped + job.bytes
    }
}

/// Where an aligned stretch begins in `memory`, which is made long enough.
fn aligned_start(memory: &mut Vec<u8>, whole: usize) -> usize {
    memory.resize(memory.len().max(whole + ALIGN_BYTES as usize), 0);
    memory.as_ptr().align_offset(ALIGN_BYTES as usize)
}

/// A direct read that a kernel does beside us: it owns what the kernel writes to.
#[derive(Debug)]
pub(crate) struct RunRead {
    pub job: Job,
    file: Arc<RunFile>,
    stretch: Stretch,
    memory: Vec<u8>,
    start: usize,
}

/// What the kernel is told.
pub(crate) struct Target {
    pub descriptor: i32,
    pub offset: u64,
    pub memory: *mut u8,
    pub bytes: u32,
}

impl RunRead {
    /// Of a file that is read directly; `None` of any other, which would make whoever asks wait for it.
    pub fn of(job: &Job, open: &OpenRuns) -> Option<RunRead> {
        let file = open.get(&job.path).ok().filter(|file| file.is_direct)?;
        let stretch = Stretch::of(job);
        let mut memory = Vec::new();
        let start = aligned_start(&mut memory, stretch.whole);
        Some(RunRead { job: job.clone(), file, stretch, memory, start })
    }

    /// The memory stays where it is as long as this lives, wherever this itself is moved to.
    pub fn target(&mut self) -> Target {
        let memory = &mut self.memory[self.start..][..self.stretch.whole];
        Target {
            descriptor: self.file.file.as_raw_fd(),
            offset: self.stretch.first,
            memory: memory.as_mut_ptr(),
            bytes: memory.len() as u32,
        }
    }

    /// What was asked for, if `count` bytes from the start are enough for it; otherwise the job, to be done with patience.
    pub fn content(mut self, count: usize) -> Result<Vec<u8>, Job> {
        if count < self.stretch.wanted(&self.job) {
            return Err(self.job);
        }
        let begin = self.start + self.stretch.skipped;
        self.memory.truncate(begin + self.job.bytes);
        Ok(self.memory.split_off(begin))
    }
}

/// Reads runs of one directory on whatever thread calls, past the page cache.
#[derive(Clone)]
pub struct RunReader {
    directory: Arc<Path>,
    open: OpenRuns,
}

impl RunReader {
    pub(crate) fn new(directory: &Path, open: &OpenRuns) -> RunReader {
        RunReader { directory: directory.into(), open: open.clone() }
    }

    /// So many bytes of the run with this name.
    ///
    /// # Errors
    /// The file, the offset and the operating system's words.
    pub fn read(&self, name: &str, offset: u64, bytes: usize) -> Result<Vec<u8>, String> {
        let job = Job { token: 0, path: self.directory.join(name), offset, bytes };
        let content = self.open.get(&job.path).and_then(|run| read(&run, &job, &mut Vec::new()));
        content.map_err(|error| job.failure(&error))
    }
}

/// Does a job on the calling thread; `memory` is kept for the next one.
pub(crate) fn read(run: &RunFile, job: &Job, memory: &mut Vec<u8>) -> io::Result<Vec<u8>> {
    if !run.is_direct {
        let mut content = vec![0; job.bytes];
        run.file.read_exact_at(&mut content, job.offset)?;
        return Ok(content);
    }
    let stretch = Stretch::of(job);
    let start = aligned_start(memory, stretch.whole);
    let mut filled = 0;
    while filled < stretch.wanted(job) {
        let rest = &mut memory[start + filled..start + stretch.whole];
        let count = run.file.read_at(rest, stretch.first + filled as u64)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        filled += count;
    }
    Ok(memory[start + stretch.skipped..][..job.bytes].to_vec())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;

    #[test]
    fn any_stretch_of_a_file_is_read_as_it_is() {
        let directory = std::env::temp_dir().join(format!("zerohop-readers-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("run");
        let content: Vec<u8> = (0..20_001u32).map(|at| (at / 5) as u8).collect();
        fs::write(&path, &content).unwrap();
        let open = OpenRuns::default();
        let mut memory = Vec::new();
        let job = |offset: usize, bytes: usize| Job { token: 1, path: path.clone(), offset: offset as u64, bytes };
        for (offset, bytes) in [(0, 1), (0, 20_001), (4095, 2), (4096, 4096), (20_000, 1), (16_384, 3617), (77, 9000)] {
            let job = job(offset, bytes);
            let expected = &content[offset..offset + bytes];
            assert!(read(&open.get(&path).unwrap(), &job, &mut memory).unwrap() == expected, "{bytes} at {offset}");
            // What a kernel does with the target.
            let Some(mut beside) = RunRead::of(&job, &open) else { continue };
            let Target { offset: first, bytes: whole, .. } = beside.target();
            let (first, end) = (first as usize, (first as usize + whole as usize).min(content.len()));
            let start = beside.start;
            beside.memory[start..start + end - first].copy_from_slice(&content[first..end]);
            assert!(beside.content(end - first).unwrap() == expected, "{bytes} at {offset}");
        }
        assert!(read(&open.get(&path).unwrap(), &job(20_000, 2), &mut memory).is_err(), "behind the end is nothing");
        assert_eq!(open.lock().len(), 1);
        open.forget(std::slice::from_ref(&path));
        assert_eq!(open.lock().len(), 0);
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_read_that_was_cut_off_is_no_content() {
        let path = std::env::temp_dir().join(format!("zerohop-short-read-{}", std::process::id()));
        fs::write(&path, vec![7; 8192]).unwrap();
        let (open, job) = (OpenRuns::default(), Job { token: 9, path: path.clone(), offset: 4000, bytes: 200 });
        if let Some(read) = RunRead::of(&job, &open) {
            assert_eq!(read.content(4199).unwrap_err().token, 9);
            assert_eq!(RunRead::of(&job, &open).unwrap().content(4200).unwrap().len(), 200);
        }
        fs::remove_file(&path).unwrap();
    }
}
