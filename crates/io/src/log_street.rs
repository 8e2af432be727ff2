//! A street for a log alone: performs what a store without a core loop asks for.
//!
//! ```text
//!   caller's threads, one at a time                        any thread
//!   perform(effects) ─► events    take_sync ─────────────► LogSync::perform      blocks, with nothing held
//!   collect()        ─► events    end_sync  ◄───────────── LogSyncDone
//!                                 run_reader ────────────► RunReader::read       blocks, with nothing held
//!      ▲
//!      └── results of one disk thread (segments, runs), which wakes whoever collects
//! ```
//!
//! Order is data here as well: after a failed write nothing is written any more, and nothing is reported durable.

use base::ids::CoreId;
use base::street::{Effect, Event};
use std::io;

use crate::disk_thread::{LogSync, LogSyncDone, Wake};
use crate::event_list::EventList;
use crate::log_files::{LogFiles, LogFilesConfig};
use crate::run_read::RunReader;

/// See the module.
pub struct LogStreet {
    files: LogFiles,
    list: EventList,
}

impl LogStreet {
    /// Starts the disk thread; `wake` is called by it when there is something to collect.
    ///
    /// # Errors
    /// When the operating system gives no thread.
    pub fn start(config: LogFilesConfig, core: CoreId, wake: Wake) -> io::Result<LogStreet> {
        Ok(LogStreet { files: LogFiles::start_without_syncs(config, core, wake)?, list: EventList::new() })
    }

    /// Performs effects on the log and on runs, in order, and lists what happened at once.
    pub fn perform(&mut self, effects: &mut Vec<Effect>, events: &mut Vec<Event>) {
        effects.drain(..).for_each(|effect| self.files.perform(effect, false, &mut self.list));
        self.hand_over(events);
    }

    /// Lists what the disk thread finished.
    pub fn collect(&mut self, events: &mut Vec<Event>) {
        self.files.collect(&mut self.list);
        self.hand_over(events);
    }

    /// The sync that [`Effect::SyncLog`] asked for, to be performed where it may block.
    pub fn take_sync(&mut self) -> Option<LogSync> {
        self.files.take_sync()
    }

    /// For who reads values of runs where he may block.
    pub fn run_reader(&self) -> RunReader {
        self.files.run_reader()
    }

    /// It was performed.
    pub fn end_sync(&mut self, done: LogSyncDone, events: &mut Vec<Event>) {
        self.files.end_sync(done, &mut self.list);
        self.hand_over(events);
    }

    fn hand_over(&mut self, events: &mut Vec<Event>) {
        events.append(&mut self.list.events);
        self.list.reset();
    }
}
