//! Effects in the order of their list, and every durable step as a place where a crash can come.

use base::planted::{Bug, is_planted};
use base::street::UNFINISHED_SUFFIX;
use base::{Effect, Event, LogOrdinal, SegmentNumber};

use crate::disk::{CrashKind, SyncSnapshot};
use crate::faults::Fault;
use crate::node::Node;
use crate::street::{Dial, Item, Street, Work};

/// One of so many extensions of a segment fails.
const EXTENSIONS_PER_FAILURE: u64 = 20;

impl<N: Node> Street<N> {
    /// Perform what a core asked for, until the list ends, a slow write holds it up or the node dies.
    pub(crate) fn perform(&mut self, core: u16) {
        loop {
            // The cores are gone after a crash.
            let Some(place) = self.cores.get_mut(usize::from(core)) else { return };
            if place.blocked {
                return;
            }
            match place.work.pop_front() {
                None => break,
                // It may carry a promise that the disk refused.
                Some(Work::Hop(..)) if place.write_failed => {}
                Some(Work::Hop(to, message)) => self.send_hop(core, to, message),
                Some(Work::Effect(effect)) => self.effect(core, effect),
            }
        }
        let place = &mut self.cores[usize::from(core)];
        if std::mem::take(&mut place.missed_tick) || !place.events.is_empty() {
            self.wake(core);
        }
    }

    fn effect(&mut self, core: u16, effect: Effect) {
        match effect {
            Effect::Send { connection, buffer } => self.send(core, connection, buffer),
            Effect::Dial { token, address } => match &mut self.dials {
                Some(dials) => dials.push(Dial { core, token, address }),
                None => self.tell(core, Event::Dialed { token, connection: Err(String::from("nobody answers")) }),
            },
            Effect::Close { connection } => {
                if let Some(socket) = self.socket_of(core, connection) {
                    self.connections[socket.0].closing = true;
                    if self.connections[socket.0].sending.is_none() {
                        self.close_for_server(socket);
                    }
                }
            }
            Effect::PauseReceive { connection } => self.pause(core, connection, true),
            Effect::ResumeReceive { connection } => self.pause(core, connection, false),
            Effect::CreateSegment { segment, header, bytes, recycle: None, .. } => {
                self.create(core, segment, &header, bytes);
            }
            Effect::CreateSegment { segment, header, recycle: Some(old), .. } => {
                self.recycle(core, (old, segment), &header);
            }
            Effect::WriteLog { segment, offset, bytes, ordinal } => {
                self.write_log(core, segment, offset, bytes, ordinal);
            }
            Effect::ExtendSegment { segment, bytes } => {
                self.trace.note(self.now_us(), "extend", &[u64::from(core), segment.0, bytes], &[]);
                let delay_us = self.chance_us(self.weather.sync_us_max);
                self.after(delay_us, Item::Extended { core, segment, bytes });
            }
            Effect::SyncLog { segment, ordinal } => self.sync_log(core, segment, ordinal),
            Effect::WriteRun { name, offset, bytes, recycle } => {
                self.write_run(core, &name, (offset, bytes), recycle.as_deref());
            }
            Effect::ReadRun { token, name, offset, bytes } => self.read_run(core, token, &name, (offset, bytes)),
            Effect::PublishRuns { names } => self.publish_runs(core, names),
            Effect::DropRuns { names } => names.iter().for_each(|name| self.disk.remove(&unfinished(name))),
            Effect::RemoveFiles { names } => self.remove_files(&names),
            effect @ (Effect::WriteFile { .. } | Effect::ReplaceFile { .. } | Effect::ReadFile { .. }) => {
                self.plan_named_file(core, effect);
            }
            Effect::ReleaseMemory | Effect::KeepFreedMemory(_) => {}
            Effect::StopListening | Effect::Still { .. } | Effect::HandOver { .. } => {
                unreachable!("a node hands nothing over")
            }
            Effect::Stop => self.cores[usize::from(core)].stopped = true,
        }
    }

    fn send(&mut self, core: u16, connection: base::ConnectionId, buffer: Vec<u8>) {
        assert!(!buffer.is_empty(), "a send carries something");
        if self.cores[usize::from(core)].write_failed {
            return;
        }
        // A connection that broke meanwhile: the machine learns it from its Closed event.
        let Some(socket) = self.socket_of(core, connection) else { return };
        self.trace.note(self.now_us(), "send", &[u64::from(core), socket.0 as u64], &buffer);
        let place = &mut self.connections[socket.0];
        assert!(place.sending.is_none(), "at most one send is under way per connection");
        place.to_client.extend(&buffer);
        place.sending = Some(buffer);
        self.plan_to_client(socket);
    }

    /// A durable step; whether the node crashed at it.
    pub(crate) fn durable_step(&mut self) -> bool {
        self.durable_steps += 1;
        match self.crash_at {
            Some(point) if point.step == self.durable_steps => {
                self.crash_at = None;
                self.crash(point.kind);
                true
            }
            _ => false,
        }
    }

    fn create(&mut self, core: u16, segment: SegmentNumber, header: &[u8], bytes: u64) {
        if self.durable_step() {
            return;
        }
        let name = unfinished(&self.node.file_name(core, segment));
        self.trace.note(self.now_us(), "create", &[u64::from(core), segment.0], header);
        self.disk.begin_create(&name, header, bytes);
        let delay_us = self.chance_us(self.weather.sync_us_max);
        self.after(delay_us, Item::Prepared { core, segment });
    }

    /// The first half of it: the file has neither its old name nor its new one.
    fn recycle(&mut self, core: u16, (old, segment): (SegmentNumber, SegmentNumber), header: &[u8]) {
        if self.durable_step() {
            return;
        }
        self.trace.note(self.now_us(), "recycle", &[u64::from(core), old.0, segment.0], header);
        let name = unfinished(&self.node.file_name(core, segment));
        self.disk.rename(&self.node.file_name(core, old), &name);
        if self.durable_step() {
            return;
        }
        if !is_planted(Bug::M25RecycledUnderItsOldName) {
            self.disk.sync_directory();
        }
        if self.durable_step() {
            return;
        }
        self.disk.write(&name, 0, header);
        let delay_us = self.chance_us(self.weather.sync_us_max);
        self.after(delay_us, Item::Prepared { core, segment });
    }

    /// The segment is whole beside its name.
    pub(crate) fn prepared(&mut self, core: u16, segment: SegmentNumber) {
        if self.durable_step() {
            return;
        }
        let name = self.node.file_name(core, segment);
        let snapshot = self.disk.begin_sync(&unfinished(&name));
        self.disk.finish_sync(&unfinished(&name), snapshot);
        if self.durable_step() {
            return;
        }
        self.disk.rename(&unfinished(&name), &name);
        if self.durable_step() {
            return;
        }
        self.disk.sync_directory();
        if !self.durable_step() {
            self.tell(core, Event::SegmentReady { segment });
        }
    }

    /// Room for a long group, or none this time.
    pub(crate) fn extended(&mut self, core: u16, segment: SegmentNumber, bytes: u64) {
        let name = self.node.file_name(core, segment);
        if self.rng.chance(1, EXTENSIONS_PER_FAILURE) {
            self.faults.fired(Fault::RoomFails);
            let reason = format!("{name}: No space left on device");
            return self.tell(core, Event::RoomFailed { reason });
        }
        self.disk.extend(&name, bytes);
        self.tell(core, Event::RoomReady { segment, bytes });
    }

    fn write_log(&mut self, core: u16, segment: SegmentNumber, offset: u64, bytes: Vec<u8>, ordinal: LogOrdinal) {
        if self.durable_step() {
            return;
        }
        let name = self.node.file_name(core, segment);
        if self.cores[usize::from(core)].log_failed {
            self.cores[usize::from(core)].write_failed = true;
            return self.fail_log(core, &name, "the log failed before");
        }
        self.trace.note(self.now_us(), "write", &[u64::from(core), segment.0, offset, ordinal.0], &bytes);
        // Only part of it is there when the crash comes inside the write, or when the write fails.
        let part = self.rng.below(bytes.len() as u64 + 1) as usize;
        let last = self.durable_steps + 1;
        if self.crash_at.is_some_and(|point| point.step == last) || self.fail_next_write {
            self.disk.write(&name, offset, &bytes[..part]);
        }
        if self.durable_step() {
            return;
        }
        if std::mem::take(&mut self.fail_next_write) {
            self.faults.fired(Fault::WriteFails);
            self.cores[usize::from(core)].write_failed = true;
            return self.fail_log(core, &name, "No space left on device");
        }
        self.disk.write(&name, offset, &bytes);
        let dirty = &mut self.cores[usize::from(core)].dirty;
        if !dirty.contains(&segment) {
            dirty.push(segment);
        }
        if self.durable_step() {
            return;
        }
        // The event is listed at once; the tick that sees it comes after the list is done.
        self.cores[usize::from(core)].events.push(Event::LogWritten { ordinal, buffer: bytes });
        let delay_us = self.chance_us(self.weather.write_us_max);
        if delay_us > 0 {
            self.cores[usize::from(core)].blocked = true;
            self.after(delay_us, Item::Unblock(core));
        }
    }

    fn sync_log(&mut self, core: u16, segment: SegmentNumber, ordinal: LogOrdinal) {
        if self.durable_step() || self.cores[usize::from(core)].log_failed {
            return;
        }
        let place = &mut self.cores[usize::from(core)];
        let covered: Vec<SegmentNumber> = place.dirty.iter().copied().filter(|dirty| *dirty <= segment).collect();
        place.dirty.retain(|dirty| *dirty > segment);
        let snapshot = |number| {
            let name = self.node.file_name(core, number);
            let snapshot = self.disk.begin_sync(&name);
            (name, snapshot)
        };
        let files = covered.into_iter().map(snapshot).collect();
        let delay_us = self.chance_us(self.weather.sync_us_max);
        self.after(delay_us, Item::Synced { core, ordinal, files });
    }

    pub(crate) fn synced(&mut self, core: u16, ordinal: LogOrdinal, files: Vec<(String, SyncSnapshot)>) {
        if self.durable_step() || self.cores[usize::from(core)].log_failed {
            return;
        }
        self.trace.note(self.now_us(), "sync", &[u64::from(core), ordinal.0], &[]);
        if std::mem::take(&mut self.fail_next_sync) {
            self.faults.fired(Fault::SyncFails);
            files.iter().for_each(|(name, snapshot)| self.disk.fail_sync(name, snapshot));
            let name = files.first().map_or("the log", |(name, _)| name).to_owned();
            return self.fail_log(core, &name, "Input/output error");
        }
        for (name, snapshot) in files {
            self.disk.finish_sync(&name, snapshot);
        }
        if !self.durable_step() {
            self.tell(core, Event::LogSynced { ordinal });
        }
    }

    fn remove_files(&mut self, names: &[String]) {
        for name in names {
            if self.durable_step() {
                return;
            }
            self.trace.note(self.now_us(), "remove", &[], name.as_bytes());
            self.disk.remove(name);
        }
    }

    fn fail_log(&mut self, core: u16, name: &str, words: &str) {
        self.cores[usize::from(core)].log_failed = true;
        self.log_failed_us.get_or_insert(self.agenda.now_us());
        self.tell(core, Event::LogFailed { reason: format!("{name}: {words}") });
    }

    /// How this world's crashes come when nothing says otherwise.
    pub fn random_crash_kind(&mut self) -> CrashKind {
        if self.rng.chance(1, 2) { CrashKind::Kill } else { CrashKind::PowerCut }
    }
}

/// What a run is called until it is whole.
pub(crate) fn unfinished(name: &str) -> String {
    format!("{name}{UNFINISHED_SUFFIX}")
}
