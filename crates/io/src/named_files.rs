//! Files of one directory that a machine writes, replaces and reads by name, on a disk thread of their own: a manager's, and the
//! file of users.
//!
//! ```text
//!   WriteFile   ──► pwrite, fdatasync ──────────────────────────────────► FileDurable │ FileFailed
//!   ReplaceFile ──► write beside, fsync, rename, fsync of the directory ─► the same
//!   ReadFile    ──► open, read ─────────────────────────────────────────► FileRead
//! ```
//!
//! One thread, so that they are performed in order and a failure is told in its place.

use crate::disk_thread::{DiskJob, DiskResult, DiskThread, Wake};
use crate::event_list::EventList;
use base::ids::CoreId;
use base::street::Event;
use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;

/// See the module.
pub(crate) struct NamedFiles {
    directory: PathBuf,
    thread: DiskThread,
    /// Numbers of those under way, oldest first.
    tokens: VecDeque<u64>,
}

impl NamedFiles {
    pub fn start(directory: PathBuf, core: CoreId, wake: Wake) -> io::Result<NamedFiles> {
        let thread = DiskThread::start(format!("files-{}", core.0), wake)?;
        Ok(NamedFiles { directory, thread, tokens: VecDeque::new() })
    }

    /// Begins an `Effect::WriteFile`.
    pub fn write(&mut self, token: u64, name: &str, offset: u64, bytes: Vec<u8>, events: &mut EventList) {
        let path = self.directory.join(name);
        self.submit(token, name, DiskJob::WriteFile { path, offset, bytes }, events);
    }

    /// Begins an `Effect::ReplaceFile`.
    pub fn replace(&mut self, token: u64, name: &str, bytes: Vec<u8>, events: &mut EventList) {
        let path = self.directory.join(name);
        self.submit(token, name, DiskJob::ReplaceFile { path, bytes }, events);
    }

    /// Begins an `Effect::ReadFile`.
    pub fn read(&mut self, token: u64, name: &str, bytes_max: u64, events: &mut EventList) {
        let path = self.directory.join(name);
        self.submit(token, name, DiskJob::ReadFile { path, bytes_max }, events);
    }

    fn submit(&mut self, token: u64, name: &str, job: DiskJob, events: &mut EventList) {
        match self.thread.submit(job) {
            Ok(()) => self.tokens.push_back(token),
            Err(reason) => events.push(Event::FileFailed { token, reason: format!("{name}: {reason}") }),
        }
    }

    /// Lists what the disk thread finished.
    pub fn collect(&mut self, events: &mut EventList) {
        while let Some(result) = self.thread.result() {
            match result {
                DiskResult::FileDurable => {
                    let token = self.oldest();
                    events.push(Event::FileDurable { token });
                }
                DiskResult::FileFailed(reason) => {
                    let token = self.oldest();
                    events.push(Event::FileFailed { token, reason });
                }
                DiskResult::FileRead(read) => {
                    let token = self.oldest();
                    events.push(Event::FileRead { token, read });
                }
                DiskResult::Failed(reason) => {
                    let left = self.tokens.drain(..);
                    left.for_each(|token| events.push(Event::FileFailed { token, reason: reason.clone() }));
                }
                _ => unreachable!("this thread is asked for files only"),
            }
        }
    }

    fn oldest(&mut self) -> u64 {
        self.tokens.pop_front().expect("each result belongs to a job that was handed over")
    }
}
