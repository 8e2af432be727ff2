//! What a disk makes us wait for, done beside the core: creating segments and syncing them, on a thread each, and writing a
//! manager's files on another.
//!
//! One thread for both held every reply of durability `commit` back for as long as a segment took to be filled: 14 to
//! 25 ms once a second at 75,000 writes a second (`zerohop bench`, 50 connections).
//!
//! It sleeps in a channel until there is work, and wakes its core when there is a result. It never retries:
//! after a failed sync the kernel may have dropped the very pages that failed, and a second, successful sync would lie.

use crate::files::{Readers, read_file, remove, replace_file, unfinished, write_file};
use crate::page_cache;
use crate::run_files::RunFiles;
use crate::segment_files::{NewSegment, create_segment, extend_segment, recycle_segment};
use base::ids::{LogOrdinal, SegmentNumber};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::{Builder, JoinHandle};

/// Jobs of one core that may wait or run; a machine asks for one sync and a few segments at a time.
const JOBS_MAX: usize = 64;

/// An open segment file; shared between the core that writes it and the thread that syncs it.
pub(crate) struct SegmentFile {
    pub segment: SegmentNumber,
    pub path: PathBuf,
    pub file: File,
}

/// Tells whoever collects results that there is one.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// A sync that was asked for: on a disk thread, or on the thread that waits for it.
pub struct LogSync {
    /// Oldest first, each with what was written since its last one.
    pub(crate) files: Vec<(Arc<SegmentFile>, Range<u64>)>,
    pub(crate) ordinal: LogOrdinal,
}

impl LogSync {
    /// Syncs, and blocks for as long as that takes.
    pub fn perform(self) -> LogSyncDone {
        for (segment, written) in &self.files {
            page_cache::begin_write_back(&segment.file, written.clone());
            if let Err(error) = segment.file.sync_data() {
                return LogSyncDone(Err(format!("{}: {error}", segment.path.display())));
            }
        }
        LogSyncDone(Ok(self.ordinal))
    }
}

/// What became of it: the last group that is durable, or the operating system's words.
pub struct LogSyncDone(pub(crate) Result<LogOrdinal, String>);

/// What the disk thread is asked to do.
pub(crate) enum DiskJob {
    /// A new file at `path`, or the one at `recycle` under that name.
    Create {
        segment: NewSegment,
        path: PathBuf,
        recycle: Option<PathBuf>,
    },
    /// Room in a segment that is there.
    Extend {
        file: Arc<SegmentFile>,
        bytes: u64,
    },
    Sync(LogSync),
    WriteRun {
        path: PathBuf,
        offset: u64,
        bytes: Vec<u8>,
        /// At offset 0: the file that becomes this one.
        recycle: Option<PathBuf>,
    },
    PublishRuns {
        paths: Vec<PathBuf>,
    },
    DropRuns {
        paths: Vec<PathBuf>,
    },
    Remove {
        paths: Vec<PathBuf>,
    },
    WriteFile {
        path: PathBuf,
        offset: u64,
        bytes: Vec<u8>,
    },
    ReplaceFile {
        path: PathBuf,
        bytes: Vec<u8>,
    },
    ReadFile {
        path: PathBuf,
        bytes_max: u64,
    },
}

/// What became of it.
pub(crate) enum DiskResult {
    Created(Arc<SegmentFile>),
    NotCreated {
        segment: SegmentNumber,
        reason: String,
    },
    Extended {
        segment: SegmentNumber,
        bytes: u64,
    },
    NotExtended(String),
    Synced(LogSyncDone),
    /// The thread is gone.
    Failed(String),
    /// The buffer goes back.
    RunWritten(Vec<u8>),
    RunsPublished,
    RunFailed(String),
    /// Files went, or cost room until the next start.
    Removed,
    FileDurable,
    FileFailed(String),
    FileRead(Result<Vec<u8>, String>),
}

/// The core's end of the thread.
pub(crate) struct DiskThread {
    jobs: Option<SyncSender<DiskJob>>,
    results: Receiver<DiskResult>,
    thread: Option<JoinHandle<()>>,
    in_flight: usize,
}

impl DiskThread {
    pub fn start(name: String, wake: Wake) -> io::Result<DiskThread> {
        let (jobs, todo) = sync_channel::<DiskJob>(JOBS_MAX);
        let (done, results) = sync_channel(JOBS_MAX);
        let thread = Builder::new().name(name).spawn(move || {
            let mut runs = RunFiles::default();
            for job in todo {
                // Never blocks: at most JOBS_MAX are in flight. The core has left when nobody receives.
                if done.send(perform(job, &mut runs)).is_err() {
                    return;
                }
                wake();
            }
        })?;
        Ok(DiskThread { jobs: Some(jobs), results, thread: Some(thread), in_flight: 0 })
    }

    /// Hands over a job; `Err` when the machine asked for more at once than it ever needs.
    pub fn submit(&mut self, job: DiskJob) -> Result<(), String> {
        if self.in_flight == JOBS_MAX {
            return Err(format!("more than {JOBS_MAX} jobs for one disk thread asked for at once"));
        }
        let jobs = self.jobs.as_ref().expect("jobs end only when the thread is dropped");
        jobs.send(job).map_err(|_| String::from("the disk thread is gone"))?;
        self.in_flight += 1;
        Ok(())
    }

    /// The next result, if there is one.
    pub fn result(&mut self) -> Option<DiskResult> {
        if self.in_flight == 0 {
            return None;
        }
        match self.results.try_recv() {
            Ok(result) => {
                self.in_flight -= 1;
                Some(result)
            }
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                self.in_flight = 0;
                Some(DiskResult::Failed(String::from("the disk thread is gone")))
            }
        }
    }
}

impl Drop for DiskThread {
    fn drop(&mut self) {
        // Ends the thread's loop after the jobs it already has.
        self.jobs = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            eprintln!("zerohop: the disk thread panicked");
        }
    }
}

fn perform(job: DiskJob, runs: &mut RunFiles) -> DiskResult {
    match job {
        DiskJob::Create { segment: new, path, recycle } => {
            let made = match recycle {
                Some(from) => recycle_segment(&from, &path, &new),
                None => create_segment(&path, &new),
            };
            let segment = new.segment;
            match made {
                Ok(file) => DiskResult::Created(Arc::new(SegmentFile { segment, path, file })),
                Err(error) => DiskResult::NotCreated { segment, reason: format!("{}: {error}", path.display()) },
            }
        }
        DiskJob::Extend { file, bytes } => match extend_segment(&file.file, bytes) {
            Ok(()) => DiskResult::Extended { segment: file.segment, bytes },
            Err(error) => DiskResult::NotExtended(format!("{}: {error}", file.path.display())),
        },
        DiskJob::Sync(sync) => DiskResult::Synced(sync.perform()),
        DiskJob::WriteRun { path, offset, bytes, recycle } => {
            let result = runs.write(&path, (offset, &bytes), recycle.as_deref());
            run_result(std::slice::from_ref(&path), runs, result, DiskResult::RunWritten(bytes))
        }
        DiskJob::PublishRuns { paths } => {
            let result = runs.publish(&paths);
            run_result(&paths, runs, result, DiskResult::RunsPublished)
        }
        DiskJob::DropRuns { paths } => {
            paths.iter().for_each(|path| complain(path, runs.drop_run(path)));
            DiskResult::Removed
        }
        DiskJob::Remove { paths } => {
            for path in &paths {
                page_cache::forget(path);
                complain(path, remove(path));
            }
            DiskResult::Removed
        }
        DiskJob::WriteFile { path, offset, bytes } => file_result(&path, write_file(&path, offset, &bytes)),
        DiskJob::ReplaceFile { path, bytes } => {
            // A node's token, its users: what is written by name may be a secret.
            let result = replace_file(&path, &bytes, Readers::Owner);
            if result.is_err() {
                // What there is of it takes room; that nothing is there to remove is fine.
                complain(&unfinished(&path), remove(&unfinished(&path)));
            }
            file_result(&path, result)
        }
        DiskJob::ReadFile { path, bytes_max } => {
            let read = read_file(&path, bytes_max);
            DiskResult::FileRead(read.map_err(|error| format!("{}: {error}", path.display())))
        }
    }
}

fn file_result(path: &Path, result: io::Result<()>) -> DiskResult {
    match result {
        Ok(()) => DiskResult::FileDurable,
        Err(error) => DiskResult::FileFailed(format!("{}: {error}", path.display())),
    }
}

/// What became of runs; of those that failed nothing is left, so that they take no room from the log.
fn run_result(paths: &[PathBuf], runs: &mut RunFiles, result: io::Result<()>, done: DiskResult) -> DiskResult {
    let Err(error) = result else { return done };
    for path in paths {
        complain(path, runs.drop_run(path));
        complain(path, remove(path));
    }
    let first = paths.first().map_or_else(String::new, |path| path.display().to_string());
    DiskResult::RunFailed(format!("{first}: {error}"))
}

fn complain(path: &Path, result: io::Result<()>) {
    if let Err(error) = result {
        eprintln!("zerohop: {} is not needed and cannot be removed: {error}", path.display());
    }
}
