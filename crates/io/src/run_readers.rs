//! Reads of runs beside the core: a few threads that each wait for the disk, past the page cache.
//!
//! Past it, because what is read goes into the store's memory: kept twice it would count twice under a limit of the process's
//! group. A thread per read that waits costs two switches; a record of a few hundred bytes costs the disk a block anyway.

use crate::disk_thread::Wake;
use rustix::fs::OFlags;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{Builder, JoinHandle};

/// Threads of one core: reads that a disk works on at once.
const THREADS: usize = 8;
/// What direct reads are aligned to, bytes.
const ALIGN_BYTES: u64 = 4096;
/// Memory that a thread keeps for the next read, bytes.
const KEPT_BYTES_MAX: usize = 320 << 10;

/// A read that is to be done.
struct Job {
    token: u64,
    path: PathBuf,
    offset: u64,
    bytes: usize,
}

/// What became of it.
pub(crate) type Done = (u64, Result<Vec<u8>, String>);

/// An open run.
struct RunFile {
    file: File,
    is_direct: bool,
}

type OpenFiles = Arc<Mutex<HashMap<PathBuf, Arc<RunFile>>>>;

/// The core's end of the threads; a machine bounds how many reads are under way.
pub(crate) struct RunReaders {
    jobs: Option<Sender<Job>>,
    results: Receiver<Done>,
    open: OpenFiles,
    threads: Vec<JoinHandle<()>>,
    in_flight: usize,
}

impl RunReaders {
    pub fn start(core: u16, wake: &Wake) -> io::Result<RunReaders> {
        let (jobs, todo) = channel::<Job>();
        let (done, results) = channel();
        let (todo, open) = (Arc::new(Mutex::new(todo)), OpenFiles::default());
        let mut threads = Vec::new();
        for number in 0..THREADS {
            let (todo, done, open, wake) = (Arc::clone(&todo), done.clone(), Arc::clone(&open), Arc::clone(wake));
            let thread = Builder::new().name(format!("read-{core}-{number}"));
            threads.push(thread.spawn(move || serve(&todo, &done, &open, &wake))?);
        }
        Ok(RunReaders { jobs: Some(jobs), results, open, threads, in_flight: 0 })
    }

    pub fn submit(&mut self, token: u64, path: PathBuf, offset: u64, bytes: usize) {
        let jobs = self.jobs.as_ref().expect("jobs end only when the threads are dropped");
        jobs.send(Job { token, path, offset, bytes }).expect("threads receive until jobs end");
        self.in_flight += 1;
    }

    /// The next result, if there is one.
    pub fn result(&mut self) -> Option<Done> {
        if self.in_flight == 0 {
            return None;
        }
        match self.results.try_recv() {
            Ok(done) => {
                self.in_flight -= 1;
                Some(done)
            }
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => None,
        }
    }

    /// These files go: their room is free only once nobody has them open.
    pub fn forget(&self, paths: &[PathBuf]) {
        let mut open = lock(&self.open);
        paths.iter().for_each(|path| drop(open.remove(path)));
    }
}

impl Drop for RunReaders {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                eprintln!("zerohop: a reader thread panicked");
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn serve(todo: &Mutex<Receiver<Job>>, done: &Sender<Done>, open: &OpenFiles, wake: &Wake) {
    let mut memory = Vec::new();
    loop {
        let Ok(job) = lock(todo).recv() else { return };
        let read = open_run(open, &job.path).and_then(|file| read(&file, job.offset, job.bytes, &mut memory));
        let read = read.map_err(|error| format!("{} at offset {}: {error}", job.path.display(), job.offset));
        if done.send((job.token, read)).is_err() {
            return;
        }
        wake();
    }
}

fn open_run(open: &OpenFiles, path: &Path) -> io::Result<Arc<RunFile>> {
    if let Some(file) = lock(open).get(path) {
        return Ok(Arc::clone(file));
    }
    let mut options = OpenOptions::new();
    options.read(true);
    let direct = options.clone().custom_flags(OFlags::DIRECT.bits() as i32).open(path);
    let is_direct = direct.is_ok();
    // Not every file system knows direct reads.
    let file = Arc::new(RunFile { file: direct.or_else(|_| options.open(path))?, is_direct });
    lock(open).insert(path.to_owned(), Arc::clone(&file));
    Ok(file)
}

fn read(run: &RunFile, offset: u64, bytes: usize, memory: &mut Vec<u8>) -> io::Result<Vec<u8>> {
    if !run.is_direct {
        let mut content = vec![0; bytes];
        run.file.read_exact_at(&mut content, offset)?;
        return Ok(content);
    }
    let first = offset / ALIGN_BYTES * ALIGN_BYTES;
    let end = (offset + bytes as u64).next_multiple_of(ALIGN_BYTES);
    let whole = (end - first) as usize;
    memory.resize(memory.len().max(whole + ALIGN_BYTES as usize), 0);
    let start = memory.as_ptr().align_offset(ALIGN_BYTES as usize);
    let mut filled = 0;
    let wanted = (offset - first) as usize + bytes;
    // The file's end need not be aligned: a short read is whole if it has what was asked for.
    while filled < wanted {
        let count = run.file.read_at(&mut memory[start + filled..start + whole], first + filled as u64)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        filled += count;
    }
    let content = memory[start + (offset - first) as usize..][..bytes].to_vec();
    if memory.len() > KEPT_BYTES_MAX {
        *memory = Vec::new();
    }
    Ok(content)
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
        let open = OpenFiles::default();
        let mut memory = Vec::new();
        for (offset, bytes) in [(0, 1), (0, 20_001), (4095, 2), (4096, 4096), (20_000, 1), (16_384, 3617), (77, 9000)] {
            let file = open_run(&open, &path).unwrap();
            let read = read(&file, offset as u64, bytes, &mut memory).unwrap();
            assert!(read == content[offset..offset + bytes], "{bytes} at {offset}");
        }
        let file = open_run(&open, &path).unwrap();
        assert!(read(&file, 20_000, 2, &mut memory).is_err(), "behind the end there is nothing");
        assert_eq!(lock(&open).len(), 1);
        fs::remove_dir_all(&directory).unwrap();
    }
}
