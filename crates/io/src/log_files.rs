//! The log's files of one core: written on the tick's thread, created and synced on two disk threads. Where no core loop
//! runs, whoever waits for a sync performs it (see `log_street`).
//!
//! ```text
//!   WriteLog ──► pwrite into the page cache ──► LogWritten        (survives kill -9)
//!   SyncLog ───► every file written since its last sync, oldest first ──► fdatasync ──► LogSynced   (survives a power cut)
//! ```
//!
//! The first failure is final. Afterwards nothing is written, nothing is reported synced, and after a failed *write*
//! nothing is sent either ([`LogFiles::forbids_sends`]): those bytes may promise what the disk refused.

use crate::disk_thread::{DiskJob, DiskResult, DiskThread, LogSync, LogSyncDone, SegmentFile, Wake};
use crate::disk_trouble::DiskTrouble;
use crate::event_list::EventList;
use crate::run_read::{Job, OpenRuns, RunRead, RunReader};
use crate::run_readers::RunReaders;
use crate::segment_files::NewSegment;
use base::ids::{CoreId, LogOrdinal, SegmentNumber};
use base::street::{Effect, Event};
use rustix::io::Errno;
use std::fs::OpenOptions;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

/// Where one core's log lies and how its files are called.
pub struct LogFilesConfig {
    /// The data directory; it exists and is locked by this process.
    pub directory: PathBuf,
    /// File name of a segment of this core; `storage` defines it.
    pub file_name: Box<dyn Fn(SegmentNumber) -> String + Send>,
}

/// Who syncs.
enum Syncs {
    /// A thread for syncs and nothing else: a reply may wait for each.
    Beside(DiskThread),
    /// Whoever takes the sync that was asked for.
    HandedOut(Option<LogSync>),
}

/// See the module.
pub(crate) struct LogFiles {
    config: LogFilesConfig,
    syncs: Syncs,
    /// Makes segments ahead of need, which takes many syncs' time, and everything about runs.
    segments: DiskThread,
    /// Reads of runs that no driver does, from the first one on.
    readers: Option<RunReaders>,
    runs: OpenRuns,
    core: CoreId,
    wake: Wake,
    /// Open segments, oldest first: the one being written, those made ahead, and older ones that are not synced yet.
    open: Vec<Arc<SegmentFile>>,
    /// Written since their last sync began, oldest first, and where.
    dirty: Vec<(Arc<SegmentFile>, Range<u64>)>,
    failed: bool,
    write_failed: bool,
    told: DiskTrouble,
}

impl LogFiles {
    pub fn start(config: LogFilesConfig, core: CoreId, wake: Wake) -> io::Result<LogFiles> {
        let syncs = DiskThread::start(format!("sync-{}", core.0), Arc::clone(&wake))?;
        LogFiles::start_with(config, core, Syncs::Beside(syncs), wake)
    }

    /// As [`LogFiles::start`]; syncs are for [`LogFiles::take_sync`].
    pub fn start_without_syncs(config: LogFilesConfig, core: CoreId, wake: Wake) -> io::Result<LogFiles> {
        LogFiles::start_with(config, core, Syncs::HandedOut(None), wake)
    }

    fn start_with(config: LogFilesConfig, core: CoreId, syncs: Syncs, wake: Wake) -> io::Result<LogFiles> {
        let segments = DiskThread::start(format!("segments-{}", core.0), Arc::clone(&wake))?;
        // Who embeds a store is told by its calls.
        let told = DiskTrouble::new(matches!(syncs, Syncs::Beside(_)));
        Ok(LogFiles {
            config,
            told,
            syncs,
            segments,
            readers: None,
            runs: OpenRuns::default(),
            core,
            wake,
            open: Vec::new(),
            dirty: Vec::new(),
            failed: false,
            write_failed: false,
        })
    }

    /// Whether a write failed, so that no reply may leave this core any more.
    pub fn forbids_sends(&self) -> bool {
        self.write_failed
    }

    /// Lists what the disk threads finished.
    pub fn collect(&mut self, events: &mut EventList) {
        while let Some(result) = self.segments.result().or_else(|| self.sync_result()) {
            match result {
                DiskResult::Created(file) => {
                    let segment = file.segment;
                    self.open.push(file);
                    self.told.segment_is_made();
                    events.push(Event::SegmentReady { segment });
                }
                DiskResult::NotCreated { segment, reason } => {
                    self.told.segment_is_not_made(&reason);
                    events.push(Event::SegmentFailed { segment, reason });
                }
                DiskResult::Extended { segment, bytes } => {
                    self.told.room_is_made();
                    events.push(Event::RoomReady { segment, bytes });
                }
                DiskResult::NotExtended(reason) => {
                    self.told.room_is_not_made(&reason);
                    events.push(Event::RoomFailed { reason });
                }
                DiskResult::Synced(done) => self.end_sync(done, events),
                DiskResult::Failed(reason) => self.fail(reason, events),
                DiskResult::RunWritten(buffer) => events.push(Event::RunWritten { buffer }),
                DiskResult::RunsPublished => {
                    self.told.run_is_made();
                    events.push(Event::RunsPublished);
                }
                DiskResult::RunFailed(reason) => {
                    self.told.run_is_not_made(&reason);
                    events.push(Event::RunFailed { reason });
                }
                DiskResult::Removed => {}
                DiskResult::FileDurable | DiskResult::FileFailed(_) | DiskResult::FileRead(_) => {
                    unreachable!("a log replaces no files")
                }
            }
        }
        while let Some((token, read)) = self.readers.as_mut().and_then(RunReaders::result) {
            events.push(Event::RunRead { token, read });
        }
    }

    /// A read that a driver may do; `None` where a thread has to, because the file wants to be waited for, or is not there.
    pub fn run_read(&self, token: u64, name: &str, (offset, bytes): (u64, u64)) -> Option<RunRead> {
        RunRead::of(&self.read_job(token, name, (offset, bytes)), &self.runs)
    }

    /// A driver's read ended. One that failed or brought too little is done again, by a thread that knows what to say of it.
    pub fn end_run_read(&mut self, read: RunRead, outcome: Result<usize, Errno>, events: &mut EventList) {
        let token = read.job.token;
        match read.content(outcome.unwrap_or(0)) {
            Ok(content) => events.push(Event::RunRead { token, read: Ok(content) }),
            Err(job) => self.read_run(job, events),
        }
    }

    fn read_job(&self, token: u64, name: &str, (offset, bytes): (u64, u64)) -> Job {
        Job { token, path: self.config.directory.join(name), offset, bytes: bytes as usize }
    }

    fn read_run(&mut self, job: Job, events: &mut EventList) {
        if self.readers.is_none() {
            match RunReaders::start(self.core.0, &self.wake, &self.runs) {
                Ok(readers) => self.readers = Some(readers),
                Err(error) => {
                    let (path, offset) = (job.path.display(), job.offset);
                    let read = Err(format!("{path} at offset {offset}: no thread to read it: {error}"));
                    return events.push(Event::RunRead { token: job.token, read });
                }
            }
        }
        if let Some(readers) = &mut self.readers {
            readers.submit(job);
        }
    }

    fn sync_result(&mut self) -> Option<DiskResult> {
        match &mut self.syncs {
            Syncs::Beside(thread) => thread.result(),
            Syncs::HandedOut(_) => None,
        }
    }

    /// For who reads runs where he may block.
    pub fn run_reader(&self) -> RunReader {
        RunReader::new(&self.config.directory, &self.runs)
    }

    /// The sync that was asked for, to be performed by the caller.
    pub fn take_sync(&mut self) -> Option<LogSync> {
        match &mut self.syncs {
            Syncs::Beside(_) => None,
            Syncs::HandedOut(sync) => sync.take(),
        }
    }

    /// A sync was performed.
    pub fn end_sync(&mut self, done: LogSyncDone, events: &mut EventList) {
        match done.0 {
            Ok(ordinal) if !self.failed => events.push(Event::LogSynced { ordinal }),
            Ok(_) => {}
            Err(reason) => self.fail(reason, events),
        }
    }

    /// Performs an effect on the log or on runs; the others are none of its business.
    pub fn perform(&mut self, effect: Effect, quiet: bool, events: &mut EventList) {
        match effect {
            Effect::CreateSegment { segment, header, bytes, recycle } => {
                self.create(NewSegment { segment, header, bytes }, recycle, events);
            }
            Effect::WriteLog { segment, offset, bytes, ordinal } => {
                self.write(segment, offset, bytes, ordinal, quiet, events);
            }
            Effect::ExtendSegment { segment, bytes } => self.extend(segment, bytes, events),
            Effect::SyncLog { segment, ordinal } => self.sync(segment, ordinal, events),
            Effect::WriteRun { name, offset, bytes, recycle } => {
                self.write_run(&name, (offset, bytes), recycle, events);
            }
            Effect::ReadRun { token, name, offset, bytes } => {
                self.read_run(self.read_job(token, &name, (offset, bytes)), events);
            }
            Effect::PublishRuns { names } => self.publish_runs(names, events),
            Effect::DropRuns { names } => self.drop_runs(&names),
            Effect::RemoveFiles { names } => self.remove(names),
            Effect::Send { .. }
            | Effect::Dial { .. }
            | Effect::Close { .. }
            | Effect::PauseReceive { .. }
            | Effect::ResumeReceive { .. }
            | Effect::WriteFile { .. }
            | Effect::ReplaceFile { .. }
            | Effect::ReadFile { .. }
            | Effect::ReleaseMemory
            | Effect::KeepFreedMemory(_)
            | Effect::StopListening
            | Effect::Still { .. }
            | Effect::HandOver { .. }
            | Effect::Stop => unreachable!("not an effect on the log"),
        }
    }

    fn create(&mut self, new: NewSegment, recycle: Option<SegmentNumber>, events: &mut EventList) {
        let (path, recycle) = (self.path_of(new.segment), recycle.map(|segment| self.path_of(segment)));
        if let Err(reason) = self.segments.submit(DiskJob::Create { segment: new, path, recycle }) {
            self.fail(reason, events);
        }
    }

    /// Reserves room for a long group.
    fn extend(&mut self, segment: SegmentNumber, bytes: u64, events: &mut EventList) {
        let job = self.segment_file(segment).map(|file| DiskJob::Extend { file, bytes });
        if let Err(reason) = job.and_then(|job| self.segments.submit(job)) {
            events.push(Event::RoomFailed { reason });
        }
    }

    /// Writes a group, whole, before returning.
    fn write(
        &mut self,
        segment: SegmentNumber,
        offset: u64,
        bytes: Vec<u8>,
        ordinal: LogOrdinal,
        quiet: bool,
        events: &mut EventList,
    ) {
        match self.write_group(segment, offset, &bytes) {
            Ok(()) => events.push_completion(Event::LogWritten { ordinal, buffer: bytes }, quiet),
            Err(reason) => {
                self.write_failed = true;
                self.fail(reason, events);
            }
        }
    }

    fn write_group(&mut self, segment: SegmentNumber, offset: u64, bytes: &[u8]) -> Result<(), String> {
        if self.failed {
            return Err(String::from("the log failed before"));
        }
        let file = self.segment_file(segment)?;
        file.file.write_all_at(bytes, offset).map_err(|error| format!("{}: {error}", file.path.display()))?;
        let end = offset + bytes.len() as u64;
        match self.dirty.iter_mut().find(|(other, _)| other.segment == segment) {
            Some((_, written)) => *written = written.start.min(offset)..written.end.max(end),
            None => self.dirty.push((file, offset..end)),
        }
        Ok(())
    }

    /// Syncs everything written up to `segment`.
    fn sync(&mut self, segment: SegmentNumber, ordinal: LogOrdinal, events: &mut EventList) {
        if self.failed {
            return;
        }
        let covered = |(file, _): &(Arc<SegmentFile>, Range<u64>)| file.segment <= segment;
        let (files, later) = self.dirty.drain(..).partition(covered);
        self.dirty = later;
        // The log has left the earlier ones; the job keeps them open until they are synced.
        self.open.retain(|file| file.segment >= segment);
        let sync = LogSync { files, ordinal };
        let submitted = match &mut self.syncs {
            Syncs::Beside(thread) => thread.submit(DiskJob::Sync(sync)),
            Syncs::HandedOut(place) => {
                *place = Some(sync);
                Ok(())
            }
        };
        if let Err(reason) = submitted {
            self.fail(reason, events);
        }
    }

    fn write_run(
        &mut self,
        name: &str,
        (offset, bytes): (u64, Vec<u8>),
        recycle: Option<String>,
        events: &mut EventList,
    ) {
        let (path, recycle) = (self.config.directory.join(name), recycle.map(|name| self.config.directory.join(name)));
        self.runs.forget(recycle.as_slice());
        self.submit_run(DiskJob::WriteRun { path, offset, bytes, recycle }, events);
    }

    fn publish_runs(&mut self, names: Vec<String>, events: &mut EventList) {
        let paths = names.into_iter().map(|name| self.config.directory.join(name)).collect();
        self.submit_run(DiskJob::PublishRuns { paths }, events);
    }

    fn submit_run(&mut self, job: DiskJob, events: &mut EventList) {
        if let Err(reason) = self.segments.submit(job) {
            events.push(Event::RunFailed { reason });
        }
    }

    fn drop_runs(&mut self, names: &[String]) {
        let paths = names.iter().map(|name| self.config.directory.join(name)).collect();
        self.submit_removal(DiskJob::DropRuns { paths });
    }

    fn remove(&mut self, names: Vec<String>) {
        let paths: Vec<PathBuf> = names.into_iter().map(|name| self.config.directory.join(name)).collect();
        self.runs.forget(&paths);
        // One that was never written may be made again under its name.
        self.open.retain(|file| !paths.contains(&file.path));
        self.submit_removal(DiskJob::Remove { paths });
    }

    fn submit_removal(&mut self, job: DiskJob) {
        if let Err(reason) = self.segments.submit(job) {
            eprintln!("zerohop: files that are not needed stay until the next start: {reason}");
        }
    }

    fn fail(&mut self, reason: String, events: &mut EventList) {
        self.told.log_failed(&reason);
        self.failed = true;
        events.push(Event::LogFailed { reason });
    }

    fn path_of(&self, segment: SegmentNumber) -> PathBuf {
        self.config.directory.join((self.config.file_name)(segment))
    }

    /// The open file of a segment; one left by an earlier run is opened when the log continues in it.
    fn segment_file(&mut self, segment: SegmentNumber) -> Result<Arc<SegmentFile>, String> {
        if let Some(file) = self.open.iter().find(|file| file.segment == segment) {
            return Ok(Arc::clone(file));
        }
        let path = self.path_of(segment);
        match OpenOptions::new().read(true).write(true).open(&path) {
            Ok(file) => {
                let file = Arc::new(SegmentFile { segment, path, file });
                self.open.push(Arc::clone(&file));
                Ok(file)
            }
            Err(error) => Err(format!("{}: {error}", path.display())),
        }
    }
}
