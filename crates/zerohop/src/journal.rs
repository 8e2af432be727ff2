//! What survives: the log, its files, and the checkpoints that replace it.
//!
//! ```text
//!   changes ─► storage's buffer ─ seal ─► effects ─ perform ─► files
//!                                            ▲                   │
//!                     log, checkpoints ◄─ handle ◄─── events ────┘
//! ```

use base::limits::{LOG_SYNC_SEGMENTS, LOG_UNSYNCED_SEGMENTS_MAX};
use base::{Effect, Event, LogOrdinal, Now, SlotGroupId};
use io::{LogStreet, LogSync, LogSyncDone, RunReader};
use storage::checkpoint::{Asked, Life, View};
use storage::log::{LogIdentity, LogWriter, Recovery};
use storage::{Checkpoints, Store};

use crate::long_put::Uploads;
use crate::options::Durability;

/// From one sync to the next where no call waits for one, and from one attempt to make a segment to the next, microseconds.
const INTERVAL_US: u64 = 1_000_000;
/// Log from one look at whether writers outrun the disk to the next, bytes.
const PACE_BYTES: u64 = 1 << 20;

/// See the module.
pub(crate) struct Journal {
    pub log: LogWriter,
    pub checkpoints: Checkpoints,
    pub durability: Durability,
    /// For who needs a value that is not in memory.
    pub runs: RunReader,
    street: LogStreet,
    effects: Vec<Effect>,
    events: Vec<Event>,
    last_sync_us: u64,
    last_segment_try_us: u64,
    /// A checkpoint waits until the log is durable up to here: its number for [`Checkpoints::on_settled`].
    settles: Option<(u64, LogOrdinal)>,
    /// The next step of a checkpoint should come at once.
    steps_again: bool,
    /// Whether writers wait for the disk, and at how many bytes of log that is looked at again.
    outruns: bool,
    outruns_with_long: bool,
    pace_at_bytes: u64,
}

impl Journal {
    pub fn new(
        identity: LogIdentity,
        durability: Durability,
        street: LogStreet,
        (recovery, store): (&Recovery, &Store),
    ) -> Journal {
        let mut checkpoints = Checkpoints::new(identity, SlotGroupId::all());
        checkpoints.set_recovered(recovery, store);
        Journal {
            log: LogWriter::new(identity),
            checkpoints,
            durability,
            runs: street.run_reader(),
            street,
            effects: Vec::new(),
            events: Vec::new(),
            last_sync_us: 0,
            last_segment_try_us: 0,
            settles: None,
            steps_again: true,
            outruns: false,
            outruns_with_long: false,
            pace_at_bytes: 0,
        }
    }

    /// The log group of the last change, whether sealed or still to be.
    pub fn last_change(&self, store: &Store) -> LogOrdinal {
        if store.has_unsealed() { self.log.next_ordinal() } else { self.log.sealed() }
    }

    /// Seals what was changed into a log group, and hands it to the operating system.
    #[inline]
    pub fn seal(&mut self, store: &mut Store, uploads: &Uploads, now: Now) {
        if self.log.failure().is_some() {
            return;
        }
        if let Some(buffer) = store.log_mut().filter(|buffer| !buffer.is_empty()) {
            self.log.seal(buffer, now, &mut self.effects);
            self.go_on((store, uploads), Life::Serving, now);
            store.keep_expired(self.log.refusal().is_some());
        }
    }

    /// Whether a sync is due without anybody waiting for it.
    pub fn wants_sync(&self, now: Now) -> bool {
        let is_ahead = self.log.unsynced_bytes() > LOG_SYNC_SEGMENTS * self.log.segment_bytes();
        let is_due = self.settles.is_some() || is_ahead || now.monotonic_us >= self.last_sync_us + INTERVAL_US;
        is_due && !self.log.is_syncing() && self.log.sealed() > self.log.durable()
    }

    /// When the next sync is due.
    pub fn sync_due_us(&self) -> Option<u64> {
        (self.log.sealed() > self.log.durable()).then_some(self.last_sync_us + INTERVAL_US)
    }

    /// Begins a sync of everything sealed; the caller performs it with nothing held, and tells [`Journal::end_sync`].
    pub fn begin_sync(&mut self, parts: (&mut Store, &Uploads), life: Life, now: Now) -> Option<LogSync> {
        self.last_sync_us = now.monotonic_us;
        self.log.sync(&mut self.effects);
        self.go_on(parts, life, now);
        self.street.take_sync()
    }

    /// A sync was performed.
    pub fn end_sync(&mut self, done: LogSyncDone, parts: (&mut Store, &Uploads), life: Life, now: Now) {
        self.street.end_sync(done, &mut self.events);
        self.pace_at_bytes = 0;
        self.go_on(parts, life, now);
    }

    /// Hears of what the disk thread did.
    pub fn collect(&mut self, parts: (&mut Store, &Uploads), life: Life, now: Now) {
        self.street.collect(&mut self.events);
        if self.log.wants_retry() && now.monotonic_us >= self.last_segment_try_us + INTERVAL_US {
            self.last_segment_try_us = now.monotonic_us;
            self.log.retry_segment(&mut self.effects);
        }
        let (store, uploads) = parts;
        self.go_on((&mut *store, uploads), life, now);
        store.keep_expired(self.log.refusal().is_some());
    }

    /// Goes on with the checkpoint under way, or begins the next one; at most a slice of it.
    pub fn step(&mut self, (store, uploads): (&mut Store, &Uploads), life: Life, now: Now) {
        self.steps_again = false;
        self.with_checkpoints((&mut *store, uploads), life, now, Checkpoints::step);
        self.pace_at_bytes = 0;
        self.go_on((store, uploads), life, now);
    }

    /// Whether the next step should come at once.
    pub fn steps_again(&self) -> bool {
        self.steps_again
    }

    /// Whether writers have to wait for a sync, a checkpoint or a segment that is under way, or that the next step begins.
    #[inline]
    pub fn outruns_disk(&mut self, (store, uploads): (&mut Store, &Uploads), now: Now) -> bool {
        if self.log.awaits_segment() {
            return true;
        }
        if self.log.bytes_total() >= self.pace_at_bytes {
            self.pace_at_bytes = self.log.bytes_total() + PACE_BYTES;
            let unsynced_bytes_max = LOG_UNSYNCED_SEGMENTS_MAX * self.log.segment_bytes();
            let mut outruns = self.log.unsynced_bytes() > unsynced_bytes_max && self.log.is_syncing();
            let mut outruns_with_long = outruns;
            self.with_checkpoints((store, uploads), Life::Serving, now, |checkpoints, view| {
                outruns |= checkpoints.is_outrun(view);
                outruns_with_long |= checkpoints.is_outrun_by_long(view);
                Asked::Nothing
            });
            (self.outruns, self.outruns_with_long) = (outruns, outruns_with_long);
        }
        self.outruns
    }

    /// As [`Journal::outruns_disk`] found it last: whether who brings a long value waits, too.
    pub fn outruns_disk_with_long(&self) -> bool {
        self.outruns_with_long
    }

    /// Whether a run is under way, or may begin, behind which more values may leave memory.
    pub fn may_clean(&mut self, (store, uploads): (&mut Store, &Uploads), now: Now) -> bool {
        let mut may = false;
        self.with_checkpoints((store, uploads), Life::Serving, now, |checkpoints, view| {
            may = checkpoints.may_clean(view);
            Asked::Nothing
        });
        may && self.log.failure().is_none()
    }

    /// Performs what is asked for and hears of what happened, until nothing more does at once.
    fn go_on(&mut self, (store, uploads): (&mut Store, &Uploads), life: Life, now: Now) {
        loop {
            if !self.effects.is_empty() {
                self.street.perform(&mut self.effects, &mut self.events);
            }
            if self.events.is_empty() {
                return;
            }
            let mut events = std::mem::take(&mut self.events);
            events.drain(..).for_each(|event| self.handle(event, (&mut *store, uploads), life, now));
            // Its memory is used again.
            if self.events.is_empty() {
                self.events = events;
            }
        }
    }

    fn handle(&mut self, event: Event, (store, uploads): (&mut Store, &Uploads), life: Life, now: Now) {
        match event {
            Event::LogWritten { ordinal, buffer } => {
                self.log.on_log_written(ordinal);
                if let Some(next) = store.log_mut() {
                    next.reuse(buffer);
                }
            }
            Event::LogSynced { ordinal } => {
                self.log.on_log_synced(ordinal);
                store.commit(|_| ordinal);
                if let Some((number, _)) = self.settles.take_if(|(_, needed)| *needed <= ordinal) {
                    self.with_checkpoints((store, uploads), life, now, |runs, view| runs.on_settled(number, view));
                }
            }
            Event::SegmentReady { segment } => self.log.on_segment_ready(segment),
            Event::SegmentFailed { reason, .. } => {
                self.last_segment_try_us = now.monotonic_us;
                self.log.on_segment_failed(reason);
            }
            Event::LogFailed { reason } => self.log.on_log_failed(reason),
            Event::RunWritten { buffer } => {
                self.steps_again = true;
                self.checkpoints.on_run_written(buffer);
            }
            Event::RunsPublished => {
                self.with_checkpoints((store, uploads), life, now, Checkpoints::on_runs_published);
            }
            Event::RunFailed { reason } => {
                self.with_checkpoints((store, uploads), life, now, |runs, view| runs.on_run_failed(reason, view.now));
            }
            Event::RoomReady { .. } | Event::RoomFailed { .. } => unreachable!("no group here waits for room"),
            Event::RunRead { token, read } => {
                self.with_checkpoints((store, uploads), life, now, |runs, view| runs.on_run_read(token, read, view));
            }
            Event::Accepted { .. }
            | Event::Dialed { .. }
            | Event::Received { .. }
            | Event::PeerClosed { .. }
            | Event::SendDone { .. }
            | Event::Closed { .. }
            | Event::FileDurable { .. }
            | Event::FileFailed { .. }
            | Event::FileRead { .. }
            | Event::ListeningStopped
            | Event::Stilled { .. }
            | Event::HandedOver { .. }
            | Event::Arrived { .. }
            | Event::ArrivalsEnded
            | Event::TickGap(_)
            | Event::ShutdownRequested => {
                unreachable!("a street for a log knows no connection, and no file but the log's")
            }
        }
    }

    fn with_checkpoints(
        &mut self,
        (store, uploads): (&mut Store, &Uploads),
        life: Life,
        now: Now,
        act: impl FnOnce(&mut Checkpoints, &mut View<'_>) -> Asked,
    ) {
        let begin = |_: &Store, sealed| Some(uploads.begin_of_runs(sealed));
        // Nobody is served by the thread that makes runs: they get all that they want.
        let work = self.checkpoints.work_wanted(store, &self.log, now);
        let (log, effects) = (&mut self.log, &mut self.effects);
        let mut view = View {
            store,
            log,
            effects,
            now,
            life,
            work,
            long_bytes_max: usize::MAX,
            first_pending: None,
            begin: &begin,
        };
        match act(&mut self.checkpoints, &mut view) {
            Asked::Nothing => {}
            Asked::StepAgain => self.steps_again = true,
            Asked::Durability(number) => self.settle(number, (store, uploads), life, now),
            Asked::Renewal => {
                self.steps_again = true;
                self.checkpoints.on_renewed(1, &mut self.effects);
            }
        }
    }

    /// The checkpoint goes on once everything up to now is durable.
    fn settle(&mut self, number: u64, (store, uploads): (&mut Store, &Uploads), life: Life, now: Now) {
        let needed = self.last_change(store);
        match needed <= self.log.durable() {
            true => self.with_checkpoints((store, uploads), life, now, |runs, view| runs.on_settled(number, view)),
            false => self.settles = Some((number, needed)),
        }
    }
}
