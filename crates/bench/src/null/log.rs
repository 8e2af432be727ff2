//! What a log on the disk costs whoever keeps one, and nothing else: the bytes that a store would log and write as runs leave memory
//! that is never filled, encoded, copied or summed, in the way Zerohop's leave it.
//!
//! ```text
//!   turn ── pwrite ──► 8 MiB files, used again in turn: the page cache      a thread ── fdatasync of those that are written
//!        └─ bytes of runs ──► a thread ── pieces past the page cache, a sync and a name for each run, the one before removed
//! ```

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use rustix::fs::OFlags;

/// Zerohop's: bytes of a segment, of a piece of a run, and of log that is synced at once.
const SEGMENT_BYTES: u64 = 8 << 20;
const PIECE_BYTES: usize = 256 << 10;
const SYNC_BYTES: u64 = 2 * SEGMENT_BYTES;
/// Files of the log, and pieces of a run: as many as a million records of 132 bytes have in 64 runs.
const SEGMENTS: u64 = 22;
const PIECES_PER_RUN: u64 = 11;
/// A store holds writers of long values while so much of its log is not where it belongs.
const BEHIND_BYTES_MAX: u64 = 64 << 20;
/// The longest write of a turn.
const WRITE_BYTES_MAX: usize = 4 << 20;

/// What is logged.
#[derive(Clone, Debug)]
pub struct LogPlan {
    /// Where, an empty directory.
    pub directory: PathBuf,
    /// For each request.
    pub record_bytes: u64,
    /// Bytes of runs for a hundred bytes of log.
    pub run_percent: u64,
}

/// See the module.
pub struct NullLog {
    plan: LogPlan,
    segments: Vec<Arc<File>>,
    position: u64,
    unsynced: u64,
    run_bytes: u64,
    memory: Vec<u8>,
    to_sync: SyncSender<Arc<File>>,
    to_write: SyncSender<()>,
    /// Bytes that a thread has yet to sync or to write.
    behind_bytes: Arc<AtomicU64>,
    threads: [JoinHandle<io::Result<()>>; 2],
}

impl NullLog {
    /// Makes the files and starts the threads.
    pub fn start(plan: &LogPlan) -> io::Result<NullLog> {
        let memory = vec![7; WRITE_BYTES_MAX];
        let segment = |number: u64| -> io::Result<Arc<File>> {
            let path = plan.directory.join(format!("{number}.log"));
            let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
            file.write_all_at(&memory, 0)?;
            file.write_all_at(&memory, SEGMENT_BYTES / 2)?;
            file.sync_all()?;
            Ok(Arc::new(file))
        };
        let segments = (0..SEGMENTS).map(segment).collect::<io::Result<_>>()?;
        let (to_sync, syncs) = sync_channel::<Arc<File>>(SEGMENTS as usize);
        let (to_write, pieces) = sync_channel::<()>(1024);
        let directory = plan.directory.clone();
        let behind_bytes = Arc::new(AtomicU64::new(0));
        let [of_syncs, of_runs] = [Arc::clone(&behind_bytes), Arc::clone(&behind_bytes)];
        let sync = move |file: Arc<File>| {
            let synced = file.sync_data();
            of_syncs.fetch_sub(SEGMENT_BYTES, Ordering::Relaxed);
            synced
        };
        let threads = [
            std::thread::spawn(move || syncs.into_iter().try_for_each(sync)),
            std::thread::spawn(move || write_runs(&directory, &pieces, &of_runs)),
        ];
        Ok(NullLog {
            plan: plan.clone(),
            segments,
            position: 0,
            unsynced: 0,
            run_bytes: 0,
            memory,
            to_sync,
            to_write,
            behind_bytes,
            threads,
        })
    }

    /// So many requests came. Waits where the disk cannot follow, as a store would.
    pub fn append(&mut self, requests: u64) -> io::Result<()> {
        self.append_bytes(requests * self.plan.record_bytes)
    }

    /// Whether whoever has much to log should wait.
    pub fn is_behind(&self) -> bool {
        self.behind_bytes.load(Ordering::Relaxed) > BEHIND_BYTES_MAX
    }

    /// So many bytes of log came.
    pub fn append_bytes(&mut self, mut rest: u64) -> io::Result<()> {
        self.run_bytes += rest * self.plan.run_percent / 100;
        while rest > 0 {
            let (number, offset) = (self.position / SEGMENT_BYTES % SEGMENTS, self.position % SEGMENT_BYTES);
            let count = rest.min(SEGMENT_BYTES - offset).min(WRITE_BYTES_MAX as u64);
            self.segments[number as usize].write_all_at(&self.memory[..count as usize], offset)?;
            (self.position, self.unsynced, rest) = (self.position + count, self.unsynced + count, rest - count);
            if self.position.is_multiple_of(SEGMENT_BYTES) && self.unsynced >= SYNC_BYTES {
                self.sync(number)?;
            }
        }
        while self.run_bytes >= PIECE_BYTES as u64 {
            self.run_bytes -= PIECE_BYTES as u64;
            self.behind_bytes.fetch_add(PIECE_BYTES as u64, Ordering::Relaxed);
            self.to_write.send(()).map_err(|_| io::Error::other("no run can be written"))?;
        }
        Ok(())
    }

    /// Nothing is written any more; an error of the threads, if one had any.
    pub fn finish(self) -> io::Result<()> {
        drop((self.to_sync, self.to_write));
        let died = |_| io::Error::other("a thread of the log panicked");
        self.threads.into_iter().try_for_each(|thread| thread.join().map_err(died)?)
    }

    fn sync(&mut self, last: u64) -> io::Result<()> {
        let count = self.unsynced.div_ceil(SEGMENT_BYTES).min(SEGMENTS);
        self.unsynced = 0;
        for back in (0..count).rev() {
            let number = (last + SEGMENTS - back) % SEGMENTS;
            let file = Arc::clone(&self.segments[number as usize]);
            self.behind_bytes.fetch_add(SEGMENT_BYTES, Ordering::Relaxed);
            self.to_sync.send(file).map_err(|_| io::Error::other("the log cannot be synced"))?;
        }
        Ok(())
    }
}

fn write_runs(directory: &Path, pieces: &Receiver<()>, behind_bytes: &AtomicU64) -> io::Result<()> {
    // Aligned for writes past the page cache.
    let memory = vec![7u8; PIECE_BYTES + 4096];
    let piece = &memory[memory.as_ptr().align_offset(4096)..][..PIECE_BYTES];
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).custom_flags(OFlags::DIRECT.bits() as i32);
    for run in 0u64.. {
        let unfinished = directory.join("run.new");
        let file = options.open(&unfinished)?;
        for number in 0..PIECES_PER_RUN {
            if pieces.recv().is_err() {
                return Ok(());
            }
            file.write_all_at(piece, number * PIECE_BYTES as u64)?;
            behind_bytes.fetch_sub(PIECE_BYTES as u64, Ordering::Relaxed);
        }
        file.sync_all()?;
        // The one before it of the same group goes under its name.
        fs::rename(unfinished, directory.join(format!("{}.run", run % 64)))?;
        File::open(directory)?.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn as_many_bytes_are_written_as_a_store_would() {
        let directory = std::env::temp_dir().join(format!("zerohop-null-log-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let plan = LogPlan { directory: directory.clone(), record_bytes: 200, run_percent: 83 };
        let mut log = NullLog::start(&plan).unwrap();
        for _ in 0..100 {
            log.append(1_000).unwrap();
        }
        assert_eq!(log.position, 100 * 1_000 * 200);
        assert!(log.unsynced < SYNC_BYTES + SEGMENT_BYTES);
        // 16.6 MB of runs: 63 pieces, five runs and a part of the sixth.
        let runs = || {
            fs::read_dir(&directory)
                .unwrap()
                .filter(|one| one.as_ref().unwrap().path().extension().unwrap() == "run")
                .count()
        };
        while runs() < 5 {
            std::thread::yield_now();
        }
        log.finish().unwrap();
        fs::remove_dir_all(&directory).unwrap();
    }
}
